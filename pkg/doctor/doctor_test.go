// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func diagnose(t *testing.T, snap *snapshot.Snapshot, opts Options) *api.Diagnosis {
	t.Helper()
	c := facts.New(snap)
	found, err := Diagnose(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func codesOf(found *api.Diagnosis) []string {
	var codes []string
	for _, f := range found.Findings {
		codes = append(codes, f.Code)
	}
	return slices.Compact(codes)
}

// daemonSet adds the DaemonSet of the driver, and its pods that are ready.
func daemonSet(desired int32, nodes ...string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		labels := map[string]string{"app": "driver"}
		set := &snapshot.Workload{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "driver", Name: "driver", UID: "set", Annotations: map[string]string{snapshot.KubeletPluginAnnotation: tc.Driver}},
			Selector:   &metav1.LabelSelector{MatchLabels: labels},
			Daemon:     &snapshot.DaemonStatus{Desired: desired, Ready: int32(len(nodes))},
		}
		s.Workloads = append(s.Workloads, set)
		for _, node := range nodes {
			s.Pods = append(s.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "driver", Name: "driver-" + node, UID: tc.UID("driver-" + node), Labels: labels,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "driver", UID: "set", Controller: ptr.To(true)}},
				},
				Spec:   corev1.PodSpec{NodeName: node},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		}
	}
}

// healthy returns a cluster with a driver on two nodes, an allocated claim, and a claim
// that waits for a pod.
func healthy() []any {
	return []any{
		tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...), daemonSet(2, "n1", "n2"),
		tc.Claim("free", tc.GPUs("gpu", 1)),
		tc.Claim("used", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("runs", string(tc.UID("runs"))),
		tc.Pod("runs", tc.UsingClaim("gpu", "used"), tc.RunningOn("n1"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}),
	}
}

func TestHealthyClusterHasNoFindings(t *testing.T) {
	found := diagnose(t, tc.Cluster(healthy()...), Options{})
	if len(found.Findings) > 0 {
		t.Errorf("findings on a healthy cluster: %+v", found.Findings)
	}
	for _, check := range Checks() {
		if check.given == nil && !slices.Contains(found.Checks, check.Code) {
			t.Errorf("%s was not made", check.Code)
		}
	}
}

func old(s *resourceapi.ResourceSlice) {
	s.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-time.Hour))
}

// quota limits the namespace of the tests to these resources.
func quota(hard ...string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		list := tc.ResourceList(hard...)
		s.Quotas = append(s.Quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "limits"}, Spec: corev1.ResourceQuotaSpec{Hard: list}, Status: corev1.ResourceQuotaStatus{Hard: list}})
	}
}

func running(release string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) { s.ServerVersion = release }
}

// bindingFails adds a claim with a device that its driver cannot bind.
func bindingFails(s *snapshot.Snapshot) {
	claim := tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/"+tc.Node1+"/gpu-0", tc.AwaitingBinding("Ready", "Failed")).Reported("gpu-0", "", nil, "Failed=True")
	tc.Add(s, tc.Gate("DRADeviceBindingConditions", true), tc.Gate("DRAResourceClaimDeviceStatus", true), claim.ReservedFor("p", string(tc.UID("p"))), tc.Pod("p", tc.UsingClaim("gpu", "c")))
}

// runs adds a pod on n1 whose container uses a claim with gpu-0.
func runs(s *snapshot.Snapshot) {
	tc.Add(s,
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("p", string(tc.UID("p"))),
		tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn("n1"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}))
}

// evicting adds a rule that evicts a pod.
func evicting(s *snapshot.Snapshot) {
	runs(s)
	rule := tc.TaintRule("rule", tc.Driver, "n1", "gpu-0")
	rule.Spec.Taint.Effect = resourceapi.DeviceTaintEffectNoExecute
	rule.Spec.Taint.TimeAdded = ptr.To(metav1.NewTime(tc.Taken()))
	tc.Add(s, rule)
}

// notPrepared adds a pod whose driver rejects the claim.
func notPrepared(s *snapshot.Snapshot) {
	runs(s)
	pod := s.Pods[len(s.Pods)-1]
	pod.Status.Phase = corev1.PodPending
	s.Events = append(s.Events, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: "failed"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "FailedPrepareDynamicResources", Message: "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: bad config",
		LastTimestamp: metav1.NewTime(tc.Taken()),
	})
}

