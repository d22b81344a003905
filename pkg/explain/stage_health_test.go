// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestUnhealthyDevice covers the kubelet call a device by the name of its CDI device, as it
// does where drivers give it one.
func TestUnhealthyDevice(t *testing.T) {
	const command = "kubectl dra taints add --driver gpu.example.com --pool n1 --device gpu-1 dra.kubectl.dev/unhealthy:NoSchedule"
	taint := func(effect resourceapi.DeviceTaintEffect) any {
		return func(s *snapshot.Snapshot) {
			s.Slices[0].Spec.Devices[1].Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: effect}}
		}
	}
	for name, test := range map[string]struct {
		resource, id string
		devices      []string
		more         []any
		says         string
		command      bool
	}{
		"the name of the claim's CDI device": {"claim:have/gpu", "lab.example.com/gpu=uid-have-gpu-1", []string{"gpu-0", "gpu-1"}, nil, "Device n1/gpu-1 of", true},
		"the only device of the request":     {"claim:have/gpu", "lab.example.com/gpu=x", []string{"gpu-1"}, nil, "Device n1/gpu-1 of", true},
		"no CDI name":                        {"claim:have", "gpu.example.com/n1/gpu-1", []string{"gpu-0", "gpu-1"}, nil, "Device n1/gpu-1 of", true},
		"a name that tells nothing":          {"claim:have", "lab.example.com/gpu=x", []string{"gpu-0", "gpu-1"}, nil, "Device lab.example.com/gpu=x of", false},
		"a taint that informs":               {"claim:have", "x", []string{"gpu-1"}, []any{taint(resourceapi.DeviceTaintEffectNone)}, "Device n1/gpu-1 of", true},
		"a taint that keeps pods away":       {"claim:have", "x", []string{"gpu-1"}, []any{taint(resourceapi.DeviceTaintEffectNoSchedule)}, "Device n1/gpu-1 of", false},
	} {
		t.Run(name, func(t *testing.T) {
			parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Serving("have", "n1", test.devices...), reserved("have", "p"), tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) {
				running(p)
				p.Spec.NodeName = "n1"
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{{
					Name:      corev1.ResourceName(test.resource),
					Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(test.id), Health: corev1.ResourceHealthStatusUnhealthy}},
				}}}}
			})}
			e := explainEach(t, tc.Cluster(append(parts, test.more...)...), "Pod/p")["Pod/p"]
			if e.Code != api.DeviceUnhealthy || !strings.HasPrefix(e.Summary, test.says) {
				t.Errorf("code %q: %s\nwant %q", e.Code, e.Summary, test.says)
			}
			tainting := slices.IndexFunc(e.NextSteps, func(step api.NextStep) bool { return slices.Contains(step.Commands, command) })
			anew := slices.IndexFunc(e.NextSteps, func(step api.NextStep) bool {
				return strings.Contains(step.Text, "there are other ones when the pods that use claim have, and the claim, are created again")
			})
			if (tainting >= 0) != test.command || anew < tainting || anew < 0 {
				t.Errorf("want a command: %v, and only then a new claim, in %+v", test.command, e.NextSteps)
			}
		})
	}
}
