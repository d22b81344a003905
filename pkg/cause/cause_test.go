// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// causes returns each cause as a line: severity, code, message, pods, the next step, and what
// changes when it is mended.
func causes(t *testing.T, snap *snapshot.Snapshot, namespace string) []string {
	t.Helper()
	tc.Unchanged(t, snap)
	found, err := Find(t.Context(), cluster.New(snap), Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range found.Status.Causes {
		c := &found.Status.Causes[i]
		line := fmt.Sprintf("%s %s: %s; %d pods", c.Severity, c.Code, c.Message, c.Pods)
		if c.NextStep != nil {
			line += "; " + c.NextStep.Actor + " " + c.NextStep.Text
		}
		if c.Mended != nil {
			line += "; then " + c.Mended.Message
		}
		lines = append(lines, line)
	}
	return lines
}

func cordoned(name string) func(*snapshot.Snapshot) {
	return tc.ChangeNode(name, func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

// waits returns a pod that waits after a look of the scheduler, and its claim.
func waits(name string, requests ...tc.RequestWrapper) []any {
	return unheard(name, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: p.CreationTimestamp}}
	}, requests...)
}

// unheard returns a pod that no scheduler has looked at, with a change, and its claim.
func unheard(name string, change func(*corev1.Pod), requests ...tc.RequestWrapper) []any {
	return []any{tc.Claim(name+"-claim", requests...), tc.Pod(name, tc.Using(name+"-claim"), change)}
}

