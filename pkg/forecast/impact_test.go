// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// assessed says what becomes of each pod, in the order of the answer.
func assessed(t *testing.T, snap *snapshot.Snapshot, c forecast.Change) (string, *api.Impact) {
	t.Helper()
	tc.Unchanged(t, snap)
	out, err := forecast.Assess(t.Context(), snap, c)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, pod := range out.Pods {
		line := fmt.Sprintf("%s %s %s", pod.Name, pod.Effect, pod.Outcome)
		if pod.Placement != nil {
			line += " " + pod.Placement.Node
			for _, claim := range pod.Placement.Claims {
				for _, device := range claim.Devices {
					line += " " + device.Device
				}
			}
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "; "), out
}

// owned gives a pod a controller.
func owned(pod *corev1.Pod, kind string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "web", UID: "web", Controller: ptr.To(true)}}
	return pod
}

// running returns a pod of a ReplicaSet with a device of its own, and the claim for it.
func running(name, node, device string) []any {
	pod := owned(tc.Pod(name, tc.UsingTemplate("gpu", "one"), tc.RunningOn(node)), "ReplicaSet")
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(name + "-gpu")}}
	return []any{pod, tc.Claim(name+"-gpu", tc.GPUs("gpu", 1)).Holding(node+"/"+device).OwnedBy("Pod", name).ReservedFor(name, string(tc.UID(name)))}
}

func template() any { return tc.Template("one", tc.GPUs("gpu", 1)) }

// TestDrain covers two pods on one node, and room for one of them on the other.
func TestDrain(t *testing.T) {
	parts := []any{template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(3)...), tc.Pool("n2", tc.Devices(1)...)}
	parts = append(parts, running("a", "n1", "gpu-0")...)
	parts = append(parts, running("b", "n1", "gpu-1")...)
	daemon := owned(tc.Pod("daemon", tc.RunningOn("n1")), "DaemonSet")
	bare := tc.Pod("bare", tc.Using("named"), tc.RunningOn("n1"))
	parts = append(parts, daemon, bare, tc.Claim("named", tc.GPUs("gpu", 1)).Holding("n1/gpu-2").ReservedFor("bare", string(tc.UID("bare"))))
	snap := tc.Cluster(parts...)
	got, out := assessed(t, snap, forecast.Drain("n1"))
	if want := "a Evicted Placed n2 gpu-0; b Evicted NoPlace; bare Evicted NotRecreated; daemon Stays"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if out.Pods[1].Reason == "" || out.Counts != (api.ImpactCounts{Evicted: 3, Placed: 1, NoPlace: 1, NotRecreated: 1}) {
		t.Errorf("the reason is %q, the counts are %+v", out.Pods[1].Reason, out.Counts)
	}
	if !strings.Contains(out.Steps[1].Commands[0], "--force") {
		t.Errorf("a bare pod takes --force: %v", out.Steps[1])
	}
	var missing *forecast.NotFoundError
	if _, err := forecast.Assess(t.Context(), snap, forecast.Drain("n3")); !errors.As(err, &missing) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// TestReasonIsOfOtherNodes says why evicted pods fit on none of the remaining nodes, not
// that the drained one is cordoned.
func TestReasonIsOfOtherNodes(t *testing.T) {
	parts := []any{template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...)}
	parts = append(parts, running("a", "n1", "gpu-0")...)
	parts = append(parts, tc.Pod("bare", tc.Using("named"), tc.RunningOn("n1")), tc.Claim("named", tc.GPUs("gpu", 1)).Holding("n1/gpu-1").ReservedFor("bare", string(tc.UID("bare"))))
	parts = append(parts, running("c", "n2", "gpu-0")...)
	parts = append(parts, running("d", "n2", "gpu-1")...)
	got, out := assessed(t, tc.Cluster(parts...), forecast.Drain("n1"))
	if want := "a Evicted NoPlace; bare Evicted NotRecreated"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, other := assessed(t, tc.Cluster(append(running("a", "n1", "gpu-0"), template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...))...), forecast.Drain("n1")); got != "a Evicted NoPlace" || strings.Contains(other.Pods[0].Reason, "cordoned") || strings.Contains(other.Pods[0].Reason, "publishes nothing") {
		t.Errorf("without devices on other nodes: %s, %s", got, other.Pods[0].Reason)
	}
	for _, pod := range out.Pods {
		if strings.Contains(pod.Reason, "n1") || strings.Contains(pod.Reason, "cordoned") || !strings.Contains(pod.Reason, "(2 allocated)") {
			t.Errorf("%s: %s", pod.Name, pod.Reason)
		}
	}
}

