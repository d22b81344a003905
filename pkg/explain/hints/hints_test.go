// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints_test

import (
	"fmt"
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
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// plugin adds a DaemonSet with the note that it is a plugin of the kubelet.
func plugin(name, drivers string, change func(*snapshot.Workload)) any {
	return func(s *snapshot.Snapshot) {
		w := &snapshot.Workload{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "plugins", Name: name,
				Annotations: map[string]string{"dra.kubectl.dev/kubelet-plugin": drivers},
			},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		}
		change(w)
		s.Workloads = append(s.Workloads, w)
	}
}

func unchanged(*snapshot.Workload) {}

// pluginPod adds a pod of a DaemonSet.
func pluginPod(set, node string, isReady bool) any {
	return func(s *snapshot.Snapshot) {
		tc.Add(s, tc.Pod(set+"-"+node, func(p *corev1.Pod) {
			p.Namespace, p.Spec.NodeName, p.Labels = "plugins", node, map[string]string{"app": set}
			p.Status.Phase = corev1.PodRunning
			if isReady {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
		}))
	}
}

func withPriority(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

// user adds the running pod that a claim is reserved for.
func user(name, claim string, priority int32) any {
	return func(s *snapshot.Snapshot) {
		tc.Add(s, tc.Pod(name, tc.RunningOn("node-1"), withPriority(priority), func(p *corev1.Pod) { p.Namespace = "serving" }))
		for _, c := range s.Claims {
			if c.Name == claim {
				c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: tc.UID(name)}}
			}
		}
	}
}

func taintRule(selector *resourceapi.DeviceTaintSelector) any {
	return func(s *snapshot.Snapshot) {
		s.TaintRules = append(s.TaintRules, &resourceapi.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: "rule"},
			Spec: resourceapi.DeviceTaintRuleSpec{
				DeviceSelector: selector,
				Taint:          resourceapi.DeviceTaint{Key: "example.com/broken", Effect: resourceapi.DeviceTaintEffectNoSchedule},
			},
		})
	}
}

// said adds an event about the pod, from some minutes ago.
func said(reason string, minutes int) any {
	return func(s *snapshot.Snapshot) {
		s.Events = append(s.Events, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: tc.Namespace, Name: reason},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: tc.Namespace, Name: "train-0", UID: "uid-train-0"},
			Reason:         reason, Message: "said the autoscaler",
			LastTimestamp: metav1.NewTime(s.TakenAt.Add(-time.Duration(minutes) * time.Minute)),
		})
	}
}

// halfPublished makes a slice one of two of its pool, of some time ago.
func halfPublished(age time.Duration) func(*resourceapi.ResourceSlice) {
	return func(s *resourceapi.ResourceSlice) {
		s.Spec.Pool.ResourceSliceCount = 2
		s.Generation = 1
		s.CreationTimestamp = metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(-age))
	}
}

// changedSince is like halfPublished, with a slice that was changed after its creation.
func changedSince(age time.Duration) func(*resourceapi.ResourceSlice) {
	return func(s *resourceapi.ResourceSlice) {
		halfPublished(age)(s)
		s.Generation = 2
	}
}

// lookingInto adds a claim with admin access to a device of a node.
func lookingInto(name, node, device string) any {
	return tc.Serving(name, node).Holding(node+"/"+device, tc.ForAdmin)
}

// links publishes a pool for two nodes whose devices share a counter.
func links(left string) any {
	return func(s *snapshot.Snapshot) {
		tc.Add(s, tc.Pool("shared").Of(2).WithCounters("board", "links="+left), tc.Pool("shared").Of(2))
		for _, slice := range s.Slices {
			slice.Spec.NodeName = nil
		}
		s.Slices[0].Spec.AllNodes, s.Slices[1].Spec.PerDeviceNodeSelection = ptr.To(true), ptr.To(true)
		for _, name := range []string{"node-1", "node-2"} {
			for i := range 2 {
				d := tc.Device(fmt.Sprintf("%s-gpu-%d", name, i)).Consuming("board", "links=1")
				d.NodeName = &name
				s.Slices[1].Spec.Devices = append(s.Slices[1].Spec.Devices, d.Device)
			}
		}
	}
}

