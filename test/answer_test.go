// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

// answer is the answer of `kubectl dra why` about a pod, with its snapshot.
type answer struct {
	*api.Explanation
	snapshot *snapshot.Snapshot
}

// why asks the cluster about a pod as a user does who has the kubeconfig.
func why(t *testing.T, kubeconfig, namespace, pod string) (answer, error) {
	t.Helper()
	return ask(t, unhurried, kubeconfig, namespace, pod)
}

type explainer func(*testing.T, *snapshot.Snapshot, explain.Options) (*api.Explanation, error)

func ask(t *testing.T, explained explainer, kubeconfig, namespace, pod string) (answer, error) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &kubeconfig
	flags.Namespace = &namespace
	clients, err := collect.NewClients(flags)
	if err != nil {
		return answer{}, err
	}
	snap, err := collect.Collect(t.Context(), clients, collect.Options{
		Target: &snapshot.Argument{Resource: "pod", Namespace: namespace, Name: pod},
	})
	if err != nil {
		return answer{}, err
	}
	explanation, err := explained(t, snap, explain.Options{Object: api.Ref(api.KindPod, namespace, pod)})
	if err != nil {
		return answer{}, err
	}
	return answer{explanation, snap}, nil
}

// inTime explains within the time that users are given.
func inTime(t *testing.T, snap *snapshot.Snapshot, options explain.Options) (*api.Explanation, error) {
	t.Helper()
	return explain.Explain(t.Context(), snap, options)
}

// unhurried explains while the clock stands still. What is looked for in a
// limited time, such as remedies, depends on how busy the machine is otherwise.
func unhurried(t *testing.T, snap *snapshot.Snapshot, options explain.Options) (explanation *api.Explanation, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		explanation, err = explain.Explain(t.Context(), snap, options)
	})
	return explanation, err
}

// checkForm checks what must hold for every answer.
func (a answer) checkForm(t *testing.T) {
	t.Helper()
	if a.Summary == "" {
		t.Error("there is no summary")
	}
	checkBrief(t, a.Explanation)
	count := 0
	seen := map[string]bool{}
	for _, group := range a.Nodes {
		count += group.Count
		if group.Count != len(group.Names) {
			t.Errorf("a group of %d nodes has %d names", group.Count, len(group.Names))
		}
		for _, name := range group.Names {
			if seen[name] {
				t.Errorf("node %s is in two groups", name)
			}
			seen[name] = true
		}
		if fits := group.Verdict == api.Fits; fits != (group.Code == "") {
			t.Errorf("a group with verdict %s has code %q", group.Verdict, group.Code)
		}
	}
	if count != a.NodeCount {
		t.Errorf("%d nodes are in groups, there are %d", count, a.NodeCount)
	}
	if (a.Verdict == api.Fits) != (a.Placement != nil) && a.Verdict != api.Blocked {
		t.Errorf("verdict %s with placement %v", a.Verdict, a.Placement)
	}
	for _, claim := range a.Claims {
		for _, request := range claim.Requests {
			total := request.Eligible
			for _, rejection := range request.Rejected {
				total += rejection.Count
			}
			if total != request.Considered {
				t.Errorf("request %s: %d considered, but %d eligible or rejected", request.Name, request.Considered, total)
			}
		}
	}
}

