// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTopChanges makes changes from the dashboard as somebody who has the roles of the
// document.
func TestTopChanges(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.topFleet(t)
	ctx := t.Context()
	c.cordon(t, "node-2")
	c.runningWith(t, "held")
	document := readRights(t)
	reading := slices.Concat(document.roles["ClusterRole kubectl-dra-devices"], document.roles["ClusterRole kubectl-dra-claims"])
	changing := slices.Concat(document.roles["ClusterRole kubectl-dra-top-changes"], document.roles["ClusterRole kubectl-dra-taints"])
	c.grant(ctx, t, "operator", "", slices.Concat(reading, changing)...)
	for _, rule := range slices.Concat(reading, changing) {
		c.waitForRight(t, "operator", "", rule)
	}
	unschedulable := func() bool {
		node, err := c.kube.CoreV1().Nodes().Get(ctx, "node-2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Spec.Unschedulable
	}

	t.Run("without the flag", func(t *testing.T) {
		term := openTerminal(t, programFor(t, c.kubeconfigOf(t, "operator")), 120, 30, "top")
		term.shows("Capacity")
		term.keys("2")
		term.shows("1/2 rows")
		term.keys("Down")
		term.shows("2/2 rows")
		term.keys("x")
		term.shows("nothing is changed without --allow-changes")
		term.keys("q")
		term.shows("ended with 0")
	})

	kubeconfig := c.kubeconfigOf(t, "operator")
	term := openTerminal(t, programFor(t, kubeconfig), 120, 30, "top", "--allow-changes", "--kubeconfig", kubeconfig)
	term.shows("Capacity", "cordoned")
	t.Run("uncordon", func(t *testing.T) {
		term.t = t
		term.keys("2")
		term.shows("1/2 rows")
		term.keys("Down")
		term.shows("2/2 rows")
		term.keys("x")
		term.shows("kubectl uncordon node-2 --kubeconfig=", "2 of its 2 devices are free", "Uncordon node node-2? [y/N]")
		term.keys("n")
		term.shows("Ready, cordoned", "", "[y/N]")
		if !unschedulable() {
			t.Fatal("no was taken for yes")
		}
		term.keys("x")
		term.shows("[y/N]")
		term.keys("y")
		term.shows("node node-2 uncordoned", "", "[y/N]", ", cordoned")
		if unschedulable() {
			t.Error("the node is still cordoned")
		}
	})
	t.Run("taint and untaint", func(t *testing.T) {
		term.t = t
		term.keys("4")
		term.shows("1/4 devices")
		term.keys("x")
		term.shows("taint device gpu.example.com/node-1/gpu-0", "delete claim research/held")
		term.types("device")
		term.keys("Enter")
		term.shows("with:")
		term.types("example.com/xid=79:NoExecute")
		term.keys("Enter")
		term.shows("kubectl dra taints add --driver gpu.example.com --pool node-1 --device gpu-0", "1 pod would be evicted", "research/held would be evicted", "This evicts 1 pod.", "[y/N]")
		term.keys("y")
		const name = "node-1-gpu-0-gpu.example.com-xid"
		term.shows("DeviceTaintRule " + name + " added")
		rule, err := c.kube.ResourceV1().DeviceTaintRules().Get(ctx, name, metav1.GetOptions{})
		if err != nil || rule.Spec.Taint.String() != "example.com/xid=79:NoExecute" || *rule.Spec.DeviceSelector.Device != "gpu-0" {
			t.Fatalf("%+v, %v", rule, err)
		}
		term.keys("8")
		term.shows("example.com/xid=79:NoExecute", "1/1 taints")
		term.keys("x")
		term.shows("kubectl dra taints remove "+name, "1 pod that it evicts and that still run stay: research/held", "[y/N]")
		term.keys("y")
		term.shows("DeviceTaintRule "+name+" removed", "", "1/1 taints")
		if _, err := c.kube.ResourceV1().DeviceTaintRules().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the rule is there: %v", err)
		}
	})
	t.Run("delete claims", func(t *testing.T) {
		term.t = t
		term.keys("5")
		term.shows("1/2 claims")
		term.keys("x")
		term.shows("Pod held is running and uses it", "Delete claim research/held? [y/N]")
		term.keys("y")
		term.shows("ResourceClaim research/held marked for deletion", "Deleting")
		claim, err := c.kube.ResourceV1().ResourceClaims("research").Get(ctx, "held", metav1.GetOptions{})
		if err != nil || claim.DeletionTimestamp == nil {
			t.Errorf("the claim of a running pod is not just marked for deletion: %+v, %v", claim, err)
		}
		term.keys("x")
		term.shows("it is being deleted already", "nothing was changed")
		term.keys("Enter", "Down", "x")
		term.shows("it is gone at once", "Delete claim research/too-many? [y/N]")
		term.keys("y")
		term.shows("ResourceClaim research/too-many deleted")
		if _, err := c.kube.ResourceV1().ResourceClaims("research").Get(ctx, "too-many", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the claim is there: %v", err)
		}
	})
	term.t = t
	term.keys("q")
	term.shows("ended with 0")
}

// runningWith makes a pod that runs with the first device of node-1, and its claim, both
// with one name, as the scheduler and a kubelet leave them.
func (c *cluster) runningWith(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	c.topClaim(t, name, 1)
	mustDo(t, func() error {
		pod, err := c.kube.CoreV1().Pods("research").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				NodeName: "node-1", ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}},
				Containers: []corev1.Container{{Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		if _, err := c.kube.CoreV1().Pods("research").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
		claim, err := c.kube.ResourceV1().ResourceClaims("research").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		claim.Finalizers = []string{resourceapi.Finalizer}
		if claim, err = c.kube.ResourceV1().ResourceClaims("research").Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
		claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpus", Driver: lifeDriver, Pool: "node-1", Device: "gpu-0"}},
		}}
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}}
		_, err = c.kube.ResourceV1().ResourceClaims("research").UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	})
}
