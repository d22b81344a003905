// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestInventoryShowsWhatTheSchedulerDid lets the scheduler allocate devices in
// all the ways there are, and wants each allocation, and nothing else, in what
// the verbs list.
func TestInventoryShowsWhatTheSchedulerDid(t *testing.T) {
	c := startCluster(t, everything())
	p := programFor(t, c.kubeconfig)
	// After all steps of the scenario these are the states of its devices.
	for name, want := range map[string]api.DeviceCounts{
		"count":                      {Total: 4, Allocated: 3, Free: 1},
		"claim-shared":               {Total: 3, Allocated: 2, Free: 1},
		"shared-nic":                 {Total: 1, Shared: 1},
		"counters":                   {Total: 4, Allocated: 2, Blocked: 2},
		"admin-access":               {Total: 1, Allocated: 1},
		"prioritized-first":          {Total: 3, Allocated: 3},
		"extended-resource-explicit": {Total: 3, Allocated: 2, Free: 1},
	} {
		s, err := loadScenario("scenarios/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			c.allocateAll(t, s)
			// The pods that did not fit would be tried again and again.
			defer c.deletePods(t, s.name)
			c.checkHolders(t, p, s.name)
			c.checkTrees(t, p, s.name)
			var got api.DeviceCounts
			for _, pool := range items[api.Pool](t, p, "pools", s.name+".example.com/*") {
				got.Total += pool.Devices.Total
				got.Free += pool.Devices.Free
				got.Allocated += pool.Devices.Allocated
				got.Shared += pool.Devices.Shared
				got.Blocked += pool.Devices.Blocked
				got.Tainted += pool.Devices.Tainted
				got.Unusable += pool.Devices.Unusable
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("devices of the pools: -want +got:\n%s", diff)
			}
			devices, free := 0, 0
			for _, slice := range items[api.Slice](t, p, "slices", "--field-selector", "driver="+s.name+".example.com") {
				devices += slice.Devices
				free += slice.Free
			}
			if devices != want.Total || free != want.Free {
				t.Errorf("slices have %d devices, %d free, want %d and %d", devices, free, want.Total, want.Free)
			}
		})
	}
}

// allocateAll creates a scenario and lets the scheduler decide about its pods,
// one after the other.
func (c *cluster) allocateAll(t *testing.T, s *scenario) {
	t.Helper()
	ctx := t.Context()
	for _, object := range s.objects {
		mustDo(t, func() error { return c.create(ctx, s.name, object) })
	}
	for _, step := range s.Steps {
		mustDo(t, func() error { return c.create(ctx, s.name, s.pods[step.Pod]) })
		mustDo(t, func() error { return c.waitForClaims(ctx, s.name, step.Pod) })
		mustDo(t, func() error { return c.release(ctx, s.name, step.Pod) })
		checkDecision(t, step, c.decision(ctx, s.name, step.Pod, step.awaits))
	}
}

