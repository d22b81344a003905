// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// maxHintedDrivers limits how many drivers hints are given about.
const maxHintedDrivers = 2

// driverHints describes problems of the drivers of the required devices, if the devices are
// missing on suitable nodes.
func (h *finder) driverHints() {
	if h.out.Verdict != api.DoesNotFit || len(h.out.Nodes) == 0 || h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil || len(h.Reach.Candidates) == 0 {
		return
	}
	drivers := wantedDrivers(h.Question)
	for _, driver := range drivers[:min(len(drivers), maxHintedDrivers)] {
		p := publicationOf(h.Question, driver)
		h.emptyPoolHint(&p)
		h.publicationHint(&p)
		for _, set := range lifecycle.DaemonSets(h.Cluster.Snapshot, driver) {
			if !h.daemonPodHints(&p, set) && len(p.published) == 0 {
				h.placementHint(&p, set)
			}
		}
	}
}

// wantedDrivers lists the drivers of the required devices: the drivers that the selectors
// name, or else the drivers of the class's devices.
func wantedDrivers(q *eligibility.Question) []string {
	found := map[string]bool{}
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				named := namedDrivers(q.Selectors, f)
				if published := lifecycle.Publishing(q.Cluster.Snapshot, named); len(published) > 0 {
					named = published
				}
				if len(named) == 0 {
					for j := range f.Devices {
						if !f.OtherClass(&f.Devices[j]) {
							found[f.Devices[j].ID.Driver] = true
						}
					}
				}
				for _, driver := range named {
					found[driver] = true
				}
			}
		}
	}
	return sortedKeys(found)
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// namedDrivers lists the drivers that the selectors of a request, or else of its class,
// compare device.driver with.
func namedDrivers(selectors *selector.Evaluator, f *eligibility.Funnel) []string {
	lists := [][]resourceapi.DeviceSelector{f.Request.Selectors}
	if f.Checks.Class != nil {
		lists = append(lists, f.Checks.Class.Spec.Selectors)
	}
	for _, list := range lists {
		var drivers []string
		for _, s := range list {
			if s.CEL == nil {
				continue
			}
			drivers = append(drivers, selectors.Compile(s.CEL.Expression).Drivers()...)
		}
		if len(drivers) > 0 {
			return drivers
		}
	}
	return nil
}

// publicationHint says that the driver publishes nothing where it matters. If
// nothing is more promising than these nodes, that is the reason itself.
func (h *finder) publicationHint(p *publication) {
	tell := func(text string, fact api.Evidence) {
		if first := h.out.Nodes[0]; first.Code == api.NodeNotReachable || first.Code == api.ClassSelectorFalse {
			h.found.Silent = append(h.found.Silent, SilentDriver{Name: p.driver, Text: text})
		} else {
			h.hint(text, fact)
		}
	}
	switch {
	case len(p.slices) == 0:
		others := map[string]bool{}
		for _, slice := range h.Cluster.Snapshot.Slices {
			others[slice.Spec.Driver] = true
		}
		tell(fmt.Sprintf("driver %s publishes nothing: there is no ResourceSlice of it in the cluster%s", p.driver, english.DidYouMean(p.driver, sortedKeys(others))),
			api.Evidence{Object: api.Ref("ResourceSlice", "", ""), Path: "spec.driver", Found: cmp.Or(english.Sample(sortedKeys(others), maxNamed), "none"), Required: p.driver})
	case len(p.published) == 0:
		nodes := map[string]bool{}
		for _, slice := range p.slices {
			if slice.Spec.NodeName != nil {
				nodes[*slice.Spec.NodeName] = true
			}
		}
		elsewhere, found := "elsewhere", "elsewhere"
		if len(nodes) > 0 {
			found = english.Sample(sortedKeys(nodes), maxNamed)
			elsewhere = "on " + found
		}
		tell(fmt.Sprintf("driver %s publishes devices only %s, and nothing on the nodes that the pod can use: %s", p.driver, elsewhere, target.NodeNames(p.missing)),
			api.Evidence{Object: api.Ref("ResourceSlice", "", ""), Path: "spec.nodeName", Found: found, Required: target.NodeNames(p.missing)})
	}
}

