// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestMain lets many scenarios run at the same time, since they mostly wait, and
// cleans up.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			panic(err)
		}
	}
}

// everything turns on all there is of Dynamic Resource Allocation.
func everything() controlplane.Options {
	options := controlplane.Options{
		FeatureGates: map[string]bool{},
		RuntimeConfig: map[string]bool{
			"resource.k8s.io/v1alpha3":   true,
			"resource.k8s.io/v1beta1":    true,
			"resource.k8s.io/v1beta2":    true,
			"scheduling.k8s.io/v1alpha3": true,
			"scheduling.k8s.io/v1beta1":  true,
		},
	}
	for _, gate := range []string{
		"DRAConsumableCapacity",
		"DRADerivedAttributes",
		"DRADeviceBindingConditions",
		"DRADeviceCompatibilityGroups",
		"DRADeviceTaintRules",
		"DRADeviceTaints",
		"DRAFractionalCapacityRange",
		"DRAListTypeAttributes",
		"DRANodeAllocatableResources",
		"DRAOptionalNodeOperations",
		"DRAPartitionableDevices",
		"DRAPartitionableDevicesType",
		"DRAResourcePoolStatus",
		"DRASchedulerFilterTimeout",
		"DRAWorkloadResourceClaims",
		"GenericWorkload",
	} {
		options.FeatureGates[gate] = true
	}
	return options
}

// TestWhyAgreesWithScheduler asks about pods before the scheduler sees them,
// and then lets the scheduler decide.
func TestWhyAgreesWithScheduler(t *testing.T) {
	scenarios := loadScenarios(t)
	c := startCluster(t, everything())
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, s)
			})
		}
	})
}

func (c *cluster) run(t *testing.T, s *scenario) {
	ctx := t.Context()
	for _, object := range s.objects {
		if err := c.create(ctx, s.name, object); err != nil {
			t.Fatal(err)
		}
	}
	// Pods that failed would be tried again and again, in everybody's way.
	defer c.deletePods(t, s.name)
	for _, step := range s.Steps {
		if !t.Run(step.Pod, func(t *testing.T) { c.runStep(t, s, step) }) {
			// What follows depends on it.
			return
		}
	}
}

func (c *cluster) runStep(t *testing.T, s *scenario, step step) {
	ctx := t.Context()
	for _, name := range append(slices.Clone(step.With), step.Pod) {
		if err := c.create(ctx, s.name, s.pods[name]); err != nil {
			t.Fatal(err)
		}
		if err := c.waitForClaims(ctx, s.name, name); err != nil {
			t.Fatal(err)
		}
	}

	explained := unhurried
	if step.Slow {
		explained = inTime
	}
	before, err := ask(t, explained, c.kubeconfig, s.name, step.Pod)
	if err != nil {
		t.Fatal(err)
	}
	before.checkForm(t)
	if !step.Slow {
		before.checkReplay(ctx, t)
	}

	for _, name := range append(slices.Clone(step.With), step.Pod) {
		if err := c.release(ctx, s.name, name); err != nil {
			t.Fatal(err)
		}
	}
	var got decision
	if step.expected() == notQueued {
		got = c.afterOthers(ctx, t, s, step.Pod)
	} else {
		got = c.decision(ctx, s.name, step.Pod, step.awaits)
	}
	checkDecision(t, step, got)
	before.checkAgainst(ctx, t, step, got)

	after, err := ask(t, explained, c.kubeconfig, s.name, step.Pod)
	if err != nil {
		t.Fatal(err)
	}
	after.checkForm(t)
	after.checkAfter(t, step, got)
	after.checkWhyHere(t, before, got)

	// The scheduler may have decided before it had seen every object.
	pod, err := c.pods.Pods(s.name).Get(step.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if again := c.decided(pod); again.reason != got.reason && (got.reason != notQueued || again.reason != "") {
		t.Errorf("the scheduler changed its mind from %s to %s: %s", got.reason, again.reason, again.message)
	}
}

// afterOthers returns the scheduler's decision about a pod after it has scheduled another
// pod, created later. Events of pods come in their order.
func (c *cluster) afterOthers(ctx context.Context, t *testing.T, s *scenario, name string) decision {
	t.Helper()
	other := newObject("v1", "Pod", name+"-later", map[string]any{"spec": map[string]any{
		"containers":   []any{map[string]any{"name": "main", "image": "example.com/none"}},
		"nodeSelector": map[string]any{"scenario": s.name},
	}})
	if err := c.create(ctx, s.name, other); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, func() bool {
		pod, err := c.pods.Pods(s.name).Get(other.GetName())
		return err == nil && pod.Spec.NodeName != ""
	}); err != nil {
		t.Fatalf("wait for pod %s: %v", other.GetName(), err)
	}
	pod, err := c.pods.Pods(s.name).Get(name)
	if err != nil {
		t.Fatal(err)
	}
	got := c.decided(pod)
	if got.reason == "" {
		got.reason = notQueued
	}
	return got
}

// checkDecision reports whether the scenario is what it was written to be.
func checkDecision(t *testing.T, step step, got decision) {
	t.Helper()
	if got.reason != step.expected() {
		t.Fatalf("the scenario was written for %s, the scheduler says %q on node %q: %s", step.expected(), got.reason, got.node, got.message)
	}
	if step.Node != "" && got.node != step.Node {
		t.Errorf("the scenario was written for node %s, the scheduler took %s", step.Node, got.node)
	}
	if !strings.Contains(got.message, step.Message) {
		t.Errorf("the scheduler says %q, not %q", got.message, step.Message)
	}
}

// deletePods ends what a scenario left waiting.
func (c *cluster) deletePods(t *testing.T, namespace string) {
	t.Helper()
	// The test's own context has ended by now.
	ctx := context.WithoutCancel(t.Context())
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := c.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
