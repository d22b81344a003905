// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// overviewOf makes the overview of a cluster in which nobody knows why pods wait, unless
// reasons has a code for the pod.
func overviewOf(t *testing.T, v *Inventory, namespace string, reasons map[string]api.Code, findings ...api.Finding) *Overview {
	t.Helper()
	survey, err := v.Survey(t.Context(), v.Usage())
	if err != nil {
		t.Fatal(err)
	}
	return survey.Overview(Known{Namespace: namespace, Findings: findings, Reason: func(pod *corev1.Pod) api.StuckReason {
		return api.StuckReason{Code: reasons[pod.Name]}
	}})
}

// lines returns a line for each entry of an overview.
func lines(o *Overview) []string {
	var list []string
	add := func(format string, args ...any) {
		list = append(list, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
	}
	for _, x := range o.Issues {
		add("issue %s %s %d %s", x.Code, x.Severity, x.Count, x.Message)
	}
	for _, x := range o.Capacity {
		add("capacity %s %d share %.2f waiting %d", cmp.Or(x.Class, "driver "+x.Driver), x.Devices.Total, ptr.Deref(x.Share, -1), x.Waiting)
	}
	for i, x := range o.Stuck {
		add("stuck %s/%s (%s) x%d %ds %v %s, first %s", x.Namespace, x.Name, x.Owner.Argument(), x.Count, ptr.Deref(x.AgeSeconds, -1), x.Asks, ReasonWord(&x.Reason), o.StuckPods[i].Name)
	}
	for _, x := range o.Teams {
		add("team %s used %d share %.2f waiting %d idle %d", x.Namespace, x.Used, ptr.Deref(x.Share, -1), x.Waiting, x.Idle)
	}
	for i, x := range o.Attention {
		add("attention %s %s %s %T: %s", x.Kind, x.Severity, cmp.Or(x.Code, x.Name), o.About[i], x.Message)
	}
	return list
}

func without(node string) func(*snapshot.Snapshot) {
	return tc.ChangeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

// TestOverview covers everything that can be wrong.
func TestOverview(t *testing.T) {
	created := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago)) }
	}
	of := func(job string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: ptr.To(true)}}
		}
	}
	in := func(namespace string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Namespace = namespace }
	}
	theirs := func(claim *resourceapi.ResourceClaim) { claim.Namespace = "other" }
	taint := func(added time.Duration) tc.DeviceWrapper {
		return tc.Device("worn").TaintedSince("example.com/worn", resourceapi.DeviceTaintEffectNoExecute, tc.Taken().Add(-added))
	}
	stays := func(claim *resourceapi.ResourceClaim) {
		claim.Status.Allocation.Devices.Results[0].Tolerations = []resourceapi.DeviceToleration{{Key: "example.com/worn", Operator: "Exists", Effect: resourceapi.DeviceTaintEffectNoExecute, TolerationSeconds: ptr.To[int64](3600)}}
	}
	v := inventoryWith(t, tc.Gate("DRADeviceTaints", true),
		tc.Nodes("n1", "n2", "n3", "n4"), tc.Pool("n1", append(tc.NamedDevices("a", "b", "c"), taint(time.Minute))...),
		tc.Pool("n2", tc.Devices(2)...), without("n2"), tc.Pool("n3", tc.Devices(1)...).Of(2), tc.Pool("n4", tc.Device("hot").Tainted("example.com/hot", resourceapi.DeviceTaintEffectNoSchedule)),
		tc.Pool("gone", tc.Devices(1)...),
		tc.Claim("runs", tc.GPUs("gpu", 1)).Holding("n1/worn").Change(stays).ReservedFor("runs", "uid-runs"), tc.Pod("runs", tc.Using("runs"), tc.RunningOn("n1"), created(time.Hour)),
		tc.Claim("theirs", tc.GPUs("gpu", 1)).Holding("n1/a").Change(theirs),
		tc.Claim("late", tc.GPUs("gpu", 2)), tc.Pod("late", tc.Using("late"), created(time.Minute)),
		tc.Template("each", tc.GPUs("gpu", 8)),
		tc.Pod("job-0", tc.UsingTemplate("gpu", "each"), of("train"), created(10*time.Minute)), tc.Pod("job-1", tc.UsingTemplate("gpu", "each"), of("train"), created(20*time.Minute)),
		tc.Pod("job-2", tc.UsingTemplate("gpu", "each"), of("train"), created(5*time.Minute)),
		tc.Pod("elsewhere", tc.UsingTemplate("gpu", "missing"), in("other"), created(2*time.Hour)),
		tc.Claim("unused", tc.GPUs("gpu", 1)), tc.Claim("unused-too", tc.GPUs("gpu", 1)),
	)
	reasons := map[string]api.Code{"job-0": api.DeviceAllocated, "job-1": api.DeviceAllocated, "job-2": api.PodsCompete}
	findings := []api.Finding{
		{Code: "DRA1201", Severity: api.SeverityError, Message: "has an entry of its own"},
		{Code: "DRA1701", Severity: api.SeverityWarning, Message: "a warning"},
		{Code: "DRA1702", Severity: api.SeverityError, Objects: []api.ObjectRef{api.Ref("Pod", "ml", "late")}, Message: "about a pod that waits"},
		{Code: "DRA1703", Severity: api.SeverityError, Objects: []api.ObjectRef{api.Ref("ResourceClaim", "other", "theirs")}, Message: "an error of theirs"},
		{Code: "DRA1704", Severity: api.SeverityInfo, Message: "not worth a look"},
	}
	want := []string{
		"issue PodsWaiting Warning 5 5 pods wait, longest 120m",
		"issue NodesGone Error 1 1 node gone",
		"issue PoolsBroken Error 2 2 pools are broken (2 devices)",
		"issue PodsBlocked Error 1 1 pod cannot work with the devices",
		"issue PodsEvicted Error 1 1 pod evicted in 59m",
		"issue DevicesTaintedInUse Error 1 1 used and tainted",
		"issue DevicesTainted Warning 1 1 tainted",
		"issue NodesCordoned Warning 1 1 node cordoned",
		"issue ClaimsWithoutPod Info 2 2 claims without a pod",
		"capacity gpu 9 share 0.22 waiting 4",
		"stuck other/elsewhere () x1 7200s [] , first elsewhere",
		"stuck ml/runs () x1 3600s [] EvictionDue, first runs",
		"stuck ml/job-1 (job/train) x2 1200s [{[gpu] 8}] DeviceAllocated, first job-1",
		"stuck ml/job-2 (job/train) x1 300s [{[gpu] 8}] PodsCompete, first job-2",
		"stuck ml/late () x1 60s [{[gpu] 2}] , first late",
		"team ml used 1 share 0.50 waiting 4 idle 0",
		"team other used 1 share 0.50 waiting 1 idle 1",
		"attention Taint Error example.com/worn:NoExecute *v1alpha1.Taint: 1 device, evicts 1 of 1 pods, the next in 59m",
		"attention Pool Error gone *v1alpha1.Pool: NodeGone: node gone does not exist",
		"attention Pool Error n3 *v1alpha1.Pool: Incomplete: 1 of 2 slices",
		"attention Node Error gone *inventory.Node: Gone",
		"attention Node Warning n2 *inventory.Node: cordoned, 2 free",
		"attention Finding Error DRA1703 *v1alpha1.Finding: an error of theirs",
		"attention Taint Warning example.com/hot:NoSchedule *v1alpha1.Taint: 1 device",
		"attention Finding Warning DRA1701 *v1alpha1.Finding: a warning",
		"attention ResourceClaim Info unused <nil>: 2 claims, such as ml/unused: " + NoPodUsesIt,
	}
	o := overviewOf(t, v, "", reasons, findings...)
	if diff := gocmp.Diff(want, lines(o)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if next := o.Issues[4].NextEviction; next == nil || next.Sub(tc.Taken()) != 59*time.Minute || o.Issues[0].LongestSeconds != 7200 {
		t.Errorf("the next eviction is at %v, the longest wait %d s", next, o.Issues[0].LongestSeconds)
	}
	// What is not of a namespace stays.
	want = slices.Concat([]string{"issue PodsWaiting Warning 1 1 pod waits, longest 120m"}, want[1:3], want[4:8],
		[]string{"capacity gpu 9 share 0.22 waiting 0", want[10]}, want[16:len(want)-1])
	if diff := gocmp.Diff(want, lines(overviewOf(t, v, "other", reasons, findings...))); diff != "" {
		t.Errorf("of one namespace, -want +got:\n%s", diff)
	}
}

