// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// selected is a slice of pool "fab" for the nodes that have the label.
func selected(name, label string, list ...resourceapi.Device) *resourceapi.ResourceSlice {
	s := slice(name, list...)
	s.Name, s.Spec.Pool.Name = "fab-"+name, "fab"
	s.Spec.NodeName = nil
	s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpExists}},
	}}}
	return s
}

func ofSlices(count int64, list ...*resourceapi.ResourceSlice) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		s.Spec.Pool.ResourceSliceCount = count
		out = append(out, s)
	}
	return out
}

func labelled(name string, labels ...string) *corev1.Node {
	n := node(name)
	n.Labels = map[string]string{}
	for _, label := range labels {
		n.Labels[label] = ""
	}
	return n
}

// changed is a slice with a change.
func changed(s *resourceapi.ResourceSlice, change func(*resourceapi.ResourceSliceSpec)) *resourceapi.ResourceSlice {
	change(&s.Spec)
	return s
}

// TestIneligibleDevices are not free, because the allocator takes them on no node.
func TestIneligibleDevices(t *testing.T) {
	binding := device("gpu-0", func(d *resourceapi.Device) { d.BindingConditions = []string{"Attached"} })
	perDevice := func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.PerDeviceNodeSelection = nil, ptr.To(true)
		spec.Devices[0].NodeName = ptr.To(node1)
	}
	skips := func(spec *resourceapi.ResourceSliceSpec) {
		spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources}
	}
	plain := func() *resourceapi.ResourceSlice { return slice(node1, devices("gpu-0")...) }
	declares := node(node1)
	declares.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
	hidden := snapshot.Gap{Resource: snapshot.ResourceNodes, Reason: "forbidden"}
	for name, test := range map[string]struct {
		objects []any
		want    string
	}{
		"reached":                 {[]any{node(node1), plain()}, "Free "},
		"no such node":            {[]any{node("other"), plain()}, "Unusable the node does not exist"},
		"nodes hidden":            {[]any{hidden, plain()}, "Free "},
		"some nodes hidden":       {[]any{hidden, node("other"), plain()}, "Free "},
		"no nodes in the file":    {[]any{plain()}, "Free "},
		"selects no node":         {[]any{node(node1), selected("a", "a", devices("gpu-0")...)}, "Unusable no node matches the node selector"},
		"selects hidden nodes":    {[]any{hidden, selected("a", "a", devices("gpu-0")...)}, "Free "},
		"selects a node":          {[]any{labelled(node1, "a"), selected("a", "a", devices("gpu-0")...)}, "Free "},
		"held and out of reach":   {[]any{node("other"), plain(), claim("c").has("gpu-0")}, "Allocated "},
		"binding conditions":      {[]any{node(node1), slice(node1, binding), gate("DRADeviceBindingConditions"), gate("DRAResourceClaimDeviceStatus")}, "Free "},
		"binding conditions off":  {[]any{node(node1), slice(node1, binding), gateOff("DRADeviceBindingConditions")}, "Unusable has binding conditions, which need the feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"},
		"per device off":          {[]any{node(node1), changed(plain(), perDevice), gateOff("DRAPartitionableDevices")}, "Unusable the slice selects nodes per device, which needs the feature gate DRAPartitionableDevices"},
		"per device":              {[]any{node(node1), changed(plain(), perDevice), gate("DRAPartitionableDevices")}, "Free "},
		"per device off, no node": {[]any{changed(plain(), perDevice), gateOff("DRAPartitionableDevices")}, "Unusable the slice selects nodes per device, which needs the feature gate DRAPartitionableDevices"},
		"no selection":            {[]any{node(node1), changed(plain(), func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName = nil })}, "Unusable the slice selects nodes in no known way"},
		"node operations":         {[]any{declares, changed(plain(), skips), gate("DRAOptionalNodeOperations")}, "Free "},
		"node operations, hidden": {[]any{changed(plain(), skips), gate("DRAOptionalNodeOperations")}, "Free "},
		"node operations, old":    {[]any{node(node1), changed(plain(), skips), gate("DRAOptionalNodeOperations")}, "Unusable the node does not declare DRAOptionalNodeOperations"},
		// The experimental channel, which another gate brings, knows of the field.
		"node operations off": {[]any{node(node1), changed(plain(), skips), gate("DRADeviceCompatibilityGroups"), gate("DRAPartitionableDevices"), gateOff("DRAOptionalNodeOperations")}, "Unusable needs the feature gate DRAOptionalNodeOperations"},
		"twice for a node": {
			append(ofSlices(2, selected("a", "a", devices("gpu-0")...), selected("b", "b", devices("gpu-0")...)), labelled(node1, "a", "b")),
			"Unusable the pool is invalid: there is more than one device with the name gpu-0",
		},
		"twice for one of two": {
			append(ofSlices(2, selected("a", "a", devices("gpu-0")...), selected("b", "b", devices("gpu-0")...)), labelled(node1, "a", "b"), labelled("node-2", "a")),
			"Free ",
		},
		"twice for a node by name": {
			append(ofSlices(2, changed(plain(), func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.Name = "fab" }), selected("a", "a", devices("gpu-0")...)), labelled(node1, "a")),
			"Unusable the pool is invalid: there is more than one device with the name gpu-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryWith(t, test.objects...)
			first := v.Devices()[0]
			if diff := cmp.Diff(test.want, string(first.State)+" "+first.Reason); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			free := 0
			if first.State == api.DeviceStateFree {
				free = 1
			}
			if got := v.Slices()[0].Free; got != free {
				t.Errorf("the slice has %d free devices, want %d", got, free)
			}
		})
	}
}