// sharing adds a pod that does not start, with its own claim and a claim of another pod, on
// a node with a kubelet of that release.
func sharing(kubelet string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Nodes[0].Status.NodeInfo.KubeletVersion = kubelet
		tc.Add(s,
			tc.Claim("shared", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("first", string(tc.UID("first"))).ReservedFor("second", string(tc.UID("second"))),
			tc.Claim("own", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-1").ReservedFor("second", string(tc.UID("second"))),
			tc.Pod("first", tc.UsingClaim("a", "shared"), tc.RunningOn("n1")),
			tc.Pod("second", tc.UsingClaim("a", "shared"), tc.UsingClaim("b", "own"), tc.OnNode("n1"), tc.InPhase(corev1.PodPending)))
	}
}

// TestBugsByRelease holds known bugs against the releases before, in and after their
// ranges.
func TestBugsByRelease(t *testing.T) {
	one := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}
	kubelet := func(release string) []any {
		return append(slices.Clone(one), func(s *snapshot.Snapshot) { s.Nodes[0].Status.NodeInfo.KubeletVersion = release })
	}
	counters := func(release string) []any {
		return []any{
			tc.Nodes("n1"), running(release), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1")).Of(2), tc.Claim("c", tc.GPUs("gpu", 0).All()),
		}
	}
	broken := func(release string) []any {
		return append(slices.Clone(one), running(release), tc.Pool("n2", tc.Devices(1)...).Of(2), tc.Claim("c", tc.GPUs("gpu", 0).All()))
	}
	server := func(release string) []any { return append(slices.Clone(one), running(release)) }
	shared := func(release string) []any { return append(slices.Clone(one), sharing(release)) }
	overflowing := func(release string) []any {
		return append(slices.Clone(one), running(release), tc.Claim("c", tc.GPUs("a", math.MaxInt64), tc.GPUs("b", 1)))
	}
	tainted := func(release string) []any {
		return []any{
			tc.Nodes("n1"), running(release),
			tc.Gates{facts.GatePartitionableDevices, facts.GateDeviceTaints},
			tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
			tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule)).Of(2),
		}
	}
	for code, test := range map[string]struct {
		cluster      func(release string) []any
		with, before []string
	}{
		"DRA1901": {kubelet, []string{"v1.34.0", "v1.34.1-gke.7"}, []string{"v1.33.9", "v1.34.2", "v1.35.0", ""}},
		"DRA1902": {counters, []string{"v1.35.0", "v1.35.5", "v1.36.0", "v1.36.1"}, []string{"v1.34.4", "v1.35.6", "v1.36.2", "v1.37.0"}},
		"DRA1903": {broken, []string{"v1.34.0", "v1.36.6", "v1.37.2"}, []string{"v1.38.0"}},
		"DRA1904": {server, []string{"v1.35.0", "v1.36.1"}, []string{"v1.34.0", "v1.35.6", "v1.36.2", ""}},
		"DRA1906": {overflowing, []string{"v1.35.8", "v1.36.4", "v1.37.0"}, []string{"v1.35.9", "v1.36.5", "v1.37.1", ""}},
		"DRA1907": {tainted, []string{"v1.35.10", "v1.36.2"}, []string{"v1.36.3", "v1.37.0", ""}},
		"DRA1905": {shared, []string{"v1.34.0", "v1.34.3", "v1.35.0"}, []string{"v1.33.9", "v1.34.4", "v1.35.1", "v1.36.0", ""}},
	} {
		for _, release := range slices.Concat(test.with, test.before) {
			found := diagnose(t, tc.Cluster(test.cluster(release)...), Options{Choice: checks.Choice{Only: []string{code}}})
			if has := len(found.Findings) > 0; has != slices.Contains(test.with, release) {
				t.Errorf("%s with %q: findings %v", code, release, found.Findings)
			}
		}
	}
	for _, check := range bugChecks() {
		if !strings.Contains(check.About, "kubernetes/kubernetes#") {
			t.Errorf("%s names no issue", check.Code)
		}
	}
}

// TestBugProvedByMessage covers a message of the scheduler, on a release that is said to be
// without the bug, and on none.
func TestBugProvedByMessage(t *testing.T) {
	for _, release := range []string{"v1.37.1", ""} {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pod("p", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "number of allocations 1 is smaller than number of claims"}}
		}))
		snap.ServerVersion = release
		found := diagnose(t, snap, Options{Choice: checks.Choice{Only: []string{"DRA1904"}}}).Findings
		if len(found) != 1 || found[0].Severity != api.SeverityError || !strings.Contains(found[0].Message, "pod ml/p proves it") {
			t.Errorf("%q: %+v", release, found)
		}
	}
}

// TestOpenRules covers a rule without a selector: the message is the same as in why and
// lint.
func TestOpenRules(t *testing.T) {
	rule := tc.TaintRule("open", "", "", "")
	rule.Spec.DeviceSelector = nil
	for _, release := range []string{"v1.36.6", "v1.37.1", ""} {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), rule)
		snap.ServerVersion = release
		found := diagnose(t, snap, Options{Choice: checks.Choice{Only: []string{"DRA1501"}}}).Findings
		if text := facts.New(snap).Taints.OpenRuleText(rule); len(found) != 1 || found[0].Severity != api.SeverityWarning || found[0].Message != text {
			t.Errorf("%q: %+v, want %s", release, found, text)
		}
	}
}

