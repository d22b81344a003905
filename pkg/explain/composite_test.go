// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// childGroup returns a gang that needs all of its pods, with a device for each. Those that
// are made first are decided first.
func childGroup(name, parent string, pods int, changes ...func(*corev1.Pod)) []any {
	parts := []any{func(s *snapshot.Snapshot) {
		group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: name, UID: tc.UID(name)}}
		group.CreationTimestamp = metav1.Unix(int64(1000+len(s.PodGroups)), 0)
		group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: int32(pods)}
		if parent != "" {
			group.Spec.ParentCompositePodGroupName = &parent
		}
		s.PodGroups = append(s.PodGroups, group)
		tc.SortObjects(s.PodGroups)
	}}
	for i := range pods {
		parts = append(parts, queuedPodOf(fmt.Sprintf("%s-%d", name, i), "one", time.Hour-time.Duration(i)*time.Second, append(changes, tc.InGroup(name))...))
	}
	return parts
}

// composite returns a CompositePodGroup: a gang of groups if minGroupCount is above 0.
func composite(name string, minGroupCount int32, changes ...func(*schedulingv1alpha3.CompositePodGroup)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		group := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: name, UID: tc.UID(name)}}
		if minGroupCount > 0 {
			group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha3.CompositeGangSchedulingPolicy{MinGroupCount: minGroupCount}
		}
		for _, change := range changes {
			change(group)
		}
		s.CompositePodGroups = append(s.CompositePodGroups, group)
		tc.SortObjects(s.CompositePodGroups)
	}
}

// TestCompositePodGroups asks about PodGroup workers of three pods, which is placed with
// other groups, on two nodes with two devices each.
func TestCompositePodGroups(t *testing.T) {
	below := func(parent string) func(*schedulingv1alpha3.CompositePodGroup) {
		return func(g *schedulingv1alpha3.CompositePodGroup) { g.Spec.ParentCompositePodGroupName = &parent }
	}
	for name, test := range map[string]struct {
		parts   []any
		gates   tc.Gates
		verdict api.Verdict
		code    api.Code
		stage   api.Stage
		summary string
		// composites are the groups that fit of those that there are, for each.
		composites string
	}{
		"both fit": {
			parts:   append(append(childGroup("workers", "training", 3), childGroup("one", "training", 1)...), composite("training", 2)),
			verdict: api.Fits, composites: "training 2 of 2 true",
		},
		"the other one does not fit": {
			parts:   append(append(childGroup("workers", "training", 3), childGroup("two", "training", 2)...), composite("training", 2)),
			verdict: api.Blocked, code: api.GangIncomplete, stage: api.StageAllocation, composites: "training 1 of 2 false",
			summary: "1 of 2 groups of CompositePodGroup training fit, minGroupCount is 2: not enough pods of two do",
		},
		"the other one comes first": {
			parts:   append(append(childGroup("two", "training", 2), childGroup("workers", "training", 3)...), composite("training", 1)),
			verdict: api.Blocked, code: api.GangIncomplete, stage: api.StageAllocation, composites: "training 1 of 2 true",
			summary: "2 of 3 pods of PodGroup workers fit, minCount is 3",
		},
		"the other one is not needed": {
			parts:   append(append(childGroup("workers", "training", 3), childGroup("two", "training", 2)...), composite("training", 1)),
			verdict: api.Fits, composites: "training 1 of 2 true",
		},
		"one group is enough where it is no gang": {
			parts:   append(append(childGroup("workers", "training", 3), childGroup("two", "training", 2)...), composite("training", 0)),
			verdict: api.Fits, composites: "training 1 of 2 true",
		},
		"a group too few": {
			parts:   append(childGroup("workers", "training", 3), composite("training", 2)),
			verdict: api.Blocked, code: api.GangIncomplete, stage: api.StageQueueing, composites: "training 1 of 1 false",
			summary: "CompositePodGroup training has 1 group with enough pods, minGroupCount is 2",
		},
		"two levels": {
			parts: slices.Concat(childGroup("workers", "left", 3), childGroup("two", "right", 2),
				[]any{composite("left", 1, below("top")), composite("right", 1, below("top")), composite("top", 2)}),
			verdict: api.Blocked, code: api.GangIncomplete, stage: api.StageAllocation, composites: "left 1 of 1 true, top 1 of 2 false",
			summary: "1 of 2 groups of CompositePodGroup top fit, minGroupCount is 2: not enough pods of right do",
		},
		"the parent does not exist": {
			parts:   childGroup("workers", "training", 3),
			verdict: api.Blocked, code: api.PodGroupMissing, stage: api.StageQueueing,
			summary: "CompositePodGroup training, above PodGroup workers, does not exist",
		},
		"a parent that is its own": {
			parts:   append(childGroup("workers", "a", 3), composite("a", 1, below("b")), composite("b", 1, below("a"))),
			verdict: api.Blocked, code: api.PodGroupMissing, stage: api.StageQueueing,
		},
		"another priority": {
			parts: append(childGroup("workers", "training", 3), composite("training", 1, func(g *schedulingv1alpha3.CompositePodGroup) {
				g.Spec.Priority = ptr.To[int32](7)
			})),
			verdict: api.Blocked, code: api.PodGroupMismatch, stage: api.StageQueueing,
			summary: "CompositePodGroup training, pod workers-0 has priority 0 and the group has 7",
		},
		"the gate is off": {
			parts: childGroup("workers", "training", 3), gates: tc.Gates{"GenericWorkload"},
			verdict: api.Fits,
		},
	} {
		t.Run(name, func(t *testing.T) {
			gates := test.gates
			if gates == nil {
				gates = tc.Gates{"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"}
			}
			snap := tc.Cluster(append(test.parts, gates, tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)))...)
			answers := explainEach(t, snap, "PodGroup/workers", "Pod/workers-0")
			for target, e := range answers {
				if e.Verdict != test.verdict || e.Code != test.code || test.stage != "" && e.Stage != test.stage || !strings.Contains(e.Summary, test.summary) {
					t.Errorf("%s: %s, code %s, stage %s: %s", target, e.Verdict, e.Code, e.Stage, e.Summary)
				}
				if slices.ContainsFunc(e.Assumptions, func(a string) bool { return strings.Contains(a, "CompositePodGroup") }) {
					t.Errorf("%s: assumptions %q", target, e.Assumptions)
				}
			}
			group := answers["PodGroup/workers"].Members.Group
			if want := test.verdict == api.Fits; group.Fits != want {
				t.Errorf("the group fits: %t, want %t", group.Fits, want)
			}
			var composites []string
			for _, c := range group.Composites {
				composites = append(composites, fmt.Sprintf("%s %d of %d %t", c.Name, c.Fit, c.Groups, c.Fits))
			}
			if got := strings.Join(composites, ", "); got != test.composites {
				t.Errorf("composites %s, want %s", got, test.composites)
			}
		})
	}
}

