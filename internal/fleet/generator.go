// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type generator struct {
	*rand.Rand
	snap *snapshot.Snapshot
	on   map[string]bool
	// published are the devices so far.
	published []published
	// slices counts the slices so far, to name them.
	slices int
}

type published struct {
	driver, pool, node string
	device             *resourceapi.Device
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// with reports whether to use a feature here, if it is on at all.
func (g *generator) with(feature string, percent int) bool { return g.on[feature] && g.chance(percent) }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) quantity(from ...string) resource.Quantity {
	return resource.MustParse(g.pick(from...))
}

func (g *generator) node() string { return g.snap.Nodes[g.IntN(len(g.snap.Nodes))].Name }

func celSelector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// allocated returns a claim that holds a device, or a share of it.
func (g *generator) allocated(namespace, name string, p *published) *resourceapi.ResourceClaim {
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: p.driver, Pool: p.pool, Device: p.device.Name}
	switch {
	case p.device.AllowMultipleAllocations != nil && g.snap.Gates["DRAConsumableCapacity"].Enabled:
		result.ShareID = ptr.To(types.UID("share-" + name))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": g.quantity("1", "2", "4")}
	case g.with(AdminAccess, 40):
		result.AdminAccess = ptr.To(true)
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{exactly("r", Class, 1)}}},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node}}},
			}}},
		}},
	}
}
