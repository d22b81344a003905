// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// ParseTargets parses the arguments as kubectl does: NAME (a claim), TYPE/NAME … or TYPE
// NAME ….
func ParseTargets(args []string) ([]snapshot.Argument, error) {
	const forms = "Write NAME for a claim, TYPE/NAME or TYPE NAME, for example pod/train-0."
	slashed := 0
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			slashed++
		}
	}
	switch {
	case slashed == 0 && len(args) == 1:
		return []snapshot.Argument{{Resource: claims, Name: args[0]}}, nil
	case slashed == 0:
		args = slices.Clone(args)
		for i, name := range args[1:] {
			args[i+1] = args[0] + "/" + name
		}
		return ParseTargets(args[1:])
	case slashed < len(args):
		return nil, Usagef(forms, "parse target: TYPE/NAME and TYPE NAME cannot be mixed")
	}
	refs := make([]snapshot.Argument, 0, len(args))
	for _, arg := range args {
		resource, name, _ := strings.Cut(arg, "/")
		if resource == "" || name == "" || strings.Contains(name, "/") {
			return nil, Usagef(forms, "parse target %q: not of the form TYPE/NAME", arg)
		}
		if kind := kindWithoutPods(resource); kind != "" {
			return nil, Usagef(whatTargetsAre, "find %s %s: a %s has no pod template and can never be a target", resource, name, kind)
		}
		refs = append(refs, snapshot.Argument{Resource: fullResource(resource), Name: name})
	}
	return refs, nil
}

// BareKind returns the kind of a name without a type, in a namespace or, if that is empty,
// in any: a claim, or else a pod. It is empty if there is neither.
func BareKind(snap *snapshot.Snapshot, namespace, name string) string {
	switch {
	case len(FindNamed(snap.Claims, namespace, name)) > 0:
		return api.KindClaim
	case len(FindNamed(snap.Pods, namespace, name)) > 0:
		return api.KindPod
	default:
		return ""
	}
}

// TookPod says that a bare name was taken for a pod.
func TookPod(name string) string {
	return fmt.Sprintf("there is no ResourceClaim %s; explaining pod %s instead", name, name)
}

// Types with names of this program.
const (
	claims    = "resourceclaims"
	templates = "resourceclaimtemplates"
)

const whatTargetsAre = "Targets are claims, templates, pods, PodGroups and whatever has a pod template."

// CheckTargets fails for invalid names.
func CheckTargets(refs []snapshot.Argument) error {
	for _, ref := range refs {
		if problems := validation.IsDNS1123Subdomain(ref.Name); len(problems) > 0 {
			return Usagef(NameRule, "parse target: %q is not a valid object name", ref.Name)
		}
	}
	return nil
}

// kindWithoutPods returns the kind of a well-known type without pods. Types with a group
// are left to users who know them.
func kindWithoutPods(resource string) string {
	switch strings.ToLower(resource) {
	case "service", "services", "svc":
		return "Service"
	case "configmap", "configmaps", "cm":
		return "ConfigMap"
	case "secret", "secrets":
		return "Secret"
	case "node", "nodes", "no":
		return "Node"
	case "namespace", "namespaces", "ns":
		return "Namespace"
	case "event", "events", "ev":
		return "Event"
	case "serviceaccount", "serviceaccounts", "sa":
		return "ServiceAccount"
	case "persistentvolume", "persistentvolumes", "pv":
		return "PersistentVolume"
	case "persistentvolumeclaim", "persistentvolumeclaims", "pvc":
		return "PersistentVolumeClaim"
	case "ingress", "ingresses", "ing":
		return "Ingress"
	case "deviceclass", "deviceclasses", "class", "classes":
		return "DeviceClass"
	case "resourceslice", "resourceslices", "slice", "slices":
		return "ResourceSlice"
	default:
		return ""
	}
}

// unknownTypeError means that a snapshot file does not know a type.
type unknownTypeError struct{ ref snapshot.Argument }

func (e *unknownTypeError) Error() string {
	known := []string{"claim", "template", "device", "node"}
	for _, kind := range builtInTargets() {
		known = append(known, strings.ToLower(kind.Kind))
	}
	return fmt.Sprintf("find %s %s: there is no type %q here%s", e.ref.Resource, e.ref.Name, e.ref.Resource, english.DidYouMean(e.ref.Resource, known))
}

