// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func fromTemplate(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &name}}
	}
}

func deployment(name, template string) any {
	return func(s *snapshot.Snapshot) {
		pod := &corev1.Pod{}
		fromTemplate(template)(pod)
		s.Workloads = append(s.Workloads, &snapshot.Workload{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: name},
			Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template:   corev1.PodTemplateSpec{Spec: pod.Spec},
		})
	}
}

// reserved gives a held claim to a pod of the same namespace.
func reserved(claim, pod string) any {
	return func(s *snapshot.Snapshot) {
		for _, c := range s.Claims {
			if c.Name != claim {
				continue
			}
			c.Namespace = tc.Namespace
			c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: "uid-" + "p"}}
			c.Status.Allocation.AllocationTimestamp = ptr.To(metav1.NewTime(s.TakenAt.Add(-time.Hour)))
		}
	}
}

func TestTargets(t *testing.T) {
	tests := map[string]struct {
		cluster []any
		target  Options
		verdict api.Verdict
		stage   api.Stage
		check   func(t *testing.T, e *api.Explanation)
	}{
		"a complete Job": {
			cluster: []any{deployment("done", "missing"), func(s *snapshot.Snapshot) {
				s.Workloads[0].APIVersion, s.Workloads[0].Kind, s.Workloads[0].End = "batch/v1", "Job", &snapshot.JobEnd{Condition: "Complete"}
			}},
			target:  Options{Object: api.Ref("Job", tc.Namespace, "done")},
			verdict: api.Allocated,
			check: func(t *testing.T, e *api.Explanation) {
				if !e.Finished || e.Members != nil || e.Summary != "The Job is complete and creates no more pods." {
					t.Errorf("finished %v, replicas %v: %s", e.Finished, e.Members, e.Summary)
				}
			},
		},
		"a claim is asked about with the pod that waits for it": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Claim("other", tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting, "other"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"} }),
			},
			target:  Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)},
			verdict: api.DoesNotFit, stage: api.StageAllocation,
			check: func(t *testing.T, e *api.Explanation) {
				if len(e.Claims) != 2 || len(e.Pods) != 1 || e.Pods[0].AgeSeconds != 14*60 {
					t.Errorf("want both claims of the pod, which waits for 14 minutes, got %s", asJSON(e))
				}
			},
		},
		"a claim that nobody uses": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			target:  Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)},
			verdict: api.Fits,
			check: func(t *testing.T, e *api.Explanation) {
				if len(e.NextSteps) != 1 || !strings.Contains(e.NextSteps[0].Text, "no pod uses the claim") {
					t.Errorf("want a hint that the claim waits for a pod, got %v", e.NextSteps)
				}
			},
		},
		"an allocated claim of a running pod": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
				tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }),
			},
			target:  Options{Object: api.Ref(api.KindClaim, tc.Namespace, "have")},
			verdict: api.Allocated, stage: api.StageRunning,
			check: func(t *testing.T, e *api.Explanation) {
				a := e.Claims[0].Allocation
				if a == nil || a.AgeSeconds != 3600 || a.Nodes != "n1" || len(a.ReservedFor) != 1 || a.ReservedFor[0].Argument() != "pod/p" || len(a.Devices) != 1 || a.Devices[0].Missing {
					t.Errorf("wrong allocation %s", asJSON(a))
				}
			},
		},
		"an allocated device that is gone": {
			cluster: []any{tc.Nodes("n1"), tc.Serving("have", "n1", "gpu-7"), reserved("have", "p")},
			target:  Options{Object: api.Ref(api.KindClaim, tc.Namespace, "have")},
			verdict: api.Allocated,
			check: func(t *testing.T, e *api.Explanation) {
				if !e.Claims[0].Allocation.Devices[0].Missing || !strings.Contains(e.Summary, "driver gpu.example.com publishes nothing for node n1 any more: device n1/gpu-7 of claim ml/have is no longer in any ResourceSlice") {
					t.Errorf("the missing device is not named: %s", e.Summary)
				}
			},
		},
		"a bound pod that is not running": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
				tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName = "n1" }),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Allocated, stage: api.StagePreparation,
		},
		"a bound pod without a reservation": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "q"),
				tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName, p.UID = "n1", "uid-new" }),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Blocked, stage: api.StageReservation,
		},
		"a pod whose claim is not made yet": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), tc.Pod("p", fromTemplate("one"))},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Fits, stage: api.StageClaimGeneration,
		},
		"a pod whose template is missing": {
			cluster: []any{tc.Nodes("n1"), tc.Template("one", tc.GPUs("gpu", 1)), tc.Pod("p", fromTemplate("ones"))},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Error, stage: api.StageClaimGeneration,
			check: func(t *testing.T, e *api.Explanation) {
				if !strings.Contains(e.Summary, "did you mean one?") {
					t.Errorf("no suggestion in %q", e.Summary)
				}
			},
		},
		"a pod with a template that is missing and one that is not": {
			cluster: []any{
				tc.Nodes("n1"), tc.Template("one", tc.GPUs("gpu", 1)), tc.Pod("p", tc.UsingTemplate("a", "one"), tc.UsingTemplate("b", "nothere")),
				tc.Claim("p-a-x", tc.GPUs("gpu", 1)).OwnedBy("Pod", "p").Change(func(c *resourceapi.ResourceClaim) {
					c.Annotations = map[string]string{"resource.kubernetes.io/pod-claim-name": "a"}
				}),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Error, stage: api.StageClaimGeneration,
			check: func(t *testing.T, e *api.Explanation) {
				// The controller stops at the missing template: nobody has to wait for the other claim.
				if len(e.NextSteps) != 1 || !strings.Contains(e.NextSteps[0].Text, "create ResourceClaimTemplate nothere") || e.Claims[0].Name != "p-a-x" {
					t.Errorf("claim %q, next steps %+v", e.Claims[0].Name, e.NextSteps)
				}
			},
		},
		"a pod that is held back": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.Fits, stage: api.StageQueueing,
			check: func(t *testing.T, e *api.Explanation) {
				if len(e.NextSteps) == 0 || !strings.Contains(e.NextSteps[0].Text, "quota") {
					t.Errorf("the gate is not told: %v", e.NextSteps)
				}
			},
		},
		"a template": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("two", tc.GPUs("gpu", 2))},
			target:  Options{Object: api.Ref(api.KindTemplate, tc.Namespace, "two")},
			verdict: api.DoesNotFit,
		},
		"a deployment without pods": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one")},
			target:  Options{Object: api.Ref("Deployment", tc.Namespace, "web")},
			verdict: api.Fits,
		},
		"a deployment with a waiting pod": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("two", tc.GPUs("gpu", 2)), deployment("web", "two"),
				tc.Pod("web-1", func(p *corev1.Pod) {
					fromTemplate("two")(p)
					p.Labels = map[string]string{"app": "web"}
				}),
			},
			target:  Options{Object: api.Ref("Deployment", tc.Namespace, "web")},
			verdict: api.DoesNotFit, stage: api.StageClaimGeneration,
			check: func(t *testing.T, e *api.Explanation) {
				if e.PodCount != 1 || e.Pods[0].Name != "web-1" {
					t.Errorf("the pod is not named: %v", e.Pods)
				}
			},
		},
		"the scheduler's condition is quoted": {
			cluster: []any{
				tc.Nodes("n1"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}
				}),
			},
			target:  Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")},
			verdict: api.DoesNotFit, stage: api.StageAllocation,
			check: func(t *testing.T, e *api.Explanation) {
				if m := e.SchedulerMessage; m == nil || m.Text != "0/1 nodes are available" || m.Source != "condition PodScheduled" {
					t.Errorf("wrong message %v", m)
				}
			},
		},
		"the newest event is quoted": {
			cluster: []any{
				tc.Nodes("n1"), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting)),
				func(s *snapshot.Snapshot) {
					for i, text := range []string{"new", "old"} {
						s.Events = append(s.Events, &corev1.Event{
							InvolvedObject: corev1.ObjectReference{Kind: api.KindPod, Namespace: tc.Namespace, Name: "p"},
							Reason:         "FailedScheduling", Message: text, LastTimestamp: metav1.NewTime(s.TakenAt.Add(-time.Duration(i) * time.Minute)),
						})
					}
				},
			},
			target:  Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)},
			verdict: api.DoesNotFit, stage: api.StageAllocation,
			check: func(t *testing.T, e *api.Explanation) {
				if m := e.SchedulerMessage; m == nil || m.Text != "new" || m.Source != "event FailedScheduling" {
					t.Errorf("wrong message %v", m)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), tc.Cluster(test.cluster...), test.target)
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != test.verdict || e.Stage != test.stage {
				t.Errorf("verdict %s at stage %q, want %s at %q: %s", e.Verdict, e.Stage, test.verdict, test.stage, e.Summary)
			}
			if test.check != nil {
				test.check(t, e)
			}
			checkSums(t, e)
		})
	}
}

