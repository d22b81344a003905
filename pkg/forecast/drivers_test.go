// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// plugin returns a pod of the driver on a node, of a controller of some kind or of none.
func plugin(name, node, kind string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := tc.Pod(name, append(changes, tc.RunningOn(node))...)
	pod.Annotations = map[string]string{snapshot.KubeletPluginAnnotation: tc.Driver}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "plugin", UID: "plugin", Controller: ptr.To(true)}}
	}
	return pod
}

// pluginSet returns the DaemonSet of the driver.
func pluginSet(update *snapshot.Update) *snapshot.Workload {
	return &snapshot.Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: snapshot.KindDaemonSet},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tc.Pod("").Namespace, Name: "plugin", UID: "plugin",
			Annotations: map[string]string{snapshot.KubeletPluginAnnotation: tc.Driver},
		},
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "plugin"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"gpu": "true"}}},
		Update:   update,
	}
}

func withSet(set *snapshot.Workload) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) { s.Workloads = append(s.Workloads, set) }
}

// driversText says what becomes of the drivers' pods on each node.
func driversText(out *api.Impact) string {
	var lines []string
	for i := range out.Drivers {
		d := &out.Drivers[i]
		line := fmt.Sprintf("%s %s", d.Node, d.Effect)
		for _, part := range []struct {
			word string
			pods []api.ObjectRef
		}{{"running", d.Running}, {"starting", d.Starting}, {"ending", d.Ending}} {
			if len(part.pods) > 0 {
				line += " " + part.word + " " + strings.Join(english.Texts(part.pods, func(o api.ObjectRef) string { return o.Namespace + "/" + o.Name }), ",")
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// inUse returns pods with devices on two nodes: one runs, one starts, one is in Terminating, and
// one needs no driver to end.
func inUse() []any {
	parts := []any{template(), tc.Pool("n1", tc.Devices(4)...), tc.Pool("n2", tc.Devices(4)...), tc.Pool("n3", tc.Devices(1)...)}
	parts = append(parts, running("run", "n1", "gpu-0")...)
	starts, ends := running("start", "n1", "gpu-1"), running("end", "n1", "gpu-2")
	changed := func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			switch pod.Name {
			case "start":
				pod.Status.Phase = corev1.PodPending
			case "end":
				pod.DeletionTimestamp = &metav1.Time{Time: s.Now().Add(-time.Minute)}
			}
		}
	}
	skips := tc.Pod("skips", tc.Using("skips"), tc.RunningOn("n2"))
	parts = append(parts, starts...)
	parts = append(parts, ends...)
	parts = append(parts, running("other", "n2", "gpu-0")...)
	return append(parts, changed, skips, tc.Claim("skips", tc.GPUs("gpu", 1)).Holding("n2/gpu-1", func(r *resourceapi.DeviceRequestAllocationResult) {
		r.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodeUnprepareResources}
	}).ReservedFor("skips", string(tc.UID("skips"))))
}

func kubelets(version string, nodes ...string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, node := range s.Nodes {
			if slices.Contains(nodes, node.Name) {
				node.Status.NodeInfo.KubeletVersion = version
			}
		}
	}
}

