// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// TestCausesComeTrue makes faults one after another. Each has to be the first cause in its
// namespace, with the pod that waits because of it. After its next step, pasted as it is printed,
// the pod has to be scheduled, and the cause has to be gone.
func TestCausesComeTrue(t *testing.T) {
	c := startCluster(t, everything())
	// The code of the first cause of each case of a bare pod.
	codes := map[string]string{
		"cordon": cause.NodeCordoned, "taint-rule": string(api.DeviceTainted), "device-taint": string(api.DeviceTainted), "pool": "DRA1201",
		"admin-access": string(api.AdminAccessDenied), "class-selector": "DRA1302", "class": string(api.ClassNotFound), "released": string(api.DeviceAllocated),
		"count": string(api.CountUnsatisfiable), "selector": string(api.RequestSelectorFalse), "node-selector": string(api.NodeUnsuitable), "cpu": string(api.NodeUnsuitable),
	}
	for _, each := range remedyCases() {
		code := codes[each.name]
		if code == "" {
			continue
		}
		delete(codes, each.name)
		r := &remedyRun{remedyCase: each, cluster: c, owner: "pod", id: "cause-" + each.name}
		t.Run(each.name, func(t *testing.T) { r.runCause(t, code) })
	}
	if len(codes) > 0 {
		t.Errorf("no such cases: %v", codes)
	}
}

func (r *remedyRun) runCause(t *testing.T, code string) {
	r.setUp(t)
	defer r.deletePods(t, r.id)
	pod := r.waitUntilWaiting(t)[0]
	status := r.status(t)
	if status.Pods.Waiting != 1 || len(status.Causes) == 0 {
		t.Fatalf("%+v", status)
	}
	first := &status.Causes[0]
	if first.Code != code || len(first.Affected) != 1 || first.Affected[0].Name != pod.Name || first.NextStep == nil {
		t.Fatalf("%+v", first)
	}
	if m := first.Mended; code != string(api.DeviceAllocated) && (m == nil || m.Waiting > 0 && m.Starts != 1) {
		t.Errorf("it promises %+v", m)
	}
	switch {
	case code == string(api.DeviceAllocated):
		// The pod waits for a claim of another pod, which is released.
		r.paste(t, edited(t, r.chosen(t, r.explain(t, pod))))
	case r.without:
		r.paste(t, edited(t, &api.Remedy{Edits: first.Mended.Edits}))
	default:
		r.paste(t, first.NextStep.Commands)
	}
	if err := poll(t.Context(), func() bool {
		live := r.live(t)
		return len(live) == 1 && live[0].Spec.NodeName != ""
	}); err != nil {
		t.Fatalf("the pod is not scheduled after %+v", first.NextStep)
	}
	after := r.status(t)
	if slices.ContainsFunc(after.Causes, func(c api.Cause) bool { return c.ID == first.ID && c.Pods > 0 }) || after.Pods.Waiting > 0 {
		t.Errorf("it is still there: %+v", after)
	}
}

// status returns the causes of the namespace of a case.
func (r *remedyRun) status(t *testing.T) *api.Status {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &r.kubeconfig
	clients, err := collect.NewClients(flags)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := collect.Collect(t.Context(), clients, collect.Options{AllNamespaces: true})
	if err != nil {
		t.Fatal(err)
	}
	found, err := cause.Find(t.Context(), facts.New(snap), cause.Options{Namespace: r.id})
	if err != nil {
		t.Fatal(err)
	}
	return found.Status
}