// TestUnreadRules turns rules on and serves them in a version: a scheduler whose release reads
// another one schedules nothing.
func TestUnreadRules(t *testing.T) {
	for _, test := range []struct{ release, served, missing string }{
		{"v1.35.4", "v1alpha3", ""},
		{"v1.36.3", "v1alpha3", "v1beta2"},
		{"v1.36.3", "v1beta2", ""},
		{"v1.37.1", "v1beta2", "v1"},
		{"v1.37.1", "v1", ""},
		{"v1.38.0", "v1beta2", ""},
		{"", "v1alpha3", ""},
	} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), running(test.release), tc.Gate("DRADeviceTaints", true), tc.Gate("DRADeviceTaintRules", true), func(s *snapshot.Snapshot) {
			s.Served = []string{"resourceclaims.v1.resource.k8s.io", "devicetaintrules." + test.served + ".resource.k8s.io"}
		}), Options{Choice: checks.Choice{Only: []string{"DRA1007"}}}).Findings
		switch {
		case test.missing == "" && len(found) > 0:
			t.Errorf("%+v: %+v", test, found)
		case test.missing != "" && (len(found) != 1 || found[0].Severity != api.SeverityError || !strings.Contains(found[0].Message, test.missing+" of devicetaintrules is not served")):
			t.Errorf("%+v: %+v", test, found)
		}
	}
}

// TestSkewWithinThePolicy expects no finding for kubelets that Kubernetes supports.
func TestSkewWithinThePolicy(t *testing.T) {
	for release, wrong := range map[string]bool{"v1.37.9": false, "v1.34.0": false, "v1.33.9": true, "v1.38.0": true, "": false, "none": false} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1", "cpu"), tc.Pool("n1", tc.Devices(1)...), func(s *snapshot.Snapshot) {
			s.Nodes[0].Status.NodeInfo.KubeletVersion = release
			s.Nodes[1].Status.NodeInfo.KubeletVersion = "v1.20.0"
		}), Options{Choice: checks.Choice{Only: []string{"DRA1004"}}})
		if has := len(found.Findings) > 0; has != wrong {
			t.Errorf("kubelet %q: %v", release, found.Findings)
		}
	}
}

// TestSelectorsThatMayMatch expects no finding where another device would match, or where
// the hardware may exist under another name.
func TestSelectorsThatMayMatch(t *testing.T) {
	for _, expression := range []string{
		`device.driver == "gpu.example.com"`,
		`device.attributes["gpu.example.com"].model == "a100" || device.attributes["gpu.example.com"].model == "h100"`,
		`!("missing" in device.attributes["gpu.example.com"])`,
		`device.attributes["gpu.example.com"].model.startsWith("x")`,
		`this does not compile`,
	} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=h100")), tc.Template("t", tc.GPUs("gpu", 1).Where(expression))), Options{Choice: checks.Choice{Only: []string{"DRA1411"}}})
		if len(found.Findings) > 0 {
			t.Errorf("%s: %v", expression, found.Findings)
		}
	}
}