// WithSuggestion adds a suggestion for the arguments to an error.
func WithSuggestion(args []string, err error) error {
	if len(args) == 0 || strings.Contains(args[0], "/") {
		return err
	}
	var (
		target *explain.TargetError
		absent *unknownTypeError
		never  *collect.UnknownResourceError
	)
	switch {
	case len(args) == 1 && errors.As(err, &target) && IsType(args[0]):
		return Usagef(fmt.Sprintf("%s is a type: write %s/NAME.", args[0], args[0]), "%s", target.Message)
	case len(args) > 1 && (errors.As(err, &absent) || errors.As(err, &never)):
		return Usagef(fmt.Sprintf("For %d claims write: why claim/%s", len(args), strings.Join(args, " claim/")),
			"find %s %s: the server has no type %q", args[0], args[1], args[0])
	}
	return err
}

// IsType reports whether a word is the name of a type that has targets.
func IsType(word string) bool {
	resource := fullResource(word)
	return kindWithoutPods(word) != "" ||
		slices.ContainsFunc(builtInTargets(), func(kind schema.GroupVersionKind) bool { return names(resource, kind) })
}

// fullResource resolves the short names that this program adds to kubectl's, and the short
// names of built-in types, which a snapshot file cannot resolve. It drops the group and the
// version of names like "resourceclaims.v1.resource.k8s.io".
func fullResource(resource string) string {
	resource = strings.ToLower(resource)
	name, group, grouped := strings.Cut(resource, ".")
	if strings.HasSuffix("."+group, ".resource.k8s.io") || name == "pod" || name == "pods" {
		switch {
		case !grouped:
		case name == "pod" || name == "pods":
			if group = strings.TrimSuffix(group, "."); group == "" || group == "v1" || group == "core" {
				return "pods"
			}
		case name == "resourceclaim" || name == claims:
			return claims
		case name == "resourceclaimtemplate" || name == templates:
			return templates
		}
	}
	switch resource {
	case "claim", "claims":
		return claims
	case "template", "templates":
		return templates
	case "po":
		return "pods"
	case "deploy":
		return "deployments"
	case "sts":
		return "statefulsets"
	case "ds":
		return "daemonsets"
	case "rs":
		return "replicasets"
	case "rc":
		return "replicationcontrollers"
	case "cj":
		return "cronjobs"
	default:
		return resource
	}
}

// names reports whether a resource as the user typed it ("job", "jobs.batch",
// "jobs.v1.batch") stands for a kind.
func names(resource string, kind schema.GroupVersionKind) bool {
	resource, group, grouped := strings.Cut(resource, ".")
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	if resource != plural.Resource && resource != singular.Resource {
		return false
	}
	return !grouped || group == kind.Group || group == kind.Version+"."+kind.Group
}

// Candidate is a possible target in a snapshot.
type Candidate struct {
	Kind   schema.GroupVersionKind
	Object metav1.Object
}

// Ref returns the reference to the target.
func (c *Candidate) Ref() api.ObjectRef { return api.RefTo(c.Kind.Kind, c.Object).In(c.Kind.Group) }

// Candidates lists the possible targets of a snapshot: pods, claims, templates, workloads.
func Candidates(snap *snapshot.Snapshot) []Candidate {
	found := make([]Candidate, 0, len(snap.Claims)+len(snap.Pods)+len(snap.Templates)+len(snap.Workloads))
	for _, claim := range snap.Claims {
		found = append(found, Candidate{resourceKind(api.KindClaim), claim})
	}
	for _, pod := range snap.Pods {
		found = append(found, Candidate{corev1.SchemeGroupVersion.WithKind(api.KindPod), pod})
	}
	for _, template := range snap.Templates {
		found = append(found, Candidate{resourceKind(api.KindTemplate), template})
	}
	for _, group := range snap.PodGroups {
		found = append(found, Candidate{podGroupKind(), group})
	}
	for _, workload := range snap.Workloads {
		found = append(found, Candidate{workload.GroupVersionKind(), &workload.ObjectMeta})
	}
	return append(found, owners(snap)...)
}

