// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestExtendedResourceNames asks about a pod with three extended resources. Users
// know the containers and the resources, and not the names of the requests that the
// scheduler makes of them.
func TestExtendedResourceNames(t *testing.T) {
	for name, counts := range map[string][3]string{"short of one": {"5", "1", "1"}, "together": {"2", "1", "2"}, "fits": {"1", "1", "1"}} {
		t.Run(name, func(t *testing.T) {
			asking := tc.Pod("train-0", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
					"example.com/gpu": resource.MustParse(counts[0]), "deviceclass.resource.kubernetes.io/gpu": resource.MustParse(counts[1]),
				}
				side := *p.Spec.Containers[0].DeepCopy()
				side.Name, side.Resources.Limits = "side", corev1.ResourceList{"example.com/gpu": resource.MustParse(counts[2])}
				p.Spec.Containers = append(p.Spec.Containers, side)
			})
			snap := tc.Cluster(tc.Gate("DRAExtendedResource", true), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), asking, func(s *snapshot.Snapshot) {
				s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu")
			})
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0"), Device: "n1/gpu-0"})
			if err != nil {
				t.Fatal(err)
			}
			said := []string{e.Summary, e.Device.Summary}
			for _, group := range e.Nodes {
				said = append(said, group.Message)
			}
			for _, r := range e.Device.Requests {
				said = append(said, r.Message)
			}
			if e.Conflict != nil {
				for _, element := range e.Conflict.Facts {
					said = append(said, element.Text)
				}
			}
			for _, remedy := range e.Remedies {
				said = append(said, remedy.Change)
			}
			for _, text := range said {
				if strings.Contains(text, "container-") {
					t.Errorf("it says %q", text)
				}
			}
			if text := strings.Join(said, "\n"); !strings.Contains(text, "container main (example.com/gpu)") && !strings.Contains(text, "container main (deviceclass.resource.kubernetes.io/gpu)") {
				t.Errorf("it names no container:\n%s", text)
			}
		})
	}
}
