// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// workload says what becomes of a workload.
func (f *finder) workload(ctx context.Context, g *group) (api.MigrationWorkload, error) {
	w := api.MigrationWorkload{Object: g.object, Pods: len(g.pods)}
	e := f.editorOf(g)
	w.Asks = e.asks()
	var serves []string
	way := func(to api.MigrationWay, reason string) {
		if rank(to) > rank(w.Way) {
			w.Way, w.Reason = to, reason
		}
	}
	for i := range w.Asks {
		ask := &w.Asks[i]
		var reason string
		ask.Class, reason = f.classFor(ask.Resource)
		sharing, profile := f.sharingFor(g, ask.Resource)
		serving := f.serving(ask.Resource)
		if f.chosen[ask.Resource] != "" {
			serving = ""
		}
		switch {
		case sharing == api.SharingMIG && serving != "":
			way(api.MigrationUnknown, fmt.Sprintf("%s is a MIG device on its nodes, and class %s, which serves it elsewhere, may have other devices", ask.Resource, serving))
		case sharing == api.SharingMIG && profile == "":
			way(api.MigrationUnknown, ask.Resource+" is a MIG device on its nodes, and their labels do not tell the profile")
		case sharing == api.SharingMIG:
			e.profiles[ask.Resource] = profile
			if f.chosen[ask.Resource] == "" {
				ask.Class, reason = f.classFor(resourceMIG + profile)
			}
			if ask.Class == "" {
				way(api.MigrationUnknown, reason)
			}
		case sharing != "":
			way(api.MigrationNotPossible, sharedText(ask.Resource, sharing))
		case serving != "":
			if text := fmt.Sprintf("class %s serves %s where no device plugin does", serving, ask.Resource); !slices.Contains(serves, text) {
				serves = append(serves, text)
			}
			e.keep(ask.Resource)
		case ask.Class == "":
			way(api.MigrationUnknown, reason)
		}
	}
	if w.Way == "" && len(e.kept) > 0 && !e.converts(w.Asks) {
		w.Way, w.Reason = api.MigrationUnchanged, strings.Join(serves, "; ")
		return w, nil
	}
	if g.owned && !g.workload.Editable() {
		way(api.MigrationUnknown, fmt.Sprintf("where a %s has its pod template is not known", g.object.Kind))
	}
	if w.Way != "" {
		return w, nil
	}
	f.convert(&w, e, g)
	f.moving = append(f.moving, &moving{object: g.object, editor: e, group: g})
	return w, f.decide(ctx, &w, e, g)
}

// rank orders what becomes of workloads: one resource that cannot be asked for by claims decides.
func rank(way api.MigrationWay) int {
	return slices.Index([]api.MigrationWay{"", api.MigrationUnchanged, api.MigrationClaims, api.MigrationUnknown, api.MigrationNotPossible}, way)
}

func sharedText(resource string, sharing api.PluginSharing) string {
	how := map[api.PluginSharing]string{
		api.SharingTimeSlicing: "by time-slicing", api.SharingMPS: "by MPS", api.SharingReplicas: "as several replicas",
	}[sharing]
	return fmt.Sprintf("the device plugin shares %s %s on the nodes of its pods, and a claim takes the whole device: pods that shall share one need one ResourceClaim in common, with the sharing in the configuration of the driver", resource, how)
}

