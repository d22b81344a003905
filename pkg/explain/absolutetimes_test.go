// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestAbsoluteTimes explains a pod twice, at different times. While nothing but the time changes, the
// text has to be the same.
func TestAbsoluteTimes(t *testing.T) {
	silent := func(s *snapshot.Snapshot) {
		s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: ago(5 * time.Minute)}}
	}
	notReady := func(s *snapshot.Snapshot) {
		s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(5 * time.Minute), Message: "no CNI"}}
	}
	often := func(e *corev1.Event) { e.Count, e.FirstTimestamp = 12, ago(4*time.Minute) }
	waits := func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			pod.Spec.NodeName = ""
		}
	}
	created := func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			pod.CreationTimestamp = ago(5 * time.Minute)
		}
	}
	const unavailable = "rpc error: code = Unavailable desc = connection error: dial unix /var/lib/kubelet/plugins/gpu.example.com/dra.sock: connect: no such file or directory"
	for name, test := range map[string]struct {
		cluster []any
		code    api.Code
		says    string
	}{
		"bound, nothing known":       {boundPod(boundFor(5 * time.Minute)), api.PodNotStarted, "was bound to node n1 at " + absolute(5*time.Minute)},
		"the driver fails":           {append(boundPod(boundFor(10*time.Minute)), warning("a", "FailedPrepareDynamicResources", prepareFailed+"no", time.Minute, often)), api.PreparationFailed, "cannot prepare the devices"},
		"the driver does not answer": {append(boundPod(boundFor(10*time.Minute)), warning("a", "FailedPrepareDynamicResources", prepareFailed+"NodePrepareResources failed: "+unavailable, time.Minute, often)), api.PreparationFailed, ""},
		"waits for a condition":      {awaiting(5*time.Minute, false), api.BindingPending, "by default the scheduler waits until " + absolute(5*time.Minute-cluster.BindingTimeout)},
		"is going to be evicted":     {append(boundPod(running), tainted("broken", 10*time.Second), toleratedOnce("broken", 300)), api.EvictionDue, "will be deleted at " + absolute(10*time.Second-5*time.Minute)},
		"should have been evicted":   {append(boundPod(running), tainted("broken", 5*time.Minute)), api.EvictionDue, "should have been deleted at " + absolute(5*time.Minute)},
		"its node is silent":         {append(boundPod(running), silent), api.NodeNotReady, "the kubelet stopped posting status at " + absolute(5*time.Minute)},
		"its node is not ready":      {append(boundPod(running), notReady), api.NodeNotReady, "not ready (since " + absolute(5*time.Minute) + "): no CNI"},
		"its claim is being deleted": {append(boundPod(), waits, changeHave(func(c *resourceapi.ResourceClaim) { c.DeletionTimestamp = ptr.To(ago(5 * time.Minute)) })), "", "has been terminating since " + absolute(5*time.Minute)},
		"its claim was not created":  {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Template("t", tc.Request("gpu", tc.ClassGPU, 1)), tc.Pod("p", tc.UsingTemplate("gpu", "t")), created}, "", "has not been created since " + absolute(5*time.Minute)},
		"no node that is ready":      {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Claim("c", tc.Request("gpu", tc.ClassGPU, 1)), tc.Pod("p", tc.Using("c")), created, notReady, noExecute}, "", "since " + absolute(5*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(test.cluster...)
			snap.AbsoluteTimes = true
			later := *snap
			later.TakenAt = later.TakenAt.Add(13 * time.Second)
			before, after := explainEach(t, snap, "Pod/p")["Pod/p"], explainEach(t, &later, "Pod/p")["Pod/p"]
			if test.code != "" && before.Code != test.code || !strings.Contains(before.Summary, test.says) {
				t.Errorf("code %q, want %q with %q: %s", before.Code, test.code, test.says, before.Summary)
			}
			if before.Summary != after.Summary || before.Headline != after.Headline {
				t.Errorf("the text ages:\n%s %s\n%s %s", before.Headline, before.Summary, after.Headline, after.Summary)
			}
			if listed := lifecycle.NewStages(cluster.New(&later)).BlockedPods(); test.code != "" && (len(listed) != 1 || listed[0].Summary != before.Summary) {
				t.Errorf("listed as %+v, explained as %s", listed, before.Summary)
			}
		})
	}
}

// noExecute taints the first node, as the node lifecycle controller does where it is not ready.
func noExecute(s *snapshot.Snapshot) {
	s.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule, TimeAdded: ptr.To(ago(5 * time.Minute))}}
}

// absolute returns the point in time before the snapshot was taken.
func absolute(before time.Duration) string {
	return tc.Taken().Add(-before).UTC().Format(time.RFC3339)
}
