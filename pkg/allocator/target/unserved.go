// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ServedBy lists the nodes on which device plugins offer a resource.
func ServedBy(snap *snapshot.Snapshot, name corev1.ResourceName) []*corev1.Node {
	var nodes []*corev1.Node
	for _, node := range snap.Nodes {
		if quantity, ok := node.Status.Allocatable[name]; ok && !quantity.IsZero() {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// unmapped tells, of a pod that has nothing to do with DRA, who serves the
// extended resources that it asks for: perhaps DRA was meant to.
func unmapped(snap *snapshot.Snapshot, pod *corev1.Pod, enabled bool) string {
	names := cluster.ExtendedResources(pod)
	if len(names) == 0 {
		return ""
	}
	name := names[0]
	text := fmt.Sprintf("it asks for the extended resource %s, which no DeviceClass maps", name)
	for _, class := range snap.Classes {
		if !enabled && class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(name) {
			text = fmt.Sprintf("it asks for the extended resource %s, which DeviceClass %s maps, but the feature gate DRAExtendedResource is off", name, class.Name)
		}
	}
	if nodes := ServedBy(snap, name); len(nodes) > 0 {
		text += fmt.Sprintf("; device plugins offer it on %s", NodeNames(nodes))
	} else if snap.Gap(snapshot.ResourceNodes) == nil {
		text += ", and no node offers it through a device plugin"
	}
	if enabled {
		text += Mappable(snap, name)
	}
	return text
}

// Mappable names the drivers of the vendor of an extended resource that
// publish devices: a DeviceClass could map it to them.
func Mappable(snap *snapshot.Snapshot, name corev1.ResourceName) string {
	var drivers []string
	domain, _, _ := strings.Cut(string(name), "/")
	for _, slice := range snap.Slices {
		if OfVendor(slice.Spec.Driver, domain) && !slices.Contains(drivers, slice.Spec.Driver) {
			drivers = append(drivers, slice.Spec.Driver)
		}
	}
	if len(drivers) == 0 {
		return ""
	}
	return fmt.Sprintf("; driver %s publishes devices: to serve it with them, a DeviceClass needs spec.extendedResourceName: %s", english.JoinAnd(drivers), name)
}

// OfVendor reports whether a driver is of the domain of an extended resource:
// gpu.example.com is of example.com.
func OfVendor(driver, domain string) bool {
	return driver == domain || strings.HasSuffix(driver, "."+domain)
}

// NodeNames names the first nodes of a list.
func NodeNames(nodes []*corev1.Node) string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.SortFunc(names, english.CompareNames)
	return english.Sample(names, 3)
}

// MayOwnPods reports whether what the pods of a workload belong to may be of a resource. That
// may have any kind: those that are read for something else do not, but for Jobs.
func MayOwnPods(resource string) bool {
	return resource == snapshot.ResourceJobs || !slices.Contains(snapshot.Resources(), resource)
}
