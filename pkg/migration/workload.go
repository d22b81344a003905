// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// workloads finds what becomes of the workloads that ask for extended resources.
type workloads struct {
	*cluster.Cluster
	classes *classes
	plugins *plugins
	// decided counts the workloads that the allocator decided.
	decided int
	// moving are the workloads that ask by claims in the future, stuck are workloads that cannot, or
	// may not.
	moving []*moving
	stuck  []*group
}

// workload says what becomes of a workload.
func (ws *workloads) workload(ctx context.Context, g *group) (api.MigrationWorkload, error) {
	w := api.MigrationWorkload{Object: g.object, Pods: len(g.pods)}
	e := editorOf(g)
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
		ask.Class, reason = ws.classes.classFor(ask.Resource)
		sharing, profile := ws.sharingFor(g, ask.Resource)
		serving := ws.classes.serving(ask.Resource)
		if ws.classes.chosen[ask.Resource] != "" {
			serving = ""
		}
		switch {
		case sharing == api.SharingMIG && serving != "":
			way(api.MigrationUnknown, fmt.Sprintf("%s is a MIG device on its nodes, and class %s, which serves it elsewhere, may have other devices", ask.Resource, serving))
		case sharing == api.SharingMIG && profile == "":
			way(api.MigrationUnknown, ask.Resource+" is a MIG device on its nodes, and their labels do not tell the profile")
		case sharing == api.SharingMIG:
			e.profiles[ask.Resource] = profile
			if ws.classes.chosen[ask.Resource] == "" {
				ask.Class, reason = ws.classes.classFor(resourceMIG + profile)
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
	ws.convert(&w, e, g)
	ws.moving = append(ws.moving, &moving{object: g.object, editor: e, group: g})
	return w, ws.decide(ctx, &w, e, g)
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
func (ws *workloads) sharingFor(g *group, resource string) (found api.PluginSharing, profile string) {
	nodes := map[string]bool{}
	for _, pod := range g.pods {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	profiles := map[string]bool{}
	for _, node := range ws.Snapshot.Nodes {
		if len(nodes) > 0 && !nodes[node.Name] {
			continue
		}
		if quantity := node.Status.Allocatable[corev1.ResourceName(resource)]; quantity.IsZero() {
			continue
		}
		switch s, _ := ws.plugins.sharingOn(node, corev1.ResourceName(resource)); s {
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

// convert makes the workload ask by claims, one for each resource.
func (ws *workloads) convert(w *api.MigrationWorkload, e *editor, g *group) {
	w.Way = api.MigrationClaims
	expressions := ws.convertSelectors(w, e)
	var names, classes []string
	for _, ask := range w.Asks {
		entry := e.entryOf(ask.Resource)
		if e.kept[ask.Resource] || entry == "" {
			continue
		}
		template := e.template(w, ask.Resource, entry, selectorsOf(expressions[ask.Resource]))
		template.Name = unused(template.Name, func(name string) bool {
			return ws.Snapshot.Template(template.Namespace, name) != nil || slices.Contains(names, name)
		})
		e.claims = append(e.claims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: &template.Name})
		e.templates, names = append(e.templates, template), append(names, template.Name)
		if classes = append(classes, ask.Class); !ws.classes.selects(ask.Class) {
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
	w.Edits = whatif.WithOldValues(ws.Snapshot, e.edits)
	w.Reason = fmt.Sprintf("%s %s, for %s %s", english.Plural(len(names), "ResourceClaimTemplate", "ResourceClaimTemplates"), english.JoinAnd(names), english.Plural(len(classes), "class", "classes"), english.JoinAnd(classes))
	if class := g.pods[0].Spec.RuntimeClassName; class != nil {
		w.Notes = append(w.Notes, fmt.Sprintf("its RuntimeClass %s stays: drivers inject devices by CDI and do not need one of a device plugin", *class))
	}
	pods := make([]api.RemedyPod, 0, len(g.pods))
	for _, pod := range g.pods {
		pods = append(pods, api.RemedyPod{Namespace: pod.Namespace, Name: pod.Name})
	}
	w.Commands = append(w.Commands, whatif.Commands(ws.Snapshot, e.edits, pods)...)
}

// convertSelectors returns the CEL expressions for each resource. Node selectors for labels of
// NVIDIA's feature discovery become expressions where a published attribute has the same value; others
// stay.
func (ws *workloads) convertSelectors(w *api.MigrationWorkload, e *editor) map[string][]string {
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
			if ws.classes.published(attrProfile, profile) == "" {
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
			if value := ws.classes.published(attribute, e.spec.NodeSelector[key]); value != "" {
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

// nameable returns the classes that could have a resource as extendedResourceName, in the order of
// resources, so that workloads that need claims else stay as they are.
func (ws *workloads) nameable() []api.MigrationClass {
	if !ws.Gates.Enabled("DRAExtendedResource") {
		return nil
	}
	found := map[string]*api.MigrationClass{}
	named := map[string]bool{}
	for _, w := range ws.moving {
		for _, ask := range w.editor.asks() {
			if class := ws.classes.nameFor(ask.Resource); class != nil && found[ask.Resource] == nil && !named[class.Class] {
				found[ask.Resource], named[class.Class] = class, true
			}
		}
	}
	for _, w := range ws.moving {
		asks := w.editor.asks()
		if slices.ContainsFunc(asks, func(a api.MigrationAsk) bool {
			return !w.editor.kept[a.Resource] && (found[a.Resource] == nil || w.editor.profiles[a.Resource] != "")
		}) {
			continue
		}
		counted := map[string]bool{}
		for _, ask := range asks {
			if class := found[ask.Resource]; class != nil && !counted[ask.Resource] {
				class.Workloads++
				counted[ask.Resource] = true
			}
		}
	}
	var list []api.MigrationClass
	for _, resource := range slices.Sorted(maps.Keys(found)) {
		if found[resource].Workloads > 0 {
			list = append(list, *found[resource])
		}
	}
	return list
}

// moving is a workload that asks by claims in the future.
type moving struct {
	object api.ObjectRef
	editor *editor
	group  *group
}

// decideMost limits how many workloads the allocator decides: each takes up to half a second on
// thousands of nodes.
const decideMost = 50

// decide asks the allocator about one pod of a workload as it becomes, in place of its present pods,
// while all else is as it is.
func (ws *workloads) decide(ctx context.Context, w *api.MigrationWorkload, e *editor, g *group) error {
	if ws.decided++; ws.decided > decideMost {
		return nil
	}
	spec, err := whatif.Edited(e.spec, e.edits, e.path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", w.Object, err)
	}
	// No object in a cluster can have such a name.
	pod := asEdited(g.pods[0], spec, g.pods[0].Name+"-…")
	pod.OwnerReferences = nil
	after := *whatif.Delete(ws.Snapshot, g.pods)
	after.Pods = append(slices.Clone(after.Pods), pod)
	after.Templates = slices.Concat(after.Templates, e.templates)
	snapshot.SortByName(after.Pods)
	snapshot.SortByName(after.Templates)
	answers, err := explain.ReasonsOfEach(ctx, ws.Amended(&after), []target.Options{{Object: api.RefTo(api.KindPod, pod)}}, []*corev1.Pod{pod})
	if err != nil {
		return fmt.Errorf("decide %s: %w", w.Object, err)
	}
	switch answer := answers[0]; {
	case answer.Err != nil:
		w.Verdict, w.Summary = api.Undetermined, answer.Err.Error()
	default:
		w.Verdict, w.Summary = answer.Explanation.Verdict, answer.Explanation.Summary
		for i := range w.Asks {
			if class := w.Asks[i].Class; w.Verdict == api.DoesNotFit && !ws.classes.selects(class) {
				w.Summary = fmt.Sprintf("Class %s selects no device.", class)
			}
		}
	}
	return nil
}
