// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// usedOn adds a pod that runs on a node, and whose claim has a device of it.
func usedOn(node, pod string) []any {
	return []any{
		tc.Claim(pod, tc.GPUs("gpu", 1)).Holding(node+"/gpu-0").ReservedFor(pod, string(tc.UID(pod))),
		tc.Pod(pod, tc.UsingClaim("gpu", pod), tc.RunningOn(node), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}),
	}
}

// harmful is advice that ends what runs, or leaves something undone that a finalizer
// stands for.
var harmful = regexp.MustCompile(`(?i)\b(delete|recreate|end|evict|move)( and recreate)? (the |that |running |one of the |all )*pods?\b|--force|\bremove [^.;:]*finalizer|\bsee (who|what|which|whether)\b`)

// TestDriverThatIsAway covers one finding for a driver and all nodes that it is away from,
// whatever its plugin is like there, and leaves the pods alone.
func TestDriverThatIsAway(t *testing.T) {
	crashes := func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			if pod.Name == "driver-n2" {
				pod.Status.Conditions = nil
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "plugin", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
			}
		}
	}
	cluster := slices.Concat([]any{tc.Nodes("n1", "n2", "n3"), tc.Pool("n1", tc.Devices(1)...), daemonSet(2, "n1", "n2"), crashes}, usedOn("n2", "two"), usedOn("n3", "three"))
	snap := tc.Cluster(cluster...)
	found := diagnose(t, snap, Options{})
	if len(found.Findings) != 1 || found.Findings[0].Code != codeAway {
		t.Fatalf("not one finding: %+v", found.Findings)
	}
	f := found.Findings[0]
	for _, part := range []string{"n2, n3", "2 devices of 2 claims", "driver-n2 is not ready: container plugin: CrashLoopBackOff", "has no pod on node n3"} {
		if !strings.Contains(f.Message, part) {
			t.Errorf("%q lacks %q", f.Message, part)
		}
	}
	if !strings.Contains(f.Remedy.Text, "leave the pods alone") || !slices.Equal(f.Remedy.Commands, []string{"kubectl get pods -n driver -l app=driver -o wide"}) {
		t.Errorf("remedy %+v", f.Remedy)
	}
	// A pod that has not started waits for the driver, which is the same finding.
	snap = tc.Cluster(append(cluster, func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			if pod.Name == "three" {
				pod.Status.Phase = corev1.PodPending
			}
		}
	})...)
	found = diagnose(t, snap, Options{})
	if len(found.Findings) != 1 || !strings.HasSuffix(found.Findings[0].Message, "1 pod that is yet to start waits for it") {
		t.Errorf("with a pod that waits: %+v", found.Findings)
	}
}

