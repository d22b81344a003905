// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// waits returns a pod of some age with a claim of its own.
func waits(name string, age time.Duration, request tc.RequestWrapper, changes ...func(*corev1.Pod)) []any {
	older := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-age)) }
	return []any{tc.Claim(name, request), tc.Pod(name, append(changes, tc.Using(name), older)...)}
}

// TestUseOfDevice covers a device for each state, and the text about each request.
func TestUseOfDevice(t *testing.T) {
	tainted := tc.Device("gpu-0").Tainted("ecc=bad", resourceapi.DeviceTaintEffectNoSchedule)
	for name, test := range map[string]struct {
		objects []any
		state   api.DeviceUseState
		// summary is a part of that, requests are "pod: outcome code".
		summary, requests string
	}{
		"in use": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.Serving("c", "n1", "gpu-0").ReservedFor("p", "uid-p"), waits("a", time.Hour, tc.GPUs("gpu", 1))},
			api.DeviceInUse, "allocated to claim serving/c for pod/p", "",
		},
		"nobody waits": {
			[]any{tc.Pool("n1", tc.Devices(1)...)},
			api.DeviceNotRequested, "no waiting pod has a request with a class that selects it", "",
		},
		"another class": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.Class("nic", "nic.example.com"), waits("a", time.Hour, tc.Request("nic", "nic", 1))},
			api.DeviceNotRequested, "closest is pod ml/a, request nic", "a: Rejected ClassSelectorFalse",
		},
		"selector": {
			[]any{tc.Pool("n1", tc.Device("gpu-0", "model=A")), waits("a", time.Hour, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "B"`))},
			api.DeviceRequested, `model is "A", must be "B"`, "a: Rejected RequestSelectorFalse",
		},
		"tainted": {
			[]any{tc.Pool("n1", tainted), waits("a", time.Hour, tc.GPUs("gpu", 1))},
			api.DeviceBlocked, "tainted: ecc=bad:NoSchedule", "a: Rejected DeviceTainted",
		},
		"tolerated by one whose selector is false": {
			[]any{tc.Pool("n1", tainted.With("model=A")), waits("a", time.Hour, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "B"`).Tolerating("ecc"))},
			api.DeviceRequested, `model is "A", must be "B"`, "a: Rejected RequestSelectorFalse",
		},
		"next": {
			[]any{tc.Pool("n1", tc.Devices(1)...), waits("a", time.Minute, tc.GPUs("gpu", 1)), waits("b", time.Hour, tc.GPUs("gpu", 1))},
			api.DeviceNext, "the allocator picks it for pod ml/b", "b: Picked , a: Eligible ",
		},
		"too few": {
			[]any{tc.Pool("n1", tc.Devices(1)...), waits("a", time.Hour, tc.GPUs("gpu", 2))},
			api.DeviceRequested, "1 available, 2 needed", "a: Eligible ",
		},
		"cordoned": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), waits("a", time.Hour, tc.GPUs("gpu", 1))},
			api.DeviceBlocked, "cordoned", "a: Rejected NodeUnsuitable",
		},
		"incomplete pool": {
			[]any{tc.Pool("n1", tc.Devices(1)...).Of(2), waits("a", time.Hour, tc.GPUs("gpu", 1))},
			api.DeviceBlocked, "1 of 2 slices", "a: Rejected PoolIncomplete",
		},
		"a claim that no pod uses": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.Claim("c", tc.GPUs("gpu", 1))},
			api.DeviceNotRequested, "no waiting pod", "-: Eligible ",
		},
		"pods not listed": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.Gap(snapshot.ResourcePods, "not permitted to list pods")},
			api.DeviceUndetermined, "not permitted to list pods: which pods wait for devices is not known", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(flat(append([]any{tc.Nodes("n1")}, test.objects...))...)
			e, err := explain.UseOfDevice(t.Context(), testquestion.Allocator(t, snap).Facts, "gpu-0")
			if err != nil {
				t.Fatal(err)
			}
			d := e.Devices[0]
			var requests []string
			for _, r := range d.Requests {
				pod := "-"
				if r.Pod.Kind != "" {
					pod = r.Pod.Name
				}
				requests = append(requests, fmt.Sprintf("%s: %s %s", pod, r.Outcome, r.Code))
			}
			if got := strings.Join(requests, ", "); d.State != test.state || !strings.Contains(d.Summary, test.summary) || strings.HasPrefix(d.Summary, "blocked") || got != test.requests {
				t.Errorf("got %s: %q (%s)\nwant %s: %q (%s)", d.State, d.Summary, got, test.state, test.summary, test.requests)
			}
			if unknown := e.Undetermined != ""; unknown != (d.State == api.DeviceUndetermined) {
				t.Errorf("undetermined: %q", e.Undetermined)
			}
		})
	}
}

