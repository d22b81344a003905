// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const (
	lifeNamespace = "life"
	lifeNode      = "node-1"
	lifeDriver    = "gpu.example.com"
)

// TestLifecycleAgreesWithControllers lets the real controllers act, without a
// scheduler, and wants them understood.
func TestLifecycleAgreesWithControllers(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lifeNamespace}}, metav1.CreateOptions{})
		return err
	})
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: lifeDriver}}, metav1.CreateOptions{})
		return err
	})
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lifeNode}}, metav1.CreateOptions{})
		return err
	})
	node := lifeNode
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1-gpus"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: lifeDriver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: lifeNode, Generation: 1, ResourceSliceCount: 1},
				Devices: []resourceapi.Device{{Name: "gpu-0"}, {Name: "gpu-1"}, {Name: "gpu-2"}},
			},
		}, metav1.CreateOptions{})
		return err
	})

	t.Run("a template is missing", func(t *testing.T) {
		template := "none"
		c.lifePod(ctx, t, "orphan", corev1.PodResourceClaim{Name: "gpus", ResourceClaimTemplateName: &template}, "")
		c.wantLife(ctx, t, "orphan", api.Error, api.StageClaimGeneration, "message", `resource claim template "none"`)
	})
	t.Run("bound without the scheduler", func(t *testing.T) {
		claim := c.lifeClaim(ctx, t, "waiting")
		c.lifePod(ctx, t, "by-hand", corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: &claim.Name}, lifeNode)
		c.wantLife(ctx, t, "by-hand", api.Blocked, api.StageReservation, "status.allocation", "missing")
	})
	t.Run("the controller reserves for a bound pod", func(t *testing.T) {
		claim := c.lifeClaim(ctx, t, "allocated")
		c.allocate(ctx, t, claim, "gpu-0")
		c.lifePod(ctx, t, "reserved", corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: &claim.Name}, lifeNode)
		c.wantLife(ctx, t, "reserved", api.Allocated, api.StagePreparation, "", "")
	})
	t.Run("a claim that waits for its consumer", func(t *testing.T) {
		mustDo(t, func() error {
			return c.kube.ResourceV1().ResourceClaims(lifeNamespace).Delete(ctx, "allocated", metav1.DeleteOptions{})
		})
		c.wantLife(ctx, t, "reserved", api.Allocated, api.StagePreparation, "metadata.finalizers", resourceapi.Finalizer)
	})
	t.Run("a taint evicts", func(t *testing.T) {
		claim := c.lifeClaim(ctx, t, "tainted")
		c.allocate(ctx, t, claim, "gpu-1")
		c.lifePod(ctx, t, "evicted", corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: &claim.Name}, lifeNode)
		c.wantLife(ctx, t, "evicted", api.Allocated, api.StagePreparation, "", "")
		device := "gpu-1"
		mustDo(t, func() error {
			_, err := c.kube.ResourceV1().DeviceTaintRules().Create(ctx, &resourceapi.DeviceTaintRule{
				ObjectMeta: metav1.ObjectMeta{Name: "broken"},
				Spec: resourceapi.DeviceTaintRuleSpec{
					DeviceSelector: &resourceapi.DeviceTaintSelector{Device: &device},
					Taint:          resourceapi.DeviceTaint{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoExecute},
				},
			}, metav1.CreateOptions{})
			return err
		})
		c.wantLife(ctx, t, "evicted", api.Allocated, api.StageCleanup, "status.conditions[type=DisruptionTarget]", "DeletionByDeviceTaintManager")
	})
	t.Run("a Job past its deadline", func(t *testing.T) {
		c.createAll(t, lifeNamespace, `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: late}
spec:
  activeDeadlineSeconds: 1
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
      containers: [{name: main, image: registry.example.com/train:1, resources: {claims: [{name: gpu}]}}]`)
		var last asked
		if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, decisionTimeout, true, func(context.Context) (bool, error) {
			last = c.whyText(t, "job/late", "-n", lifeNamespace)
			return strings.Contains(last.out, "Job life/late is finished") && last.code == 0, nil
		}); err != nil || !strings.Contains(last.out, "The Job has failed (DeadlineExceeded) and creates no more pods.") {
			t.Errorf("code %d, %v\n%s%s", last.code, err, last.out, last.errOut)
		}
	})
}

func mustDo(t *testing.T, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatal(err)
	}
}

func lifeSpec() resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: lifeDriver},
	}}}}
}

func (c *cluster) lifeClaim(ctx context.Context, t *testing.T, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := c.kube.ResourceV1().ResourceClaims(lifeNamespace).Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{resourceapi.Finalizer}}, Spec: lifeSpec(),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// allocate gives a claim a device, in place of the scheduler.
func (c *cluster) allocate(ctx context.Context, t *testing.T, claim *resourceapi.ResourceClaim, device string) {
	t.Helper()
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: lifeDriver, Pool: lifeNode, Device: device}},
	}}
	if _, err := c.kube.ResourceV1().ResourceClaims(lifeNamespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) lifePod(ctx context.Context, t *testing.T, name string, claim corev1.PodResourceClaim, node string) {
	t.Helper()
	if _, err := c.kube.CoreV1().Pods(lifeNamespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ResourceClaims: []corev1.PodResourceClaim{claim},
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: claim.Name}}}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantLife asks about a pod until the controllers have brought it to the expected stage.
func (c *cluster) wantLife(ctx context.Context, t *testing.T, pod string, verdict api.Verdict, stage api.Stage, path, found string) {
	t.Helper()
	var last *api.Explanation
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, decisionTimeout, true, func(context.Context) (bool, error) {
		got, err := why(t, c.kubeconfig, lifeNamespace, pod)
		if err != nil {
			return false, err
		}
		last = got.Explanation
		if last.Verdict != verdict || last.Stage != stage {
			return false, nil
		}
		if path == "" {
			return true, nil
		}
		for _, e := range last.StageEvidence {
			if e.Path == path && strings.Contains(e.Found, found) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Errorf("want %s at stage %s with %q at %q: %v\n%s", verdict, stage, found, path, err, drawn(t, last, 100))
	}
}