// TestFaults makes a fault for each check, and expects its finding.
func TestFaults(t *testing.T) {
	one := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...)}
	rule := func(change func(*resourceapi.DeviceTaintRule)) *resourceapi.DeviceTaintRule {
		r := tc.TaintRule("rule", tc.Driver, "n1", "gpu-0")
		change(r)
		return r
	}
	tests := map[string]struct {
		cluster []any
		// says is a part of the message.
		says string
	}{
		"DRA1001": {[]any{tc.Nodes("n1"), running("v1.99.0")}, "1.99.0"},
		"DRA1002": {[]any{
			tc.Nodes("n1"), tc.Gate("DRADeviceCompatibilityGroups", false), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
			tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1").InGroups("g")).Of(2),
		}, "ignores 1 slice"},
		"DRA1003": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Change(func(c *resourceapi.ResourceClaim) {
			c.Annotations = map[string]string{snapshot.DroppedFieldsAnnotation: "spec.devices.requests[0].exactly.capacity"}
		})), "DRAConsumableCapacity"},
		"DRA1004": {append(slices.Clone(one), func(s *snapshot.Snapshot) { s.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.33.4" }), "more than 3 minor releases older"},
		"DRA1005": {append(slices.Clone(one), tc.Gate("DRAConsumableCapacity", false), tc.Gate("DRAFractionalCapacityRange", true)), "DRAFractionalCapacityRange is on and has no effect"},
		"DRA1009": {append(slices.Clone(one), running("v1.37.1"), component("kube-scheduler", "v1.35.4")), "kube-scheduler v1.35.4 is more than one minor release older than the API server (v1.37.1)"},
		"DRA1010": {append(slices.Clone(one), controller("a", false), controller("b", false)), "dra-controller has 2 pods in namespace kubectl-dra, and none is ready: container controller: CrashLoopBackOff; there are no metrics"},
		"DRA1101": {append(slices.Clone(one), daemonSet(0)), "runs on no node"},
		"DRA1102": {append(slices.Clone(one), daemonSet(2, "n1")), "1 of 2 pods"},
		"DRA1103": {append(slices.Clone(one), daemonSet(1, "n1"), func(s *snapshot.Snapshot) { s.Pods[0].Status.Conditions = nil }), "not ready"},
		"DRA1104": {[]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), daemonSet(2, "n1", "n2")}, "publishes nothing"},
		"DRA1105": {[]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), daemonSet(1, "n1")}, "is for node n2, where DaemonSet driver/driver has no pod"},
		"DRA1007": {append(slices.Clone(one), running("v1.37.1"), func(s *snapshot.Snapshot) {
			s.Served = []string{"resourceclaims.v1beta1.resource.k8s.io"}
		}), "does not serve v1 of resource.k8s.io, only v1beta1"},
		"DRA1008": {append(slices.Clone(one), inMetrics("DRADeviceTaints", true), component("kube-scheduler", "v1.37.1", "DRADeviceTaints")), "DRADeviceTaints is on in the API server and off in kube-scheduler, which does not support taints of devices"},
		"DRA1107": {append(slices.Clone(one), notPrepared, unregistered), "driver gpu.example.com is not registered with the kubelet of node n1: 1 pod waits"},
		"DRA1108": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("n2/gpu-0")), "driver gpu.example.com publishes nothing for node n2 any more"},
		"DRA1214": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("gpu-0", "uuid=GPU-1"), tc.Device("mig-0", "parentUUID=GPU-1", "uuid=MIG-1"))}, "publishes device n1/gpu-0 beside 1 part of the same hardware (n1/mig-0)"},
		"DRA1506": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Tainted("gpu.example.com/xid", resourceapi.DeviceTaintEffectNoSchedule))}, "driver gpu.example.com has tainted 1 device on n1 with gpu.example.com/xid:NoSchedule"},
		"DRA1507": {append(slices.Clone(one), tc.TaintRule("rule", "", "", "")), "rule rule taints every device of every driver"},
		"DRA1606": {append(slices.Clone(one), tc.Template("t", tc.GPUs("gpu", 1)), tc.Pod("p", tc.UsingTemplate("gpu", "t"), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-time.Hour))
		}), quota("count/resourceclaims.resource.k8s.io=0")), "p in namespace ml"},
		"DRA1607": {append(slices.Clone(one), quota("gpus.deviceclass.resource.k8s.io/devices=4")), "DeviceClass gpus, which the quota limits, does not exist"},
		"DRA1702": {append(slices.Clone(one), tc.ChangeNode("n1", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(tc.Taken().Add(-20 * time.Minute)), Message: "Kubelet stopped posting node status."}}
		})), "node n1: the kubelet stopped posting status"},
		"DRA1209": {[]any{tc.Nodes("n1"), func(s *snapshot.Snapshot) { s.Nodes[0].UID = "new" }, tc.Pool("n1", tc.Devices(1)...).Change(func(s *resourceapi.ResourceSlice) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "old"}}
		})}, "of an earlier node n1"},
		"DRA1605": {append(slices.Clone(one), tc.Serving("serve", "n1", "gpu-0", "gpu-1"),
			tc.Claim("a", tc.GPUs("gpu", 1)), tc.Pod("a", tc.UsingClaim("gpu", "a")),
			tc.Claim("b", tc.GPUs("gpu", 1)), tc.Pod("b", tc.UsingClaim("gpu", "b")),
			tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("c", tc.UsingClaim("gpu", "c"))), "3 pods wait for the devices of claim serving/serve"},
		"DRA1201": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...).Of(2)}, "1 of 2 slices"},
		"DRA1202": {[]any{tc.Nodes("n1"), tc.Slice("a", tc.Driver, "n1", tc.Device("a")).OnNode("n1"), tc.Slice("b", tc.Driver, "n1", tc.Device("b")).OnNode("n1")}, "1 slice too many"},
		"DRA1203": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"), tc.Device("a"))}, "is invalid"},
		"DRA1204": {[]any{tc.Nodes("n1"), tc.Slice("a", tc.Driver, "n1", tc.Device("a")).OnNode("n1").Generation(2).Change(old), tc.Slice("b", tc.Driver, "n1", tc.Device("a")).OnNode("n1").Generation(1).Change(old)}, "earlier generation than 2"},
		"DRA1205": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("gone", tc.Devices(1)...)}, "node gone does not exist"},
		"DRA1206": {[]any{tc.Nodes("n1"), tc.Pool("n1")}, "without a device"},
		"DRA1207": {[]any{
			tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=1"),
			tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1"), tc.Device("b").Consuming("board", "slices=1")).Of(2), tc.Serving("serve", "n1", "a", "b"),
		}, "2 of 1 used"},
		"DRA1208": {[]any{tc.Nodes("n1"), tc.Gate("DRADeviceBindingConditions", false), tc.Pool("n1", tc.Device("a").BindingOn("Ready"))}, "no node can use"},
		"DRA1210": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "uuid=GPU-1"), tc.Device("b", "uuid=GPU-1"))}, "same uuid GPU-1"},
		"DRA1211": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory=80"), tc.Device("b").WithInt("memory", 80))}, "attribute memory of driver gpu.example.com has type int on gpu.example.com/n1/b and string on"},
		"DRA1212": {[]any{tc.Nodes("n1"), tc.Pool("n1", tc.Copies(65, tc.Device("a").Tainted("example.com/old", resourceapi.DeviceTaintEffectNone))...).Change(func(s *resourceapi.ResourceSlice) {
			for i := range s.Spec.Devices {
				s.Spec.Devices[i].Name = fmt.Sprint("gpu-", i)
			}
		})}, "each update of it is rejected: spec.devices: expected at most 64 elements, found 65"},
		"DRA1213": {append(slices.Clone(one), offers("n1", "example.com/gpu")), "a device plugin offers example.com/gpu on 1 node where driver gpu.example.com publishes devices"},
		"DRA1301": {append(slices.Clone(one), tc.Class("typo", "gpu.exmaple.com")), "class typo selects no device"},
		"DRA1302": {append(slices.Clone(one), tc.ClassWhere("fails", `device.attributes["gpu.example.com"].missing == "x"`)), "fails on 2 devices"},
		"DRA1303": {append(slices.Clone(one), tc.Slice("other", "nic.example.com", "p", tc.Device("a")).OnNode("n1"), tc.ClassWhere("all", "true")), "gpu.example.com and nic.example.com"},
		"DRA1304": {append(slices.Clone(one), func(s *snapshot.Snapshot) {
			second := tc.Class("second", tc.Driver)
			for _, class := range []*resourceapi.DeviceClass{s.Classes[0], second} {
				class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
			}
			s.Classes = append(s.Classes, second)
		}), "same extended resource example.com/gpu"},
		"DRA1305": {append(slices.Clone(one), func(s *snapshot.Snapshot) {
			s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu")
			s.Nodes[0].Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
		}), "device plugin"},
		"DRA1306": {append(slices.Clone(one), tc.Slice("other", "nic.example.com", "p", tc.Device("a")).OnNode("n1")), "driver nic.example.com"},
		"DRA1401": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("gone", "uid-gone")), "reserved for pod gone"},
		"DRA1402": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).OwnedBy("Pod", "gone")), "made for pod gone"},
		"DRA1403": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Deleted("example.com/keep")), "it waits for the owner of the finalizer example.com/keep"},
		"DRA1404": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gone")), "device n1/gone of claim c is no longer in any ResourceSlice"},
		"DRA1405": {append(slices.Clone(one), tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n1", "gpu-0")), "gpu-0"},
		"DRA1406": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").ReservedFor("p", string(tc.UID("p"))), tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn("n1"),
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims = nil })), "pod p"},
		"DRA1407": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/n1/gpu-0").Change(func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation.AllocationTimestamp = ptr.To(metav1.NewTime(tc.Taken().Add(-2 * time.Hour)))
		})), "reserved for nobody"},
		"DRA1408": {[]any{
			tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(1)...), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/"+tc.Node1+"/gpu-0").ReservedFor("p", string(tc.UID("p"))),
			tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn(tc.Node1), tc.ReportedHealth("gpu", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "ECC")),
		}, "unhealthy"},
		"DRA1409": {[]any{tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(1)...), bindingFails}, "cannot bind device"},
		"DRA1411": {append(slices.Clone(one), tc.Template("t", tc.GPUs("gpu", 1).Where(`device.driver == "gpu.exmaple.com"`))), "no device is of driver gpu.exmaple.com"},
		"DRA1410": {[]any{tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(1)...), tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/"+tc.Node1+"/gpu-0").Reported("gpu-0", "", nil, "Ready=False")}, "claim ml/c: driver gpu.example.com reports that device gpu.example.com/node-1/gpu-0 is not ready"},
		"DRA1501": {append(slices.Clone(one), tc.TaintRule("rule", "gpu.exmaple.com", "", "")), "selects no device"},
		"DRA1502": {append(slices.Clone(one), rule(func(r *resourceapi.DeviceTaintRule) { r.Spec.Taint.Effect = resourceapi.DeviceTaintEffectNone })), "effect None"},
		"DRA1503": {append(slices.Clone(one), rule(func(r *resourceapi.DeviceTaintRule) {
			r.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-60 * 24 * time.Hour))
		})), "for 60 days"},
		"DRA1504": {append(slices.Clone(one), evicting), "evicts 1 pod"},
		"DRA1505": {append(slices.Clone(one), tc.TaintRule("a", tc.Driver, "n1", "gpu-0"), rule(func(r *resourceapi.DeviceTaintRule) { r.Spec.Taint.Key, r.Spec.Taint.Value = "a", "other" })), "give 1 device different taints"},
		"DRA1601": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 3)), tc.Pod("p", tc.UsingClaim("gpu", "c"))), "p in namespace ml"},
		"DRA1602": {append(slices.Clone(one), tc.Claim("c", tc.Request("gpu", "missing", 1)), tc.Pod("p", tc.UsingClaim("gpu", "c"))), "DeviceClass missing does not exist"},
		"DRA1603": {append(slices.Clone(one), notPrepared), "Preparation"},
		"DRA1604": {append(slices.Clone(one), func(s *snapshot.Snapshot) {
			s.Quotas = append(s.Quotas, &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "gpus"},
				Status: corev1.ResourceQuotaStatus{
					Hard: tc.ResourceList("gpu.deviceclass.resource.k8s.io/devices=10", "pods=1"), Used: tc.ResourceList("gpu.deviceclass.resource.k8s.io/devices=9", "pods=1"),
				},
			})
		}), "9 of 10 gpu.deviceclass.resource.k8s.io/devices used"},
		"DRA1608": {append(slices.Clone(one), tc.Template("one", tc.GPUs("gpu", 1)), func(s *snapshot.Snapshot) {
			w := &snapshot.Workload{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "train", UID: "train"},
				Conditions: []metav1.Condition{{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate", Message: `pods "train-1-" is forbidden: no PriorityClass with name urgent was found`}},
			}
			w.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one")}}
			plain := *w
			plain.Name, plain.UID, plain.Template = "web", "web", corev1.PodTemplateSpec{}
			s.Workloads = append(s.Workloads, w, &plain)
		}), `Deployment ml/train: the API server refuses the pods of the Deployment: pods "train-1-" is forbidden: no PriorityClass with name urgent was found`},
		"DRA1609": {append(slices.Clone(one), tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("p", tc.UsingClaim("gpu", "c")), func(s *snapshot.Snapshot) {
			s.Pods[0].CreationTimestamp = metav1.NewTime(tc.Taken().Add(-2 * time.Minute))
		}), "kube-scheduler has not looked at 1 pod that fits, the first created 2m ago"},
		"DRA1901": {append(slices.Clone(one), func(s *snapshot.Snapshot) { s.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.34.1" }), "1 node"},
		"DRA1902": {[]any{tc.Nodes("n1"), running("v1.36.1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1")).Of(2), tc.Claim("c", tc.GPUs("gpu", 0).All())}, "panics"},
		"DRA1903": {append(slices.Clone(one), tc.Pool("n2", tc.Devices(1)...).Of(2), tc.Claim("c", tc.GPUs("gpu", 0).All())), "is broken"},
		"DRA1904": {append(slices.Clone(one), running("v1.36.0")), "fails for pods"},
		"DRA1906": {append(slices.Clone(one), running("v1.36.4"), tc.Claim("c", tc.GPUs("a", math.MaxInt64), tc.GPUs("b", 1))), "9223372036854775808 devices together"},
		"DRA1907": {[]any{
			tc.Nodes("n1"), running("v1.36.3"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1")).Of(2),
			tc.Slice("nic-a", "nic.example.com", "n1", tc.Device("a").Consuming("board", "slices=1")).OnNode("n1").Of(2), tc.Slice("nic-b", "nic.example.com", "n1").OnNode("n1").Of(2).WithCounters("board", "slices=4"),
		}, "pools of two drivers"},
		"DRA1905": {append(slices.Clone(one), sharing("v1.35.0")), "does not prepare its other claims"},
	}
	for code, test := range tests {
		t.Run(code, func(t *testing.T) {
			found := diagnose(t, tc.Cluster(test.cluster...), Options{})
			at := slices.IndexFunc(found.Findings, func(f api.Finding) bool { return f.Code == code })
			if at < 0 {
				t.Fatalf("not found; findings: %+v", found.Findings)
			}
			f := found.Findings[at]
			if !strings.Contains(f.Message, test.says) || f.Title == "" || f.Severity == "" || f.Severity == api.SeverityUnknown {
				t.Errorf("%+v\nshould say %q", f, test.says)
			}
			if only := diagnose(t, tc.Cluster(test.cluster...), Options{Choice: checks.Choice{Only: []string{code}}}); !slices.Equal(codesOf(only), []string{code}) || !slices.Equal(only.Checks, []string{code}) {
				t.Errorf("with --only it has %v", codesOf(only))
			}
			if slices.Contains(codesOf(diagnose(t, tc.Cluster(test.cluster...), Options{Choice: checks.Choice{Skip: []string{code}}})), code) {
				t.Error("it is there with --skip")
			}
		})
	}
	for _, check := range Checks() {
		if _, ok := tests[check.Code]; !ok && check.given == nil {
			t.Errorf("no fault for %s", check.Code)
		}
	}
}

// TestReservationsOfPodsThatEnded covers a claim whose only pod ended: the resourceclaim
// controller takes a moment.
func TestReservationsOfPodsThatEnded(t *testing.T) {
	for ago, want := range map[time.Duration]int{10 * time.Second: 0, 10 * time.Minute: 1} {
		snap := tc.Cluster(tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(1)...),
			tc.Claim("c", tc.GPUs("gpu", 1)).Holding(tc.Driver+"/"+tc.Node1+"/gpu-0").ReservedFor("p", string(tc.UID("p"))),
			tc.Pod("p", tc.UsingClaim("gpu", "c"), tc.RunningOn(tc.Node1), func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(tc.Taken().Add(-ago))},
				}}}
			}))
		if got := diagnose(t, snap, Options{Choice: checks.Choice{Only: []string{"DRA1401"}}}).Findings; len(got) != want {
			t.Errorf("%s after the end: %+v", ago, got)
		}
	}
}