func TestNoTarget(t *testing.T) {
	parts := []any{
		tc.Claim("train-gpus", tc.GPUs("gpu", 1)), tc.Claim("train-nics", tc.GPUs("gpu", 1)), tc.Pod("plain"),
		func(s *snapshot.Snapshot) { s.Claims[1].Namespace = "web" },
	}
	tests := map[string]struct {
		target Options
		gaps   []any
		want   string
	}{
		"the name of a node":  {target: Options{Object: api.Ref(api.KindClaim, tc.Namespace, "n1")}, gaps: []any{tc.Nodes("n1")}, want: "there is a node of that name: kubectl dra why node/n1"},
		"a near miss":         {target: Options{Object: api.Ref(api.KindClaim, tc.Namespace, "train-gpu")}, want: "find ResourceClaim ml/train-gpu: not found in a test; did you mean train-gpus?"},
		"another namespace":   {target: Options{Object: api.Ref(api.KindClaim, tc.Namespace, "train-nics")}, want: "one of that name exists in namespace web: use -n web"},
		"what there is":       {target: Options{Object: api.Ref(api.KindClaim, tc.Namespace, "completely-different")}, want: "namespace ml has: train-gpus"},
		"an empty namespace":  {target: Options{Object: api.Ref(api.KindClaim, "empty", "completely-different")}, want: "namespace empty has none; these have: ml, web"},
		"nothing of the kind": {target: Options{Object: api.Ref(api.KindTemplate, tc.Namespace, "x")}, want: "no ResourceClaimTemplate exists"},
		"hidden": {
			target: Options{Object: api.Ref(api.KindClaim, tc.Namespace, "x")}, gaps: []any{tc.Gap(snapshot.ResourceClaims, "alice may not list resourceclaims")},
			want: "it may exist all the same: alice may not list resourceclaims",
		},
		"a pod without claims": {target: Options{Object: api.Ref(api.KindPod, tc.Namespace, "plain")}, want: "Pod ml/plain uses no ResourceClaim"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Explain(t.Context(), tc.Cluster(append(parts, test.gaps...)...), test.target)
			var targetError *TargetError
			if !errors.As(err, &targetError) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestLongSearch asks for one device more than there are, which takes upstream
// longer than anybody waits.
func TestLongSearch(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(24)...), tc.Claim(waiting, tc.GPUs("gpu", 25)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.DoesNotFit || e.Nodes[0].Code != api.CountUnsatisfiable || len(e.Assumptions) != 1 || !strings.Contains(e.Assumptions[0], "timed out trying to allocate devices") {
		t.Errorf("verdict %s, nodes %+v, assumptions %q", e.Verdict, e.Nodes, e.Assumptions)
	}
}

// TestLongSearchMeetsError covers a device on the last node on which the selector fails.
// The allocator ends the attempt there, whatever counting says.
func TestLongSearchMeetsError(t *testing.T) {
	last := tc.Devices(25, "model=A")
	delete(last[0].Attributes, "model")
	snap := tc.Cluster(tc.Nodes("n1", "n2", "n3"), tc.Pool("n1", tc.Devices(25, "model=A")...), tc.Pool("n2", tc.Devices(25, "model=A")...), tc.Pool("n3", last...),
		tc.Claim(waiting, tc.GPUs("gpu", 26, `device.attributes["gpu.example.com"].model == "A"`)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Error || !strings.Contains(e.Summary, "no such key: model") {
		t.Errorf("verdict %s: %s", e.Verdict, e.Summary)
	}
}

// TestLongSearchWithoutLimit asks a scheduler that waits for ever.
func TestLongSearchWithoutLimit(t *testing.T) {
	snap := tc.Cluster(tc.Gate("DRASchedulerFilterTimeout", false), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(25)...), tc.Claim(waiting, tc.GPUs("gpu", 26)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.DoesNotFit || len(e.Remedies) != 1 {
		t.Errorf("verdict %s, remedies %+v", e.Verdict, e.Remedies)
	}
}

// TestSearchTimeout does the same with a capacity that is too large to be
// counted in thousandths.
func TestSearchTimeout(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Copies(24, tc.Device("", "memory:=7E").Shareable())...), tc.Claim(waiting, tc.GPUs("gpu", 25)))
	c := allocator.Reopen(cluster.New(snap), allocator.WithTimeout(20*time.Millisecond))
	e, err := ExplainWith(t.Context(), c, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Undetermined || e.Nodes[0].Code != api.SearchTimeout {
		t.Errorf("verdict %s, nodes %+v, want %s and %s", e.Verdict, e.Nodes, api.Undetermined, api.SearchTimeout)
	}
}

// TestUnendingSelector asks for what the selector computes with a number that is
// too long.
func TestUnendingSelector(t *testing.T) {
	expression := `quantity("1e` + strings.Repeat("9", 9) + `").isGreaterThan(quantity("1"))`
	snap := tc.Cluster(tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1, expression)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	said := "valuating " + expression + " does not end, and a scheduler that evaluates it may not come back either"
	if e.Verdict != api.Undetermined || !strings.Contains(e.Summary, said) || !slices.ContainsFunc(e.Nodes, func(n api.NodeGroup) bool {
		return n.Code == api.SearchTimeout && n.Verdict == api.Undetermined && n.Message == "e"+said
	}) {
		t.Errorf("verdict %s: %s, nodes %+v", e.Verdict, e.Summary, e.Nodes)
	}
	if len(e.Remedies) > 0 {
		t.Errorf("remedies %+v", e.Remedies)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 1)))
	if _, err := Explain(ctx, snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
