// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestConsumers(t *testing.T) {
	of := func(resource, group, name, uid string) *resourceapi.ResourceClaimConsumerReference {
		return &resourceapi.ResourceClaimConsumerReference{APIGroup: group, Resource: resource, Name: name, UID: types.UID("uid-" + uid)}
	}
	const namespace = "ml"
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
		change(p)
		return p
	}
	deleted := metav1.NewTime(time.Now().Add(-time.Hour))
	pods := []*corev1.Pod{
		pod("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("given-up", func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }),
		pod("going", func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "n1", &deleted }),
		pod("runs", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }),
		pod("waits", func(*corev1.Pod) {}),
	}
	tests := map[string]struct {
		consumer *resourceapi.ResourceClaimConsumerReference
		gaps     []snapshot.Gap
		want     consumerState
	}{
		"waits":             {consumer: of("pods", "", "waits", "waits"), want: consumerUses},
		"runs":              {consumer: of("pods", "", "runs", "runs"), want: consumerUses},
		"is being deleted":  {consumer: of("pods", "", "going", "going"), want: consumerUses},
		"was never bound":   {consumer: of("pods", "", "given-up", "given-up"), want: consumerFinished},
		"ended":             {consumer: of("pods", "", "ended", "ended"), want: consumerFinished},
		"another pod":       {consumer: of("pods", "", "runs", "older"), want: consumerReplaced},
		"gone":              {consumer: of("pods", "", "gone", "gone"), want: consumerGone},
		"hidden":            {consumer: of("pods", "", "gone", "gone"), gaps: []snapshot.Gap{{Resource: snapshot.ResourcePods, Reason: "no"}}, want: consumerUnknown},
		"groups not known":  {consumer: of("podgroups", "scheduling.k8s.io", "g", "g"), want: consumerUnknown},
		"something unknown": {consumer: of("trains", "example.com", "express", "express"), want: consumerUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := &snapshot.Snapshot{Pods: pods, Gaps: test.gaps}
			if got := consumer(snap, namespace, test.consumer); got != test.want {
				t.Errorf("got state %d, want %d", got, test.want)
			}
		})
	}
}

func TestCDIDevices(t *testing.T) {
	for message, want := range map[string][]string{
		"unresolvable CDI devices vendor.com/gpu=0":                                          {"vendor.com/gpu=0"},
		"Error: CDI device injection failed: unresolvable CDI devices a/b=c, d/e=f: unknown": {"a/b=c", "d/e=f"},
		`failed: "unresolvable CDI devices a/b=c"`:                                           {"a/b=c"},
		"unresolvable CDI devices a/b=c, and what=ever more":                                 {"a/b=c"},
		"unresolvable CDI devices ":                                                          nil,
		"no such image":                                                                      nil,
	} {
		if got := cdiDevices(message); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

func TestSaidOnce(t *testing.T) {
	for message, want := range map[string]string{
		"a: a: b":                    "a: b",
		"rpc error: code = X: a\n b": "rpc error: code = X: a b",
		"a: b: a":                    "a: b: a",
		"":                           "",
	} {
		if got := saidOnce(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

func TestIdleKubelet(t *testing.T) {
	for kubelet, affected := range map[string]bool{
		"v1.34.0": true, "v1.34.1": true, "v1.34.1-gke.100": true, "v1.34.2": false, "v1.33.9": false, "v1.35.0": false, "v2.34.1": false, "": false, "new": false,
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		node.Status.NodeInfo.KubeletVersion = kubelet
		snap := &snapshot.Snapshot{Nodes: []*corev1.Node{node}}
		if _, found := idleKubelet(snap, "n1"); (found != "") != affected {
			t.Errorf("%q: got %q", kubelet, found)
		}
	}
}

func TestCDIClaim(t *testing.T) {
	claim := func(name, uid string, devices ...string) cluster.PodClaim {
		c := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
		c.Name, c.UID = name, types.UID(uid)
		for _, device := range devices {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourceapi.DeviceRequestAllocationResult{Driver: "gpu.example.com", Pool: "n1", Device: device})
		}
		return cluster.PodClaim{Claim: c}
	}
	claims := []cluster.PodClaim{claim("a", "7c1e-4a", "gpu-1", "gpu-11"), claim("b", "9d2f-5b", "gpu-0", "1"), {}}
	for id, want := range map[string]string{
		"k8s.gpu.example.com/claim=7c1e-4a-gpu-1":  "n1/gpu-1 (claim a)",
		"k8s.gpu.example.com/claim=7c1e-4a-gpu-11": "n1/gpu-11 (claim a)",
		"k8s.gpu.example.com/claim=gpu-0-9d2f-5b":  "claim b",
		"vendor.com/gpu=9d2f-5b-gpu-0":             "n1/gpu-0 (claim b)",
		"gpu.example.com/gpu=gpu-0":                "n1/gpu-0 (claim b)",
		"k8s.gpu.example.com/gpu=common":           "k8s.gpu.example.com/gpu=common",
		"other.example.com/gpu=gpu-0":              "other.example.com/gpu=gpu-0",
		"gpu.example.com/gpu=gpu-1":                "n1/gpu-1 (claim a)",
	} {
		if got := cdiNames([]string{id}, claims)[0]; got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestSuspects(t *testing.T) {
	config := func(driver, parameters string) resourceapi.DeviceAllocationConfiguration {
		return resourceapi.DeviceAllocationConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}},
		}}
	}
	given := []resourceapi.DeviceAllocationConfiguration{
		config("gpu", `{"kind":"A"}`), config("gpu", `{"kind":"A","sharring":"x"}`), config("nic", `{"sharring":"x"}`), {},
	}
	for words, want := range map[string][]int{
		`json: unknown field "sharring"`:                  {1},
		`json: unknown field "kind"`:                      {0, 1},
		`no kind "B" is registered`:                       {0, 1},
		`config "of" device "sharring" cannot be decoded`: {1},
		"invalid configuration":                           {0, 1},
	} {
		if got := suspects(given, []string{"gpu"}, words); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", words, got, want)
		}
	}
}

func TestPrepareCall(t *testing.T) {
	for message, want := range map[string]failedCall{
		"NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded":   {"DeadlineExceeded", "context deadline exceeded"},
		"NodePrepareResources: rpc error: code = Unavailable desc = error reading from server: EOF":   {"Unavailable", "error reading from server: EOF"},
		"NodePrepareResources failed for ResourceClaim gpus: rpc error: code = Unavailable desc = no": {},
		"DRA driver gpu.example.com is not registered":                                                {},
	} {
		if got, ok := prepareCall(message); got != want || ok != (want != failedCall{}) {
			t.Errorf("%s: got %+v", message, got)
		}
	}
}