// TestUpgradeDriver asks what a new template does, by the update strategy.
func TestUpgradeDriver(t *testing.T) {
	rolling := func(unavailable, surge *intstr.IntOrString) *snapshot.Update {
		return &snapshot.Update{Type: "RollingUpdate", RollingUpdate: &snapshot.RollingUpdate{MaxUnavailable: unavailable, MaxSurge: surge}}
	}
	const users = " running ml/run starting ml/start ending ml/end"
	for name, test := range map[string]struct {
		update *snapshot.Update
		want   string
		limits api.ImpactUpdate
		// step is a part of a command that is printed.
		step string
	}{
		"default":    {nil, "n1 Away" + users + "; n2 Away running ml/other; n3 Away", api.ImpactUpdate{Type: "RollingUpdate", MaxUnavailable: 1}, "kubectl rollout status daemonset plugin -n ml"},
		"percentage": {rolling(ptr.To(intstr.FromString("34%")), nil), "n1 Away" + users + "; n2 Away running ml/other; n3 Away", api.ImpactUpdate{Type: "RollingUpdate", MaxUnavailable: 2}, "kubectl rollout undo daemonset plugin -n ml"},
		"surge":      {rolling(ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromString("50%"))), "n1 Overlaps" + users + "; n2 Unregistered running ml/other; n3 Overlaps", api.ImpactUpdate{Type: "RollingUpdate", MaxSurge: 2}, `kubectl patch daemonset plugin -n ml -p '{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`},
		"on delete":  {&snapshot.Update{Type: "OnDelete"}, "n1 Stays" + users + "; n2 Stays running ml/other; n3 Stays", api.ImpactUpdate{Type: "OnDelete"}, "for node in n3 n2 n1; do kubectl delete pod -n ml -l app=plugin "},
	} {
		t.Run(name, func(t *testing.T) {
			set := pluginSet(test.update)
			parts := append(inUse(), tc.Nodes("n1", "n2", "n3"), withSet(set), kubelets("v1.37.1", "n1"), kubelets("v1.32.4", "n2"))
			for _, node := range []string{"n1", "n2", "n3"} {
				pod := plugin("plugin-"+node, node, snapshot.KindDaemonSet)
				pod.Annotations = nil
				parts = append(parts, pod)
			}
			snap := tc.Cluster(parts...)
			drivers := forecast.DriversOf(snap, set)
			if !slices.Equal(drivers, []string{tc.Driver}) {
				t.Fatalf("drivers %v", drivers)
			}
			pods, out := assessed(t, snap, forecast.UpgradeDriver(set, drivers))
			if got := driversText(out); got != test.want || pods != "" {
				t.Errorf("got  %s\nwant %s\npods %s", got, test.want, pods)
			}
			if out.Counts.NeedDriver != 4 {
				t.Errorf("%d pods need the driver, want 4", out.Counts.NeedDriver)
			}
			if *out.Update != test.limits {
				t.Errorf("update %+v, want %+v", *out.Update, test.limits)
			}
			if !strings.Contains(commandsOf(out), test.step) {
				t.Errorf("no step has %s:\n%s", test.step, commandsOf(out))
			}
		})
	}
}

func commandsOf(out *api.Impact) string {
	var lines []string
	for _, step := range out.Steps {
		lines = append(lines, step.Commands...)
	}
	return strings.Join(lines, "\n")
}

