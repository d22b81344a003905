// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// editor edits the pod template of a workload, or a pod.
type editor struct {
	object api.ObjectRef
	// path is the path of the spec of pods.
	path string
	spec *corev1.PodSpec
	// kept are the resources that stay; profiles has the MIG profiles of resources that do not name
	// them.
	kept     map[string]bool
	profiles map[string]string
	// templates are the templates of claims, claims are the claims that the pod gets, uses has the one of each container by resource.
	templates []*resourceapi.ResourceClaimTemplate
	claims    []corev1.PodResourceClaim
	uses      map[string]map[string]corev1.ResourceClaim
	edits     []api.Edit
}

func editorOf(g *group) *editor {
	e := &editor{object: g.object, path: "/spec", spec: &g.pods[0].Spec, kept: map[string]bool{}, profiles: map[string]string{}, uses: map[string]map[string]corev1.ResourceClaim{}}
	if g.owned {
		e.path, e.spec = g.workload.PodSpecPath(), g.workload.PodSpec(g.pods[0])
	}
	return e
}

func (e *editor) keep(resource string) { e.kept[resource] = true }

// converts reports whether a resource does not stay.
func (e *editor) converts(asks []api.MigrationAsk) bool {
	return slices.ContainsFunc(asks, func(a api.MigrationAsk) bool { return !e.kept[a.Resource] })
}

// container is a container of the spec with its place.
type container struct {
	*corev1.Container
	list string
	at   int
}

// containers lists the containers, those that run first first.
func (e *editor) containers() []container {
	var list []container
	for i := range e.spec.InitContainers {
		list = append(list, container{&e.spec.InitContainers[i], "initContainers", i})
	}
	for i := range e.spec.Containers {
		list = append(list, container{&e.spec.Containers[i], "containers", i})
	}
	return list
}

// resources returns the extended resources of a container with their amounts: requests are equal to
// limits, and follow from them.
func (c container) resources() map[string]int64 {
	found := map[string]int64{}
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, quantity := range list {
			if cluster.IsExtendedResource(name) && quantity.Value() > 0 {
				found[string(name)] = quantity.Value()
			}
		}
	}
	return found
}

// asks lists what the containers ask for.
func (e *editor) asks() []api.MigrationAsk {
	asks := []api.MigrationAsk{}
	for _, c := range e.containers() {
		resources := c.resources()
		for _, name := range slices.Sorted(maps.Keys(resources)) {
			asks = append(asks, api.MigrationAsk{Container: c.Name, Init: e.ends(c.Name), Resource: name, Count: resources[name]})
		}
	}
	return asks
}

func (e *editor) edit(op string, value any, path ...string) {
	for i := range path {
		path[i] = whatif.PointerToken(path[i])
	}
	e.edits = append(e.edits, whatif.NewEdit(e.object, op, e.path+"/"+strings.Join(path, "/"), value))
}

// entryOf returns a name for the claim of a resource in the pod that is not in use: the name of the
// resource without its domain. It is empty if the resource has a claim already.
func (e *editor) entryOf(resource string) string {
	if e.uses[resource] != nil {
		return ""
	}
	_, name, _ := strings.Cut(resource, "/")
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	inUse := func(name string) bool {
		of := func(c corev1.PodResourceClaim) bool { return c.Name == name }
		return slices.ContainsFunc(e.spec.ResourceClaims, of) || slices.ContainsFunc(e.claims, of)
	}
	// Two characters are left for a number: names have at most 63.
	return unused(cmp.Or(name, "devices")[:min(len(cmp.Or(name, "devices")), 61)], inUse)
}

// template returns the template of the claim for a resource, with a request for each container that
// has devices to itself.
func (e *editor) template(w *api.MigrationWorkload, resource, entry string, selectors []resourceapi.DeviceSelector) *resourceapi.ResourceClaimTemplate {
	// Names of templates have at most 253 characters.
	name := w.Object.Name[:min(len(w.Object.Name), 250-1-len(entry))] + "-" + entry
	template := &resourceapi.ResourceClaimTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: api.KindTemplate},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Object.Namespace, Name: name},
	}
	e.uses[resource] = map[string]corev1.ResourceClaim{}
	for _, ask := range w.Asks {
		if ask.Resource != resource {
			continue
		}
		request := cmp.Or(lender(w.Asks, ask), ask.Container)
		e.uses[resource][ask.Container] = corev1.ResourceClaim{Name: entry, Request: request}
		if request != ask.Container {
			continue
		}
		if ask.Init {
			w.Notes = append(w.Notes, fmt.Sprintf("init container %s gets devices of its own, which it had in common with others under the device plugin", ask.Container))
		}
		template.Spec.Spec.Devices.Requests = append(template.Spec.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: request, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: ask.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: ask.Count, Selectors: selectors},
		})
	}
	return template
}