// TestNamespace expects no findings of other namespaces, and all findings that are
// cluster-wide or concern drivers, which serve all.
func TestNamespace(t *testing.T) {
	fails := func(namespace string) []any {
		return []any{
			tc.Claim("c", tc.Request("gpu", "missing", 1)).Change(func(c *resourceapi.ResourceClaim) { c.Namespace = namespace }),
			tc.Pod("p", tc.UsingClaim("gpu", "c"), func(p *corev1.Pod) { p.Namespace = namespace }),
		}
	}
	objects := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...).Of(2), daemonSet(1, "n1"), func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			pod.Status.Conditions = nil
		}
	}}
	snap := tc.Cluster(slices.Concat(objects, fails("ml"), fails("web"))...)
	for namespace, want := range map[string][]string{
		"":      {"DRA1103", "DRA1201", "DRA1602 Pod/ml/p", "DRA1602 Pod/web/p"},
		"ml":    {"DRA1103", "DRA1201", "DRA1602 Pod/ml/p"},
		"other": {"DRA1103", "DRA1201"},
	} {
		found := diagnose(t, snap, Options{Namespace: namespace, Choice: checks.Choice{Only: []string{"DRA1103", "DRA12", "DRA1602"}, MinSeverity: api.SeverityError}})
		var got []string
		for _, f := range found.Findings {
			text := f.Code
			if f.Code == codeFails {
				for _, object := range f.Objects {
					text += " " + object.String()
				}
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) || found.Counts.Error != len(want) || found.Namespace != namespace {
			t.Errorf("namespace %q: got %q, %+v, %q, want %q", namespace, got, found.Counts, found.Namespace, want)
		}
	}
}

