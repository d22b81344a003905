// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestDeceptive covers clusters where the first thing that comes to mind is not the answer.
func TestDeceptive(t *testing.T) {
	thePod := Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")}
	theClaim := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	tests := map[string]struct {
		cluster []any
		target  Options
		verdict api.Verdict
		// says is a part of the summary, an assumption or a next step; not is a
		// part of none.
		says, not string
	}{
		"a template that could not be read is not missing": {
			cluster: []any{tc.Nodes("n1"), tc.Pod("p", fromTemplate("one")), tc.Gap(snapshot.ResourceTemplates, "alice may not list templates")},
			target:  thePod, verdict: api.Undetermined, says: "could not be read", not: "create",
		},
		"a finished pod needs nothing": {
			cluster: []any{tc.Nodes("n1"), tc.Pod("p", tc.Using("gone"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
			target:  thePod, verdict: api.Allocated, says: "The pod is finished (Succeeded)", not: "create",
		},
		"a running pod whose claim is being deleted": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
				func(s *snapshot.Snapshot) { s.Claims[0].DeletionTimestamp = ptr.To(metav1.NewTime(s.TakenAt)) },
				tc.Pod("p", tc.Using("have"), bound),
			},
			target: thePod, verdict: api.Allocated, says: "it waits for pod/p, which uses it",
		},
		"a pod that was bound by hand": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting), bound)},
			target:  thePod, verdict: api.Blocked, says: "the pod may have been bound without the scheduler",
		},
		"a pod that is being deleted": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }),
			},
			target: thePod, verdict: api.Error, says: "is being deleted",
		},
		"an allocation that the scheduler takes back": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
				tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace },
				tc.Pod("p", tc.Using("have")),
			},
			target: thePod, verdict: api.DoesNotFit, says: "deallocates claim have, which is reserved for no other pod, and tries again: then it fits, on n2",
		},
		"an error on a device that a hidden claim may hold": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"), tc.Device("b", "model=A")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "A"`)),
				tc.Gap(snapshot.ResourceClaims, "alice may not list claims"),
			},
			target: theClaim, verdict: api.Undetermined, says: "alice may not list claims",
		},
		"an attribute that makes every expression fail": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Change(func(d *resourceapi.Device) {
					d.Attributes["fw"] = resourceapi.DeviceAttribute{VersionValue: ptr.To("1.2")}
				}), tc.Device("b")),
				tc.Serving("serve", "n1", "a"), tc.Claim(waiting, tc.GPUs("gpu", 1, `device.driver == "gpu.example.com"`)),
				func(s *snapshot.Snapshot) { s.Classes[0].Spec.Selectors = nil },
			},
			target: theClaim, verdict: api.Fits, says: "picks n1",
		},
		"a part of a selector with a macro holds": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "tier=gold")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `["A","B"].exists(m, device.attributes["gpu.example.com"].model == m) && device.attributes["gpu.example.com"].tier == "silver"`)),
			},
			target: theClaim, verdict: api.DoesNotFit, says: `tier is "gold", must be "silver"`,
		},
		"the error of one request is not that of another": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("b", "model=A")),
				tc.Claim(waiting,
					tc.GPUs("x", 1, `device.attributes["gpu.example.com"].model == "A"`),
					tc.GPUs("y", 1, `device.attributes["gpu.example.com"].tier == "A"`)),
			},
			target: theClaim, verdict: api.Error, says: "Request y: the selector fails",
		},
		"a constraint and counters together": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=1"),
				tc.Pool("n1", tc.Device("a", "root=x").Consuming("board", "slices=1"), tc.Device("b", "root=x").Consuming("board", "slices=1"), tc.Device("c", "root=y")).Of(2),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
			},
			target: theClaim, verdict: api.DoesNotFit, says: "not with the same", not: "at most 2",
		},
		"one of two pods that wait for a claim": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("a", tc.Using(waiting), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "such"} }), tc.Pod("b", tc.Using(waiting)),
			},
			target: theClaim, verdict: api.Fits, says: "It can be allocated for pod b, not for others that wait for it",
		},
		"a DaemonSet tolerates a cordoned node": {
			cluster: []any{
				tc.Nodes("n1"), tc.ChangeNode("n1", func(n *corev1.Node) {
					n.Spec.Unschedulable = true
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
				}),
				tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one"),
				func(s *snapshot.Snapshot) { s.Workloads[0].Kind = "DaemonSet" },
			},
			target: Options{Object: api.Ref("DaemonSet", tc.Namespace, "web")}, verdict: api.Fits, says: "creates pods for 1 node, and fits on each",
		},
		"no node is known": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true) }),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			target: theClaim, verdict: api.Undetermined, says: "no node is known",
		},
		"limits of the pod count": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), deployment("web", "one"),
				func(s *snapshot.Snapshot) {
					s.Workloads[0].Template.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")}}
				},
			},
			target: Options{Object: api.Ref("Deployment", tc.Namespace, "web")}, verdict: api.DoesNotFit, says: "not enough cpu: 16 required, 8 available of 8",
		},
		"too few even if all were free": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Serving("serve", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 5))},
			target:  theClaim, verdict: api.DoesNotFit, says: "Request gpu needs 5 devices. Node n1 has 3 available, at most 4 match (1 allocated).",
		},
		"too few even without a taint": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", append(tc.Devices(3), tc.Device("broken").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule))...),
				tc.Claim(waiting, tc.GPUs("gpu", 5)),
			},
			target: theClaim, verdict: api.DoesNotFit, says: "Request gpu needs 5 devices. Node n1 has 3 available, at most 4 match (1 tainted).",
		},
		"an incomplete pool of another driver": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...),
				tc.Pool("n2", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.Driver, s.Spec.Pool.ResourceSliceCount = "nic.example.com", 2
				}),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			target: theClaim, verdict: api.DoesNotFit, says: "Node n1 has 1 available.", not: "incomplete",
		},
		"a taint of a rule": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				func(s *snapshot.Snapshot) {
					s.TaintRules = []*resourceapi.DeviceTaintRule{{
						ObjectMeta: metav1.ObjectMeta{Name: "broken"},
						Spec: resourceapi.DeviceTaintRuleSpec{
							DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(tc.Driver)},
							Taint:          resourceapi.DeviceTaint{Key: "xid", Effect: resourceapi.DeviceTaintEffectNoSchedule},
						},
					}}
				},
			},
			target: theClaim, verdict: api.DoesNotFit, says: "DeviceTaintRule/broken spec.taint",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), tc.Cluster(test.cluster...), test.target)
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != test.verdict {
				t.Errorf("verdict %s, want %s: %s", e.Verdict, test.verdict, e.Summary)
			}
			text := e.Summary + "\n" + strings.Join(e.Assumptions, "\n") + "\n" + everything(e)
			for _, step := range e.NextSteps {
				text += step.Text + "\n"
			}
			for _, group := range e.Nodes {
				text += group.Message + "\n"
			}
			if !strings.Contains(text, test.says) {
				t.Errorf("nothing says %q:\n%s", test.says, text)
			}
			if test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("something says %q:\n%s", test.not, text)
			}
			checkSums(t, e)
		})
	}
}