// checkHolders compares what devices and claims list with the allocations.
func (c *cluster) checkHolders(t *testing.T, p *program, namespace string) {
	t.Helper()
	claims, err := c.kube.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var holders, owned []string
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			owned = append(owned, fmt.Sprintf("%s %s", claim.Name, api.ClaimStatePending))
			continue
		}
		owned = append(owned, fmt.Sprintf("%s %s %s", claim.Name, api.ClaimStateReserved, strings.Join(consumers(claim), ",")))
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := result.Driver + "/" + result.Pool + "/" + result.Device
			holders = append(holders, fmt.Sprintf("%s has %s for %s share %s admin %t", device, claim.Name+" "+strings.Join(consumers(claim), ","),
				result.Request, ptr.Deref(result.ShareID, ""), ptr.Deref(result.AdminAccess, false)))
			owned = append(owned, fmt.Sprintf("%s %s share %s", claim.Name, device, ptr.Deref(result.ShareID, "")))
		}
	}
	var gotHolders, gotOwned []string
	for _, device := range items[api.Device](t, p, "devices", "--driver", namespace+".example.com") {
		for _, h := range device.Holders {
			if h.Namespace != namespace {
				t.Errorf("device %s is held by namespace %s", device.Name, h.Namespace)
			}
			gotHolders = append(gotHolders, fmt.Sprintf("%s/%s/%s has %s for %s share %s admin %t", device.Driver, device.Pool, device.Name,
				h.Claim+" "+strings.Join(sorted(h.Pods), ","), h.Request, h.ShareID, h.AdminAccess))
		}
	}
	for _, claim := range items[api.Claim](t, p, "claims", "-n", namespace) {
		if claim.State == api.ClaimStatePending {
			gotOwned = append(gotOwned, fmt.Sprintf("%s %s", claim.Name, claim.State))
			continue
		}
		var reserved []string
		for _, consumer := range claim.ReservedFor {
			if !slices.Contains(claim.Pods, consumer.Name) {
				t.Errorf("claim %s is reserved for %s, which is not among its pods %v", claim.Name, consumer, claim.Pods)
			}
			reserved = append(reserved, consumer.Name)
		}
		gotOwned = append(gotOwned, fmt.Sprintf("%s %s %s", claim.Name, claim.State, strings.Join(sorted(reserved), ",")))
		for _, request := range claim.Requests {
			for _, d := range request.Devices {
				gotOwned = append(gotOwned, fmt.Sprintf("%s %s/%s/%s share %s", claim.Name, d.Driver, d.Pool, d.Device, d.ShareID))
			}
		}
	}
	if diff := cmp.Diff(sorted(holders), sorted(gotHolders)); diff != "" {
		t.Errorf("holders of devices: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(sorted(owned), sorted(gotOwned)); diff != "" {
		t.Errorf("devices of claims: -want +got:\n%s", diff)
	}
}

// checkTrees wants what belongs together in the trees of pods and of devices.
func (c *cluster) checkTrees(t *testing.T, p *program, namespace string) {
	t.Helper()
	claims, err := c.kube.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := result.Driver + "/" + result.Pool + "/" + result.Device
			tree := p.output(t, "tree", "device/"+device)
			for _, want := range append([]string{"Device " + device, "ResourceClaim " + namespace + "/" + claim.Name}, consumers(claim)...) {
				if !strings.Contains(tree, want) {
					t.Errorf("the tree of device %s has no %q:\n%s", device, want, tree)
				}
			}
			for _, name := range consumers(claim) {
				pod, err := c.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				tree := p.output(t, "tree", "pod/"+name, "-n", namespace)
				for _, want := range []string{"Pod " + namespace + "/" + name, "ResourceClaim " + namespace + "/" + claim.Name, "Device " + result.Driver + "/" + result.Pool + "/", "Node " + pod.Spec.NodeName} {
					if !strings.Contains(tree, want) {
						t.Errorf("the tree of pod %s has no %q:\n%s", name, want, tree)
					}
				}
				// Text has devices with the same facts together, JSON has each.
				roots := items[api.Branch](t, p, "tree", "pod/"+name, "-n", namespace)
				if !slices.ContainsFunc(roots, func(b api.Branch) bool { return hasBranch(&b, api.KindDevice, device) }) {
					t.Errorf("the tree of pod %s has no device %s: %+v", name, device, roots)
				}
			}
		}
	}
}

// hasBranch reports whether a tree has a branch of a kind and a name.
func hasBranch(b *api.Branch, kind, name string) bool {
	return b.Of == kind && b.Name == name || slices.ContainsFunc(b.Branches, func(b api.Branch) bool { return hasBranch(&b, kind, name) })
}

// consumers returns the names of those that a claim is reserved for.
func consumers(claim *resourceapi.ResourceClaim) []string {
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		names = append(names, consumer.Name)
	}
	return sorted(names)
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