func dropped(fields string) any {
	return func(s *snapshot.Snapshot) {
		for _, c := range s.Claims {
			c.Annotations = map[string]string{"dra.kubectl.dev/dropped-fields": fields}
		}
	}
}

func offering(name, quantity string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(quantity) }
}

// TestHints has, for each hint, a cluster where it is to be given and those
// next to it where it would be wrong.
func TestHints(t *testing.T) {
	full := []any{tc.Nodes("node-1"), tc.Pool("node-1", tc.Device("gpu-0")), tc.Serving("held", "node-1", "gpu-0"), tc.Claim("c", tc.GPUs("gpu", 1))}
	asked := tc.Pod("train-0", tc.Using("c"))
	missing := []any{tc.Nodes("node-1", "node-2"), tc.Pool("node-1", tc.Device("gpu-0")), tc.Serving("held", "node-1", "gpu-0"), tc.Claim("c", tc.GPUs("gpu", 1)), asked}
	nothing := []any{tc.Nodes("node-1"), tc.Claim("c", tc.GPUs("gpu", 1)), asked}
	tainted := []any{tc.Gate("DRADeviceTaintRules", true), tc.Gate("DRADeviceTaints", true), tc.Nodes("node-1"), tc.Pool("node-1", tc.Device("gpu-0")), tc.Claim("c", tc.GPUs("gpu", 1)), asked}
	selectNode := func(w *snapshot.Workload) { w.Template.Spec.NodeSelector = map[string]string{"gpu": "yes"} }
	for name, test := range map[string]struct {
		cluster []any
		more    []any
		// hint is a part of the only hint; none if empty.
		hint string
	}{
		"nothing to say": {cluster: full, more: []any{asked}},

		"plugin without room":         {cluster: nothing, more: []any{plugin("p", tc.Driver, selectNode)}, hint: "has none for node-1: no label gpu=yes"},
		"plugin of another driver":    {cluster: nothing, more: []any{plugin("p", "nic.example.org", selectNode)}},
		"plugin of the same maker":    {cluster: nothing, more: []any{plugin("example-dra", "", selectNode)}, hint: "a kubelet plugin that by its name belongs to the driver"},
		"storage of the same maker":   {cluster: nothing, more: []any{plugin("example-storage", "storage.csi.example.com", selectNode)}},
		"the named one before others": {cluster: nothing, more: []any{plugin("example-dra", "", selectNode), plugin("p", tc.Driver, selectNode)}, hint: "DaemonSet plugins/p has none"},
		"plugin that is not ready":    {cluster: nothing, more: []any{plugin("p", tc.Driver, unchanged), pluginPod("p", "node-1", false)}, hint: "pod p-node-1 on node node-1 is not ready"},
		"silent plugin":               {cluster: missing, more: []any{plugin("p", tc.Driver, unchanged), pluginPod("p", "node-1", true), pluginPod("p", "node-2", true)}, hint: "pod p-node-2 is ready, but there is no ResourceSlice of gpu.example.com for node-2"},
		"node without hardware":       {cluster: missing, more: []any{plugin("p", tc.Driver, selectNode), pluginPod("p", "node-1", true)}},
		"hidden slices":               {cluster: nothing, more: []any{tc.Gap(snapshot.ResourceSlices, "hidden"), plugin("p", tc.Driver, selectNode)}},

		"plugin in a registry of the maker's": {cluster: nothing, more: []any{plugin("p", "", func(w *snapshot.Workload) {
			selectNode(w)
			w.Template.Spec.Containers = []corev1.Container{{Image: "registry.example.com/storage/agent:v1"}}
		})}},
		"plugin of another product of the maker's": {cluster: nothing, more: []any{plugin("example-dra", "nic.example.com", selectNode)}},
		"version in a plugin of the maker's":       {cluster: nothing, more: []any{plugin("example-dra", "v1.2.3", selectNode)}, hint: "a kubelet plugin that by its name belongs to the driver"},

		"rule for everything":   {cluster: tainted, more: []any{taintRule(&resourceapi.DeviceTaintSelector{})}, hint: "rule rule taints every device of every driver: example.com/broken:NoSchedule"},
		"rule for a driver":     {cluster: tainted, more: []any{taintRule(&resourceapi.DeviceTaintSelector{Driver: ptr.To(tc.Driver)})}},
		"rule that is harmless": {cluster: full, more: []any{asked, tc.Gate("DRADeviceTaintRules", true), tc.Gate("DRADeviceTaints", true), taintRule(&resourceapi.DeviceTaintSelector{})}},

		"lower priority": {cluster: full, more: []any{tc.Pod("train-0", tc.Using("c"), withPriority(100)), user("infer-0", "held", 10)}, hint: "pod serving/infer-0 keeps node-1/gpu-0, although its priority 10 is lower than that of pod train-0, 100"},
		"lower priority, but admin access": {cluster: full, more: []any{
			tc.Pod("train-0", tc.Using("c"), withPriority(100)), lookingInto("watch", "node-1", "gpu-0"), user("monitor", "watch", 10), user("infer-0", "held", 200),
		}},
		"same priority": {cluster: full, more: []any{tc.Pod("train-0", tc.Using("c"), withPriority(10)), user("infer-0", "held", 10)}},

		"dropped field":        {cluster: full, more: []any{asked, dropped("spec.devices.requests[0].exactly.tolerations")}, hint: "feature gate DRADeviceTaints is off"},
		"field without a gate": {cluster: full, more: []any{asked, dropped("spec.devices.requests[0].exactly.count,nonsense,")}},

		"no scale-up":          {cluster: full, more: []any{asked, said("NotTriggerScaleUp", 5)}, hint: "added no node for it (event NotTriggerScaleUp, 5m ago): said the autoscaler"},
		"scale-up after all":   {cluster: full, more: []any{asked, said("NotTriggerScaleUp", 5), said("TriggeredScaleUp", 2)}, hint: "set out to add a node for it (event TriggeredScaleUp, 2m ago)"},
		"scale-up of long ago": {cluster: full, more: []any{asked, said("TriggeredScaleUp", 20)}},
		"other event":          {cluster: full, more: []any{asked, said("FailedScheduling", 5)}},

		"pool that stays incomplete": {
			cluster: []any{tc.Nodes("node-1"), tc.Claim("c", tc.GPUs("gpu", 1)), asked}, more: []any{tc.Pool("node-1", tc.Device("gpu-0")).Change(halfPublished(10 * time.Minute))},
			hint: "pool node-1 has 1 of 2 slices, the newest 10m old, although",
		},
		"pool that was changed since": {
			cluster: []any{tc.Nodes("node-1"), tc.Claim("c", tc.GPUs("gpu", 1)), asked}, more: []any{tc.Pool("node-1", tc.Device("gpu-0")).Change(changedSince(10 * time.Minute))},
			hint: "pool node-1 has 1 of 2 slices; publishing them takes seconds: if one is still missing then",
		},
		"pool that is being published": {
			cluster: []any{tc.Nodes("node-1"), tc.Claim("c", tc.GPUs("gpu", 1)), asked}, more: []any{tc.Pool("node-1", tc.Device("gpu-0")).Change(halfPublished(10 * time.Second))},
		},

		"attribute of other domains": {
			cluster: []any{
				tc.Nodes("node-1"), tc.Pool("node-1", tc.Devices(2, "b.com/root=x", "a.com/root=x", "c.com/root=x")...),
				tc.Claim("c", tc.GPUs("gpu", 2)).Matching("resource.kubernetes.io/root"), asked,
			},
			hint: "a.com/root of gpu-0 (\"x\") does not count as resource.kubernetes.io/root",
		},
		"attribute without a domain": {
			cluster: []any{
				tc.Nodes("node-1"), tc.Pool("node-1", tc.Devices(2, "a.com/root=x", "root=x")...),
				tc.Claim("c", tc.GPUs("gpu", 2)).Matching("resource.kubernetes.io/root"), asked,
			},
			hint: "root of gpu-0 counts as gpu.example.com/root (\"x\"), not as resource.kubernetes.io/root",
		},

		"all overdraw on each node":      {cluster: []any{tc.Nodes("node-1", "node-2"), tc.Claim("c", tc.GPUs("gpu", 1).All()), asked}, more: []any{links("1")}, hint: "all 2 devices of pool shared for node-1 together need 2 of counter links of board, of which 1 are available: devices that overlap cannot all be allocated; likewise for 1 more node"},
		"all overdraw on no single node": {cluster: []any{tc.Nodes("node-1", "node-2"), tc.Claim("c", tc.GPUs("gpu", 1).All(), tc.GPUs("more", 1, "false")), asked}, more: []any{links("2")}},
		"all overdraw with admin access": {cluster: []any{tc.Nodes("node-1", "node-2"), tc.Claim("c", tc.GPUs("gpu", 1).All().WithAdminAccess()), asked}, more: []any{links("1")}},

		"plugin of the maker's on the node": {
			cluster: []any{tc.Nodes("node-1"), tc.ChangeNode("node-1", offering("example.com/gpu", "4")), tc.Pool("node-1", tc.Device("gpu-0")), tc.Claim("c", tc.GPUs("gpu", 1)), asked},
			hint:    "node node-1 also offers 4 example.com/gpu through a device plugin",
		},
		"plugin of another maker's on the node": {
			cluster: []any{tc.Nodes("node-1"), tc.ChangeNode("node-1", offering("example.org/gpu", "4")), tc.Pool("node-1", tc.Device("gpu-0")), tc.Claim("c", tc.GPUs("gpu", 1)), asked},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainPod(t, tc.Cluster(slices.Concat(test.cluster, test.more)...))
			var texts []string
			for _, hint := range got.Hints {
				texts = append(texts, hint.Text)
				if len(hint.Evidence) == 0 {
					t.Errorf("no evidence for: %s", hint.Text)
				}
			}
			if test.hint == "" && len(texts) > 0 || test.hint != "" && (len(texts) != 1 || !strings.Contains(texts[0], test.hint)) {
				t.Errorf("got %q, want %q (%s: %s)", texts, test.hint, got.Verdict, got.Summary)
			}
		})
	}
}