// TestManagedDriver names where the DaemonSet of a driver is to be changed, and gives no command
// whose effect is undone from there.
func TestManagedDriver(t *testing.T) {
	owned := func(s *snapshot.Workload) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}, {APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "policy", Controller: ptr.To(true)}}
	}
	helm := func(annotations map[string]string) func(*snapshot.Workload) {
		return func(s *snapshot.Workload) {
			s.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
			for key, value := range annotations {
				s.Annotations["meta.helm.sh/"+key] = value
			}
		}
	}
	surge := &snapshot.Update{Type: "RollingUpdate", RollingUpdate: &snapshot.RollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1))}}
	for name, test := range map[string]struct {
		manage  func(*snapshot.Workload)
		manager string
		// edit is the command of the step that changes the template.
		edit string
	}{
		"nobody":         {func(*snapshot.Workload) {}, "", "kubectl edit daemonset plugin -n ml"},
		"an operator":    {owned, "ClusterPolicy policy", "kubectl edit ClusterPolicy.v1.nvidia.com policy -n ml"},
		"not controlled": {func(s *snapshot.Workload) { owned(s); s.OwnerReferences = s.OwnerReferences[:1] }, "ConfigMap other", "kubectl edit ConfigMap other -n ml"},
		"Helm":           {helm(map[string]string{"release-name": "gpu", "release-namespace": "operators"}), "Helm release operators/gpu", ""},
		"Helm, template": {helm(nil), "its Helm chart", ""},
		"another tool":   {func(s *snapshot.Workload) { s.Labels = map[string]string{"app.kubernetes.io/managed-by": "kustomize"} }, "", "kubectl edit daemonset plugin -n ml"},
	} {
		for update, strategy := range map[string]*snapshot.Update{"rolling": nil, "surge": surge, "on delete": {Type: "OnDelete"}} {
			t.Run(name+", "+update, func(t *testing.T) {
				set := pluginSet(strategy)
				test.manage(set)
				snap := tc.Cluster(append(inUse(), tc.Nodes("n1", "n2"), withSet(set), kubelets("v1.32.4", "n1"), plugin("plugin-n1", "n1", snapshot.KindDaemonSet), plugin("plugin-n2", "n2", snapshot.KindDaemonSet))...)
				_, out := assessed(t, snap, forecast.UpgradeDriver(set, []string{tc.Driver}))
				texts, commands := "", commandsOf(out)
				for _, step := range out.Steps {
					texts += step.Text + "\n"
				}
				if named := strings.Contains(texts, "change the template in "+cmp.Or(test.manager, "?")+", from where changes of the DaemonSet itself are undone"); named != (test.manager != "") {
					t.Errorf("manager %q:\n%s", test.manager, texts)
				}
				if !strings.Contains(commands, test.edit) {
					t.Errorf("no command %s:\n%s", test.edit, commands)
				}
				for _, undone := range []string{"kubectl edit daemonset", "kubectl rollout undo", "kubectl patch daemonset"} {
					if test.manager != "" && strings.Contains(commands, undone) {
						t.Errorf("%s is undone from %s:\n%s", undone, test.manager, commands)
					}
				}
				for _, change := range []forecast.Change{forecast.Drain("n1"), forecast.RemoveDriver(tc.Driver)} {
					_, out := assessed(t, snap, change)
					want := "(DaemonSet ml/plugin)"
					if test.manager != "" {
						want = "(DaemonSet ml/plugin, to be changed in " + test.manager + ")"
					}
					if last := out.Steps[len(out.Steps)-1]; !strings.Contains(last.Text, want) || test.manager != "" && len(last.Commands) > 0 {
						t.Errorf("the last step is %+v, want %s", last, want)
					}
				}
			})
		}
	}
}

// TestUpgradeDriverElsewhere names nodes whose pods need the driver and that have no pod of
// it, and pods that are not ready.
func TestUpgradeDriverElsewhere(t *testing.T) {
	set := pluginSet(nil)
	pod := plugin("plugin-n2", "n2", snapshot.KindDaemonSet)
	pod.Status.Conditions = nil
	_, out := assessed(t, tc.Cluster(append(inUse(), tc.Nodes("n1", "n2"), withSet(set), pod)...), forecast.UpgradeDriver(set, []string{tc.Driver}))
	want := []string{"pods use devices of the driver on 1 node, where the DaemonSet has no pod: n1", "not ready before the change: ml/plugin-n2"}
	if !slices.Equal(out.Notes, want) {
		t.Errorf("notes %q, want %q", out.Notes, want)
	}
}