// TestAgeOfRules covers rules that are forgotten at another age.
func TestAgeOfRules(t *testing.T) {
	for _, test := range []struct {
		age, olderThan time.Duration
		says           string
	}{
		{29 * 24 * time.Hour, 0, ""},
		{31 * 24 * time.Hour, 0, "keeps 1 device from pods for 31 days"},
		{31 * 24 * time.Hour, 60 * 24 * time.Hour, ""},
		{25 * time.Hour, 24 * time.Hour, "for 1 day"},
		{90 * time.Minute, time.Hour, "for 90m"},
	} {
		rule := tc.TaintRule("rule", tc.Driver, "n1", "gpu-0")
		rule.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-test.age))
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), rule), Options{OlderThan: test.olderThan})
		if test.says == "" && len(found.Findings) > 0 || test.says != "" && (len(found.Findings) != 1 || !strings.HasSuffix(found.Findings[0].Message, test.says)) {
			t.Errorf("after %s with %s: %+v", test.age, test.olderThan, found.Findings)
		}
	}
}

// TestRulesOfOtherReleases checks that findings of one release are not reported for
// another.
func TestRulesOfOtherReleases(t *testing.T) {
	both := tc.Pool("n1", tc.Device("a").Consuming("board", "slices=1")).WithCounters("board", "slices=1")
	for release, severity := range map[string]api.Severity{"v1.34.4": api.SeverityInfo, "v1.37.1": api.SeverityWarning, "v1.38.0": api.SeverityWarning, "": api.SeverityInfo} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), running(release), both), Options{Choice: checks.Choice{Only: []string{"DRA1212"}}})
		if len(found.Findings) != 1 || found.Findings[0].Severity != severity {
			t.Errorf("%q: %+v", release, found.Findings)
		}
	}
}