// lender returns a container whose devices an init container can use, because it ends before that
// starts: a container with as many of the resource. It is empty if there is none.
func lender(asks []api.MigrationAsk, ask api.MigrationAsk) string {
	if !ask.Init {
		return ""
	}
	at := slices.IndexFunc(asks, func(other api.MigrationAsk) bool {
		return other.Resource == ask.Resource && other.Count >= ask.Count && !other.Init
	})
	if at < 0 {
		return ""
	}
	return asks[at].Container
}

// ends reports whether a container ends before the others start.
func (e *editor) ends(name string) bool {
	return slices.ContainsFunc(e.spec.InitContainers, func(c corev1.Container) bool { return c.Name == name && c.RestartPolicy == nil })
}

// ask edits a container: claims in place of resources.
func (e *editor) ask(c container) {
	var claims []corev1.ResourceClaim
	resources := c.resources()
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		claim, converted := e.uses[name][c.Name]
		if !converted {
			continue
		}
		claims = append(claims, claim)
		if _, limited := c.Resources.Limits[corev1.ResourceName(name)]; limited {
			e.edit("remove", nil, c.list, fmt.Sprint(c.at), "resources", "limits", name)
		}
		if _, requested := c.Resources.Requests[corev1.ResourceName(name)]; requested {
			e.edit("remove", nil, c.list, fmt.Sprint(c.at), "resources", "requests", name)
		}
	}
	switch {
	case len(claims) == 0:
	case len(c.Resources.Claims) == 0:
		e.edit("add", claims, c.list, fmt.Sprint(c.at), "resources", "claims")
	default:
		for _, claim := range claims {
			e.edit("add", claim, c.list, fmt.Sprint(c.at), "resources", "claims", "-")
		}
	}
}

// unused returns a name, with a number if it is in use.
func unused(name string, inUse func(string) bool) string {
	free := name
	for n := 2; inUse(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// kind returns a text that is the same for pods that ask for the same.
func (e *editor) kind() (string, error) {
	spec, err := whatif.Edited(e.spec, e.edits, e.path)
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", e.object, err)
	}
	key := fmt.Sprint(spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints)
	for i := range spec.Containers {
		key += fmt.Sprint(spec.Containers[i].Resources.Requests, len(spec.Containers[i].Resources.Claims))
	}
	for _, template := range e.templates {
		// The types of the API can be encoded.
		text, _ := json.Marshal(template.Spec)
		key += string(text)
	}
	return key, nil
}

// asEdited returns a new pod of a workload, as its edits make it.
func asEdited(pod *corev1.Pod, spec *corev1.PodSpec, name string) *corev1.Pod {
	edited := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name, UID: pod.UID + "-…", Labels: pod.Labels, CreationTimestamp: pod.CreationTimestamp, OwnerReferences: pod.OwnerReferences,
	}, Spec: *spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	edited.Spec.NodeName = ""
	return edited
}

// diff returns the templates that a workload needs and its change as a unified diff, of the fields that
// have to do with devices: not all others are in a snapshot.
func (e *editor) diff() (string, error) {
	before := e.devicesIn()
	after, err := whatif.Edited(before, e.edits, e.path)
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", e.object, err)
	}
	var text []byte
	for _, template := range e.templates {
		added, err := files.MarshalYAML(template)
		if err != nil {
			return "", fmt.Errorf("write ResourceClaimTemplate %s: %w", template.Name, err)
		}
		text = append(text, unified("/dev/null", nil, template.Namespace+"/resourceclaimtemplate/"+template.Name, added)...)
	}
	old, err := files.MarshalYAML(whatif.DocumentAt(whatif.PlainJSON(before), e.path))
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.object, err)
	}
	edited, err := files.MarshalYAML(whatif.DocumentAt(whatif.PlainJSON(after), e.path))
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.object, err)
	}
	name := e.object.Namespace + "/" + e.object.Argument()
	return string(append(text, unified(name, old, name, edited)...)), nil
}

// unified returns a unified diff.
func unified(oldName string, before []byte, newName string, after []byte) []byte {
	// The first line names the files once more.
	_, changes, _ := bytes.Cut(diff.Diff(oldName, before, newName, after), []byte("\n"))
	return changes
}

// devicesIn returns the parts of the spec of pods that edits can change, with the names of containers.
func (e *editor) devicesIn() *corev1.PodSpec {
	part := &corev1.PodSpec{NodeSelector: e.spec.NodeSelector, ResourceClaims: e.spec.ResourceClaims}
	if e.object.Kind == api.KindPod {
		part.NodeName = e.spec.NodeName
	}
	reduced := func(containers []corev1.Container) (list []corev1.Container) {
		for i := range containers {
			list = append(list, corev1.Container{Name: containers[i].Name, Image: containers[i].Image, Resources: containers[i].Resources})
		}
		return list
	}
	part.InitContainers, part.Containers = reduced(e.spec.InitContainers), reduced(e.spec.Containers)
	return part
}