func TestFind(t *testing.T) {
	two := slices.Concat([]any{tc.Nodes("n1", "n2", "n3"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...)})
	for name, test := range map[string]struct {
		objects []any
		want    []string
	}{
		"nothing": {objects: two},
		"fits":    {objects: slices.Concat(two, waits("a", tc.GPUs("gpu", 1)))},
		"no scheduler": {
			objects: slices.Concat(two, unheard("a", func(*corev1.Pod) {}, tc.GPUs("gpu", 1)), unheard("b", func(*corev1.Pod) {}, tc.GPUs("gpu", 1)),
				unheard("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }, tc.GPUs("gpu", 1)),
				unheard("other", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, tc.GPUs("gpu", 1)),
				unheard("new", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-time.Second)) }, tc.GPUs("gpu", 1))),
			want: []string{
				"Error DRA1609: kube-scheduler has not looked at 2 pods that fit, the first created 14m ago; 2 pods; Admin see whether kube-scheduler runs, and what its log says",
				"Warning OtherScheduler: Scheduler other, which the pod names, has reported nothing about it in 14m; then: the allocator picks n1; not evaluated: the rules of scheduler other.; 1 pods; User remove spec.schedulerName if the pod is meant for the default scheduler",
				"Warning SchedulingGated: The scheduler waits until the scheduling gate example.com/later is removed; then: the allocator picks n1.; 1 pods; User the scheduler does not consider pod gated before its scheduling gates are removed: example.com/later",
				"Warning DeviceAllocated: 1 pod waits for 1 device of gpu; 2 of 2 are free, but pods before it in the queue get them; 1 pods; Nobody wait until claims are released",
			},
		},
		"a scheduler that runs": {
			objects: slices.Concat(two, unheard("a", func(*corev1.Pod) {}, tc.GPUs("gpu", 1)), []any{tc.Pod("later", func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(tc.Taken())}}
				p.Spec.NodeName = "n3"
			})}),
		},
		"cordoned nodes are one cause": {
			objects: slices.Concat(two, waits("a", tc.GPUs("gpu", 1)), waits("b", tc.GPUs("gpu", 1)), []any{cordoned("n1"), cordoned("n2")}),
			want:    []string{"Error NodeCordoned: 2 nodes are cordoned: n1, n2; 2 pods; Admin uncordon n1, n2; then 2 of 2 waiting pods start"},
		},
		"a cordoned node without pods": {
			objects: slices.Concat(two, []any{cordoned("n1")}),
			want:    []string{"Warning NodeCordoned: 1 node is cordoned: n1; 0 pods; Admin uncordon n1"},
		},
		"a class that pods name": {
			objects: slices.Concat(two, waits("a", tc.Request("gpu", "nosuch", 1)), waits("b", tc.Request("gpu", "nosuch", 2))),
			want:    []string{"Error ClassNotFound: Request gpu: DeviceClass nosuch does not exist; existing classes: gpu.; 2 pods; Admin create DeviceClass nosuch: its name does not tell which driver's installation does"},
		},
		"all devices in use": {
			objects: slices.Concat(two, waits("a", tc.GPUs("gpu", 1)), waits("b", tc.GPUs("gpu", 1)), []any{tc.Serving("x", "n1", "gpu-0"), tc.Serving("y", "n2", "gpu-0")}),
			want:    []string{"Warning DeviceAllocated: 2 pods wait for 2 devices of gpu; 0 of 2 are free; 2 pods; Nobody wait until claims are released, or add a node like n1 for each of them"},
		},
		"devices that are shared, with too little left": {
			objects: slices.Concat([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("nic", "memory:=100G").Shareable()), tc.Sharing("serve", "n1", "nic", "memory", "70G")},
				waits("a", tc.GPUs("gpu", 1).WithCapacity("memory", "40G")), waits("b", tc.GPUs("gpu", 1).WithCapacity("memory", "50G"))),
			want: []string{"Warning DeviceAllocated: 2 pods wait for 40G of memory, 50G of memory on 2 devices of gpu; too few devices have that much left; 2 pods; Nobody wait until claims are released, or add a node like n1 for each of them"},
		},
		"the second pod of one device": {
			objects: slices.Concat([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...)}, waits("a", tc.GPUs("gpu", 1)), waits("b", tc.GPUs("gpu", 1))),
			want:    []string{"Warning DeviceAllocated: 1 pod waits for 1 device of gpu; 1 of 1 is free, but pods before it in the queue get it; 1 pods; Nobody wait until claims are released"},
		},
		"more than any node has": {
			objects: slices.Concat(two, waits("a", tc.GPUs("gpu", 2))),
			want:    []string{"Error CountUnsatisfiable: Node n1 and 1 more node have 1 available; request gpu needs 2 devices.; 1 pods; User request 1 device instead of 2 in request gpu; then it fits on n1"},
		},
		"a rule": {
			objects: slices.Concat([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.TaintRule("bad", "gpu.example.com", "n1", "gpu-0")}, waits("a", tc.GPUs("gpu", 1))),
			want:    []string{"Error DeviceTainted: taint bad:NoSchedule of DeviceTaintRule bad on 1 device; 1 pods; Admin delete DeviceTaintRule bad if it is no longer needed; then 1 of 1 waiting pod starts"},
		},
		"a taint of the driver": {
			objects: slices.Concat([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("gpu-0").Tainted("gpu.example.com/ecc", resourceapi.DeviceTaintEffectNoSchedule))}, waits("a", tc.GPUs("gpu", 1))),
			want:    []string{"Error DeviceTainted: taint gpu.example.com/ecc:NoSchedule of driver gpu.example.com on 1 device; 1 pods; Admin repair the devices; the driver takes the taint back; then 1 of 1 waiting pod starts"},
		},
		"a pool that is incomplete": {
			objects: slices.Concat([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...).Of(2)}, waits("a", tc.GPUs("gpu", 1))),
			want:    []string{"Error DRA1201: pool n1 of driver gpu.example.com is incomplete: 1 of 2 slices; 1 pods; Admin look at the plugin of driver gpu.example.com on n1: if the API server rejected a slice, its log may say why; then 1 of 1 waiting pod starts"},
		},
		"pools of one driver are one cause": {
			objects: slices.Concat([]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...).Of(2), tc.Pool("n2", tc.Devices(1)...).Of(2)}, waits("a", tc.GPUs("gpu", 1)), waits("b", tc.GPUs("gpu", 1))),
			want:    []string{"Error DRA1201: pool n1 of driver gpu.example.com is incomplete: 1 of 2 slices (and 1 more like it); 2 pods; Admin look at the plugin of driver gpu.example.com on n1: if the API server rejected a slice, its log may say why; then 2 of 2 waiting pods start"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := causes(t, tc.Cluster(test.objects...), ""); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestNamespace leaves out what concerns other namespaces alone.
func TestNamespace(t *testing.T) {
	snap := tc.Cluster(slices.Concat([]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), cordoned("n2"), tc.Pool("n2", tc.Devices(1)...)}, waits("a", tc.GPUs("gpu", 9)))...)
	if got := causes(t, snap, tc.Namespace); len(got) != 2 || !strings.Contains(got[0], "CountUnsatisfiable") {
		t.Errorf("its own: %q", got)
	}
	if got := causes(t, snap, "other"); len(got) != 1 || !strings.Contains(got[0], NodeCordoned) {
		t.Errorf("of another one: %q", got)
	}
	// The class is at fault for the pods alone, and no namespace has it.
	for _, ofPods := range [][]any{
		append(waits("a", tc.GPUs("gpu", 1)), tc.Serving("x", "n1", "gpu-0")),
		waits("a", tc.Request("gpu", "nosuch", 1)),
	} {
		snap := tc.Cluster(append(ofPods, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...))...)
		if got := causes(t, snap, tc.Namespace); len(got) != 1 {
			t.Errorf("of pods, in their namespace: %q", got)
		}
		if got := causes(t, snap, "other"); len(got) != 0 {
			t.Errorf("of pods of another namespace: %q", got)
		}
	}
}