// TestUnfitNow tells pods that lose their place by the change from pods that would not find one
// without it.
func TestUnfitNow(t *testing.T) {
	parts := []any{template(), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}
	parts = append(parts, running("a", "n1", "gpu-0")...)
	b := running("b", "n1", "gpu-1")
	pod, ok := b[0].(*corev1.Pod)
	if !ok {
		t.Fatal("no pod")
	}
	pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = ptr.To("gone")
	parts = append(parts, b...)
	unfit := func(out *api.Impact) string {
		var names []string
		for _, pod := range out.Pods {
			if pod.UnfitNow {
				names = append(names, pod.Name)
			}
		}
		return strings.Join(names, " ")
	}
	if got, out := assessed(t, tc.Cluster(parts...), forecast.Drain("n1")); got != "a Evicted NoPlace; b Evicted NoPlace" || unfit(out) != "b" {
		t.Errorf("%s; unfit now: %q", got, unfit(out))
	}
	snap := tc.Cluster(parts...)
	for _, node := range snap.Nodes {
		node.Spec.Unschedulable = true
	}
	if _, out := assessed(t, snap, forecast.Drain("n1")); slices.ContainsFunc(out.Pods, func(pod api.ImpactPod) bool { return pod.Name == "a" && pod.UnfitNow }) {
		t.Error("a cordoned node is being drained already")
	}
}

// TestPriorityDecides covers room for one of two evicted pods.
func TestPriorityDecides(t *testing.T) {
	parts := []any{template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(1)...)}
	low, high := running("a", "n1", "gpu-0"), running("b", "n1", "gpu-1")
	pod, ok := high[0].(*corev1.Pod)
	if !ok {
		t.Fatal("no pod")
	}
	pod.Spec.Priority = ptr.To[int32](10)
	got, _ := assessed(t, tc.Cluster(append(append(parts, low...), high...)...), forecast.Drain("n1"))
	if want := "b Evicted Placed n2 gpu-0; a Evicted NoPlace"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSharedClaim covers two pods with one claim. While one of them stays, so does the
// claim.
func TestSharedClaim(t *testing.T) {
	shared := func(node string) *corev1.Pod {
		return owned(tc.Pod("b", tc.Using("both"), tc.RunningOn(node)), "ReplicaSet")
	}
	parts := func(b *corev1.Pod) *snapshot.Snapshot {
		return tc.Cluster(tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...),
			tc.Claim("both", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").ReservedFor("a", string(tc.UID("a"))).ReservedFor("b", string(tc.UID("b"))),
			owned(tc.Pod("a", tc.Using("both"), tc.RunningOn("n1")), "ReplicaSet"), b)
	}
	if got, _ := assessed(t, parts(shared("n1")), forecast.Drain("n1")); got != "a Evicted Placed n2 gpu-0; b Evicted Placed n2 gpu-0" {
		t.Errorf("both leave: %s", got)
	}
	stays := owned(shared("n1"), "DaemonSet")
	if got, _ := assessed(t, parts(stays), forecast.Drain("n1")); got != "a Evicted NoPlace; b Stays" {
		t.Errorf("one stays: %s", got)
	}
}

// TestClaimOfLeavingPod covers claims that garbage collection deletes with the evicted pod that owns
// them: a pod that names one has lost it, and a replacement gets another one from its template.
func TestClaimOfLeavingPod(t *testing.T) {
	parts := append(running("a", "n1", "gpu-0"), template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...),
		tc.Claim("wants", tc.GPUs("gpu", 1)).OwnedBy("Pod", "a"), tc.Pod("waits", tc.Using("wants")),
		tc.Claim("lent", tc.GPUs("gpu", 1)).OwnedBy("Pod", "a"), owned(tc.Pod("b", tc.Using("lent"), tc.RunningOn("n1")), "ReplicaSet"))
	got, out := assessed(t, tc.Cluster(parts...), forecast.Drain("n1"))
	if want := "a Evicted Placed n2 gpu-0; b Evicted NoPlace; waits FitLost NoPlace"; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	for i, name := range map[int]string{1: "lent", 2: "wants"} {
		if want := "ResourceClaim " + tc.Namespace + "/" + name + " is deleted with pod a, which owns it."; out.Pods[i].Reason != want {
			t.Errorf("got  %s\nwant %s", out.Pods[i].Reason, want)
		}
	}
}