// placementHint tells why a DaemonSet has no pods on the nodes that lack
// devices: the controller looks at labels and taints, and at nothing else.
func (h *finder) placementHint(p *publication, set lifecycle.DaemonSet) {
	if _, known := h.Cluster.Nodes.All(); !known {
		return
	}
	reasons, example := english.Tally{}, map[string]api.Evidence{}
	count := 0
	pod := &corev1.Pod{Spec: lifecycle.TemplateSpec(set.Workload)}
	for _, node := range p.missing {
		for _, misfit := range h.Cluster.Nodes.Fit(pod, node) {
			if slices.Contains([]cluster.Filter{cluster.FilterPorts, cluster.FilterPods, cluster.FilterResources}, misfit.Filter) {
				continue
			}
			text := strings.Replace(misfit.Reason, "spec.nodeSelector", "its nodeSelector", 1)
			if misfit.Filter == cluster.FilterNodeAffinity {
				text = "its node affinity wants " + misfit.Wanted
			}
			if reasons[text]++; reasons[text] == 1 {
				example[text] = api.Evidence{
					Object: api.Ref(api.KindNode, "", node.Name), Path: misfit.Path,
					Found: cmp.Or(misfit.Found, "not set"), Required: misfit.Wanted,
				}
			}
			count++
			break
		}
	}
	wants := ""
	if set.Daemon != nil {
		wants = fmt.Sprintf(" wants pods on %s", english.Count(int(set.Daemon.Desired), "node"))
	}
	if count == 0 {
		if wants != "" && set.Daemon.Desired == 0 {
			h.hint(fmt.Sprintf("%s%s", set, wants), api.Evidence{Object: lifecycle.DaemonObject(set), Path: "status.desiredNumberScheduled", Found: "0"})
		}
		return
	}
	most := reasons.Sorted()[0]
	if wants != "" {
		wants += " and"
	}
	where := target.NodeNames(p.missing)
	if reasons[most] < len(p.missing) {
		where = fmt.Sprintf("%d of %s", reasons[most], english.Count(len(p.missing), "node"))
	}
	evidence := []api.Evidence{example[most]}
	if set.Daemon != nil {
		evidence = append(evidence, api.Evidence{Object: lifecycle.DaemonObject(set), Path: "status.desiredNumberScheduled", Found: fmt.Sprint(set.Daemon.Desired)})
	}
	h.hint(fmt.Sprintf("%s%s has none for %s: %s", set, wants, where, most), evidence...)
}

// daemonPodHints describes plugins that should run where devices are missing, but fail, or
// run and publish nothing. It reports whether there are any.
func (h *finder) daemonPodHints(p *publication, set lifecycle.DaemonSet) bool {
	missing := map[string]bool{}
	for _, node := range p.missing {
		missing[node.Name] = true
	}
	var failing, silent []*corev1.Pod
	for _, pod := range lifecycle.Pods(h.Cluster.Snapshot, set.Workload) {
		switch {
		case !missing[lifecycle.DaemonNode(pod)]:
		case !lifecycle.Ready(pod):
			failing = append(failing, pod)
		default:
			silent = append(silent, pod)
		}
	}
	if len(failing) > 0 {
		pod := failing[0]
		state, evidence := lifecycle.PodTrouble(pod)
		more := ""
		if len(failing) > 1 {
			more = fmt.Sprintf(", and so are %d more", len(failing)-1)
		}
		h.hint(fmt.Sprintf("%s: pod %s on node %s is not ready: %s%s", set, pod.Name, lifecycle.DaemonNode(pod), state, more), evidence)
	}
	if len(silent) > 0 {
		nodes := make([]string, 0, len(silent))
		for _, pod := range silent {
			nodes = append(nodes, pod.Spec.NodeName)
		}
		slices.SortFunc(nodes, english.CompareNames)
		advice := ""
		if set.Named {
			advice = ": its log shows whether the API server refuses the slices; if they vanished, restart it"
		}
		h.hint(
			fmt.Sprintf("%s: pod %s is ready, but there is no ResourceSlice of %s for %s%s", set, silent[0].Name, p.driver, english.Sample(nodes, maxNamed), advice),
			api.Evidence{Object: api.Ref(api.KindPod, silent[0].Namespace, silent[0].Name), Path: "status.conditions[type=Ready].status", Found: "True"},
			api.Evidence{Object: api.Ref("ResourceSlice", "", ""), Path: "spec.nodeName", Found: "none", Required: nodes[0]},
		)
	}
	return len(failing)+len(silent) > 0
}