// TestDriverThatIsNotAway expects no finding where slices were not read, and where the
// driver says that it moved the device into the pod.
func TestDriverThatIsNotAway(t *testing.T) {
	moved := func(s *snapshot.Snapshot) {
		for _, claim := range s.Claims {
			*claim = *tc.ClaimWrapper{ResourceClaim: claim}.Reported("gpu-0", "", nil, "Ready=True").ResourceClaim
			claim.Status.Devices[0].Pool = "n2"
		}
	}
	for name, change := range map[string]any{
		"slices were not read": snapshot.Gap{Resource: snapshot.ResourceSlices, Reason: "no rights"},
		"moved":                moved,
	} {
		snap := tc.Cluster(slices.Concat([]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...)}, usedOn("n2", "p"), []any{change})...)
		for _, f := range diagnose(t, snap, Options{Choice: checks.Choice{Only: []string{codeAway, codeGone, "DRA1603"}}}).Findings {
			if f.Severity != api.SeverityUnknown {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// TestAdviceDoesNoHarm looks at what all checks advise, in their pages and findings.
func TestAdviceDoesNoHarm(t *testing.T) {
	for _, check := range Checks() {
		if found := harmful.FindString(check.Advice); found != "" {
			t.Errorf("%s advises %q: %s", check.Code, found, check.Advice)
		}
	}
	for name, cluster := range map[string][]any{
		"allocated twice":    slices.Concat(usedOn("n1", "a"), usedOn("n1", "b")),
		"the device is gone": {tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n1/gone").ReservedFor("p", string(tc.UID("p"))), tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn("n1"))},
		"a claim is kept":    {tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").ReservedFor("p", string(tc.UID("p"))).Deleted("example.com/x", resourceapi.Finalizer), tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn("n1"))},
		"unhealthy": append(usedOn("n1", "p"), func(s *snapshot.Snapshot) {
			tc.ReportedHealth("gpu", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "ECC")(s.Pods[0])
		}),
		"a pod is not started": {notPrepared},
	} {
		found := diagnose(t, tc.Cluster(append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...)}, cluster...)...), Options{})
		if len(found.Findings) == 0 {
			t.Errorf("%s: nothing found", name)
		}
		for _, f := range found.Findings {
			if f.Remedy == nil || harmful.MatchString(f.Remedy.Text) || slices.ContainsFunc(f.Remedy.Commands, harmful.MatchString) {
				t.Errorf("%s: %s: %+v", name, f.Message, f.Remedy)
			}
		}
	}
}

// TestWholeBesideParts tells devices of one piece of hardware from others.
func TestWholeBesideParts(t *testing.T) {
	whole, part := tc.Device("gpu-0", "uuid=GPU-1"), tc.Device("part", "uuid=MIG-1")
	only := Options{Choice: checks.Choice{Only: []string{"DRA1214"}}}
	for name, test := range map[string]struct {
		pool []any
		want bool
	}{
		"by UUID":                {[]any{tc.Pool("n1", whole, part.With("parentUUID=GPU-1"))}, true},
		"by name":                {[]any{tc.Pool("n1", whole, part.With("parentDevice=gpu-0"))}, true},
		"by an index":            {[]any{tc.Pool("n1", whole.WithInt("index", 3), part.WithInt("parentIndex", 3))}, true},
		"of another domain":      {[]any{tc.Pool("n1", whole, part.With("example.com/parentUUID=GPU-1"))}, true},
		"the whole is not there": {[]any{tc.Pool("n1", whole, part.With("parentUUID=GPU-2"))}, false},
		"in another pool":        {[]any{tc.Pool("n1", whole), tc.Pool("n2", part.With("parentDevice=gpu-0"))}, false},
		"with shared counters": {[]any{tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Pool("n1",
			whole.Consuming("board", "slices=4"), part.With("parentUUID=GPU-1").Consuming("board", "slices=1")).Of(2)}, false},
		"with counters of their own": {[]any{tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Pool("n1",
			whole, part.With("parentUUID=GPU-1").Consuming("board", "slices=1")).Of(2)}, true},
	} {
		found := diagnose(t, tc.Cluster(append(test.pool, tc.Nodes("n1", "n2"))...), only)
		if (len(found.Findings) == 1) != test.want {
			t.Errorf("%s: %+v", name, found.Findings)
		}
	}
}

// TestClassSelectorThatFails asks the allocator what a selector that fails does.
func TestClassSelectorThatFails(t *testing.T) {
	fails := tc.ClassWhere("kind", `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].kind == "good"`)
	good, bare := tc.Device("a", "kind=good"), tc.Device("b")
	only := Options{Choice: checks.Choice{Only: []string{"DRA1302"}}}
	for name, test := range map[string]struct {
		devices []tc.DeviceWrapper
		says    string
	}{
		"after one that matches":  {[]tc.DeviceWrapper{good, bare}, "a request for one device is allocated before the search gets there; one for all devices of node n1 fails"},
		"before one that matches": {[]tc.DeviceWrapper{bare.Change(func(d *resourceapi.Device) { d.Name = "0" }), good}, "a request for one device gets there on node n1 and fails"},
	} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", test.devices...), fails), only).Findings
		if len(found) != 1 || !strings.Contains(found[0].Message, test.says) {
			t.Errorf("%s: %+v", name, found)
		} else if !strings.Contains(found[0].Remedy.Text, `has(device.attributes["gpu.example.com"].kind) &&`) {
			t.Errorf("%s: the remedy does not guard the attribute: %s", name, found[0].Remedy.Text)
		}
	}
}

// TestClassSelectorThatDoesNotCompile does not blame a selector that a newer release may know.
func TestClassSelectorThatDoesNotCompile(t *testing.T) {
	only := Options{Choice: checks.Choice{Only: []string{"DRA1302"}}}
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.ClassWhere("newer", "device.model == 'A100'"))
	found := diagnose(t, snap, only).Findings
	if len(found) != 1 || !strings.Contains(found[0].Message, "class newer does not compile: undefined field 'model'") || !strings.Contains(found[0].Remedy.Text, "the API server rejects it") {
		t.Errorf("%+v", found)
	}
	snap.ServerVersion = "v1.38.0"
	if found := diagnose(t, snap, only).Findings; len(found) != 0 {
		t.Errorf("of a newer release: %+v", found)
	}
}
