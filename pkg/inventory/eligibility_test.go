// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// selected returns a slice of pool "fab" for the nodes that have the label.
func selected(name, label string, list ...tc.DeviceWrapper) tc.SliceWrapper {
	return tc.Slice("fab-"+name, tc.Driver, "fab", list...).OnNodesWith(label, "")
}

func ofSlices(count int64, list ...tc.SliceWrapper) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		out = append(out, s.Of(count))
	}
	return out
}

func labelled(name string, labels ...string) *corev1.Node {
	n := tc.Node(name)
	n.Labels = map[string]string{}
	for _, label := range labels {
		n.Labels[label] = ""
	}
	return n
}

// changed returns a slice with a change.
func changed(s tc.SliceWrapper, change func(*resourceapi.ResourceSliceSpec)) tc.SliceWrapper {
	return s.Change(func(slice *resourceapi.ResourceSlice) { change(&slice.Spec) })
}

// TestIneligibleDevices covers devices that are not free, because the allocator uses them
// on no node.
func TestIneligibleDevices(t *testing.T) {
	binding := tc.Device("gpu-0").Change(func(d *resourceapi.Device) { d.BindingConditions = []string{"Attached"} })
	perDevice := func(spec *resourceapi.ResourceSliceSpec) {
		spec.NodeName, spec.PerDeviceNodeSelection = nil, ptr.To(true)
		spec.Devices[0].NodeName = ptr.To(tc.Node1)
	}
	skips := func(spec *resourceapi.ResourceSliceSpec) {
		spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources}
	}
	plain := func() tc.SliceWrapper { return tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...) }
	declares := tc.Node(tc.Node1)
	declares.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
	hidden := snapshot.Gap{Resource: snapshot.ResourceNodes, Reason: "forbidden"}
	for name, test := range map[string]struct {
		objects []any
		want    string
	}{
		"reached":                 {[]any{tc.Node(tc.Node1), plain()}, "Free "},
		"no such node":            {[]any{tc.Node("other"), plain()}, "Unusable the node does not exist"},
		"nodes hidden":            {[]any{hidden, plain()}, "Free "},
		"some nodes hidden":       {[]any{hidden, tc.Node("other"), plain()}, "Free "},
		"no nodes in the file":    {[]any{plain()}, "Free "},
		"selects no node":         {[]any{tc.Node(tc.Node1), selected("a", "a", tc.NamedDevices("gpu-0")...)}, "Unusable no node matches the node selector"},
		"selects hidden nodes":    {[]any{hidden, selected("a", "a", tc.NamedDevices("gpu-0")...)}, "Free "},
		"selects a node":          {[]any{labelled(tc.Node1, "a"), selected("a", "a", tc.NamedDevices("gpu-0")...)}, "Free "},
		"held and out of reach":   {[]any{tc.Node("other"), plain(), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0")}, "Allocated "},
		"binding conditions":      {[]any{tc.Node(tc.Node1), tc.Pool(tc.Node1, binding), tc.Gate("DRADeviceBindingConditions", true), tc.Gate("DRAResourceClaimDeviceStatus", true)}, "Free "},
		"binding conditions off":  {[]any{tc.Node(tc.Node1), tc.Pool(tc.Node1, binding), tc.Gate("DRADeviceBindingConditions", false)}, "Unusable has binding conditions, which need the feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"},
		"per device off":          {[]any{tc.Node(tc.Node1), changed(plain(), perDevice), tc.Gate("DRAPartitionableDevices", false)}, "Unusable the slice selects nodes per device, which needs the feature gate DRAPartitionableDevices"},
		"per device":              {[]any{tc.Node(tc.Node1), changed(plain(), perDevice), tc.Gate("DRAPartitionableDevices", true)}, "Free "},
		"per device off, no node": {[]any{changed(plain(), perDevice), tc.Gate("DRAPartitionableDevices", false)}, "Unusable the slice selects nodes per device, which needs the feature gate DRAPartitionableDevices"},
		"no selection":            {[]any{tc.Node(tc.Node1), changed(plain(), func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName = nil })}, "Unusable the slice selects nodes in no known way"},
		"node operations":         {[]any{declares, changed(plain(), skips), tc.Gate("DRAOptionalNodeOperations", true)}, "Free "},
		"node operations, hidden": {[]any{changed(plain(), skips), tc.Gate("DRAOptionalNodeOperations", true)}, "Free "},
		"node operations, old":    {[]any{tc.Node(tc.Node1), changed(plain(), skips), tc.Gate("DRAOptionalNodeOperations", true)}, "Unusable the node does not declare DRAOptionalNodeOperations"},
		// The experimental channel, which another gate brings, knows of the field.
		"node operations off": {[]any{tc.Node(tc.Node1), changed(plain(), skips), tc.Gate("DRADeviceCompatibilityGroups", true), tc.Gate("DRAPartitionableDevices", true), tc.Gate("DRAOptionalNodeOperations", false)}, "Unusable needs the feature gate DRAOptionalNodeOperations"},
		"twice for a node": {
			append(ofSlices(2, selected("a", "a", tc.NamedDevices("gpu-0")...), selected("b", "b", tc.NamedDevices("gpu-0")...)), labelled(tc.Node1, "a", "b")),
			"Unusable the pool is invalid: there is more than one device with the name gpu-0",
		},
		"twice for one of two": {
			append(ofSlices(2, selected("a", "a", tc.NamedDevices("gpu-0")...), selected("b", "b", tc.NamedDevices("gpu-0")...)), labelled(tc.Node1, "a", "b"), labelled("node-2", "a")),
			"Free ",
		},
		"twice for a node by name": {
			append(ofSlices(2, changed(plain(), func(spec *resourceapi.ResourceSliceSpec) { spec.Pool.Name = "fab" }), selected("a", "a", tc.NamedDevices("gpu-0")...)), labelled(tc.Node1, "a")),
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

// TestPoolOfUnusableDevices covers a pool that is not usable, and says why.
func TestPoolOfUnusableDevices(t *testing.T) {
	two := ofSlices(2, selected("a", "a", tc.NamedDevices("gpu-0")...), selected("b", "b", tc.NamedDevices("gpu-0")...))
	pool := poolsOf(t, inventoryWith(t, append(two, labelled(tc.Node1, "a", "b"))...))["fab"]
	if pool.State != api.PoolStateInvalid || pool.Reason != "there is more than one device with the name gpu-0" || pool.Devices.Unusable != 2 {
		t.Errorf("%s (%s), %+v", pool.State, pool.Reason, pool.Devices)
	}
	pool = poolsOf(t, inventoryWith(t, tc.Node(tc.Node1), selected("a", "a", tc.NamedDevices("gpu-0", "gpu-1")...)))["fab"]
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
	held := tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) { r.Pool = "fab" })
	for name, test := range map[string]struct {
		newer             string
		slice, pool, flag string
		taken             int
	}{
		"on another node": {
			"node-2",
			"generation 1, the pool is at 2; the allocator still takes its devices for nodes without newer slices",
			"not counted: devices of earlier generations, which the allocator still takes for nodes without newer slices (fab-00)",
			"", 1,
		},
		"on the same node": {
			tc.Node1, "generation 1, the pool is at 2", "",
			"DeviceGone: the newest generation of its pool does not have device gpu.example.com/fab/gpu-0 any more", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			newer := changed(tc.Pool(test.newer, tc.NamedDevices("gpu-1")...), fab(2))
			newer.Name = "z"
			v := inventoryWith(t, tc.Node(tc.Node1), tc.Node("node-2"), changed(tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...), fab(1)), newer, held.ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn(tc.Node1)))
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