// TestCompositeTakesNothing covers a CompositePodGroup of which too few groups fit: a later
// pod gets the available devices, even the devices for the group that fits.
func TestCompositeTakesNothing(t *testing.T) {
	parts := slices.Concat(childGroup("workers", "training", 1), childGroup("two", "training", 2), []any{
		composite("training", 2),
		tc.Gates{"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"},
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)), tc.Template("both", tc.GPUs("gpu", 2)), queuedPodOf("late", "both", time.Minute),
	})
	found := explainEach(t, tc.Cluster(parts...), "PodGroup/workers", "Pod/late")
	if e := found["Pod/late"]; e.Verdict != api.Fits {
		t.Errorf("the later pod: %s: %s", e.Verdict, e.Summary)
	}
	if e := found["PodGroup/workers"]; e.Verdict != api.Blocked {
		t.Errorf("the group that fits: %s: %s", e.Verdict, e.Summary)
	}
}

// TestCompositeUnknown asks where CompositePodGroups could not be read, and where a
// topology decides.
func TestCompositeUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		part any
		want string
	}{
		"not in the file": {func(s *snapshot.Snapshot) { s.Listed = nil }, "not evaluated: the other groups of CompositePodGroup training, with which the scheduler places PodGroup workers or none (the snapshot does not have them)"},
		"forbidden":       {tc.Gap(snapshot.ResourceCompositePodGroups, "this user may not list them"), "not evaluated: the other groups of CompositePodGroup training, with which the scheduler places PodGroup workers or none (this user may not list them)"},
		"a topology": {composite("training", 1, func(g *schedulingv1alpha3.CompositePodGroup) {
			g.Spec.SchedulingConstraints = &schedulingv1alpha3.CompositePodGroupSchedulingConstraints{}
		}), "not evaluated: the topology constraints of CompositePodGroup training"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(childGroup("workers", "training", 1), test.part, tc.Gates{"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"},
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)))...)
			e := explainEach(t, snap, "PodGroup/workers")["PodGroup/workers"]
			var found []string
			for _, a := range e.Assumptions {
				if strings.Contains(a, "CompositePodGroup") {
					found = append(found, a)
				}
			}
			if e.Verdict != api.Fits || !slices.Equal(found, []string{test.want}) {
				t.Errorf("%s: %s; assumptions %q", e.Verdict, e.Summary, found)
			}
		})
	}
}