// configHints warns of opaque configuration that nobody reads: it is for a driver
// of which the claim has, and can get, no device. Such a thing is valid, because a
// class may have devices of several drivers, and is ignored without a word.
func (h *finder) configHints(ctx context.Context) {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil {
		return
	}
	seen := map[string]bool{}
	for i := range h.PodClaims {
		pc := &h.PodClaims[i]
		if pc.Claim == nil {
			continue
		}
		for _, c := range lifecycle.OpaqueConfigs(h.Cluster.Snapshot, pc) {
			drivers := driversFor(ctx, h.Question, pc, c.Requests)
			if len(drivers) == 0 || slices.Contains(drivers, c.Opaque.Driver) || seen[c.String()] {
				continue
			}
			seen[c.String()] = true
			devices := "all devices"
			if pc.Claim.Status.Allocation == nil {
				devices = "all devices that the claim can get"
			}
			h.hint(fmt.Sprintf("the configuration for driver %s (%s of %s %s) is ignored: %s are of driver %s%s",
				c.Opaque.Driver, c.Path, c.Object.Kind, c.Object.Name, devices, english.JoinOr(drivers), english.DidYouMean(c.Opaque.Driver, drivers)),
				api.Evidence{Object: c.Object, Path: c.Path + ".opaque.driver", Found: c.Opaque.Driver, Required: english.JoinOr(drivers)})
		}
	}
}

// driversFor lists the drivers of the devices that some requests of a claim, or
// all for none, have and can get: those that their classes select, or name. It is
// empty if that is not known.
func driversFor(ctx context.Context, q *eligibility.Question, pc *cluster.PodClaim, requests []string) []string {
	concerned := func(name string) bool {
		return len(requests) == 0 || slices.ContainsFunc(requests, func(r string) bool {
			return r == name || r == resourceclaim.BaseRequestRef(name) || resourceclaim.BaseRequestRef(r) == name
		})
	}
	found := map[string]bool{}
	if allocation := pc.Claim.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Results {
			if result := &allocation.Devices.Results[i]; concerned(result.Request) {
				found[result.Driver] = true
			}
		}
	}
	for _, alternatives := range cluster.Requests(pc.Claim) {
		for _, r := range alternatives {
			if !concerned(r.Name) {
				continue
			}
			drivers := classDrivers(ctx, q, r.Class)
			if len(drivers) == 0 && pc.Claim.Status.Allocation == nil {
				return nil
			}
			for _, driver := range drivers {
				found[driver] = true
			}
		}
	}
	return sortedKeys(found)
}

// classDrivers lists the drivers that the selectors of a class name or, if they
// name none, those whose devices they select.
func classDrivers(ctx context.Context, q *eligibility.Question, name string) []string {
	class := q.Cluster.Snapshot.Class(name)
	if class == nil {
		return nil
	}
	found := map[string]bool{}
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		for _, driver := range q.Selectors.Compile(s.CEL.Expression).Drivers() {
			found[driver] = true
		}
	}
	if len(found) > 0 {
		return sortedKeys(found)
	}
	devices := q.Cluster.Pools.Devices()
	for i := range devices {
		d := &devices[i]
		if !found[d.ID.Driver] && selected(ctx, q.Selectors, class, d) {
			found[d.ID.Driver] = true
		}
	}
	return sortedKeys(found)
}

// selected reports whether the selectors of a class select a device.
func selected(ctx context.Context, selectors *selector.Evaluator, class *resourceapi.DeviceClass, d *cluster.Device) bool {
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		if !selectors.Evaluate(ctx, selectors.Compile(s.CEL.Expression), d.ID.Driver, d.Device).Matches {
			return false
		}
	}
	return true
}
