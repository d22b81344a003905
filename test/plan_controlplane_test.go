// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// plannedPods returns 43 pods that want one to three devices each. Every pod has its own
// priority except in three gangs of three: one that fits, one that does not, and one with a
// lower priority than its pods.
func plannedPods(namespace string) (names []string, documents string) {
	var text strings.Builder
	for devices := range 3 {
		fmt.Fprintf(&text, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: want-%[1]d}\n"+
			"spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: %[2]s, count: %[1]d}}]}}}\n---\n", devices+1, namespace)
	}
	pod := func(name, group string, class, devices int) {
		names = append(names, name)
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {priorityClassName: plan-%d, %sresourceClaims: [{name: gpu, resourceClaimTemplateName: want-%d}], "+
			"containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]}\n---\n", name, class, group, devices)
	}
	for class := range 37 {
		fmt.Fprintf(&text, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: plan-%[1]d}\nvalue: %[1]d\npreemptionPolicy: Never\n---\n", class)
	}
	r := rand.New(rand.NewPCG(40, 18))
	// Two of the priorities are those of the gangs.
	classes := slices.DeleteFunc(r.Perm(36), func(class int) bool { return class == 30 || class == 3 })
	for i, class := range classes {
		pod(fmt.Sprintf("single-%02d", i), "", class, 1+r.IntN(3))
	}
	for name, class := range map[string]int{"early": 30, "late": 3, "other": 36} {
		own := class
		if name == "other" {
			own = 35
		}
		fmt.Fprintf(&text, "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {priorityClassName: plan-%d, schedulingPolicy: {gang: {minCount: 3}}}\n---\n", name, own)
		for i := range 3 {
			pod(fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("schedulingGroup: {podGroupName: %s}, ", name), class, 2)
		}
	}
	return names, strings.TrimSuffix(text.String(), "\n---\n")
}

// TestPlanAgreesWithScheduler plans a queue of 43 pods while there is no scheduler, and
// then lets one decide: on a single node, the order alone says who gets devices.
func TestPlanAgreesWithScheduler(t *testing.T) {
	const namespace = "plan"
	c := startCluster(t, controlplane.Options{
		WithoutScheduler: true,
		FeatureGates:     map[string]bool{"GenericWorkload": true},
		RuntimeConfig:    map[string]bool{"scheduling.k8s.io/v1beta1": true, "scheduling.k8s.io/v1alpha3": true},
	})
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, queueSlice(namespace, 31))
	names, documents := plannedPods(namespace)
	c.createAll(t, namespace, documents)
	for _, name := range names {
		mustDo(t, func() error { return c.waitForClaims(t.Context(), namespace, name) })
	}
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), []string{"plan", "--kubeconfig", c.kubeconfig, "-o", "json"}, streams, commands.Build{Version: "v0.0.0-test"})
	var plan api.Plan
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil || code != 1 {
		t.Fatalf("code %d, %v\n%s", code, err, errOut)
	}
	outcomes := map[string]api.PlanOutcome{}
	for i := range plan.Pods {
		if p := &plan.Pods[i]; (p.Code == api.PodGroupMismatch) != strings.HasPrefix(p.Name, "other-") {
			t.Errorf("%s: %s %s: %s", p.Name, p.Outcome, p.Code, p.Reason)
		}
		outcomes[plan.Pods[i].Name] = plan.Pods[i].Outcome
	}
	if err := c.plane.StartScheduler(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	placed := 0
	for _, name := range names {
		got := c.decision(ctx, namespace, name, func(d decision) bool { return d.reason != "" && d.reason != allocated })
		if (got.reason == scheduled) != (outcomes[name] == api.PlanPlaced) || outcomes[name] == "" {
			t.Errorf("pod %s: the plan says %q, the scheduler %+v", name, outcomes[name], got)
		}
		if got.reason == scheduled {
			placed++
		}
	}
	t.Logf("%d of %d are placed", placed, len(names))
	if placed < 10 || placed > 30 || outcomes["early-0"] != api.PlanPlaced || outcomes["late-0"] != api.PlanWaiting {
		t.Errorf("the queue means nothing: %v", outcomes)
	}
}
