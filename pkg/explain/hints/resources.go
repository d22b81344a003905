// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mixedResourceHints shows side by side where device plugins and where DRA
// serve an extended resource that the pod waits for.
func (h *finder) mixedResourceHints() {
	pod := h.Pod
	if pod == nil || h.out.Verdict != api.DoesNotFit || len(eligibility.ByPlugin(h.Question)) > 0 {
		// The headline says it.
		return
	}
	for _, name := range cluster.ExtendedResources(pod) {
		class := classOf(h.Cluster.Snapshot, name)
		plugins := target.ServedBy(h.Cluster.Snapshot, name)
		if class == nil || len(plugins) == 0 {
			continue
		}
		offered := map[string]bool{}
		for _, node := range plugins {
			offered[node.Name] = true
		}
		var dra []*corev1.Node
		for _, node := range h.Cluster.Snapshot.Nodes {
			if !offered[node.Name] && hasDevicesOf(h.Question, class.Name, node) {
				dra = append(dra, node)
			}
		}
		elsewhere := "on no other node"
		if len(dra) > 0 {
			elsewhere = "on " + target.NodeNames(dra)
		}
		quantity := plugins[0].Status.Allocatable[name]
		h.hint(
			fmt.Sprintf("extended resource %s is served by a device plugin on %s, where the scheduler does not look at ResourceSlices for it, and by DRA (DeviceClass %s) %s",
				name, target.NodeNames(plugins), class.Name, elsewhere),
			api.Evidence{Object: api.Ref(api.KindNode, "", plugins[0].Name), Path: fmt.Sprintf("status.allocatable['%s']", name), Found: quantity.String()},
			api.Evidence{Object: api.Ref("DeviceClass", "", class.Name), Path: "spec.extendedResourceName", Found: string(name)},
		)
	}
}

// classOf finds the class that stands for an extended resource.
func classOf(snap *snapshot.Snapshot, name corev1.ResourceName) *resourceapi.DeviceClass {
	if implicit, ok := strings.CutPrefix(string(name), resourceapi.ResourceDeviceClassPrefix); ok {
		return snap.Class(implicit)
	}
	for _, class := range snap.Classes {
		if class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(name) {
			return class
		}
	}
	return nil
}

// hasDevicesOf reports whether a node can reach a device of a class that is
// wanted.
func hasDevicesOf(q *eligibility.Question, class string, node *corev1.Node) bool {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				if f.Request.Class != class {
					continue
				}
				for j := range f.Devices {
					if !f.OtherClass(&f.Devices[j]) && eligibility.SliceReaches(f.Devices[j].Slice, node) {
						return true
					}
				}
			}
		}
	}
	return false
}

// pluginHint warns where a device plugin hands out what looks like the same
// hardware as the driver whose devices the pod gets: neither knows of the other.
func (h *finder) pluginHint() {
	pod := h.Pod
	if pod != nil && pod.Status.Phase == corev1.PodRunning {
		return
	}
	drivers := map[string]map[string]bool{}
	add := func(driver, node string) {
		if node == "" {
			return
		}
		if drivers[driver] == nil {
			drivers[driver] = map[string]bool{}
		}
		drivers[driver][node] = true
	}
	if h.out.Placement != nil {
		for _, claim := range h.out.Placement.Claims {
			for _, device := range claim.Devices {
				add(device.Driver, h.out.Placement.Node)
			}
		}
	}
	if pod != nil && pod.Spec.NodeName != "" {
		for _, claim := range h.out.Claims {
			if claim.Allocation == nil {
				continue
			}
			for _, device := range claim.Allocation.Devices {
				add(device.Driver, pod.Spec.NodeName)
			}
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		for _, name := range sortedKeys(drivers[driver]) {
			node := h.Cluster.Snapshot.Node(name)
			if node == nil {
				continue
			}
			for _, offered := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
				domain, _, qualified := strings.Cut(string(offered), "/")
				quantity := node.Status.Allocatable[offered]
				if !qualified || quantity.IsZero() || !target.OfVendor(driver, domain) {
					continue
				}
				h.hint(
					fmt.Sprintf("node %s also offers %s %s through a device plugin: if that is the same hardware as the devices of %s, both may allocate the same device, since neither knows of the allocations of the other",
						name, quantity.String(), offered, driver),
					api.Evidence{Object: api.Ref(api.KindNode, "", name), Path: fmt.Sprintf("status.allocatable['%s']", offered), Found: quantity.String()},
				)
			}
		}
	}
}
