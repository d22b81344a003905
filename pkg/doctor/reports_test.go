// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestProbe compares the object that was sent with the object that would be stored.
func TestProbe(t *testing.T) {
	set := func(p *Probe, value any, path ...string) {
		if err := unstructured.SetNestedField(p.Stored.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	probe := func(change func(claim, pod *Probe)) *api.Diagnosis {
		objects := ProbeObjects()
		probes := []Probe{{Sent: objects[0], Stored: objects[0].DeepCopy()}, {Sent: objects[1], Stored: objects[1].DeepCopy()}}
		// What defaults add is no difference.
		set(&probes[1], "Always", "spec", "restartPolicy")
		change(&probes[0], &probes[1])
		return diagnose(t, tc.Cluster(tc.Gate("DRAConsumableCapacity", false)), Options{Choice: checks.Choice{Only: []string{"DRA1006"}}, Probes: probes})
	}
	request := func(p *Probe) map[string]any {
		requests, _, err := unstructured.NestedSlice(p.Stored.Object, "spec", "devices", "requests")
		if err != nil || len(requests) == 0 {
			t.Fatalf("requests %v, %v", requests, err)
		}
		first, _ := requests[0].(map[string]any)
		return first
	}
	for name, test := range map[string]struct {
		change   func(claim, pod *Probe)
		says     string
		severity api.Severity
	}{
		"nothing": {func(_, _ *Probe) {}, "", ""},
		"gate": {func(claim, _ *Probe) {
			r := request(claim)
			unstructured.RemoveNestedField(r, "exactly", "capacity")
			set(claim, []any{r}, "spec", "devices", "requests")
		}, "spec.devices.requests[0].exactly.capacity of a ResourceClaim would be dropped: the feature gate DRAConsumableCapacity is off", api.SeverityInfo},
		"webhook": {func(_, pod *Probe) { unstructured.RemoveNestedField(pod.Stored.Object, "spec", "resourceClaims") }, "spec.resourceClaims of a Pod would be dropped or changed", api.SeverityWarning},
		"refused": {func(_, pod *Probe) { pod.Stored, pod.Refused = nil, "admission webhook denied it" }, "is refused: admission webhook denied it", api.SeverityWarning},
		"right":   {func(claim, _ *Probe) { claim.Unknown = "this user may not create resourceclaims" }, "not checked: this user may not create", api.SeverityUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			found := probe(test.change)
			if test.says == "" {
				if len(found.Findings) > 0 {
					t.Error(found.Findings)
				}
				return
			}
			if len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Message, test.says) || found.Findings[0].Severity != test.severity {
				t.Errorf("findings %+v", found.Findings)
			}
		})
	}
}

func TestNodeReports(t *testing.T) {
	report := &nodeprobe.Report{Node: "n1", Host: []node.Check{node.Good("host", "", "fine"), node.Bad("cdi/specs", "/etc/cdi", "no spec")}}
	found := diagnose(t, tc.Cluster(healthy()...), Options{NodeReports: []*nodeprobe.Report{report}})
	if !slices.Equal(codesOf(found), []string{"DRA1701"}) || len(found.Findings) != 1 || found.Findings[0].Message != "node n1, cdi/specs: no spec" {
		t.Errorf("%+v", found.Findings)
	}
}

// TestOneFindingForOneFault covers faults that two checks could report.
func TestOneFindingForOneFault(t *testing.T) {
	typo := tc.GPUs("gpu", 1).Where(`device.driver == "gpu.exmaple.com"`)
	for name, test := range map[string]struct {
		cluster []any
		want    []string
	}{
		"a selector of a pod that waits": {[]any{tc.Claim("c", typo), tc.Pod("p", tc.UsingClaim("gpu", "c"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		})}, []string{"DRA1601"}},
		"a selector of a template":              {[]any{tc.Template("t", typo)}, []string{"DRA1411"}},
		"a driver that the kubelet has lost":    {[]any{notPrepared, unregistered}, []string{"DRA1107"}},
		"a driver whose pod is not created":     {[]any{notPrepared, unregistered, daemonSet(1)}, []string{"DRA1102"}},
		"a driver that does not prepare claims": {[]any{notPrepared}, []string{"DRA1603"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}, test.cluster...)
			if got := codesOf(diagnose(t, tc.Cluster(cluster...), Options{})); !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

// unregistered lets the last event tell that the kubelet does not know the driver.
func unregistered(s *snapshot.Snapshot) {
	s.Events[0].Message = "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.example.com is not registered"
}

// TestDriverEvents covers what events tell about the DaemonSet of a driver and its pods.
func TestDriverEvents(t *testing.T) {
	warn := func(kind, name, uid, message string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			s.Events = append(s.Events, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "driver", Name: "warning"},
				InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "driver", Name: name, UID: types.UID(uid)},
				Type:           corev1.EventTypeWarning, Reason: "Failed", Message: message,
			})
		}
	}
	one := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...)}
	refused := diagnose(t, tc.Cluster(append(one, daemonSet(2, "n1"), warn("DaemonSet", "driver", "set", "insufficient quota"))...), Options{})
	if f := refused.Findings[0]; f.Code != "DRA1102" || !strings.HasSuffix(f.Message, "1 not created: insufficient quota") || len(f.Evidence) != 2 {
		t.Errorf("the event of the DaemonSet is not told: %+v", f)
	}
	notReady := func(s *snapshot.Snapshot) { s.Pods[0].Status.Conditions = nil }
	failing := diagnose(t, tc.Cluster(append(one, daemonSet(1, "n1"), notReady, warn("Pod", "driver-n1", string(tc.UID("driver-n1")), "back-off"))...), Options{})
	if f := failing.Findings[0]; f.Code != "DRA1103" || len(f.Evidence) != 2 || f.Evidence[1].Found != "back-off" {
		t.Errorf("the event of the pod is not told: %+v", f)
	}
}

// TestSilentDriver covers a driver that runs while the API server stores none of its slices.
func TestSilentDriver(t *testing.T) {
	silent := func(s *snapshot.Snapshot) {
		s.Workloads[0].Annotations[snapshot.KubeletPluginAnnotation] = tc.Driver
	}
	found := diagnose(t, tc.Cluster(tc.Nodes("n1"), daemonSet(1, "n1"), silent), Options{Choice: checks.Choice{Only: []string{"DRA1104"}}})
	if len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Message, "driver gpu.example.com runs on 1 node and publishes nothing") {
		t.Errorf("found %+v", found.Findings)
	}
}