// codes returns all reason codes of an answer.
func (a answer) codes() []api.Code {
	var codes []api.Code
	for _, claim := range a.Claims {
		for _, request := range claim.Requests {
			for _, rejection := range request.Rejected {
				codes = append(codes, rejection.Code)
			}
		}
	}
	for _, group := range a.Nodes {
		if group.Code != "" {
			codes = append(codes, group.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// checkAgainst compares an answer that was given before the scheduler saw the
// pod with what the scheduler did then.
func (a answer) checkAgainst(ctx context.Context, t *testing.T, step step, got decision) {
	t.Helper()
	if a.Verdict != step.Outcome {
		t.Errorf("verdict %s (%s), the scheduler says %s: %s", a.Verdict, a.Summary, got.reason, got.message)
	}
	if step.Code != "" && a.Code != step.Code {
		t.Errorf("code %s, want %s; summary: %s", a.Code, step.Code, a.Summary)
	}
	for _, code := range step.Codes {
		if codes := a.codes(); !slices.Contains(codes, code) {
			t.Errorf("the reason %s is missing, there are %v; summary: %s", code, codes, a.Summary)
		}
	}
	if got.reason == scheduled && a.Verdict != api.Undetermined && !a.fitsOn(got.node) {
		t.Errorf("the scheduler took node %s, which is not among those that fit: %s", got.node, a.nodes())
	}
	// Pods of a gang are placed together: who gets which device is not known.
	if a.Placement == nil || len(step.With) > 0 || (got.reason != scheduled && got.reason != allocated) {
		return
	}
	var want, have []string
	if got.reason == allocated || a.Placement.Node == got.node {
		for _, claim := range a.Placement.Claims {
			for _, device := range claim.Devices {
				have = append(have, describeDevice(device))
			}
		}
	} else {
		// Several nodes are equally good, and the scheduler takes any.
		have = a.devicesOn(ctx, t, got.node)
	}
	before := map[string]bool{}
	for _, claim := range a.Claims {
		before[claim.Name] = claim.Allocation != nil
	}
	for _, claim := range got.claims {
		if !before[claim.Name] {
			want = append(want, describeAllocation(claim.Status.Allocation)...)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("devices differ (-scheduler +why):\n%s", diff)
	}
}

func (a answer) fitsOn(node string) bool {
	return slices.ContainsFunc(a.Nodes, func(group api.NodeGroup) bool {
		return group.Verdict == api.Fits && slices.Contains(group.Names, node)
	})
}

func (a answer) nodes() string {
	var groups []string
	for _, group := range a.Nodes {
		if group.Verdict == api.Fits {
			groups = append(groups, strings.Join(group.Names, ", "))
		}
	}
	return strings.Join(groups, ", ")
}

// devicesOn asks the allocator for another node than the node of the placement.
func (a answer) devicesOn(ctx context.Context, t *testing.T, node string) []string {
	t.Helper()
	c := facts.New(a.snapshot)
	pod := a.snapshot.Pod(a.Target.Namespace, a.Target.Name)
	var claims []*resourceapi.ResourceClaim
	for _, claim := range c.Claims.OfPod(pod) {
		if !claim.ExtendedResources && claim.Claim.Status.Allocation == nil {
			claims = append(claims, claim.Claim)
		}
	}
	extended, err := c.Claims.ExtendedResourceClaim(pod, a.snapshot.Node(node))
	if err != nil {
		t.Fatal(err)
	}
	if extended != nil {
		claims = append(claims, extended)
	}
	var devices []string
	for _, allocation := range allocator.Of(c).Check(ctx, a.snapshot.Node(node), claims).Allocations {
		devices = append(devices, describeAllocation(&allocation)...)
	}
	return devices
}

// checkAfter compares an answer that was given after the scheduler's decision.
func (a answer) checkAfter(t *testing.T, step step, got decision) {
	t.Helper()
	if got.reason != scheduled && got.reason != allocated {
		if a.Verdict != step.Outcome {
			t.Errorf("after the scheduler's decision: verdict %s (%s), the scheduler says %s: %s", a.Verdict, a.Summary, got.reason, got.message)
		}
		if got.reason == notQueued {
			return
		}
		// The scheduler may have tried again since then.
		pod := a.snapshot.Pod(a.Target.Namespace, a.Target.Name)
		said := func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Message == a.SchedulerMessage.Text
		}
		if a.SchedulerMessage == nil || !slices.ContainsFunc(pod.Status.Conditions, said) {
			t.Errorf("the scheduler's message is not quoted: %+v, want %q", a.SchedulerMessage, got.message)
		}
		return
	}
	// The scheduler also places pods that are evicted at once, for a taint that only
	// the scheduler takes for tolerated.
	if evicted := a.Verdict == api.Blocked && a.Code == api.EvictionDue; a.Verdict != api.Allocated && !evicted {
		t.Errorf("after the scheduler's decision: verdict %s (%s), it is %s on node %s", a.Verdict, a.Summary, got.reason, got.node)
	}
	want := map[string][]string{}
	for _, claim := range got.claims {
		want[claim.Name] = describeAllocation(claim.Status.Allocation)
	}
	have := map[string][]string{}
	for _, claim := range a.Claims {
		if claim.Allocation == nil {
			t.Errorf("claim %s is allocated, and explained as if it were not", claim.Name)
			continue
		}
		for _, device := range claim.Allocation.Devices {
			if device.Missing {
				t.Errorf("device %s is said to be missing", describeDevice(device))
			}
			have[claim.Name] = append(have[claim.Name], describeDevice(device))
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("devices differ (-allocated +why):\n%s", diff)
	}
}

// checkWhyHere compares the answers about a pod before and after it got its devices:
// nothing but the pod has changed.
func (a answer) checkWhyHere(t *testing.T, before answer, got decision) {
	t.Helper()
	if got.reason != scheduled || before.Verdict != api.Fits || len(a.Claims) == 0 || a.Code == api.EvictionDue {
		// A pod that is about to be evicted does not keep its devices.
		return
	}
	here := a.WhyHere
	if here == nil || here.Node != got.node || !here.FitsHere {
		t.Errorf("why here: %+v, the scheduler has chosen %s; %s %s: %s", here, got.node, a.Verdict, a.Code, a.Summary)
		return
	}
	// Volumes are not read for a pod that has its node.
	if diff := cmp.Diff(fittingNodes(before.Nodes), fittingNodes(here.Nodes)); diff != "" && !slices.Contains(here.NotEvaluated, "the nodes of its volumes") {
		t.Errorf("nodes where the pod fits differ (-before +why here):\n%s", diff)
	}
	chosen := map[string]bool{}
	for _, claim := range got.claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			chosen[claim.Name+" "+result.Request] = true
		}
	}
	for _, alternative := range here.Alternatives {
		if !chosen[alternative.Claim+" "+alternative.Chosen] || len(alternative.Earlier) != alternative.Position-1 {
			t.Errorf("alternative %+v, the scheduler has chosen %v", alternative, chosen)
		}
		for _, earlier := range alternative.Earlier {
			if earlier.FitsNow || earlier.Message == "" {
				t.Errorf("the scheduler has passed over %+v", earlier)
			}
		}
	}
}

func fittingNodes(groups []api.NodeGroup) []string {
	var names []string
	for _, group := range groups {
		if group.Verdict == api.Fits {
			names = append(names, group.Names...)
		}
	}
	slices.Sort(names)
	return names
}

func describeAllocation(allocation *resourceapi.AllocationResult) []string {
	var list []string
	for _, result := range allocation.Devices.Results {
		device := api.AllocatedDevice{
			Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
			AdminAccess: ptr.Deref(result.AdminAccess, false),
		}
		for name, quantity := range result.ConsumedCapacity {
			if device.ConsumedCapacity == nil {
				device.ConsumedCapacity = map[string]string{}
			}
			device.ConsumedCapacity[string(name)] = quantity.String()
		}
		list = append(list, describeDevice(device))
	}
	return list
}

// describeDevice leaves out the share ID, which the allocator makes up.
func describeDevice(device api.AllocatedDevice) string {
	text := fmt.Sprintf("%s: %s/%s/%s", device.Request, device.Driver, device.Pool, device.Device)
	if device.AdminAccess {
		text += " admin"
	}
	if len(device.ConsumedCapacity) > 0 {
		text += fmt.Sprint(" ", device.ConsumedCapacity)
	}
	return text
}

// checkReplay asks again with nothing but a file of what the answer was based
// on, and with the file that can be shown to strangers.
func (a answer) checkReplay(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range []string{"snapshot.json", "snapshot.yaml.gz"} {
		path := filepath.Join(t.TempDir(), name)
		if err := files.Save(t.Context(), a.snapshot, path); err != nil {
			t.Fatal(err)
		}
		loaded, err := files.Load(ctx, []string{path}, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := unhurried(t, loaded, explain.Options{Object: api.Ref(a.Target.Kind, a.Target.Namespace, a.Target.Name)})
		if err != nil {
			t.Errorf("explain from %s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(a.Explanation, again); diff != "" {
			t.Errorf("the answer from %s differs (-cluster +file):\n%s", name, diff)
		}
	}
	index := slices.Index(a.snapshot.Pods, a.snapshot.Pod(a.Target.Namespace, a.Target.Name))
	redacted := redact.Snapshot(a.snapshot)
	pod := redacted.Pods[index]
	again, err := unhurried(t, redacted, explain.Options{Object: api.RefTo(api.KindPod, pod)})
	if err != nil {
		t.Errorf("explain from a redacted snapshot: %v", err)
		return
	}
	if diff := cmp.Diff(a.shape(), answer{again, redacted}.shape()); diff != "" {
		t.Errorf("the answer from a redacted snapshot differs (-cluster +redacted):\n%s", diff)
	}
}

// shape returns an answer without the names.
func (a answer) shape() []string {
	lines := []string{fmt.Sprintf("%s %s, stage %s, %d nodes", a.Verdict, a.Code, a.Stage, a.NodeCount)}
	for _, claim := range a.Claims {
		for _, request := range claim.Requests {
			line := fmt.Sprintf("request: %s needs %d of %d in %d pools, eligible %d on %d nodes, at most %d",
				request.Mode, request.Needs, request.Considered, request.Pools, request.Eligible, request.EligibleNodes, request.MostOnOneNode)
			for _, rejection := range request.Rejected {
				line += fmt.Sprintf(", %s %d", rejection.Code, rejection.Count)
			}
			lines = append(lines, line)
		}
	}
	var groups []string
	for _, group := range a.Nodes {
		groups = append(groups, fmt.Sprintf("nodes: %d %s %s score %d", group.Count, group.Verdict, group.Code, group.Score))
	}
	slices.Sort(groups)
	return append(lines, groups...)
}
