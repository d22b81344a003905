// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestReleases asks about the same pod in clusters of different releases: each line
// of the table of behavior has a case. What the schedulers of these releases do is
// compared by `make test-releases`.
func TestReleases(t *testing.T) {
	all := []any{tc.Claim("c", tc.GPUs("gpus", 0).All()), tc.Pod("p", tc.Using("c"))}
	one := []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c"))}
	two := tc.Nodes("n1", "n2")
	parts := tc.Gates{cluster.GatePartitionableDevices, cluster.GateDeviceTaints, cluster.GateConsumableCapacity}
	tests := map[string]struct {
		behavior cluster.Behavior
		objects  []any
		pod      []any
		// want is the verdict by version. An empty version is one that is not known.
		want map[string]api.Verdict
		// says is a part of the summary or the assumptions, by version.
		says map[string]string
	}{
		"all devices, and a node with an incomplete pool": {
			behavior: cluster.AllPoolErrorEndsAttempt,
			objects:  []any{two, tc.Pool("n1", tc.Device("d")).Of(2), tc.Pool("n2", tc.Device("d"))}, pod: all,
			want: map[string]api.Verdict{"v1.36.6": api.Error, "v1.37.2": api.Error, "v1.38.0": api.Fits, "": api.Undetermined},
			says: map[string]string{"": "kubernetes/kubernetes#141898"},
		},
		"all devices, and nothing but an incomplete pool": {
			behavior: cluster.AllPoolErrorEndsAttempt,
			objects:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("d")).Of(2)}, pod: all,
			want: map[string]api.Verdict{"v1.37.2": api.Error, "v1.38.0": api.DoesNotFit, "": api.Error},
			says: map[string]string{"": "kubernetes/kubernetes#141898"},
		},
		"all devices, of which one consumes counters": {
			behavior: cluster.AllWithCountersPanics,
			objects: []any{
				tc.Nodes("n1"),
				tc.Gates{cluster.GatePartitionableDevices},
				tc.Pool("n1", tc.Device("d").Consuming("card", "memory=1Gi")).Of(2),
				tc.Pool("n1").Of(2).WithCounters("card", "memory=1Gi"),
			}, pod: all,
			want: map[string]api.Verdict{"v1.35.5": api.Error, "v1.35.6": api.Fits, "v1.36.1": api.Error, "v1.36.2": api.Fits, "v1.37.0": api.Fits, "": api.Undetermined},
			says: map[string]string{"v1.35.5": "kubernetes/kubernetes#138885", "": "kubernetes/kubernetes#138885"},
		},
		"a claim that is allocated, one that is not, and two nodes": {
			behavior: cluster.MixedClaimsFailScore,
			objects: []any{
				two, tc.Slice("", tc.Driver, "net", tc.Device("d")).OnAllNodes(), tc.Pool("n1", tc.Device("d")), tc.Pool("n2", tc.Device("d")),
				tc.Claim("net", tc.GPUs("r", 1)).Holding(tc.Driver + "/net/d"),
			},
			pod:  []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("net", "c"))},
			want: map[string]api.Verdict{"v1.35.5": api.Error, "v1.35.6": api.Fits, "v1.36.1": api.Error, "v1.36.2": api.Fits, "": api.Undetermined},
			says: map[string]string{"v1.36.1": "kubernetes/kubernetes#139017", "": "kubernetes/kubernetes#139017"},
		},
		"three devices of which two have the same value, which have to be distinct": {
			behavior: cluster.DistinctPerRequest,
			objects:  []any{tc.Nodes("n1"), tc.Gates{cluster.GateConsumableCapacity}, tc.Pool("n1", tc.Device("a", "side=left"), tc.Device("b", "side=right"), tc.Device("c", "side=left"))},
			pod:      []any{tc.Claim("c", tc.GPUs("gpus", 3)).Distinct(tc.Driver + "/side"), tc.Pod("p", tc.Using("c"))},
			want:     map[string]api.Verdict{"v1.36.6": api.Fits, "v1.37.0": api.DoesNotFit, "": api.DoesNotFit},
			says:     map[string]string{"v1.36.6": "kubernetes/kubernetes#140600", "": "kubernetes/kubernetes#140600"},
		},
		"two devices with the same value, which have to be distinct": {
			behavior: cluster.DistinctPerRequest,
			objects:  []any{tc.Nodes("n1"), tc.Gates{cluster.GateConsumableCapacity}, tc.Pool("n1", tc.Device("a", "side=left"), tc.Device("b", "side=left"))},
			pod:      []any{tc.Claim("c", tc.GPUs("gpus", 2)).Distinct(tc.Driver + "/side"), tc.Pod("p", tc.Using("c"))},
			want:     map[string]api.Verdict{"v1.36.6": api.DoesNotFit},
		},
		"a tainted partition before another one": {
			behavior: cluster.RejectedKeepsCounters,
			objects: []any{tc.Nodes("n1"), parts, tc.Pool("n1",
				tc.Device("a").Consuming("card", "memory=2Gi").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule),
				tc.Device("b").Consuming("card", "memory=2Gi")).Of(2), tc.Pool("n1").Of(2).WithCounters("card", "memory=3Gi")},
			pod:  one,
			want: map[string]api.Verdict{"v1.35.10": api.DoesNotFit, "v1.36.2": api.DoesNotFit, "v1.36.3": api.Fits, "": api.Fits},
			says: map[string]string{"v1.36.2": "kubernetes/kubernetes#140431, fixed in 1.36.3"},
		},
		"partitions of two drivers in pools with one name": {
			behavior: cluster.CountersByPoolName,
			objects: []any{
				tc.Nodes("n1"), parts, tc.Class("nics", "nic.example.com"),
				tc.Pool("n1", tc.Device("a").Consuming("card", "memory=2Gi")).Of(2), tc.Pool("n1").Of(2).WithCounters("card", "memory=3Gi"),
				tc.Slice("nic-a", "nic.example.com", "n1", tc.Device("a").Consuming("card", "memory=2Gi")).OnNode("n1").Of(2),
				tc.Slice("nic-b", "nic.example.com", "n1").OnNode("n1").Of(2).WithCounters("card", "memory=3Gi"),
			},
			pod:  []any{tc.Claim("c", tc.GPUs("gpu", 1), tc.Request("nic", "nics", 1)), tc.Pod("p", tc.Using("c"))},
			want: map[string]api.Verdict{"v1.36.3": api.DoesNotFit, "v1.36.4": api.Fits, "": api.Fits},
			says: map[string]string{"v1.36.3": "kubernetes/kubernetes#140435, fixed in 1.36.4"},
		},
		"a partition beside one that is shared": {
			behavior: cluster.SharesNotCharged,
			objects: []any{
				tc.Nodes("n1"), parts, tc.Pool("n1",
					tc.Device("a", "memory:=2Gi", "kind=whole").Consuming("card", "memory=2Gi").Shareable(),
					tc.Device("b", "kind=part").Consuming("card", "memory=2Gi")).Of(2), tc.Pool("n1").Of(2).WithCounters("card", "memory=3Gi"),
				tc.Sharing("other", "n1", "a", "memory", "1Gi"),
			},
			pod:  []any{tc.Claim("c", tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].kind == "part"`)), tc.Pod("p", tc.Using("c"))},
			want: map[string]api.Verdict{"v1.36.1": api.Fits, "v1.36.2": api.DoesNotFit, "": api.DoesNotFit},
			says: map[string]string{"v1.36.1": "kubernetes/kubernetes#139040, fixed in 1.36.2"},
		},
		"one more share of a partition without capacity": {
			behavior: cluster.SharesChargedTwice,
			objects: []any{
				tc.Nodes("n1"), parts, tc.Pool("n1", tc.Device("a").Consuming("card", "memory=2Gi").Shareable()).Of(2), tc.Pool("n1").Of(2).WithCounters("card", "memory=3Gi"),
				tc.Serving("other", "n1", "a").Change(func(c *resourceapi.ResourceClaim) {
					c.Status.Allocation.Devices.Results[0].ShareID = ptr.To(types.UID("share"))
				}),
			},
			pod:  one,
			want: map[string]api.Verdict{"v1.36.1": api.Fits, "v1.36.2": api.DoesNotFit, "v1.36.6": api.DoesNotFit, "v1.37.0": api.Fits, "": api.Fits},
			says: map[string]string{"v1.36.6": "kubernetes/kubernetes#140437, fixed in 1.37.0"},
		},
		"all devices, of which one has no capacity left": {
			behavior: cluster.AllLeavesOutFull,
			objects: []any{
				tc.Nodes("n1"),
				tc.Gates{cluster.GateConsumableCapacity},
				tc.Pool("n1", tc.Device("a", "memory:=2Gi").Shareable(), tc.Device("b", "memory:=2Gi").Shareable()),
				tc.Sharing("other", "n1", "a", "memory", "2Gi"),
			},
			pod:  []any{tc.Claim("c", tc.GPUs("gpus", 0).All().WithCapacity("memory", "1Gi")), tc.Pod("p", tc.Using("c"))},
			want: map[string]api.Verdict{"v1.36.6": api.Fits, "v1.37.0": api.DoesNotFit, "": api.DoesNotFit},
			says: map[string]string{"v1.36.6": "kubernetes/kubernetes#140769, fixed in 1.37.0"},
		},
		"capacity beyond the largest number": {
			behavior: cluster.CapacityWraps,
			objects: []any{tc.Nodes("n1"), tc.Gates{cluster.GateConsumableCapacity}, tc.Pool("n1", tc.Device("a").Shareable().Change(func(d *resourceapi.Device) {
				d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("10"), RequestPolicy: &resourceapi.CapacityRequestPolicy{
					Default: ptr.To(resource.MustParse("0")), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("0")), Step: ptr.To(resource.MustParse("2"))},
				}}}
			}))},
			pod:  []any{tc.Claim("c", tc.GPUs("gpu", 1).WithCapacity("memory", "9223372036854775807")), tc.Pod("p", tc.Using("c"))},
			want: map[string]api.Verdict{"v1.36.6": api.Fits, "v1.37.0": api.Error, "": api.Error},
			says: map[string]string{"v1.36.6": "kubernetes/kubernetes#140442, fixed in 1.37.0"},
		},
		"all devices, and an incomplete pool with counters on another node": {
			behavior: cluster.CountersConcernAll,
			objects: []any{
				two, parts, tc.Pool("n1", tc.Device("a")),
				tc.Slice("", tc.Driver, "other").OnNode("n2").Of(3).WithCounters("card", "memory=3Gi"),
			},
			pod: []any{tc.Claim("c", tc.GPUs("gpus", 0).All()), tc.Pod("p", tc.Using("c"), func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
			})},
			want: map[string]api.Verdict{"v1.36.6": api.Error, "v1.37.2": api.Fits, "": api.Fits},
		},
		"counts whose sum is negative": {
			behavior: cluster.CountsOverflow,
			objects:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"))},
			pod:      []any{tc.Claim("c", tc.GPUs("a", math.MaxInt64), tc.GPUs("b", math.MaxInt64)), tc.Pod("p", tc.Using("c"))},
			want:     map[string]api.Verdict{"v1.36.4": api.Error, "v1.36.5": api.Error},
			says:     map[string]string{"v1.36.4": "panics", "v1.36.5": "at most 32 devices"},
		},
		"alternatives that ask for all devices": {
			behavior: cluster.AlternativesMixedUp,
			objects:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "size=small"), tc.Device("b", "size=small"))},
			pod: []any{tc.Claim("c", tc.FirstAvailable("gpu",
				tc.GPUs("large", 0, `device.attributes["gpu.example.com"].size == "large"`).All(), tc.GPUs("small", 0).All())), tc.Pod("p", tc.Using("c"))},
			want: map[string]api.Verdict{"v1.35.10": api.DoesNotFit, "v1.36.0": api.Fits, "": api.Fits},
			says: map[string]string{"v1.35.10": "kubernetes/kubernetes#137347, fixed in 1.36.0"},
		},
		"lists with a value in common": {
			behavior: cluster.ListsNotCompared,
			objects:  []any{tc.Nodes("n1"), tc.Gate("DRAListTypeAttributes", true), tc.Pool("n1", tc.Device("a").WithList("root", "x", "y"), tc.Device("b").WithList("root", "y", "z"))},
			pod:      []any{tc.Claim("c", tc.GPUs("gpus", 2)).Matching(tc.Driver + "/root"), tc.Pod("p", tc.Using("c"))},
			want:     map[string]api.Verdict{"v1.36.6": api.DoesNotFit, "v1.37.0": api.Fits, "": api.Fits},
			says:     map[string]string{"v1.36.6": "kubernetes/kubernetes#139332", "": "kubernetes/kubernetes#139332"},
		},
		"one device": {
			behavior: cluster.UnsortedPools,
			objects:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("d"))}, pod: one,
			want: map[string]api.Verdict{"v1.35.5": api.Fits, "v1.36.0": api.Fits},
			says: map[string]string{"v1.35.5": "in random order"},
		},
		"a PodGroup and a pod of another priority": {
			behavior: cluster.GroupsNotCompared,
			objects:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("d")), podGroup(1), tc.Gates{"GenericWorkload"}},
			pod:      []any{tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c"), tc.InGroup("workers"), func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](5) })},
			want:     map[string]api.Verdict{"v1.36.6": api.Fits, "v1.37.0": api.Blocked},
			says:     map[string]string{"v1.37.0": "pod of a group whose priorities differ"},
		},
	}
	// [cluster.Permutes] changes no verdict. TestTimeoutByRelease, TestOpenRules, and TestExtendedEvictions in pkg/cluster.
	tested := map[cluster.Behavior]bool{cluster.TimeoutEndsAttempt: true, cluster.OpenRuleTaintsAll: true, cluster.ExtendedNotEvicted: true, cluster.Permutes: true}
	for name, test := range tests {
		tested[test.behavior] = true
		for version, want := range test.want {
			t.Run(name+"/"+version, func(t *testing.T) {
				snap := tc.Cluster(slices.Concat(test.objects, test.pod)...)
				snap.ServerVersion = version
				e := whyPod(t, snap)
				if e.Verdict != want {
					t.Errorf("verdict %s (%s), want %s", e.Verdict, e.Summary, want)
				}
				if text := e.Summary + "\n" + strings.Join(e.Assumptions, "\n"); !strings.Contains(text, test.says[version]) {
					t.Errorf("it does not say %q:\n%s", test.says[version], text)
				}
			})
		}
	}
	for _, change := range cluster.BehaviorChanges() {
		if !tested[change.Behavior] {
			t.Errorf("no case is about %s", change.Behavior)
		}
	}
}

// TestMessagesProveBugs covers what the scheduler wrote about a pod, whatever the version
// says.
func TestMessagesProveBugs(t *testing.T) {
	const scored = `running Score plugins: plugin "DynamicResources" failed with: number of allocations 1 is smaller than number of claims`
	broken := `running "DynamicResources" filter plugin: claim ml/c, request gpus: asks for all devices, but resource pool gpu.example.com/n1 is currently being updated`
	two := tc.Nodes("n1", "n2")
	mixed := []any{
		two, tc.Slice("", tc.Driver, "net", tc.Device("d")).OnAllNodes(), tc.Pool("n1", tc.Device("d")), tc.Pool("n2", tc.Device("d")),
		tc.Claim("net", tc.GPUs("r", 1)).Holding(tc.Driver + "/net/d"), tc.Claim("c", tc.GPUs("gpu", 1)),
	}
	all := []any{two, tc.Pool("n1", tc.Device("d")).Of(2), tc.Pool("n2", tc.Device("d")), tc.Claim("c", tc.GPUs("gpus", 0).All())}
	for name, test := range map[string]struct {
		version, message string
		objects          []any
		claims           []string
		want             api.Verdict
		says             string
	}{
		"no message, no version":                {objects: mixed, claims: []string{"net", "c"}, want: api.Undetermined},
		"no version":                            {message: scored, objects: mixed, claims: []string{"net", "c"}, want: api.Error, says: "its message about pod p proves, kube-scheduler fails to score"},
		"a version that is said to do it right": {version: "v1.37.1", message: scored, objects: mixed, claims: []string{"net", "c"}, want: api.Error, says: "kubernetes/kubernetes#139017, fixed in 1.35.6 and 1.36.2"},
		"the message of the fix":                {version: "v1.37.1", message: scored + " needing allocation", objects: mixed, claims: []string{"net", "c"}, want: api.Fits},
		"an attempt that ended":                 {message: broken, objects: all, claims: []string{"c"}, want: api.Error},
		"an attempt that may have ended":        {objects: all, claims: []string{"c"}, want: api.Undetermined},
		"an error of one node":                  {version: "v1.38.0", message: "0/2 nodes are available: 2 claim ml/c, request gpus: asks for all devices, but resource pool x is currently being updated", objects: all, claims: []string{"c"}, want: api.Fits},
	} {
		t.Run(name, func(t *testing.T) {
			pod := tc.Pod("p", tc.Using(test.claims...), func(p *corev1.Pod) {
				if test.message != "" {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulerError", Message: test.message}}
				}
			})
			snap := tc.Cluster(append(slices.Clone(test.objects), pod)...)
			snap.ServerVersion = test.version
			e := whyPod(t, snap)
			if e.Verdict != test.want || !strings.Contains(e.Summary, test.says) {
				t.Errorf("verdict %s (%s), want %s with %q", e.Verdict, e.Summary, test.want, test.says)
			}
		})
	}
}

// TestOpenRules covers a DeviceTaintRule without a selector.
func TestOpenRules(t *testing.T) {
	rule := tc.TaintRule("open", "", "", "")
	rule.Spec.DeviceSelector = nil
	gates := []any{tc.Gate("DRADeviceTaints", true), tc.Gate("DRADeviceTaintRules", true)}
	for version, want := range map[string]api.Verdict{"v1.35.10": api.DoesNotFit, "v1.36.6": api.DoesNotFit, "v1.37.0": api.DoesNotFit, "v1.37.1": api.Fits, "": api.Undetermined} {
		t.Run(version, func(t *testing.T) {
			snap := tc.Cluster(append(slices.Clone(gates), tc.Nodes("n1"), tc.Pool("n1", tc.Device("d")), rule, tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c")))...)
			snap.ServerVersion = version
			e := whyPod(t, snap)
			if e.Verdict != want {
				t.Errorf("verdict %s (%s), want %s", e.Verdict, e.Summary, want)
			}
			said := e.Summary
			for _, hint := range e.Hints {
				said += "\n" + hint.Text
			}
			if want != api.Fits && !strings.Contains(said, cluster.New(snap).Taints.OpenRuleText(rule)) {
				t.Errorf("it does not name the rule:\n%s", said)
			}
		})
	}
}

// TestReleaseOfKubelets asks about files without a version, whose kubelets leave some releases.
func TestReleaseOfKubelets(t *testing.T) {
	mixed := []any{
		tc.Slice("", tc.Driver, "net", tc.Device("d")).OnAllNodes(), tc.Pool("n1", tc.Device("d")), tc.Pool("n2", tc.Device("d")),
		tc.Claim("net", tc.GPUs("r", 1)).Holding(tc.Driver + "/net/d"), tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("net", "c")),
	}
	distinct := []any{
		tc.Gates{cluster.GateConsumableCapacity},
		tc.Pool("n1", tc.Device("a", "side=left"), tc.Device("b", "side=right"), tc.Device("c", "side=left")),
		tc.Claim("c", tc.GPUs("gpus", 3)).Distinct(tc.Driver + "/side"), tc.Pod("p", tc.Using("c")),
	}
	for name, test := range map[string]struct {
		version  string
		kubelets []string
		objects  []any
		want     api.Verdict
		says     string
	}{
		"a bug that none of them has":       {kubelets: []string{"v1.37.0", "v1.36.1"}, objects: mixed, want: api.Fits, says: "so it has 1.37 to 1.39"},
		"a bug that some of them have":      {kubelets: []string{"v1.36.5", "v1.36.5"}, objects: mixed, want: api.Undetermined, says: "assumed that it is 1.36"},
		"a bug that all of them have":       {kubelets: []string{"v1.36.5", "v1.33.0"}, objects: distinct, want: api.Fits, says: "kubernetes/kubernetes#140600"},
		"a bug that later ones do not have": {kubelets: []string{"v1.36.5", "v1.36.5"}, objects: distinct, want: api.Fits, says: "kubernetes/kubernetes#140600"},
		"a release that is not supported":   {version: "v1.34.2", kubelets: []string{"v1.34.2", "v1.34.2"}, objects: mixed, want: api.Fits, says: "Kubernetes 1.34 is not supported: answered as 1.35"},
		"kubelets that are not supported":   {kubelets: []string{"v1.33.2", "v1.33.2"}, objects: mixed, want: api.Undetermined, says: "1.33 to 1.36"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1", "n2")}, test.objects...)...)
			for i, version := range test.kubelets {
				snap.Nodes[i].Status.NodeInfo.KubeletVersion = version
			}
			if snap.ServerVersion = test.version; test.version == "" {
				snap.Skew = snapshot.SkewOf(snap.Nodes)
			}
			e := whyPod(t, snap)
			if e.Verdict != test.want {
				t.Errorf("verdict %s (%s), want %s", e.Verdict, e.Summary, test.want)
			}
			if text := e.Summary + "\n" + strings.Join(e.Assumptions, "\n"); !strings.Contains(text, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, text)
			}
		})
	}
}

// TestTimeoutByRelease covers a node where the allocator does not end in time, nor does
// counting know, and another one where the claim fits.
func TestTimeoutByRelease(t *testing.T) {
	for version, want := range map[string]api.Verdict{"v1.35.5": api.Fits, "v1.36.0": api.Undetermined, "": api.Undetermined} {
		t.Run(version, func(t *testing.T) {
			uncountable := tc.Device("d", "memory:=7E").Shareable()
			snap := tc.Cluster(tc.Nodes("n1", "n2"), tc.Gates{cluster.GateConsumableCapacity},
				tc.Pool("n1", tc.Copies(24, uncountable)...), tc.Pool("n2", tc.Copies(25, uncountable)...),
				tc.Claim("c", tc.GPUs("gpus", 25)), tc.Pod("p", tc.Using("c")))
			snap.ServerVersion = version
			c := allocator.Reopen(cluster.New(snap), allocator.WithTimeout(300*time.Millisecond))
			e, err := ExplainWith(t.Context(), c, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != want {
				t.Errorf("verdict %s (%s), want %s", e.Verdict, e.Summary, want)
			}
		})
	}
}

func whyPod(t *testing.T, snap *snapshot.Snapshot) *api.Explanation {
	t.Helper()
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPoolOrder covers a request for all devices with a constraint, which fails or does not
// fit as the order of the pools has it; the stable implementation has none.
func TestPoolOrder(t *testing.T) {
	claim := tc.Claim("c", tc.GPUs("gpus", 0).All())
	for name, test := range map[string]struct {
		objects []any
		want    bool
	}{
		"stable":              {[]any{claim.Matching(tc.Driver + "/side"), tc.Gate("DRAConsumableCapacity", false), tc.Gate("DRADeviceBindingConditions", false)}, true},
		"without constraints": {[]any{claim, tc.Gate("DRAConsumableCapacity", false), tc.Gate("DRADeviceBindingConditions", false)}, false},
		"incubating":          {[]any{claim.Matching(tc.Driver + "/side"), tc.Gate("DRAConsumableCapacity", true)}, false},
	} {
		snap := tc.Cluster(append(test.objects, tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "side=left"), tc.Device("b", "side=right")), tc.Pod("p", tc.Using("c")))...)
		snap.ServerVersion = "v1.37.1"
		e := whyPod(t, snap)
		if got := slices.ContainsFunc(e.Assumptions, func(a string) bool { return strings.Contains(a, "in random order") }); got != test.want {
			t.Errorf("%s (%s): said %v, want %v: %q", name, e.Allocator.Channel, got, test.want, e.Assumptions)
		}
	}
}