// TestIdentity keeps the id of a cause while the pods that suffer from it change.
func TestIdentity(t *testing.T) {
	id := func(objects ...any) string {
		found, err := Find(t.Context(), cluster.New(tc.Cluster(append(objects, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), cordoned("n1"))...)), Options{})
		if err != nil || len(found.Status.Causes) != 1 {
			t.Fatalf("%v, %+v", err, found)
		}
		return found.Status.Causes[0].ID
	}
	first, second := id(waits("a", tc.GPUs("gpu", 1))...), id(waits("b", tc.GPUs("gpu", 2))...)
	if first != second || !strings.HasPrefix(first, NodeCordoned+"-") {
		t.Errorf("%s and %s", first, second)
	}
	var none api.Cause
	if first == none.ID {
		t.Error("no id")
	}
}

// TestTolerationIsAWayOut names the toleration of nodes with idle devices that are set aside for other
// pods, where pods that wait for claims to be released fit with it.
func TestTolerationIsAWayOut(t *testing.T) {
	dedicated := tc.ChangeNode("n2", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	})
	const tolerate = "tolerate the node taint dedicated=vision:NoSchedule if the pod may run there"
	for name, test := range map[string]struct {
		objects []any
		want    string
	}{
		"one pod":     {slices.Concat(waits("a", tc.GPUs("gpu", 1)), []any{tc.Pool("n2", tc.Devices(1)...)}), "or " + tolerate + " (it fits on n2 then)"},
		"several":     {slices.Concat(waits("a", tc.GPUs("gpu", 1)), waits("b", tc.GPUs("gpu", 1)), []any{tc.Pool("n2", tc.Devices(1)...)}), "or " + tolerate + " (2 of them fit then, each by itself)"},
		"in use, too": {slices.Concat(waits("a", tc.GPUs("gpu", 1)), []any{tc.Pool("n2", tc.Devices(1)...), tc.Serving("there", "n2", "gpu-0")}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := causes(t, tc.Cluster(slices.Concat(test.objects, []any{tc.Nodes("n1", "n2"), dedicated, tc.Pool("n1", tc.Devices(1)...), tc.Serving("busy", "n1", "gpu-0")})...), "")
			if len(got) != 1 || !strings.Contains(got[0], "wait until claims are released") || strings.Contains(got[0], "tolerate") != (test.want != "") || !strings.HasSuffix(got[0], test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNumbers gives causes that read the same one number, and each the id of its object.
func TestNumbers(t *testing.T) {
	objects := slices.Concat([]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), cordoned("n2"), tc.Pool("n2", tc.Devices(1)...)})
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, waits(name, tc.GPUs("gpu", 3))...)
	}
	found, err := Find(t.Context(), cluster.New(tc.Cluster(objects...)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ids := map[string]bool{}
	for i := range found.Status.Causes {
		c := &found.Status.Causes[i]
		got = append(got, fmt.Sprintf("%d %s", c.Number, c.Code))
		ids[c.ID] = true
	}
	if want := []string{"1 CountUnsatisfiable", "1 CountUnsatisfiable", "1 CountUnsatisfiable", "2 NodeCordoned"}; !slices.Equal(got, want) || len(ids) != len(want) {
		t.Errorf("got %q with %d ids, want %q", got, len(ids), want)
	}
}

// TestAlsoFor expects each pod in the commands of its cause, or among those with claims of their own.
func TestAlsoFor(t *testing.T) {
	objects := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...)}
	for _, name := range []string{"waits-1", "waits-2", "waits-3"} {
		objects = append(objects, tc.Claim(name+"-claim", tc.GPUs("gpu", 3)), tc.Pod(name, tc.UsingClaim("gpu", name+"-claim")))
	}
	found, err := Find(t.Context(), cluster.New(tc.Cluster(objects...)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var commands, also []string
	for i := range found.Status.Causes {
		c := &found.Status.Causes[i]
		commands = append(commands, c.NextStep.Commands...)
		for _, o := range c.AlsoFor {
			also = append(also, o.String())
		}
	}
	for _, name := range []string{"waits-1", "waits-2", "waits-3"} {
		printed := slices.ContainsFunc(commands, func(line string) bool { return strings.Contains(line, " "+name+"-claim ") })
		named := slices.Contains(also, api.Ref(api.KindPod, tc.Namespace, name).String())
		if printed == named {
			t.Errorf("pod %s: commands %v, named as one without: %v, in %q and %v", name, printed, named, commands, also)
		}
	}
	if len(also) != 2 {
		t.Errorf("without commands: %v", also)
	}
}
