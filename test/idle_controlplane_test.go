// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// useOf asks about a device.
func (c *cluster) useOf(t *testing.T, device string) *api.UseExplanation {
	t.Helper()
	got := c.whyText(t, "device/"+device, "-o", "json")
	var use api.UseExplanation
	if err := json.Unmarshal([]byte(got.out), &use); err != nil || len(use.Devices) != 1 {
		t.Fatalf("code %d, %v\n%s%s", got.code, err, got.out, got.errOut)
	}
	return &use
}

// TestIdleAgreesWithScheduler asks why a device is idle that a pod waits for, removes the
// obstacle, and lets the scheduler give that device to that pod. The device that nobody
// asks for stays idle.
func TestIdleAgreesWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	ctx, namespace := t.Context(), "idle"
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: idle}
spec: {driver: idle.example.com, nodeName: idle, pool: {name: idle, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0, taints: [{key: example.com/hot, effect: NoSchedule}]}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: other}
spec: {driver: other.example.com, nodeName: idle, pool: {name: other, generation: 1, resourceSliceCount: 1}, devices: [{name: nic-0}]}`)
	c.createAll(t, namespace, queuePod(namespace, "waits", ""))
	if got := c.decision(ctx, namespace, "waits", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler says about the pod: %+v", got)
	}
	use := c.useOf(t, "idle/gpu-0").Devices[0]
	if use.State != api.DeviceBlocked || len(use.Requests) != 1 || use.Requests[0].Code != api.DeviceTainted || use.Requests[0].Pod.Name != "waits" {
		t.Errorf("with the taint: %+v", use)
	}
	if use := c.useOf(t, "other/nic-0").Devices[0]; use.State != api.DeviceNotRequested {
		t.Errorf("a device that nobody asks for: %+v", use)
	}
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().ResourceSlices().Patch(ctx, "idle", types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/devices/0/taints"}]`), metav1.PatchOptions{})
		return err
	})
	if got := c.decision(ctx, namespace, "waits", func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
		t.Fatalf("the scheduler says without the taint: %+v", got)
	}
	use = c.useOf(t, "idle/gpu-0").Devices[0]
	if use.State != api.DeviceInUse || len(use.Holders) != 1 || len(use.Holders[0].ReservedFor) != 1 || use.Holders[0].ReservedFor[0].Argument() != "pod/waits" {
		t.Errorf("after the pod was scheduled: %+v", use)
	}
	if use := c.useOf(t, "other/nic-0").Devices[0]; use.State != api.DeviceNotRequested {
		t.Errorf("a device that nobody asks for: %+v", use)
	}
}