// flat puts lists of objects into one.
func flat(objects []any) []any {
	var list []any
	for _, o := range objects {
		if several, ok := o.([]any); ok {
			list = append(list, several...)
			continue
		}
		list = append(list, o)
	}
	return list
}

// TestUseOfNode groups the devices of a node, counts equal pods, and says what keeps
// pods away.
func TestUseOfNode(t *testing.T) {
	objects := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", append(tc.Devices(3), tc.Device("gpu-3").Tainted("ecc=bad", resourceapi.DeviceTaintEffectNoSchedule))...), tc.Serving("c", "n1", "gpu-0")}
	objects = append(objects, waits("big", time.Hour, tc.GPUs("gpu", 5))...)
	objects = append(objects, waits("away", time.Minute, tc.GPUs("gpu", 1), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} })...)
	snap := tc.Cluster(objects...)
	e, err := explain.UseOfNode(t.Context(), testquestion.Allocator(t, snap).Facts, "n1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range e.Devices {
		got = append(got, fmt.Sprintf("%s %s", d.State, strings.Join(d.Names, "+")))
	}
	if want := []string{"InUse gpu-0", "Requested gpu-1+gpu-2", "Blocked gpu-3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := "4 devices: 1 in use, 2 idle while pods wait and 1 blocked."; e.Summary != want {
		t.Errorf("got %q, want %q", e.Summary, want)
	}
	if m := e.Node.Misfits; len(m) != 1 || m[0].PodCount != 1 || !slices.Equal(m[0].Pods, []api.ObjectRef{api.Ref("Pod", "ml", "away")}) {
		t.Errorf("got misfits %+v", m)
	}
	if _, err := explain.UseOfNode(t.Context(), testquestion.Allocator(t, snap).Facts, "n3"); err == nil {
		t.Error("a node that does not exist has an answer")
	}
}

// TestUseByEqualPods covers pods whose claims differ in their names alone: they are one
// kind.
func TestUseByEqualPods(t *testing.T) {
	objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...)}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, tc.Claim(name, tc.GPUs("gpu", 2)), tc.Pod(name, tc.UsingClaim("gpus", name)))
	}
	snap := tc.Cluster(objects...)
	e, err := explain.UseOfDevice(t.Context(), testquestion.Allocator(t, snap).Facts, "gpu-0")
	if err != nil {
		t.Fatal(err)
	}
	if requests := e.Devices[0].Requests; len(requests) != 1 || requests[0].PodCount != 3 || requests[0].Pod.Name != "a" {
		t.Errorf("got %+v", requests)
	}
}

// TestUseByTooManyKinds covers more kinds of pods, and more claims without one, than are
// explained. Those for devices of the class come first, wherever they are in the queue.
func TestUseByTooManyKinds(t *testing.T) {
	const many = 70
	of := func(class string, claims int) []any {
		objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Class("nic", "nic.example.com")}
		for i := range many {
			objects = append(objects, waits(fmt.Sprintf("p%d", i), time.Hour, tc.Request("r", class, 2), func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(many - i)) })...)
		}
		for i := range claims {
			objects = append(objects, tc.Claim(fmt.Sprintf("c%d", i), tc.Request("r", class, 1)))
		}
		return append(objects, waits("last", time.Second, tc.GPUs("gpu", 3))...)
	}
	for name, test := range map[string]struct {
		class  string
		claims int
		state  api.DeviceUseState
		want   api.NotExplained
		asked  int
	}{
		"of another class": {"nic", 0, api.DeviceRequested, api.NotExplained{Kinds: 7, Pods: 7}, 64},
		"of its class":     {"gpu", 65, api.DeviceUndetermined, api.NotExplained{Kinds: 7, Pods: 7, SelectingKinds: 7, Claims: 1}, 128},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(of(test.class, test.claims)...)
			e, err := explain.UseOfDevice(t.Context(), testquestion.Allocator(t, snap).Facts, "gpu-0")
			if err != nil {
				t.Fatal(err)
			}
			d := e.Devices[0]
			if d.State != test.state || e.NotExplained == nil || *e.NotExplained != test.want || len(d.Requests) != test.asked || e.WaitingPods != many+1 {
				t.Errorf("%s: %s; %d requests, not explained %+v, %d pods", d.State, d.Summary, len(d.Requests), e.NotExplained, e.WaitingPods)
			}
			if (e.Undetermined != "") != (test.state == api.DeviceUndetermined) {
				t.Errorf("undetermined: %q", e.Undetermined)
			}
		})
	}
}
