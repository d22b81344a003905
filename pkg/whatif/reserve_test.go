// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func testPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: "uid-x"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
			{Name: "own", ResourceClaimName: ptr.To("shared")},
			{Name: "gpu", ResourceClaimTemplateName: ptr.To("one")},
		}},
		Status: corev1.PodStatus{NominatedNodeName: "n9"},
	}
}

func testClaim(name string, uid types.UID, owner *corev1.Pod) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: uid}}
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}
	}
	return claim
}

func TestReserve(t *testing.T) {
	pod := testPod("b")
	shared, other := testClaim("shared", "1", nil), testClaim("b-gpu", "1", nil)
	before := &snapshot.Snapshot{
		Pods:   []*corev1.Pod{testPod("a"), pod, testPod("c")},
		Claims: []*resourceapi.ResourceClaim{other, shared},
		Nodes:  []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
	}
	podBefore, sharedBefore := pod.DeepCopy(), shared.DeepCopy()
	allocation := &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: "p", Device: "gpu-3"}},
	}}
	after := Reserve(before, Reservation{Pod: pod, Node: "n1", Claims: []ClaimReservation{
		{Entry: "own", Claim: shared, Allocation: allocation},
		{Entry: "gpu", Claim: testClaim("b-gpu", "", pod), Allocation: allocation},
		{Claim: &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "<extended-resources>", GenerateName: "b-extended-resources-"}}, Allocation: allocation},
	}})

	if !equality.Semantic.DeepEqual(pod, podBefore) || !equality.Semantic.DeepEqual(shared, sharedBefore) || len(before.Claims) != 2 || before.Pods[1] != pod {
		t.Error("the snapshot before was changed")
	}
	bound := after.Pod("ml", "b")
	if bound.Spec.NodeName != "n1" || bound.Status.NominatedNodeName != "" {
		t.Errorf("the pod is on node %q, nominated for %q", bound.Spec.NodeName, bound.Status.NominatedNodeName)
	}
	if len(after.Pods) != 3 || after.Pods[0] != before.Pods[0] || &after.Nodes[0] != &before.Nodes[0] {
		t.Error("what was not touched is not shared")
	}
	// The generated claim cannot have the name that another claim has.
	if got := after.Claim("ml", "b-gpu"); got != other {
		t.Errorf("claim b-gpu of somebody else became %v", got)
	}
	for _, name := range []string{"shared", "b-gpu-1", "b-extended-resources"} {
		claim := after.Claim("ml", name)
		if claim == nil || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != pod.UID {
			t.Errorf("claim %s is not allocated and reserved for the pod: %v", name, claim)
		}
	}
	statuses := bound.Status.ResourceClaimStatuses
	if len(statuses) != 1 || statuses[0].Name != "gpu" || *statuses[0].ResourceClaimName != "b-gpu-1" {
		t.Errorf("status.resourceClaimStatuses is %v", statuses)
	}
	if status := bound.Status.ExtendedResourceClaimStatus; status == nil || status.ResourceClaimName != "b-extended-resources" {
		t.Errorf("status.extendedResourceClaimStatus is %v", status)
	}
}

func TestReserveAddsPodsAndKeepsReservations(t *testing.T) {
	shared := testClaim("shared", "1", nil)
	shared.Status.Allocation = &resourceapi.AllocationResult{}
	shared.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "a", UID: "uid-x"}}
	before := &snapshot.Snapshot{Claims: []*resourceapi.ResourceClaim{shared}}
	pod := testPod("b")
	after := Reserve(before, Reservation{Pod: pod, Node: "n1", Claims: []ClaimReservation{{Entry: "own", Claim: shared}}})
	if after.Pod("ml", "b") == nil {
		t.Error("the pod was not added")
	}
	claim := after.Claim("ml", "shared")
	if claim.Status.Allocation != shared.Status.Allocation || len(claim.Status.ReservedFor) != 2 {
		t.Errorf("the claim is %v", claim.Status)
	}
	again := Reserve(after, Reservation{Pod: pod, Node: "n1", Claims: []ClaimReservation{{Entry: "own", Claim: claim}}})
	if n := len(again.Claim("ml", "shared").Status.ReservedFor); n != 2 {
		t.Errorf("reserved twice for the same pod: %d consumers", n)
	}
}

// A claim that a group shares is created and reserved for the group once, and its other
// pods find it.
func TestReserveForGroup(t *testing.T) {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "g", UID: "uid-g"}}
	group.Spec.ResourceClaims = []schedulingapi.PodGroupResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("one")}}
	before := &snapshot.Snapshot{PodGroups: []*schedulingapi.PodGroup{group}}
	claim := testClaim("g-gpu", "", nil)
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "PodGroup", Name: "g", UID: "uid-g", Controller: ptr.To(true)}}
	after := Reserve(before, Reservation{Pod: testPod("a"), Node: "n1", Claims: []ClaimReservation{
		{Entry: "gpu", Group: "g", Claim: claim, Allocation: &resourceapi.AllocationResult{}},
	}})
	again := Reserve(after, Reservation{Pod: testPod("b"), Node: "n1", Claims: []ClaimReservation{
		{Entry: "gpu", Group: "g", Claim: after.Claim("ml", "g-gpu")},
	}})
	if len(group.Status.ResourceClaimStatuses) != 0 || len(again.Claims) != 1 {
		t.Errorf("the group before has %v, claims after: %v", group.Status, again.Claims)
	}
	for _, snap := range []*snapshot.Snapshot{after, again} {
		reserved := snap.Claim("ml", "g-gpu").Status.ReservedFor
		if len(reserved) != 1 || reserved[0].Resource != "podgroups" || reserved[0].UID != "uid-g" {
			t.Errorf("reserved for %v", reserved)
		}
		statuses := snap.PodGroup("ml", "g").Status.ResourceClaimStatuses
		if len(statuses) != 1 || *statuses[0].ResourceClaimName != "g-gpu" {
			t.Errorf("the status of the group has %v", statuses)
		}
	}
}

// Two pods that use a claim which does not exist in the cluster yet, as in a manifest,
// use one claim.
func TestReserveKeepsClaimsByName(t *testing.T) {
	shared := testClaim("shared", "", nil)
	before := &snapshot.Snapshot{Claims: []*resourceapi.ResourceClaim{shared}}
	after := Reserve(before, Reservation{Pod: testPod("a"), Node: "n1", Claims: []ClaimReservation{{Entry: "own", Claim: shared, Allocation: &resourceapi.AllocationResult{}}}})
	if claim := after.Claim("ml", "shared"); len(after.Claims) != 1 || claim.Status.Allocation == nil {
		t.Errorf("claims %v", after.Claims)
	}
}