// TestClaimOfSeveralOwners follows garbage collection: a claim is deleted with the last of its owners,
// the controller or not.
func TestClaimOfSeveralOwners(t *testing.T) {
	owner := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: tc.UID(name)}
	}
	for _, test := range []struct {
		name   string
		others []metav1.OwnerReference
		want   string
	}{
		{"a pod that stays owns it too", []metav1.OwnerReference{owner("Pod", "stays")}, "a Evicted Placed n2 gpu-0; b Evicted Placed n2 gpu-1"},
		{"an object of another kind owns it too", []metav1.OwnerReference{owner("ConfigMap", "settings")}, "a Evicted Placed n2 gpu-0; b Evicted Placed n2 gpu-1"},
		{"the other owner leaves, too", []metav1.OwnerReference{owner("Pod", "b")}, "a Evicted Placed n2 gpu-0; b Evicted NoPlace"},
		{"the other owner is gone already", []metav1.OwnerReference{owner("Pod", "earlier")}, "a Evicted Placed n2 gpu-0; b Evicted NoPlace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			claim := tc.Claim("lent", tc.GPUs("gpu", 1)).OwnedBy("Pod", "a").Change(func(claim *resourceapi.ResourceClaim) {
				claim.OwnerReferences = append(claim.OwnerReferences, test.others...)
			})
			parts := append(running("a", "n1", "gpu-0"), template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...),
				claim, owned(tc.Pod("b", tc.Using("lent"), tc.RunningOn("n1")), "ReplicaSet"), tc.Pod("stays", tc.RunningOn("n2")))
			if got, _ := assessed(t, tc.Cluster(parts...), forecast.Drain("n1")); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	alone := tc.Claim("lent", tc.GPUs("gpu", 1)).OwnedBy("Pod", "a").Change(func(claim *resourceapi.ResourceClaim) { claim.OwnerReferences[0].Controller = nil })
	parts := append(running("a", "n1", "gpu-0"), template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...),
		alone, owned(tc.Pod("b", tc.Using("lent"), tc.RunningOn("n1")), "ReplicaSet"))
	_, out := assessed(t, tc.Cluster(parts...), forecast.Drain("n1"))
	if want := "ResourceClaim " + tc.Namespace + "/lent is deleted with pod a, which owns it."; out.Pods[1].Reason != want {
		t.Errorf("an owner that is not the controller: got %s", out.Pods[1].Reason)
	}
}

// TestWaiting covers pods that wait for the devices of a node, or for those that are freed.
func TestWaiting(t *testing.T) {
	parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("wants", tc.GPUs("gpu", 1)), tc.Pod("waits", tc.Using("wants"))}
	if got, _ := assessed(t, tc.Cluster(parts...), forecast.Cordon("n1")); got != "waits FitLost NoPlace" {
		t.Errorf("cordoned: %s", got)
	}
	parts = append(parts, tc.Claim("has", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").ReservedFor("runs", string(tc.UID("runs"))), tc.Pod("runs", tc.Using("has"), tc.RunningOn("n1")))
	snap := tc.Cluster(parts...)
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}
	snap.Pod(tc.Namespace, "waits").Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	if got, _ := assessed(t, snap, forecast.TaintNode("n1", taint)); got != "runs Evicted NotRecreated; waits FitGained Placed n1 gpu-0" {
		t.Errorf("tainted: %s", got)
	}
}