// owners lists direct and indirect owners of pods, and the objects of other kinds that are
// known to create pods.
func owners(snap *snapshot.Snapshot) []Candidate {
	var found []Candidate
	type key struct{ apiVersion, kind, namespace, name string }
	seen := map[key]bool{}
	add := func(apiVersion, kind, namespace, name string) {
		k, gvk := key{apiVersion, kind, namespace, name}, schema.FromAPIVersionAndKind(apiVersion, kind)
		if seen[k] || !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, ".k8s.io") && !strings.HasSuffix(gvk.Group, ".x-k8s.io") || gvk.Group == snapshot.KueueGroup {
			return
		}
		seen[k] = true
		found = append(found, Candidate{gvk, &metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	for _, pod := range snap.Pods {
		for _, owner := range snap.Owners(pod) {
			add(owner.APIVersion, owner.Kind, pod.Namespace, owner.Name)
		}
	}
	for _, outline := range snap.Outlines {
		add(outline.Of.APIVersion, outline.Of.Kind, outline.Namespace, outline.Name)
	}
	return found
}

// ResolveTarget resolves the user's reference for explain. An empty namespace, which only files
// have, becomes the namespace of the object.
func ResolveTarget(from *Source, snap *snapshot.Snapshot, ref snapshot.Argument) (explain.Options, error) {
	all := Candidates(snap)
	ref.Namespace = from.Namespace
	kind, err := resolveKind(from, all, ref)
	if err != nil {
		return explain.Options{}, err
	}
	options := explain.Options{Object: api.Ref(kind.Kind, ref.Namespace, ref.Name).In(kind.Group)}
	if ref.Namespace != "" {
		return options, nil
	}
	var found []metav1.Object
	for _, c := range all {
		if c.Kind.GroupKind() == kind && c.Object.GetName() == ref.Name {
			found = append(found, c.Object)
		}
	}
	object, err := OnlyOneIn(found, kind.Kind, "", ref.Name)
	if err != nil {
		return explain.Options{}, err
	}
	options.Object.Namespace = metav1.NamespaceDefault
	if object != nil {
		options.Object.Namespace = object.GetNamespace()
	}
	return options, nil
}

// resolveKind finds the kind of a resource name, preferring a kind that has an object of
// the name. A kind that neither the snapshot nor this program knows may be known to the
// cluster.
func resolveKind(from *Source, all []Candidate, ref snapshot.Argument) (schema.GroupKind, error) {
	var kind schema.GroupKind
	for _, c := range all {
		if names(ref.Resource, c.Kind) && (kind.Kind == "" || c.Object.GetName() == ref.Name) {
			kind = c.Kind.GroupKind()
		}
	}
	if kind.Kind != "" {
		return kind, nil
	}
	for _, gvk := range builtInTargets() {
		if names(ref.Resource, gvk) {
			return gvk.GroupKind(), nil
		}
	}
	if from.KindOf != nil {
		return from.KindOf(ref.Resource)
	}
	return schema.GroupKind{}, Usagef(whatTargetsAre, "%w", &unknownTypeError{ref})
}

// resourceKind returns a kind of the API group of claims, in its newest version.
func resourceKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: kind}
}

func podGroupKind() schema.GroupVersionKind {
	return schedulingapi.SchemeGroupVersion.WithKind(api.KindPodGroup)
}

// builtInTargets returns Kubernetes' own kinds of targets.
func builtInTargets() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		resourceKind(api.KindClaim),
		resourceKind(api.KindTemplate),
		corev1.SchemeGroupVersion.WithKind(api.KindPod),
		podGroupKind(),
		{Version: "v1", Kind: "ReplicationController"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
	}
}

// NameRule describes valid names.
const NameRule = "Names have lower-case letters, digits, '-' and '.' only."

// ParseUsed parses arguments that name devices and nodes: device/POOL/DEVICE, node/NAME, or
// TYPE NAME …. It is empty if there are none, and fails if there are other arguments as
// well.
func ParseUsed(args []string) ([]api.ObjectRef, error) {
	const forms = "Write device/POOL/DEVICE or node/NAME, for example device/gpu-02/gpu-3."
	if len(args) > 1 && usedKind(args[0]) != "" {
		rest := make([]string, 0, len(args)-1)
		for _, name := range args[1:] {
			if kind, _, slashed := strings.Cut(name, "/"); slashed && usedKind(kind) != "" {
				return nil, Usagef(forms, "parse target: TYPE/NAME and TYPE NAME cannot be mixed")
			}
			rest = append(rest, args[0]+"/"+name)
		}
		args = rest
	}
	var targets []api.ObjectRef
	for _, arg := range args {
		resource, name, slashed := strings.Cut(arg, "/")
		kind := usedKind(resource)
		if !slashed || kind == "" {
			continue
		}
		if slices.Contains(strings.Split(name, "/"), "") {
			return nil, Usagef(forms, "parse target %q: a part of the name is empty", arg)
		}
		if kind == api.KindNode && strings.Contains(name, "/") {
			return nil, Usagef(forms, "parse target %q: not of the form node/NAME", arg)
		}
		targets = append(targets, api.Ref(kind, "", name))
	}
	if len(targets) > 0 && len(targets) < len(args) {
		return nil, Usagef("Ask about them one after the other.", "devices and nodes cannot be mixed with other targets: their answers are of another kind")
	}
	return targets, nil
}

// usedKind returns Device or Node if a word stands for one of these types, else empty.
func usedKind(resource string) string {
	switch strings.ToLower(resource) {
	case "device", "devices":
		return api.KindDevice
	case "node", "nodes", "no":
		return api.KindNode
	default:
		return ""
	}
}
