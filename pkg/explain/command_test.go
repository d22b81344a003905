// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// TestCommands covers commands for edits of other objects than claims.
func TestCommands(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.ChangeNode("n1", func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{
			{Key: "a", Value: "x", Effect: corev1.TaintEffectNoSchedule},
			{Key: "b", Effect: corev1.TaintEffectNoExecute},
			{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		}
	}), tc.Pod("p"), ruleFor("broken", "xid"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("one", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)))
	node := api.Ref(api.KindNode, "", "n1")
	tests := map[string]struct {
		edits []api.Edit
		want  []string
	}{
		"a cordoned node":           {[]api.Edit{whatif.NewEdit(node, "remove", "/spec/unschedulable", nil)}, []string{"kubectl uncordon n1"}},
		"a cordoned node, replaced": {[]api.Edit{whatif.NewEdit(node, "replace", "/spec/unschedulable", false)}, []string{"kubectl uncordon n1"}},
		"the taint that goes with it": {
			[]api.Edit{whatif.NewEdit(node, "remove", "/spec/unschedulable", nil), whatif.NewEdit(node, "remove", "/spec/taints/2", nil), whatif.NewEdit(node, "remove", "/spec/taints/1", nil)},
			[]string{"kubectl uncordon n1", "kubectl taint node n1 b:NoExecute-"},
		},
		"taints, each where the one before it leaves it": {
			[]api.Edit{whatif.NewEdit(node, "remove", "/spec/taints/0", nil), whatif.NewEdit(node, "remove", "/spec/taints/0", nil)},
			[]string{"kubectl taint node n1 a=x:NoSchedule- b:NoExecute-"},
		},
		"a pod":              {[]api.Edit{whatif.NewEdit(api.Ref(api.KindPod, tc.Namespace, "p"), "remove", "", nil)}, []string{"kubectl delete pod p -n ml"}},
		"a rule":             {[]api.Edit{whatif.NewEdit(api.Ref("DeviceTaintRule", "", "broken"), "remove", "", nil)}, []string{"kubectl delete devicetaintrule broken"}},
		"claims to wait for": {[]api.Edit{whatif.NewEdit(api.Ref(api.KindClaim, "serving", "one"), "remove", "/status/allocation", nil)}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, whatif.Commands(snap, whatif.WithOldValues(snap, test.edits), nil)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if _, err := whatif.Amend(snap, test.edits); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOldValues checks that an edit has the previous value.
func TestOldValues(t *testing.T) {
	two := tc.Claim(waiting, tc.GPUs("gpu", 2))
	snap := tc.Cluster(tc.Nodes("n1"), two, func(s *snapshot.Snapshot) {
		s.Claims[0].Spec.Devices.Constraints = []resourceapi.DeviceConstraint{
			{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("a/x"))}, {MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("a/y"))},
		}
	})
	name := api.Ref(api.KindClaim, tc.Namespace, waiting)
	got := whatif.WithOldValues(snap, []api.Edit{
		whatif.NewEdit(name, "replace", "/spec/devices/requests/0/exactly/count", 1),
		whatif.NewEdit(name, "replace", "/spec/devices/requests/0/exactly/count", 3),
		whatif.NewEdit(name, "add", "/spec/devices/requests/0/exactly/adminAccess", true),
		whatif.NewEdit(name, "remove", "/spec/devices/constraints/0", nil),
		whatif.NewEdit(name, "remove", "/spec/devices/constraints/0", nil),
		whatif.NewEdit(name, "remove", "/status/allocation", nil),
		whatif.NewEdit(api.Ref("ResourceClaim", "ml", "gone"), "remove", "/spec", nil),
	})
	var from []string
	for _, e := range got {
		from = append(from, string(e.From))
	}
	if diff := cmp.Diff([]string{"2", "1", "", `{"matchAttribute":"a/x"}`, `{"matchAttribute":"a/y"}`, "", ""}, from); diff != "" {
		t.Errorf("old values (-want +got):\n%s", diff)
	}
}