// TestPoolOfUnusableDevices is not usable, and says why.
func TestPoolOfUnusableDevices(t *testing.T) {
	two := ofSlices(2, selected("a", "a", devices("gpu-0")...), selected("b", "b", devices("gpu-0")...))
	pool := poolsOf(t, inventoryWith(t, append(two, labelled(node1, "a", "b"))...))["fab"]
	if pool.State != api.PoolStateInvalid || pool.Reason != "there is more than one device with the name gpu-0" || pool.Devices.Unusable != 2 {
		t.Errorf("%s (%s), %+v", pool.State, pool.Reason, pool.Devices)
	}
	pool = poolsOf(t, inventoryWith(t, node(node1), selected("a", "a", devices("gpu-0", "gpu-1")...)))["fab"]
	if pool.State != api.PoolStateUnusable || pool.Reason != "no node matches the node selector" || pool.Devices.Unusable != 2 {
		t.Errorf("%s (%s), %+v", pool.State, pool.Reason, pool.Devices)
	}
}

// TestEarlierGenerationStillTaken: the allocator looks no further than at the
// slices for a node, if there are as many as the pool declares.
func TestEarlierGenerationStillTaken(t *testing.T) {
	fab := func(generation int64) func(*resourceapi.ResourceSliceSpec) {
		return func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.Name, spec.Pool.Generation = "fab", generation }
	}
	held := claim("c").has("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) { r.Pool = "fab" })
	for name, test := range map[string]struct {
		newer             string
		slice, pool, flag string
		taken             int
	}{
		"on another node": {
			"node-2",
			"generation 1, the pool is at 2; the allocator still takes its devices for nodes without newer slices",
			"not counted: devices of earlier generations, which the allocator still takes for nodes without newer slices (node-1-devices)",
			"", 1,
		},
		"on the same node": {
			node1, "generation 1, the pool is at 2", "",
			"DeviceGone: the newest generation of its pool does not have device gpu.example.com/fab/gpu-0 any more", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			newer := changed(slice(test.newer, devices("gpu-1")...), fab(2))
			newer.Name = "z"
			v := inventoryWith(t, node(node1), node("node-2"), changed(slice(node1, devices("gpu-0")...), fab(1)), newer, held.reservedFor("p", "uid-p"), pod("p", "c"))
			if s := v.Slices()[0]; s.State != api.SliceStateObsolete || s.Reason != test.slice {
				t.Errorf("slice %s: %s (%s)", s.Name, s.State, s.Reason)
			}
			if got := v.StillTaken(); got != test.taken {
				t.Errorf("%d devices are still taken, want %d", got, test.taken)
			}
			if p := poolsOf(t, v)["fab"]; p.State != api.PoolStateUsable || p.Reason != test.pool {
				t.Errorf("pool: %s (%s)", p.State, p.Reason)
			}
			var want []string
			if test.flag != "" {
				want = append(want, test.flag)
			}
			if diff := cmp.Diff(want, flagsOf(v, "c"), what()); diff != "" {
				t.Errorf("flags, -want +got:\n%s", diff)
			}
		})
	}
}
