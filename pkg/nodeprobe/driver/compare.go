// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// compare compares the drivers of the node with the slices of the cluster. blind is as in
// [Findings.judge].
func (f *Findings) compare(snap *snapshot.Snapshot, around *node.Cluster, blind bool) {
	f.compareUsers(around, blind)
	switch {
	case snap == nil:
		f.notKnown(checkSlices, "", "no cluster and no snapshot was read: which drivers should be here is not known")
		return
	case f.Node == "":
		f.notKnown(checkSlices, "", "the slices of the node could not be found: %s", around.Unknown)
		return
	}
	if gap := snap.Gap(snapshot.ResourceSlices); gap != nil {
		f.notKnown(checkSlices, "", "which drivers should be here is not known: %s", gap.Reason)
		return
	}
	target := snap.Node(f.Node)
	if target == nil {
		f.notKnown(checkSlices, "", "node %s could not be read, so neither could its slices be found", f.Node)
		return
	}
	own, reached := map[string]int{}, map[string]int{}
	for _, slice := range snap.Slices {
		if owns(slice, target) {
			own[slice.Spec.Driver]++
		}
		if reaches(slice, target) {
			reached[slice.Spec.Driver]++
		}
	}
	f.compareDrivers(own, reached, blind)
}

// compareDrivers finds drivers that only one side knows. own counts slices for the node
// alone, reached all that it can use.
func (f *Findings) compareDrivers(own, reached map[string]int, blind bool) {
	drivers := f.drivers()
	for _, name := range sorted(own) {
		if len(drivers[name]) > 0 {
			continue
		}
		if unsure := f.unsure(name, blind); unsure != "" {
			f.notKnown(checkSlices, "", "driver %s has %s for this node, and %s", name, english.Count(own[name], "slice"), unsure)
			continue
		}
		f.bad(checkSlices, "", "driver %s has %s for this node, but no socket: the kubelet says that it is not registered, and pods with its devices do not start", name, english.Count(own[name], "slice"))
	}
	for _, name := range sorted(drivers) {
		switch {
		case own[name] > 0:
			f.good(checkSlices, "", "driver %s has %s for this node", name, english.Count(own[name], "slice"))
		case reached[name] > 0:
			f.good(checkSlices, "", "driver %s has no slice for this node alone, but %s that it can use", name, english.Count(reached[name], "slice"))
		default:
			f.bad(checkSlices, drivers[name][0].Registration.Path, "driver %s runs, but there is no slice of it for this node: it found no devices, or failed to publish them", name)
		}
	}
}

// compareUsers finds drivers that do not register here although pods of the node use, or
// are about to use, their devices: the kubelet can neither prepare nor unprepare the claims
// of such a pod.
func (f *Findings) compareUsers(around *node.Cluster, blind bool) {
	if around == nil {
		return
	}
	drivers := f.drivers()
	users := map[string][]string{}
	for _, pod := range around.Pods {
		name := pod.Namespace + "/" + pod.Name
		for _, claim := range around.ClaimsOf(pod) {
			if claim.Status.Allocation == nil || !node.ReservedFor(claim, pod) {
				continue
			}
			for _, result := range claim.Status.Allocation.Devices.Results {
				if len(drivers[result.Driver]) == 0 && !slices.Contains(users[result.Driver], name) && !skipsBoth(&result) {
					users[result.Driver] = append(users[result.Driver], name)
				}
			}
		}
	}
	for _, name := range sorted(users) {
		uses := fmt.Sprintf("%s of this node %s devices of driver %s (%s)", english.Count(len(users[name]), "pod"),
			map[bool]string{true: "uses", false: "use"}[len(users[name]) == 1], name, node.Sample(users[name]))
		if unsure := f.unsure(name, blind); unsure != "" {
			f.notKnown(checkUsers, "", "%s; %s", uses, unsure)
			continue
		}
		f.bad(checkUsers, "", "%s, and no socket registers it: the kubelet can neither prepare nor unprepare their claims", uses)
	}
}

// skipsBoth reports whether the kubelet calls nobody for a device (KEP-5945).
func skipsBoth(result *resourceapi.DeviceRequestAllocationResult) bool {
	skips := func(operation resourceapi.SkipNodeOperation) bool {
		return slices.Contains(result.SkipNodeOperations, operation)
	}
	return skips(resourceapi.SkipNodeOperationAll) ||
		skips(resourceapi.SkipNodeOperationNodePrepareResources) && skips(resourceapi.SkipNodeOperationNodeUnprepareResources)
}

// unsure says why a driver that no socket names may be registered all the same; empty if it
// is not.
func (f *Findings) unsure(name string, blind bool) string {
	mute := slices.ContainsFunc(f.Plugins, func(p Plugin) bool { return p.Registration.Answer != node.Answers })
	switch {
	case blind:
		return "whether it registers is not known"
	case mute && f.mayBe(name):
		return "no socket that answers is its own; one that does not answer may be"
	default:
		return ""
	}
}

// mayBe reports whether a socket that did not give its name could belong to the driver.
func (f *Findings) mayBe(driver string) bool {
	return slices.ContainsFunc(f.Plugins, func(p Plugin) bool {
		return p.Registration.Answer != node.Answers && p.Registration.Answer != node.Stale && p.Registration.Answer != node.Missing &&
			(strings.Contains(p.Registration.Path, driver) || p.Registration.Answer == node.Denied)
	})
}

// owns reports whether a slice is for this node and no other.
func owns(slice *resourceapi.ResourceSlice, target *corev1.Node) bool {
	name := slice.Spec.NodeName
	return name != nil && *name == target.Name
}

// reaches reports whether the node can use devices of a slice. An invalid selector selects
// nothing.
func reaches(slice *resourceapi.ResourceSlice, target *corev1.Node) bool {
	reach := func(name *string, all *bool, selector *corev1.NodeSelector) bool {
		if name != nil && *name == target.Name || all != nil && *all {
			return true
		}
		return selects(selector, target)
	}
	return reach(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector) ||
		slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return reach(d.NodeName, d.AllNodes, d.NodeSelector) })
}

// selects reports whether a selector matches a node; none matches no node.
func selects(selector *corev1.NodeSelector, target *corev1.Node) bool {
	if selector == nil {
		return false
	}
	parsed, err := nodeaffinity.NewNodeSelector(selector)
	return err == nil && parsed.Match(target)
}