// TestDriverLeaves evicts the pods of a driver, which pods on the node need to end.
func TestDriverLeaves(t *testing.T) {
	unnamed := func(name, node, names string) *corev1.Pod {
		pod := plugin(name, node, "")
		pod.Annotations[snapshot.KubeletPluginAnnotation] = names
		return pod
	}
	tolerant := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	taint := forecast.TaintNode("n1", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})
	const leaves = "n1 Leaves running ml/run starting ml/start ending ml/end"
	for name, test := range map[string]struct {
		pods   []any
		change forecast.Change
		want   string
	}{
		"Deployment":          {[]any{plugin("driver", "n1", "ReplicaSet")}, forecast.Drain("n1"), leaves},
		"bare pod":            {[]any{plugin("driver", "n1", "")}, forecast.Drain("n1"), leaves},
		"node removed":        {[]any{plugin("driver", "n1", "")}, forecast.RemoveNode("n1"), leaves},
		"DaemonSet":           {[]any{plugin("driver", "n1", snapshot.KindDaemonSet)}, forecast.Drain("n1"), ""},
		"one of two stays":    {[]any{plugin("driver", "n1", ""), plugin("second", "n1", snapshot.KindDaemonSet)}, forecast.Drain("n1"), ""},
		"both leave":          {[]any{plugin("driver", "n1", ""), plugin("second", "n1", "ReplicaSet")}, forecast.Drain("n1"), leaves},
		"nothing tells":       {[]any{unnamed("driver", "n1", "")}, forecast.Drain("n1"), leaves},
		"another is known":    {[]any{unnamed("driver", "n1", ""), plugin("second", "n3", "")}, forecast.Drain("n1"), ""},
		"another driver":      {[]any{unnamed("driver", "n1", "disk.csi.example.com")}, forecast.Drain("n1"), ""},
		"no users":            {[]any{plugin("driver", "n3", "")}, forecast.Drain("n3"), ""},
		"cordon":              {[]any{plugin("driver", "n1", "")}, forecast.Cordon("n1"), ""},
		"taint":               {[]any{plugin("driver", "n1", snapshot.KindDaemonSet)}, taint, leaves},
		"tolerated taint":     {[]any{plugin("driver", "n1", snapshot.KindDaemonSet, tolerant)}, taint, ""},
		"driver removed":      {[]any{plugin("driver", "n1", "")}, forecast.RemoveDriver(tc.Driver), ""},
		"driver of no device": {[]any{tc.Pod("other", tc.RunningOn("n1"))}, forecast.Drain("n1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(inUse(), append(test.pods, tc.Nodes("n1", "n2", "n3"))...)...)
			if name == "DaemonSet" || name == "taint" || name == "tolerated taint" || name == "one of two stays" {
				snap.Workloads = append(snap.Workloads, pluginSet(nil))
			}
			_, out := assessed(t, snap, test.change)
			if got := driversText(out); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestDriverLeavesLast drains in an order that keeps the driver until the devices are
// unprepared, and says which labels keep a DaemonSet on the node.
func TestDriverLeavesLast(t *testing.T) {
	parts := append(inUse(), tc.Nodes("n1", "n2", "n3"))
	_, out := assessed(t, tc.Cluster(append(parts, plugin("driver", "n1", "ReplicaSet"))...), forecast.Drain("n1"))
	want := `kubectl label pod driver -n ml drain=last
kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --pod-selector='drain!=last'
kubectl dra devices --node n1 --allocated
kubectl drain n1 --ignore-daemonsets --delete-emptydir-data`
	if got := commandsOf(out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	assumed := func(out *api.Impact) bool {
		return slices.ContainsFunc(out.Assumptions, func(text string) bool {
			return strings.Contains(text, "the pods of driver "+tc.Driver+" on the node")
		})
	}
	if assumed(out) {
		t.Errorf("the pod of the driver is known: %q", out.Assumptions)
	}
	bare := plugin("driver", "n1", "")
	bare.Annotations[snapshot.KubeletPluginAnnotation] = ""
	if _, out = assessed(t, tc.Cluster(append(parts, bare)...), forecast.Drain("n1")); !slices.Contains(out.Assumptions, "pod ml/driver is of driver "+tc.Driver+": it has a plugin of the kubelet, and nothing tells of which driver") {
		t.Errorf("nothing tells of which driver the pod is, assumed is %q", out.Assumptions)
	}
	_, out = assessed(t, tc.Cluster(append(parts, withSet(pluginSet(nil)), plugin("driver", "n1", snapshot.KindDaemonSet))...), forecast.Drain("n1"))
	if last := out.Steps[len(out.Steps)-1].Text; assumed(out) || !strings.HasSuffix(last, "(DaemonSet ml/plugin), or change labels by which their DaemonSets choose nodes: gpu") {
		t.Errorf("the last step is %q, assumed is %q", last, out.Assumptions)
	}
	if _, out = assessed(t, tc.Cluster(parts...), forecast.Drain("n1")); !assumed(out) {
		t.Errorf("the pods of the driver are not known, assumed is %q", out.Assumptions)
	}
}