func explainPod(t *testing.T, snap *snapshot.Snapshot) *api.Explanation {
	t.Helper()
	got, err := explain.Explain(t.Context(), snap, explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0")})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestUnmappedExtendedResource asks about a pod that was meant to use DRA and
// does not, as far as the cluster is concerned.
func TestUnmappedExtendedResource(t *testing.T) {
	asking := tc.Pod("train-0", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	})
	mapped := func(s *snapshot.Snapshot) { s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu") }
	for name, test := range map[string]struct {
		parts []any
		want  string
	}{
		"nobody":        {parts: []any{tc.Nodes("node-1"), asking}, want: "No node offers the extended resource example.com/gpu, and no DeviceClass maps it"},
		"device plugin": {parts: []any{tc.Nodes("node-1"), tc.ChangeNode("node-1", offering("example.com/gpu", "1")), asking}, want: "which no DeviceClass maps; device plugins offer it on node-1"},
		"a driver":      {parts: []any{tc.Nodes("node-1"), tc.Pool("node-1", tc.Device("gpu-0")), asking}, want: "driver gpu.example.com publishes devices: to serve it with them, a DeviceClass needs spec.extendedResourceName: example.com/gpu"},
		"gate off":      {parts: []any{tc.Gate("DRAExtendedResource", false), tc.Nodes("node-1"), asking, mapped}, want: "DeviceClass gpu maps it, but the feature gate DRAExtendedResource is off"},
		"plain pod":     {parts: []any{tc.Nodes("node-1"), tc.Pod("train-0")}, want: "uses no ResourceClaim and no extended resource of a DeviceClass"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain.Explain(t.Context(), tc.Cluster(test.parts...), explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0")})
			said := ""
			switch {
			case err != nil:
				said = err.Error()
			case e.Verdict != api.DoesNotFit:
				t.Errorf("the verdict is %s", e.Verdict)
			default:
				said = e.Summary
				for _, hint := range e.Hints {
					said += "\n" + hint.Text
				}
			}
			if !strings.Contains(said, test.want) {
				t.Errorf("got %q, want %q", said, test.want)
			}
		})
	}
}
