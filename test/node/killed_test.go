// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// probePods are the pods that the program made.
const probePods = "app.kubernetes.io/name=kubectl-dra-node-probe"

// testKilled kills the program on this side, with the signal that nothing can catch,
// at each step of a preparation on the node. The pod has to end by itself, the claim to
// be unprepared if that was ordered, and the next one to have it prepare.
func (r *realNode) testKilled(t *testing.T) {
	r.noProbePods(t.Context(), t)
	for _, test := range []struct {
		name string
		// when is the state of the pod, method the call to the driver, at which it is
		// killed.
		when   func(*corev1.Pod) bool
		method string
		after  bool
		// unprepare has the claim prepared first, and kills unprepare.
		unprepare bool
		args      []string
		// left is true if the claim stays prepared: nobody ordered to undo it.
		left bool
		// lifetime is the lifetime of the pod. One to which the program had no connection
		// has no other way to notice that it is gone.
		lifetime time.Duration
	}{
		{name: "the pod is made", when: func(*corev1.Pod) bool { return true }, args: []string{"--cleanup"}, lifetime: 20 * time.Second},
		{name: "the pod runs", when: podRuns, args: []string{"--cleanup"}, lifetime: 20 * time.Second},
		{name: "the driver begins to prepare", method: "NodePrepareResources", args: []string{"--cleanup"}, lifetime: time.Hour},
		{name: "the driver has prepared", method: "NodePrepareResources", after: true, args: []string{"--cleanup"}, lifetime: time.Hour},
		{name: "the driver has prepared, for good", method: "NodePrepareResources", after: true, left: true, lifetime: time.Hour},
		{name: "the driver begins to unprepare", method: "NodeUnprepareResources", args: []string{"--cleanup"}, lifetime: time.Hour},
		{name: "the driver has unprepared", method: "NodeUnprepareResources", after: true, args: []string{"--cleanup"}, lifetime: time.Hour},
		{name: "unprepare", method: "NodeUnprepareResources", unprepare: true, lifetime: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			claim := r.allocated(ctx, t, "killed", "gpu-1")
			defer r.deleteClaim(ctx, t, claim)
			operation := "prepare"
			if test.unprepare {
				operation = "unprepare"
				if code, _, _ := r.dra(ctx, t, r.kubeconfig, append(r.here(), "prepare", "killed", "-n", namespace)...); code != 0 {
					t.Fatalf("prepare ends with exit code %d", code)
				}
			}
			verb := append([]string{operation, "killed", "-n", namespace, "--pod-lifetime=" + test.lifetime.String()}, test.args...)
			cmd := exec.Command(r.program, slices.Concat([]string{"node-probe", "--kubeconfig=" + r.kubeconfig}, r.afar(), verb)...)
			if test.when != nil {
				r.killAtPod(ctx, t, cmd, test.when)
			} else {
				r.killAtCall(t, cmd, test.method, test.after)
			}
			r.ended(ctx, t)
			if prepared := r.driver.Prepared(claim.UID) > 0; prepared != test.left || len(r.specs(t, claim)) != map[bool]int{true: 1}[test.left] {
				t.Errorf("the claim is prepared: %t, specs %v", prepared, r.specs(t, claim))
			}
			for _, again := range [][]string{{"prepare", "killed", "--twice"}, {"unprepare", "killed"}} {
				if code, _, _ := r.dra(ctx, t, r.kubeconfig, slices.Concat(r.afar(), again, []string{"-n", namespace})...); code != 0 {
					t.Errorf("%v afterwards ends with exit code %d", again, code)
				}
			}
			if r.driver.Prepared(claim.UID) != 0 || len(r.specs(t, claim)) != 0 {
				t.Errorf("the driver has prepared the claim %d times, specs %v", r.driver.Prepared(claim.UID), r.specs(t, claim))
			}
			// The command of docs/node-probe.md.
			if err := r.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: probePods}); err != nil {
				t.Error(err)
			}
			r.noProbePods(ctx, t)
		})
	}
}

func podRuns(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
}

// killAtPod runs a command and kills it when its pod has come so far.
func (r *realNode) killAtPod(ctx context.Context, t *testing.T, cmd *exec.Cmd, when func(*corev1.Pod) bool) {
	t.Helper()
	pods, err := r.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{LabelSelector: probePods})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && when(pod) {
			break
		}
	}
	_ = cmd.Process.Kill()
	killed(t, cmd)
}

// killAtCall runs a command and kills it when the driver is at a call, before or after
// it carried it out.
func (r *realNode) killAtCall(t *testing.T, cmd *exec.Cmd, method string, after bool) {
	t.Helper()
	reached, dead := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.driver.OnCall(func(called string, done bool) {
		if called == method && done == after {
			once.Do(func() {
				close(reached)
				<-dead
			})
		}
	})
	defer r.driver.OnCall(nil)
	defer close(dead)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(patience):
		t.Errorf("the driver is not asked for %s", method)
	}
	_ = cmd.Process.Kill()
	killed(t, cmd)
}

func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("it ended before it was killed: %v", err)
	}
}

// ended waits until nothing of the program runs on the node.
func (r *realNode) ended(ctx context.Context, t *testing.T) {
	t.Helper()
	var last []corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := r.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: probePods})
		if err != nil {
			return false, err
		}
		last = pods.Items
		return len(last) == 1 && (last[0].Status.Phase == corev1.PodSucceeded || last[0].Status.Phase == corev1.PodFailed), nil
	})
	if err != nil {
		t.Fatalf("the pod does not end by itself: %v: %+v", err, last)
	}
}

// deleteClaim deletes a claim that no pod uses.
func (r *realNode) deleteClaim(ctx context.Context, t *testing.T, claim *resourceapi.ResourceClaim) {
	t.Helper()
	if err := r.client.ResourceV1().ResourceClaims(namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