// TestOutdatedAndUnusable reports both of a slice that the API server no longer accepts
// and that no node can use: an update of the driver ends the one and not the other.
func TestOutdatedAndUnusable(t *testing.T) {
	devices := tc.Copies(65, tc.Device("a").Tainted("example.com/old", resourceapi.DeviceTaintEffectNone).BindingOn("Ready"))
	slice := tc.Pool("n1", devices...).Change(func(s *resourceapi.ResourceSlice) {
		for i := range s.Spec.Devices {
			s.Spec.Devices[i].Name = fmt.Sprint("gpu-", i)
		}
	})
	of := Options{Choice: checks.Choice{Only: []string{"DRA1208", "DRA1212"}}}
	for gate, want := range map[bool][]string{false: {"DRA1208", "DRA1212"}, true: {"DRA1212"}} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), running("v1.37.1"), tc.Gate("DRADeviceBindingConditions", gate), slice), of)
		var codes []string
		for _, f := range found.Findings {
			codes = append(codes, f.Code)
		}
		if !slices.Equal(codes, want) {
			t.Errorf("binding conditions %t: %v, not %v", gate, codes, want)
		}
	}
}

func TestUnknownWhereListsAreNotPermitted(t *testing.T) {
	snap := tc.Cluster(append(healthy(), snapshot.Gap{Resource: snapshot.ResourceClaims, Reason: "not permitted to list resourceclaims"})...)
	found := diagnose(t, snap, Options{Choice: checks.Choice{MinSeverity: api.SeverityError}})
	if found.Counts.Unknown == 0 || found.Counts.Error > 0 {
		t.Fatalf("counts %+v", found.Counts)
	}
	for _, f := range found.Findings {
		if f.Severity == api.SeverityUnknown && f.Message != "not checked: not permitted to list resourceclaims" {
			t.Errorf("%s: %s", f.Code, f.Message)
		}
	}
}

