// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const waiting = "train"

// TestCodes covers a cluster for each reason. Funnels are written as
// "considered=eligible+count*code…", node groups as "count*code".
func TestCodes(t *testing.T) {
	target := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}
	tests := map[string]struct {
		cluster []any
		target  Options
		verdict api.Verdict
		funnels []string
		nodes   []string
		// summary is a part of the summary, evidence one of any message or
		// fact.
		summary, evidence string
	}{
		"fits": {
			cluster: []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			verdict: api.Fits,
			funnels: []string{"2=2"},
			nodes:   []string{"1*Fits", "1*NodeNotReachable"},
			summary: "The allocator picks n1.",
		},
		"allocated to others": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Serving("serve", "n1", "gpu-0", "gpu-1"), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			verdict: api.DoesNotFit,
			funnels: []string{"3=1+2*DeviceAllocated"},
			nodes:   []string{"1*CountUnsatisfiable"},
			summary: "Request gpu needs 2 devices. Node n1 has 1 available (2 allocated).", evidence: "to claim serving/serve",
		},
		"all allocated": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("serve", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*DeviceAllocated"},
			nodes:   []string{"1*DeviceAllocated"},
		},
		"request selector": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=40Gi"), tc.Device("b", "memory:=80Gi")),
				tc.Claim(waiting, tc.GPUs("gpu", 2, `device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`)),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=1+1*RequestSelectorFalse"},
			nodes:    []string{"1*CountUnsatisfiable"},
			evidence: "memory is 40Gi, must be 80Gi or more",
		},
		"class selector": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Driver = "nic.example.com" }),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"1=0+1*ClassSelectorFalse"},
			nodes:    []string{"1*ClassSelectorFalse"},
			evidence: `driver is "nic.example.com"`,
		},
		"selector fails": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].modle == "A"`)),
			},
			verdict:  api.Error,
			funnels:  []string{"1=0+1*SelectorError"},
			nodes:    []string{"1*SelectorError"},
			summary:  "Request gpu: the selector fails on 1 of 1 device of the class, and a CEL error on one device makes scheduling fail on every node: no such key: modle; attribute modle (domain gpu.example.com) does not exist on the only device; did you mean model?",
			evidence: "did you mean model?",
		},
		"class missing": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1).OfClass("gpus"))},
			verdict: api.Error,
			nodes:   []string{"1*ClassNotFound"},
			summary: "DeviceClass gpus does not exist; did you mean gpu?",
		},
		"tainted": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute), tc.Device("b").Tainted("note", resourceapi.DeviceTaintEffectNone)),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=1+1*DeviceTainted"},
			nodes:    []string{"1*CountUnsatisfiable"},
			evidence: "xid:NoExecute",
		},
		"taint tolerated": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute)),
				tc.Claim(waiting, tc.GPUs("gpu", 1).Tolerating("xid")),
			},
			verdict: api.Fits, funnels: []string{"1=1"}, nodes: []string{"1*Fits"},
		},
		"all mode with one allocated": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Serving("serve", "n1", "gpu-2"), tc.Claim(waiting, tc.GPUs("gpu", 0).All())},
			verdict: api.DoesNotFit,
			funnels: []string{"4=3+1*DeviceAllocated"},
			nodes:   []string{"1*DeviceAllocated"},
			summary: "Request gpu needs all devices that match. Node n1 has 3 of 4 matching devices available, and all of them are required (1 allocated).",
		},
		"all mode with an incomplete pool": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...).Of(2), tc.Claim(waiting, tc.GPUs("gpu", 0).All())},
			verdict: api.Error,
			funnels: []string{"4=0+4*PoolIncomplete"},
			nodes:   []string{"1*PoolIncomplete"},
			summary: "currently being updated", evidence: "1 of 2 slices of pool n1 published",
		},
		"incomplete pool": {
			cluster: []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(4)...).Of(2), tc.Pool("n2", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			verdict: api.DoesNotFit,
			funnels: []string{"5=1+4*PoolIncomplete"},
			nodes:   []string{"1*PoolIncomplete", "1*CountUnsatisfiable"},
		},
		"invalid pool": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"), tc.Device("a")), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=0+2*PoolInvalid"},
			nodes:    []string{"1*PoolInvalid"},
			evidence: "more than one device with the name a",
		},
		"obsolete generation": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...),
				tc.Pool("n1", tc.Device("gpu-0")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 2 }),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"3=1+2*PoolObsolete"},
			nodes:   []string{"1*CountUnsatisfiable"},
		},
		"node gone": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n9", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=0+2*NodeNotReachable"},
			nodes:    []string{"1*NodeNotReachable"},
			evidence: "the node does not exist",
		},
		"node not suitable": {
			cluster: []any{
				tc.Nodes("n1"), tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
				tc.Pool("n1", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"2=0+2*NodeUnsuitable"},
			nodes:   []string{"1*NodeUnsuitable"},
		},
		"counters": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("whole").Consuming("board", "slices=4"), tc.Device("half-0").Consuming("board", "slices=2"), tc.Device("half-1").Consuming("board", "slices=2")).Of(2),
				tc.Serving("serve", "n1", "half-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"3=1+1*DeviceAllocated+1*CountersExhausted"},
			nodes:    []string{"1*CountUnsatisfiable"},
			evidence: "2 of 4 available in counter slices, used by half-0, 4 required",
		},
		"counters together": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("a").Consuming("board", "slices=3"), tc.Device("b").Consuming("board", "slices=3")).Of(2),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"2=2"},
			nodes:   []string{"1*CountersExhausted"},
		},
		"compatibility groups": {
			cluster: []any{
				tc.Gate("DRADeviceCompatibilityGroups", true), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1").InGroups("mig"), tc.Device("b").Consuming("board", "slices=1").InGroups("vgpu")).Of(2),
				tc.Serving("serve", "n1", "a"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=0+1*DeviceAllocated+1*CompatibilityGroupConflict"},
			nodes:    []string{"1*CountUnsatisfiable"},
			evidence: "counter set board is used by devices of compatibility group mig",
		},
		// A driver that changes its slices can leave devices in use that do not go
		// together. What comes first for a node counts there.
		"compatibility groups of devices in use that disagree": {
			cluster: []any{
				tc.Gate("DRADeviceCompatibilityGroups", true), tc.Nodes("n1", "n2"), tc.Pool("p").Of(3).OnAllNodes().WithCounters("board", "slices=4"),
				tc.Pool("p", tc.Device("a").Consuming("board", "slices=1"), tc.Device("b", "model=plain").Consuming("board", "slices=1")).Of(3).OnNode("n1"),
				tc.Pool("p", tc.Device("c").Consuming("board", "slices=1").InGroups("mig"), tc.Device("d", "model=mig").Consuming("board", "slices=1").InGroups("mig")).Of(3).OnNode("n2"),
				tc.Serving("serve-plain", "p", "a"), tc.Serving("serve-mig", "p", "c"),
				tc.Claim(waiting, tc.GPUs("gpu", 1).Where(`device.attributes["gpu.example.com"].model == "mig"`)),
			},
			verdict: api.Fits,
			funnels: []string{"4=1+1*RequestSelectorFalse+2*DeviceAllocated"},
			nodes:   []string{"1*Fits", "1*CountUnsatisfiable"},
		},
		"compatibility groups together": {
			cluster: []any{
				tc.Gate("DRADeviceCompatibilityGroups", true), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1").InGroups("mig"), tc.Device("b").Consuming("board", "slices=1").InGroups("vgpu")).Of(2),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"2=2"},
			nodes:   []string{"1*CompatibilityGroupConflict"},
		},
		"capacity": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("nic", "memory:=100").Shareable()),
				tc.Sharing("serve", "n1", "nic", "memory", "70"), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "40")),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"1=0+1*CapacityInsufficient"},
			nodes:    []string{"1*CapacityInsufficient"},
			evidence: "30 of 100 memory available, 40 required",
		},
		"capacity that the device lacks": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=1")), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("bandwidth", "1"))},
			verdict:  api.DoesNotFit,
			funnels:  []string{"1=0+1*CapacityInsufficient"},
			nodes:    []string{"1*CapacityInsufficient"},
			summary:  "Node n1 has 0 of 1 available (1 without capacity bandwidth)",
			evidence: "has no capacity bandwidth",
		},
		"too small, and allocated besides": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=40"), tc.Device("b", "memory:=40"), tc.Device("c", "memory:=80")),
				tc.Serving("serve", "n1", "a", "c"), tc.Claim(waiting, tc.GPUs("gpu", 2).WithCapacity("memory", "80")),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"3=0+2*CapacityInsufficient+1*DeviceAllocated"},
			nodes:    []string{"1*CountUnsatisfiable"},
			summary:  "Request gpu needs 2 devices. Node n1 has 0 available, at most 1 match (2 too small, 1 allocated).",
			evidence: "40 memory, 80 required",
		},
		"capacity in shares that are too small": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=100").Shareable().Change(func(d *resourceapi.Device) {
					d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse("100"), RequestPolicy: &resourceapi.CapacityRequestPolicy{
						Default: new(resource.MustParse("10")), ValidValues: []resource.Quantity{resource.MustParse("10"), resource.MustParse("20")},
					}}
				})),
				tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "40")),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*CapacityInsufficient"},
			nodes:   []string{"1*CapacityInsufficient"},
			summary: "Node n1 has 0 of 1 available (1 with no such share of memory); memory comes in only 10 or 20, 40 required",
		},
		"match attribute": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "root=x"), tc.Device("b", "root=y"), tc.Device("c", "root=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 3)).Matching("gpu.example.com/root"),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"3=3"},
			nodes:   []string{"1*ConstraintUnsatisfiable"},
			summary: "Request gpu needs 3 devices with the same gpu.example.com/root. Node n1 has 3 available, at most 2 with the same gpu.example.com/root.",
		},
		"match attribute with one value on several nodes": {
			cluster: []any{
				tc.Nodes("n1", "n2", "n3"),
				tc.Pool("n1", tc.Device("a", "model=x"), tc.Device("b", "model=x"), tc.Device("c", "model=y")),
				tc.Pool("n2", tc.Device("a", "model=x"), tc.Device("b", "model=x"), tc.Device("c", "model=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 3)).Matching("gpu.example.com/model"),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"6=6"},
			nodes:   []string{"2*ConstraintUnsatisfiable", "1*NodeNotReachable"},
			summary: "Node n1 and 1 more node have 3 available, at most 2 with the same gpu.example.com/model.",
		},
		"match attribute with a value on each node": {
			cluster: []any{
				tc.Nodes("n1", "n2", "n3"),
				tc.Pool("n1", tc.Device("a", "model=x1"), tc.Device("b", "model=x1"), tc.Device("c", "model=y")),
				tc.Pool("n2", tc.Device("a", "model=x2"), tc.Device("b", "model=x2"), tc.Device("c", "model=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 3)).Matching("gpu.example.com/model"),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"6=6"},
			nodes:   []string{"2*ConstraintUnsatisfiable", "1*NodeNotReachable"},
			summary: "Node n1 and 1 more node have 3 available, at most 2 with the same gpu.example.com/model.",
		},
		"distinct attribute": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "root=x"), tc.Device("b", "root=y"), tc.Device("c", "root=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 3)).Distinct("gpu.example.com/root"),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"3=3"},
			nodes:   []string{"1*ConstraintUnsatisfiable"},
			summary: "Node n1 has 3 available, but only 2 distinct values exist of gpu.example.com/root.",
		},
		"attribute missing": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "root=x")),
				tc.Claim(waiting, tc.GPUs("gpu", 1)).Matching("gpu.example.com/roots"),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"1=0+1*AttributeMissing"},
			nodes:    []string{"1*AttributeMissing"},
			evidence: "has no attribute gpu.example.com/roots, which does not exist on the only device; did you mean gpu.example.com/root?",
		},
		"empty list": {
			cluster: []any{
				tc.Gate("DRAListTypeAttributes", true), tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithList("root"), tc.Device("b").WithList("root", "x")),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Distinct("gpu.example.com/root"),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"2=1+1*AttributeMissing"},
			nodes:    []string{"1*CountUnsatisfiable"},
			summary:  "Node n1 has 1 of 2 available (1 with an empty list as the attribute of a constraint)",
			evidence: "attribute gpu.example.com/root is an empty list, which no constraint takes",
		},
		"empty list without the gate": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithList("root")), tc.Claim(waiting, tc.GPUs("gpu", 1)).Matching("gpu.example.com/root"),
			},
			verdict: api.Fits, funnels: []string{"1=1"}, nodes: []string{"1*Fits"},
		},
		"lists without the gate": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithList("root"), tc.Device("b").WithList("root", "x")),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
			},
			verdict: api.DoesNotFit, funnels: []string{"2=2"}, nodes: []string{"1*ConstraintUnsatisfiable"},
			summary: "Node n1 has enough devices available, but not with the same gpu.example.com/root.",
		},
		"derived empty list": {
			cluster: []any{
				tc.Gate("DRAListTypeAttributes", true), tc.Gate("DRADerivedAttributes", true), tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithList("tags", "x")),
				tc.Claim(waiting, tc.GPUs("gpu", 1).Deriving("x.example.com/r", `device.attributes["gpu.example.com"].tags.filter(t, t == "r")`)).Matching("x.example.com/r"),
			},
			verdict:  api.DoesNotFit,
			funnels:  []string{"1=0+1*AttributeMissing"},
			nodes:    []string{"1*AttributeMissing"},
			evidence: "spec.devices.requests[0].exactly.derivedAttributes[0]",
		},
		"derived attribute off": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...),
				tc.Claim(waiting, tc.GPUs("gpu", 1).Deriving("x.example.com/r", `"r"`)).Matching("x.example.com/r"),
			},
			verdict:  api.Error,
			funnels:  []string{"1=0+1*FeatureDisabled"},
			nodes:    []string{"1*FeatureDisabled"},
			summary:  "derived attributes, the feature is disabled",
			evidence: "spec.devices.requests[0].exactly.derivedAttributes[0]",
		},
		"requests compete": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("b", "model=B")),
				tc.Claim(waiting, tc.GPUs("x", 1, `device.attributes["gpu.example.com"].model == "A"`), tc.GPUs("y", 2)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"2=1+1*RequestSelectorFalse", "2=2"},
			nodes:   []string{"1*RequestsCompete"},
			summary: "Node n1 has enough devices for each of request x and request y alone, but not for all together",
		},
		"prioritized list": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Device("a", "model=B")), tc.Pool("n2", tc.Device("a", "model=A")),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("best", 1, `device.attributes["gpu.example.com"].model == "A"`), tc.GPUs("good", 1))),
			},
			verdict: api.Fits,
			funnels: []string{"2=1+1*RequestSelectorFalse", "2=2"},
			nodes:   []string{"1*Fits", "1*Fits"},
			summary: "The allocator picks n2, taking gpu/best.",
		},
		"prioritized list off": {
			cluster: []any{
				tc.Gate("DRAPrioritizedList", false), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("best", 1))),
			},
			verdict: api.Error,
			nodes:   []string{"1*FeatureDisabled"},
			summary: "needs the feature gate DRAPrioritizedList",
		},
		"partitions off": {
			cluster: []any{
				tc.Gate("DRAPartitionableDevices", false), tc.Nodes("n1"),
				tc.Pool("n1", tc.Device("half").Consuming("board", "slices=2")), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*FeatureDisabled"},
			nodes:   []string{"1*FeatureDisabled"},
		},
		"binding conditions off": {
			cluster: []any{
				tc.Gate("DRADeviceBindingConditions", false), tc.Nodes("n1"),
				tc.Pool("n1", tc.Device("a").Change(func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} })), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*BindingConditionsUnsupported"},
			nodes:   []string{"1*BindingConditionsUnsupported"},
		},
		"node operations": {
			cluster: []any{
				tc.Gate("DRAOptionalNodeOperations", true), tc.Nodes("n1"),
				tc.Pool("n1", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
				}),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*NodeOperationUnsupported"},
			nodes:   []string{"1*NodeOperationUnsupported"},
		},
		"node operations, and too few": {
			cluster: []any{
				tc.Gate("DRAOptionalNodeOperations", true), tc.Nodes("n1"),
				tc.Pool("n1", tc.Devices(2)...).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
					s.Spec.Pool.Name = "other"
				}),
				tc.Pool("n1", tc.Devices(1)...), tc.Serving("serve", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"3=0+1*DeviceAllocated+2*NodeOperationUnsupported"},
			nodes:   []string{"1*CountUnsatisfiable"},
			summary: "Node n1 has 0 available, at most 1 match (2 that the node is too old for, 1 allocated)",
		},
		"claim limit": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(40)...), tc.Claim(waiting, tc.GPUs("gpu", 33))},
			verdict: api.Error,
			funnels: []string{"40=40"},
			nodes:   []string{"1*ClaimLimitExceeded"},
			summary: "Claim ml/train, request gpu: a claim can have at most 32 devices, this request asks for 33.",
		},
		"claim limit of several requests": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(40)...), tc.Claim(waiting, tc.GPUs("a", 20), tc.GPUs("b", 15))},
			verdict: api.Error,
			funnels: []string{"40=40", "40=40"},
			nodes:   []string{"1*ClaimLimitExceeded"},
			summary: "request b: a claim can have at most 32 devices, this request asks for 15, and those before it for 20.",
		},
		"admin access denied": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1).WithAdminAccess()),
				func(s *snapshot.Snapshot) { s.Claims[0].UID = "" },
			},
			verdict: api.Error,
			nodes:   []string{"1*AdminAccessDenied"},
			summary: "resource.kubernetes.io/admin-access=true; namespace ml has no such label",
		},
		"admin access takes what others have": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("serve", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 1).WithAdminAccess()),
			},
			verdict: api.Fits, funnels: []string{"1=1"}, nodes: []string{"1*Fits"},
		},
		"hidden claims": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Gap(snapshot.ResourceClaims, "alice may not list resourceclaims"),
			},
			verdict: api.Undetermined, funnels: []string{"1=1"}, nodes: []string{"1*Fits"},
			summary: "alice may not list resourceclaims",
		},
		"hidden claims do not matter": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 2)),
				tc.Gap(snapshot.ResourceClaims, "alice may not list resourceclaims"),
			},
			verdict: api.DoesNotFit, funnels: []string{"1=1"}, nodes: []string{"1*CountUnsatisfiable"},
		},
		"no nodes": {
			cluster: []any{tc.Claim(waiting, tc.GPUs("gpu", 1))},
			verdict: api.DoesNotFit, funnels: []string{"0=0"}, summary: "There are no nodes.",
		},
		"an allocated claim narrows the nodes": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...),
				tc.Serving("have", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace },
				tc.Pod("p", tc.Using("have", waiting)),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.DoesNotFit,
			funnels: []string{"3=0+2*NodeNotReachable+1*DeviceAllocated"},
			nodes:   []string{"1*DeviceAllocated", "1*NodeNotReachable"},
		},
		"claim missing": {
			cluster: []any{tc.Nodes("n1"), tc.Claim("train-gpu"), tc.Pod("p", tc.Using("train-gpus"))},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Error,
			nodes:   []string{"1*ClaimNotReady"},
			summary: "did you mean train-gpu?",
		},
		"too little CPU": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) {
					p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
				}),
			},
			verdict: api.DoesNotFit,
			funnels: []string{"1=0+1*NodeUnsuitable"},
			nodes:   []string{"1*NodeUnsuitable"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(test.cluster...)
			if test.target == (Options{}) {
				test.target = target
			}
			e, err := Explain(t.Context(), snap, test.target)
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != test.verdict {
				t.Errorf("verdict %s, want %s (%s)", e.Verdict, test.verdict, e.Summary)
			}
			if fails := (e.Verdict == api.DoesNotFit || e.Verdict == api.Error) && e.NodeCount > 0; fails != (e.Code != "") && e.Verdict != api.Undetermined {
				t.Errorf("verdict %s with code %q", e.Verdict, e.Code)
			}
			if diff := cmp.Diff(test.funnels, funnels(e)); diff != "" {
				t.Errorf("funnels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.nodes, nodeCodes(e)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if !strings.Contains(e.Summary, test.summary) {
				t.Errorf("summary %q, want %q", e.Summary, test.summary)
			}
			if text := everything(e); !strings.Contains(text, test.evidence) {
				t.Errorf("no evidence %q in\n%s", test.evidence, text)
			}
			checkSums(t, e)
		})
	}
}

// funnels writes each funnel in one line.
func funnels(e *api.Explanation) []string {
	var lines []string
	for _, claim := range e.Claims {
		for _, r := range claim.Requests {
			line := fmt.Sprintf("%d=%d", r.Considered, r.Eligible)
			for _, rejection := range r.Rejected {
				line += fmt.Sprintf("+%d*%s", rejection.Count, rejection.Code)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func nodeCodes(e *api.Explanation) []string {
	var lines []string
	for _, group := range e.Nodes {
		code := string(group.Code)
		if group.Verdict == api.Fits {
			code = string(api.Fits)
		}
		lines = append(lines, fmt.Sprintf("%d*%s", group.Count, code))
	}
	return lines
}

// everything returns all messages and facts of the funnels, a line each.
func everything(e *api.Explanation) string {
	var text strings.Builder
	for _, claim := range e.Claims {
		for _, r := range claim.Requests {
			for _, rejection := range r.Rejected {
				fmt.Fprintln(&text, rejection.Message)
				for _, fact := range rejection.Evidence {
					fmt.Fprintln(&text, fact.Object, fact.Path, fact.Found, fact.Required)
				}
			}
		}
	}
	return text.String()
}

// checkSums checks the invariants of an explanation.
func checkSums(t *testing.T, e *api.Explanation) {
	t.Helper()
	for _, claim := range e.Claims {
		for _, r := range claim.Requests {
			sum := r.Eligible
			for _, rejection := range r.Rejected {
				sum += rejection.Count
				if rejection.Count != len(rejection.Devices) || rejection.Message == "" || rejection.Label == "" {
					t.Errorf("request %s: incomplete rejection %+v", r.Name, rejection)
				}
			}
			if sum != r.Considered {
				t.Errorf("request %s: %d considered, but %d accounted for", r.Name, r.Considered, sum)
			}
		}
	}
	seen := map[string]bool{}
	for _, group := range e.Nodes {
		for _, name := range group.Names {
			if seen[name] {
				t.Errorf("node %s is in two groups", name)
			}
			seen[name] = true
		}
		if group.Count != len(group.Names) {
			t.Errorf("group of %d names %d nodes", group.Count, len(group.Names))
		}
	}
	if len(seen) != e.NodeCount {
		t.Errorf("%d nodes in groups, want %d", len(seen), e.NodeCount)
	}
}