// TestNodeTaint evicts after the shortest time for which a pod tolerates the taint.
func TestNodeTaint(t *testing.T) {
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		want        time.Duration
		stays       bool
	}{
		"none":     {want: 0},
		"forever":  {tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}, stays: true},
		"shortest": {tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](60)}, {Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}}, want: 30 * time.Second},
		"other":    {tolerations: []corev1.Toleration{{Key: "other", Operator: corev1.TolerationOpExists}}, want: 0},
	} {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pod("runs", tc.RunningOn("n1")))
		snap.TakenAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		snap.Pods[0].Spec.Tolerations = test.tolerations
		_, out := assessed(t, snap, forecast.TaintNode("n1", taint))
		if test.stays != (len(out.Pods) == 0) {
			t.Errorf("%s: %+v", name, out.Pods)
			continue
		}
		if test.stays || test.want == 0 && out.Pods[0].EvictionAt == nil {
			continue
		}
		if at := out.Pods[0].EvictionAt; at == nil || at.Sub(snap.Now()) != test.want {
			t.Errorf("%s: evicted at %v, want after %s", name, at, test.want)
		}
	}
}

// TestRemove takes away a node, a driver and a device.
func TestRemove(t *testing.T) {
	parts := append([]any{template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(1)...)}, running("a", "n1", "gpu-0")...)
	snap := tc.Cluster(append(parts, owned(tc.Pod("daemon", tc.RunningOn("n1")), "DaemonSet"))...)
	for want, change := range map[string]forecast.Change{
		"a Evicted Placed n2 gpu-0; daemon Removed": forecast.RemoveNode("n1"),
		"a DevicesLost NoPlace":                     forecast.RemoveDriver("gpu.example.com"),
		"a DevicesLost Placed n1 gpu-1":             forecast.RemoveDevice(cluster.DeviceID{Driver: "gpu.example.com", Pool: "n1", Device: "gpu-0"}),
		"":                                          forecast.RemoveDevice(cluster.DeviceID{Driver: "gpu.example.com", Pool: "n1", Device: "gpu-1"}),
	} {
		if got, _ := assessed(t, snap, change); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestApplyClass changes what a class selects.
func TestApplyClass(t *testing.T) {
	parts := append([]any{template(), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}, running("a", "n1", "gpu-0")...)
	snap := tc.Cluster(append(parts, tc.Claim("wants", tc.GPUs("gpu", 1)), tc.Pod("waits", tc.Using("wants")))...)
	class := snap.Classes[0].DeepCopy()
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "other.example.com"`}}}
	got, out := assessed(t, snap, forecast.Apply("apply it", &snapshot.Snapshot{Classes: []*resourceapi.DeviceClass{class}}, nil))
	if got != "waits FitLost NoPlace" || len(out.Claims) != 1 || out.Claims[0].Name != "a-gpu" {
		t.Errorf("%s, claims %+v", got, out.Claims)
	}
}

// TestGang covers a gang of three of which two lose their node: there is room for one, so
// that neither gets it, and a pod that waits does.
func TestGang(t *testing.T) {
	parts := []any{template(), tc.Gates{"GenericWorkload"}, tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(1)...)}
	for i, name := range []string{"a", "b"} {
		pod := running(name, "n1", fmt.Sprintf("gpu-%d", i))
		pod[0].(*corev1.Pod).Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("both")} //nolint:errcheck // it is one
		parts = append(parts, pod...)
	}
	snap := tc.Cluster(append(parts, tc.Claim("wants", tc.GPUs("gpu", 2)), tc.Pod("waits", tc.Using("wants")))...)
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "both"}}
	group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: 2}
	snap.PodGroups = append(snap.PodGroups, group)
	got, out := assessed(t, snap, forecast.Drain("n1"))
	if got != "a Evicted NoPlace; b Evicted NoPlace" || out.Pods[0].Code != api.GangIncomplete || !strings.HasPrefix(out.Pods[0].Reason, "1 of 2 pods of PodGroup both") {
		t.Errorf("got %s: %s", got, out.Pods[0].Reason)
	}
}

// TestWithoutDevices covers pods that need CPU alone.
func TestWithoutDevices(t *testing.T) {
	parts := []any{tc.NodeOffering("n1", "cpu=2", "pods=10"), tc.NodeOffering("n2", "cpu=1", "pods=10")}
	for _, name := range []string{"a", "b"} {
		parts = append(parts, owned(tc.Pod(name, tc.Requesting("cpu=1"), tc.RunningOn("n1")), "ReplicaSet"))
	}
	got, out := assessed(t, tc.Cluster(parts...), forecast.Drain("n1"))
	if got != "a Evicted Placed n2; b Evicted NoPlace" || out.Pods[1].Reason == "" {
		t.Errorf("got %s: %+v", got, out.Pods)
	}
}

// TestBudgets covers two pods of a budget that have to leave, and room for one or for both.
func TestBudgets(t *testing.T) {
	for name, test := range map[string]struct {
		room    int
		allowed int32
		ready   corev1.ConditionStatus
		policy  *policyapi.UnhealthyPodEvictionPolicyType
		want    api.BudgetEffect
	}{
		"none now":                  {2, 0, corev1.ConditionTrue, nil, api.BudgetBlocks},
		"one after the other":       {2, 1, corev1.ConditionTrue, nil, api.BudgetDelays},
		"the second has no room":    {1, 1, corev1.ConditionTrue, nil, api.BudgetStops},
		"both":                      {2, 2, corev1.ConditionTrue, nil, api.BudgetAllows},
		"not ready":                 {2, 0, corev1.ConditionFalse, ptr.To(policyapi.AlwaysAllow), ""},
		"not ready, and too few so": {2, 0, corev1.ConditionFalse, nil, api.BudgetBlocks},
	} {
		parts := append([]any{template(), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(test.room)...)}, append(running("a", "n1", "gpu-0"), running("b", "n1", "gpu-1")...)...)
		snap := tc.Cluster(parts...)
		for _, pod := range snap.Pods {
			pod.Labels = map[string]string{"app": "web"}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: test.ready}}
		}
		snap.Budgets = []*policyapi.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "web"},
			Spec:       policyapi.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, UnhealthyPodEvictionPolicy: test.policy},
			Status:     policyapi.PodDisruptionBudgetStatus{DisruptionsAllowed: test.allowed, DesiredHealthy: 2},
		}, {
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"},
			Spec:       policyapi.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		}}
		_, out := assessed(t, snap, forecast.Drain("n1"))
		switch {
		case test.want == "" && len(out.Budgets) == 0:
		case len(out.Budgets) != 1 || out.Budgets[0].Effect != test.want || len(out.Budgets[0].Pods) != 2 || len(out.Pods[0].Budgets) != 1:
			t.Errorf("%s: %+v", name, out.Budgets)
		}
		// Taints do not ask it.
		if _, out := assessed(t, snap, forecast.TaintNode("n1", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})); len(out.Budgets) != 0 {
			t.Errorf("%s: a taint asks %+v", name, out.Budgets)
		}
	}
	snap := tc.Cluster(append([]any{template(), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}, running("a", "n1", "gpu-0")...)...)
	snap.Listed = nil
	if _, out := assessed(t, snap, forecast.Drain("n1")); !slices.ContainsFunc(out.Assumptions, func(text string) bool { return strings.Contains(text, "PodDisruptionBudget") }) {
		t.Errorf("budgets were not read: %v", out.Assumptions)
	}
}

// TestPodsAside names pods with scheduling gates, and pods that are nominated for the
// drained node, though the queue does not decide about them.
func TestPodsAside(t *testing.T) {
	waiting := func(name string, change func(*corev1.Pod)) []any {
		return []any{tc.Claim("claim-"+name, tc.GPUs("gpu", 1)), tc.Pod(name, tc.UsingClaim("gpu", "claim-"+name), change)}
	}
	objects := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(4)...)}
	objects = append(objects, waiting("held", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}} })...)
	objects = append(objects, waiting("chosen", func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" })...)
	for _, change := range []forecast.Change{forecast.Drain("n1"), forecast.Cordon("n1")} {
		_, out := assessed(t, tc.Cluster(slices.Concat(objects, waiting("moves", func(*corev1.Pod) {}))...), change)
		const want = "ml/moves (n2 instead of n1)"
		if !slices.ContainsFunc(out.Notes, func(note string) bool {
			return strings.HasPrefix(note, "waiting pods that get another node: ") && strings.Contains(note, want)
		}) {
			t.Errorf("got %q, want %q", out.Notes, want)
		}
	}
	_, out := assessed(t, tc.Cluster(objects...), forecast.Drain("n1"))
	want := []string{"not evaluated, because of scheduling gates: ml/held", "node n1 is nominated for ml/chosen: the scheduler has to find another node"}
	if !slices.Equal(out.Notes, want) {
		t.Errorf("got %q, want %q", out.Notes, want)
	}
}