// TestUnknownWithoutEvents covers a pod that waits, where no event could be read.
func TestUnknownWithoutEvents(t *testing.T) {
	snap := tc.Cluster(append(healthy(), snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: "this user may not list events"})...)
	found := diagnose(t, snap, Options{})
	if !slices.Equal(codesOf(found), []string{CodeUnregistered, "DRA1608"}) || found.Findings[0].Message != "not checked: this user may not list events" {
		t.Errorf("found %+v", found.Findings)
	}
}

func TestAnnotationIgnoresOneCheck(t *testing.T) {
	class := tc.Class("typo", "gpu.exmaple.com")
	class.Annotations = map[string]string{checks.IgnoreAnnotation: "DRA9999, DRA1301"}
	found := diagnose(t, tc.Cluster(append(healthy(), class)...), Options{})
	if found.Ignored != 1 || len(found.Findings) > 0 {
		t.Errorf("%d ignored, findings %v", found.Ignored, codesOf(found))
	}
	template := tc.Template("t", tc.GPUs("gpu", 1).Where(`device.driver == "gpu.exmaple.com"`))
	template.Annotations = map[string]string{checks.IgnoreAnnotation: "DRA1411"}
	found = diagnose(t, tc.Cluster(append(healthy(), template)...), Options{})
	if found.Ignored != 1 || len(found.Findings) > 0 {
		t.Errorf("of a template: %d ignored, findings %v", found.Ignored, codesOf(found))
	}
}

func TestMinSeverityAndReaches(t *testing.T) {
	snap := tc.Cluster(append(healthy(), tc.Class("typo", "gpu.exmaple.com"))...)
	if found := diagnose(t, snap, Options{Choice: checks.Choice{MinSeverity: api.SeverityError}}); len(found.Findings) > 0 {
		t.Errorf("a warning is left: %v", codesOf(found))
	}
	counts := diagnose(t, snap, Options{}).Counts
	if checks.Reaches(counts, api.SeverityError) || !checks.Reaches(counts, api.SeverityWarning) || !checks.Reaches(counts, api.SeverityInfo) {
		t.Errorf("counts %+v", counts)
	}
}

// TestCodes keeps codes in their groups and in order.
func TestCodes(t *testing.T) {
	if !slices.IsSorted(checks.Codes(Descriptions())) || len(slices.Compact(checks.Codes(Descriptions()))) != len(checks.Codes(Descriptions())) {
		t.Errorf("not sorted, or one twice: %v", checks.Codes(Descriptions()))
	}
	for _, check := range Checks() {
		if !slices.ContainsFunc(Groups(), func(g checks.Group) bool { return strings.HasPrefix(check.Code, "DRA"+g.Number) }) {
			t.Errorf("%s is in no group", check.Code)
		}
		if check.About == "" || check.Advice == "" {
			t.Errorf("%s: its page would be empty", check.Code)
		}
	}
}
