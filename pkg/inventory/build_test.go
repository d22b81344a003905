// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	driver    = "gpu.example.com"
	className = "gpu"
	namespace = "ml"
	node1     = "node-1"
)

// taken is when the snapshots of the tests were taken.
func taken() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }

// inventoryWith makes the inventory of a snapshot of Kubernetes 1.37 with one class for
// all devices of the driver. When the test ends, the snapshot must be as it was.
func inventoryWith(t *testing.T, objects ...any) *Inventory {
	t.Helper()
	snap := &snapshot.Snapshot{
		Source: "a test", ServerVersion: "v1.37.1", TakenAt: taken(), Gates: map[string]snapshot.Gate{},
		Classes: []*resourceapi.DeviceClass{class(className, fmt.Sprintf("device.driver == %q", driver))},
	}
	for _, object := range objects {
		switch o := object.(type) {
		case gate:
			snap.Gates[string(o)] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
		case gateOff:
			snap.Gates[string(o)] = snapshot.Gate{Source: snapshot.GateFromFlag}
		case snapshot.Gap:
			snap.Gaps = append(snap.Gaps, o)
		case wrapClaim:
			snap.Claims = append(snap.Claims, o.ResourceClaim)
		case wrapPod:
			snap.Pods = append(snap.Pods, o.Pod)
		case *resourceapi.ResourceSlice:
			snap.Slices = append(snap.Slices, o)
		case *resourceapi.DeviceClass:
			snap.Classes = append(snap.Classes, o)
		case *resourceapi.DeviceTaintRule:
			snap.TaintRules = append(snap.TaintRules, o)
		case *corev1.Node:
			snap.Nodes = append(snap.Nodes, o)
		default:
			t.Fatalf("unknown object %T", object)
		}
	}
	tc.SortObjects(snap.Claims)
	tc.SortObjects(snap.Pods)
	tc.SortObjects(snap.Slices)
	tc.SortObjects(snap.Classes)
	tc.SortObjects(snap.Nodes)
	tc.Unchanged(t, snap)
	return inventoryOf(t, snap)
}

// gate is the name of one that is on, gateOff of one that is not.
type (
	gate    string
	gateOff string
)

func class(name, expression string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}},
	}
}

// node has the resources given as "name=quantity", healthy all of them.
func node(name string, resources ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}}
	for _, r := range resources {
		resourceName, quantity, _ := strings.Cut(r, "=")
		n.Status.Capacity[corev1.ResourceName(resourceName)] = resource.MustParse(quantity)
		n.Status.Allocatable[corev1.ResourceName(resourceName)] = resource.MustParse(quantity)
	}
	return n
}

func device(name string, changes ...func(*resourceapi.Device)) resourceapi.Device {
	d := resourceapi.Device{Name: name}
	for _, change := range changes {
		change(&d)
	}
	return d
}

func devices(names ...string) []resourceapi.Device {
	list := make([]resourceapi.Device, 0, len(names))
	for _, name := range names {
		list = append(list, device(name))
	}
	return list
}

func withTaint(key string, effect resourceapi.DeviceTaintEffect) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect, TimeAdded: &metav1.Time{Time: taken().Add(-time.Hour)}})
	}
}

// slice is all of the pool of a node.
func slice(nodeName string, list ...resourceapi.Device) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName + "-devices"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &nodeName, Devices: list,
			Pool: resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: 1},
		},
	}
}

type wrapClaim struct{ *resourceapi.ResourceClaim }

// claim asks for one device of the class.
func claim(name string) wrapClaim {
	return wrapClaim{&resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-claim-" + name)},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}}
}

func (c wrapClaim) change(f func(*resourceapi.ResourceClaim)) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	f(out.ResourceClaim)
	return out
}

// has gives the claim a device of the pool of node-1.
func (c wrapClaim) has(device string, changes ...func(*resourceapi.DeviceRequestAllocationResult)) wrapClaim {
	return c.change(func(c *resourceapi.ResourceClaim) {
		if c.Status.Allocation == nil {
			c.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node1}}},
			}}}}
		}
		result := resourceapi.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: node1, Device: device}
		for _, change := range changes {
			change(&result)
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, result)
	})
}

func share(id, capacity, consumed string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(r *resourceapi.DeviceRequestAllocationResult) {
		r.ShareID = ptr.To(types.UID(id))
		r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{resourceapi.QualifiedName(capacity): resource.MustParse(consumed)}
	}
}

func binding(condition, failure string) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(r *resourceapi.DeviceRequestAllocationResult) {
		r.BindingConditions, r.BindingFailureConditions = []string{condition}, []string{failure}
	}
}

func (c wrapClaim) reservedFor(name, uid string) wrapClaim {
	return c.change(func(c *resourceapi.ResourceClaim) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(uid)})
	})
}

func (c wrapClaim) ownedBy(pod, uid string) wrapClaim {
	return c.change(func(c *resourceapi.ResourceClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(uid), Controller: ptr.To(true)}}
	})
}

func (c wrapClaim) deleting(finalizers ...string) wrapClaim {
	return c.change(func(c *resourceapi.ResourceClaim) {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: taken().Add(-time.Minute)}, finalizers
	})
}

// says adds what the driver says about a device, with conditions such as
// "Ready=False".
func (c wrapClaim) says(device, shareID string, network *resourceapi.NetworkDeviceData, conditions ...string) wrapClaim {
	return c.change(func(c *resourceapi.ResourceClaim) {
		status := resourceapi.AllocatedDeviceStatus{Driver: driver, Pool: node1, Device: device, NetworkData: network}
		if shareID != "" {
			status.ShareID = &shareID
		}
		for _, text := range conditions {
			kind, value, _ := strings.Cut(text, "=")
			status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(value), Reason: "Because", Message: "so it is"})
		}
		c.Status.Devices = append(c.Status.Devices, status)
	})
}

type wrapPod struct{ *corev1.Pod }

// pod runs on node-1 and uses the claims.
func pod(name string, claims ...string) wrapPod {
	p := wrapPod{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node1, Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}}
	for _, claim := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
		p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: claim})
	}
	return p
}

func (p wrapPod) change(f func(*corev1.Pod)) wrapPod {
	out := wrapPod{p.DeepCopy()}
	f(out.Pod)
	return out
}

func (p wrapPod) waiting() wrapPod {
	return p.change(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending })
}

func (p wrapPod) in(phase corev1.PodPhase) wrapPod {
	return p.change(func(p *corev1.Pod) { p.Status.Phase = phase })
}

func (p wrapPod) on(nodeName string) wrapPod {
	return p.change(func(p *corev1.Pod) { p.Spec.NodeName = nodeName })
}

func (p wrapPod) requests(name, quantity string) wrapPod {
	return p.change(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(quantity)}
	})
}

// reports adds what the kubelet says about the health of a claim's device.
func (p wrapPod) reports(claim, device string, health corev1.ResourceHealthStatus, message string) wrapPod {
	return p.change(func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{{
			Name:      corev1.ResourceName("claim:" + claim),
			Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(driver + "/" + node1 + "/" + device), Health: health, Message: &message}},
		}}})
	})
}