// TestOverviewOfNothing covers a cluster without problems, and an empty one: all lists are
// there, and empty.
func TestOverviewOfNothing(t *testing.T) {
	none := func(s *snapshot.Snapshot) { s.Classes = nil }
	text, err := json.Marshal(&overviewOf(t, inventoryWith(t, none), "", nil).Overview)
	if want := `{"kind":"Overview","apiVersion":"dra.kubectl.dev/v1alpha1","source":"a test","issues":[],"capacity":[],"stuck":[],"teams":[],"attention":[],"nodes":null}`; err != nil || string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	v := inventoryWith(t, tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n1/gpu-0"), none)
	o := overviewOf(t, v, "", nil)
	o.AddNodes(v.Nodes())
	if diff := gocmp.Diff([]string{"capacity driver gpu.example.com 4 share 0.25 waiting 0", "team ml used 1 share 1.00 waiting 0 idle 1"}, lines(o)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(o.Nodes) != 2 || o.Nodes[0].Name != "n1" || o.Nodes[0].State != NodeReady || o.Nodes[0].Devices.Allocated != 1 {
		t.Errorf("nodes %+v", o.Nodes)
	}
}

// TestOverviewNotRead shows resources that could not be read as unknown, never as empty.
func TestOverviewNotRead(t *testing.T) {
	v := inventoryWith(t, tc.Gap(snapshot.ResourceSlices, "slices are forbidden"), tc.Gap(snapshot.ResourcePods, "pods are forbidden"),
		snapshot.Gap{Resource: snapshot.ResourceClaims, Namespace: "ml", Reason: "claims are forbidden"},
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0"))
	o := overviewOf(t, v, "", nil)
	if diff := gocmp.Diff([]string{"issue PoolsUnknown Unknown 0 pools not known", "issue PodsUnknown Unknown 0 pods that wait not known"}, lines(o)[:2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if o.Teams[0].Share != nil {
		t.Errorf("the share of %s is said to be %f although claims are hidden", o.Teams[0].Namespace, *o.Teams[0].Share)
	}
	if diff := gocmp.Diff([]string{"claims are forbidden", "slices are forbidden", "pods are forbidden"}, o.Assumptions); diff != "" {
		t.Errorf("assumptions: -want +got:\n%s", diff)
	}
}

// TestStuckOnce lists a pod once that waits for a node because its devices are not bound.
func TestStuckOnce(t *testing.T) {
	v := inventoryWith(t, tc.Gate("DRADeviceBindingConditions", true), tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").BindingOn("ready")),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n1/a", tc.AwaitingBinding("ready", "failed")).Change(func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: tc.Taken().Add(-time.Hour)}
		}).ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c")))
	o := overviewOf(t, v, "", map[string]api.Code{"p": api.BindingPending})
	if len(o.Stuck) != 1 || o.Stuck[0].Count != 1 || len(o.Issues) != 1 || o.Issues[0].Code != api.IssuePodsWaiting {
		t.Errorf("stuck %+v, issues %+v", o.Stuck, o.Issues)
	}
}

// TestTroubles names what a bell rings for: broken pools, pods that have waited for a while,
// and evictions if they are wanted.
func TestTroubles(t *testing.T) {
	since := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago)) }
	}
	v := inventoryWith(t, tc.Gate("DRADeviceTaints", true), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Device("a").TaintedSince("example.com/worn", resourceapi.DeviceTaintEffectNoExecute, tc.Taken())),
		tc.Pool("n2", tc.Devices(1)...).Of(2),
		tc.Claim("runs", tc.GPUs("gpu", 1)).Holding("n1/a").ReservedFor("runs", "uid-runs"), tc.Pod("runs", tc.Using("runs"), tc.RunningOn("n1")),
		tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("old", tc.Using("c"), since(stuckAfter)), tc.Pod("new", tc.Using("c"), since(stuckAfter-time.Second)))
	got := v.Troubles(v.Usage(), true)
	want := Troubles{Broken: 1, Waiting: map[string]int{"ml": 2}, Names: []string{"pool gpu.example.com/n2", "pod uid-old ml/old", "eviction ml/runs"}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := v.Troubles(v.Usage(), false).Names; len(got) != 2 {
		t.Errorf("without evictions, %q", got)
	}
}