// sharingFor returns how a resource is shared on the nodes of a workload's pods, or on all nodes that
// offer it if the pods have none yet, and the MIG profile if that is what it is. Of several ways, the
// one that is in the way counts.
func (f *finder) sharingFor(g *group, resource string) (found api.PluginSharing, profile string) {
	nodes := map[string]bool{}
	for _, pod := range g.pods {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	profiles := map[string]bool{}
	for _, node := range f.Snapshot.Nodes {
		if len(nodes) > 0 && !nodes[node.Name] {
			continue
		}
		if quantity := node.Status.Allocatable[corev1.ResourceName(resource)]; quantity.IsZero() {
			continue
		}
		switch s, _ := f.sharingOn(node, corev1.ResourceName(resource)); s {
		case "":
		case api.SharingMIG:
			if found == "" {
				found = s
			}
			_, of, _ := strings.Cut(node.Labels[labelProduct], migInfix)
			profiles[profileOf(resourceMIG+of)] = true
		default:
			found = s
		}
	}
	if len(profiles) == 1 {
		profile = slices.Collect(maps.Keys(profiles))[0]
	}
	return found, profile
}

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

func (f *finder) editorOf(g *group) *editor {
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

// convert makes the workload ask by claims, one for each resource.
func (f *finder) convert(w *api.MigrationWorkload, e *editor, g *group) {
	w.Way = api.MigrationClaims
	expressions := f.convertSelectors(w, e)
	var names, classes []string
	for _, ask := range w.Asks {
		entry := e.entryOf(ask.Resource)
		if e.kept[ask.Resource] || entry == "" {
			continue
		}
		template := e.template(w, ask.Resource, entry, selectorsOf(expressions[ask.Resource]))
		template.Name = unused(template.Name, func(name string) bool {
			return f.Snapshot.Template(template.Namespace, name) != nil || slices.Contains(names, name)
		})
		e.claims = append(e.claims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: &template.Name})
		e.templates, names = append(e.templates, template), append(names, template.Name)
		if classes = append(classes, ask.Class); !f.selects(ask.Class) {
			w.Notes = append(w.Notes, fmt.Sprintf("class %s selects no device yet: the workload waits until its driver has published some", ask.Class))
		}
		// The types of the API can be encoded.
		text, _ := json.Marshal(whatif.PlainJSON(template))
		w.Templates = append(w.Templates, text)
		w.Commands = append(w.Commands, "echo "+shell.Quote(string(text))+" | kubectl apply -f -")
	}
	for _, c := range e.containers() {
		e.ask(c)
	}
	if len(e.spec.ResourceClaims) == 0 {
		e.edit("add", e.claims, "resourceClaims")
	} else {
		for _, claim := range e.claims {
			e.edit("add", claim, "resourceClaims", "-")
		}
	}
	if !g.owned && e.spec.NodeName != "" {
		// The scheduler places the new pod.
		e.edit("remove", nil, "nodeName")
	}
	w.Edits = whatif.WithOldValues(f.Snapshot, e.edits)
	w.Reason = fmt.Sprintf("%s %s, for %s %s", english.Plural(len(names), "ResourceClaimTemplate", "ResourceClaimTemplates"), english.JoinAnd(names), english.Plural(len(classes), "class", "classes"), english.JoinAnd(classes))
	if class := g.pods[0].Spec.RuntimeClassName; class != nil {
		w.Notes = append(w.Notes, fmt.Sprintf("its RuntimeClass %s stays: drivers inject devices by CDI and do not need one of a device plugin", *class))
	}
	pods := make([]api.RemedyPod, 0, len(g.pods))
	for _, pod := range g.pods {
		pods = append(pods, api.RemedyPod{Namespace: pod.Namespace, Name: pod.Name})
	}
	w.Commands = append(w.Commands, whatif.Commands(f.Snapshot, e.edits, pods)...)
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

// convertSelectors returns the CEL expressions for each resource. Node selectors for labels of
// NVIDIA's feature discovery become expressions where a published attribute has the same value; others
// stay.
func (f *finder) convertSelectors(w *api.MigrationWorkload, e *editor) map[string][]string {
	expressions := map[string][]string{}
	var converted []string
	for i := range w.Asks {
		resource := w.Asks[i].Resource
		profile := e.profiles[resource]
		if isMIG(resource) {
			profile = profileOf(resource)
		}
		if profile != "" && expressions[resource] == nil {
			expressions[resource] = []string{equals(attrProfile, profile)}
			if f.published(attrProfile, profile) == "" {
				w.Notes = append(w.Notes, fmt.Sprintf("no device has the MIG profile %s yet", profile))
			}
		}
		if !strings.HasPrefix(resource, "nvidia.com/") || e.kept[resource] {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(e.spec.NodeSelector)) {
			attribute := map[string]string{labelProduct: attrProductName, "nvidia.com/gpu.family": attrFamily}[key]
			if attribute == "" {
				continue
			}
			if value := f.published(attribute, e.spec.NodeSelector[key]); value != "" {
				if of := equals(attribute, value); !slices.Contains(expressions[resource], of) {
					expressions[resource] = append(expressions[resource], of)
				}
				if !slices.Contains(converted, key) {
					converted = append(converted, key)
				}
			}
		}
	}
	for _, key := range converted {
		e.edit("remove", nil, "nodeSelector", key)
	}
	for _, key := range slices.Sorted(maps.Keys(e.spec.NodeSelector)) {
		if strings.HasPrefix(key, "nvidia.com/") && !slices.Contains(converted, key) {
			w.Notes = append(w.Notes, fmt.Sprintf("node selector %s=%s stays: it works as long as feature discovery labels nodes", key, e.spec.NodeSelector[key]))
		}
	}
	if a := e.spec.Affinity; a != nil && a.NodeAffinity != nil && strings.Contains(fmt.Sprint(a.NodeAffinity), "nvidia.com/") {
		w.Notes = append(w.Notes, "node affinity to labels of nvidia.com stays: it works as long as feature discovery labels nodes")
	}
	return expressions
}

// unused returns a name, with a number if it is in use.
func unused(name string, inUse func(string) bool) string {
	free := name
	for n := 2; inUse(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
