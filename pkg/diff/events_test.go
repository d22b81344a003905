// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func claimsOf(namespace string, devices int, names ...string) []*resourceapi.ResourceClaim {
	list := make([]*resourceapi.ResourceClaim, 0, len(names))
	for _, name := range names {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
		if devices > 0 {
			claim.Status.Allocation = &resourceapi.AllocationResult{}
		}
		for i := range devices {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Pool: "gpu-01", Device: fmt.Sprintf("gpu-%d", i)})
		}
		list = append(list, claim)
	}
	return list
}

func eventTexts(l *EventLog) []string {
	var list []string
	for _, e := range l.Events() {
		list = append(list, e.Last.Format("15:04")+" "+e.String())
	}
	return list
}

// TestEventLog tells equal events in one line with their count, and other ones, those in another
// namespace and later ones apart.
func TestEventLog(t *testing.T) {
	now := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	var l EventLog
	step := func(after time.Duration, before, then []*resourceapi.ResourceClaim) {
		now = now.Add(after)
		l.Add(Events(cluster.Between(&snapshot.Snapshot{Claims: before}, &snapshot.Snapshot{Claims: then}), now))
	}
	step(0, claimsOf("ml", 0, "a"), claimsOf("ml", 1, "a"))
	step(0, nil, claimsOf("ml", 2, "b", "c"))
	step(0, nil, claimsOf("web", 1, "d"))
	step(time.Second, claimsOf("ml", 2, "b"), nil)
	step(time.Second, claimsOf("ml", 1, "e"), nil)
	step(time.Minute, nil, claimsOf("ml", 4, "f"))
	want := []string{
		"09:31 claim ml/f was allocated 4 devices",
		"09:30 2 claims of ml were deleted, and 3 devices were released",
		"09:30 claim web/d was allocated gpu-01/gpu-0",
		"09:30 3 claims of ml were allocated 5 devices",
	}
	if got := eventTexts(&l); !slices.Equal(got, want) {
		t.Errorf("it tells\n%q, want\n%q", got, want)
	}
	last := l.Events()[3]
	if got := last.Objects(); len(got) != 3 || !got["a"] || !got["b"] || !got["c"] {
		t.Errorf("it is about %v", got)
	}
	if l.Version() != 7 {
		t.Errorf("%d events, want 7", l.Version())
	}
}

// TestLogGoesOn covers first what happened last, also where that began earlier.
func TestLogGoesOn(t *testing.T) {
	now := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	var l EventLog
	l.Add(Events(cluster.Between(&snapshot.Snapshot{}, &snapshot.Snapshot{Claims: claimsOf("ml", 1, "a")}), now))
	key := l.Events()[0].Key()
	l.Add(Events(cluster.Between(&snapshot.Snapshot{Claims: claimsOf("ml", 1, "b")}, &snapshot.Snapshot{}), now.Add(time.Second)))
	l.Add(Events(cluster.Between(&snapshot.Snapshot{}, &snapshot.Snapshot{Claims: claimsOf("ml", 1, "c")}), now.Add(59*time.Second)))
	got := l.Events()
	if len(got) != 2 || got[0].String() != "2 claims of ml were allocated 2 devices" || !got[0].Last.Equal(now.Add(59*time.Second)) {
		t.Errorf("the newest of %d is %s at %s", len(got), got[0].String(), got[0].Last)
	}
	if got[0].Key() != key {
		t.Error("the cursor does not stay on it")
	}
	// The minute is that of the first one.
	l.Add(Events(cluster.Between(&snapshot.Snapshot{}, &snapshot.Snapshot{Claims: claimsOf("ml", 1, "d")}), now.Add(61*time.Second)))
	if got := l.Events(); len(got) != 3 || got[0].Count != 1 {
		t.Errorf("%d events, %d in the newest", len(got), got[0].Count)
	}
}

// TestEventLogForgets keeps neither all events nor all of their objects.
func TestEventLogForgets(t *testing.T) {
	var l EventLog
	now := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	for i := range 3 * eventsKept {
		l.Add(Events(cluster.Between(&snapshot.Snapshot{}, &snapshot.Snapshot{Claims: claimsOf(fmt.Sprint("team-", i), 1, "a")}), now))
	}
	if got := l.Events(); len(got) != eventsKept || got[0].Namespace != fmt.Sprint("team-", 3*eventsKept-1) {
		t.Errorf("%d events, the newest of %s", len(got), got[0].Namespace)
	}
	for i := range 2 * objectsKept {
		l.Add(Events(cluster.Between(&snapshot.Snapshot{}, &snapshot.Snapshot{Claims: claimsOf("many", 1, fmt.Sprint(i))}), now))
	}
	newest := l.Events()[0]
	if newest.Count != 2*objectsKept || len(newest.Objects()) != objectsKept {
		t.Errorf("%d objects, %d of them kept", newest.Count, len(newest.Objects()))
	}
}

// TestNodesAndHealth tells what becomes of nodes with devices and of the devices of pods, and
// counts an object to which the same happens twice once.
func TestNodesAndHealth(t *testing.T) {
	node := func(name string, cordoned bool, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	pod := func(name string, health corev1.ResourceHealthStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name)},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "claim:gpu", Resources: []corev1.ResourceHealth{{ResourceID: "gpu-1", Health: health}}}},
			}}},
		}
	}
	slice := func(name string) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To(name)}}
	}
	published := []*resourceapi.ResourceSlice{slice("gpu-01"), slice("gpu-02")}
	ready, sick := corev1.ConditionTrue, corev1.ResourceHealthStatusUnhealthy
	step := func(nodes []*corev1.Node, pods ...*corev1.Pod) *snapshot.Snapshot {
		return &snapshot.Snapshot{Slices: published, Nodes: nodes, Pods: pods}
	}
	fine := step([]*corev1.Node{node("cpu-01", false, ready), node("gpu-01", false, ready), node("gpu-02", false, ready)}, pod("a", "Healthy"), pod("b", "Healthy"))
	closed := step([]*corev1.Node{node("cpu-01", true, ready), node("gpu-01", true, ready), node("gpu-02", false, corev1.ConditionUnknown)}, pod("a", sick), pod("b", "Healthy"))
	gone := step([]*corev1.Node{node("cpu-01", false, ready), node("gpu-01", true, ready)}, pod("a", sick), pod("b", sick))
	now := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		steps []*snapshot.Snapshot
		want  []string
	}{
		{[]*snapshot.Snapshot{fine, closed}, []string{"09:30 node gpu-02 became not ready", "09:30 node gpu-01 was cordoned", "09:30 pod ml/a has an unhealthy device"}},
		{[]*snapshot.Snapshot{closed, fine}, []string{"09:30 node gpu-02 became ready", "09:30 node gpu-01 was uncordoned", "09:30 pod ml/a has healthy devices again"}},
		{[]*snapshot.Snapshot{closed, gone}, []string{"09:30 node gpu-02 was deleted", "09:30 pod ml/b has an unhealthy device"}},
		{[]*snapshot.Snapshot{fine, gone}, []string{"09:30 node gpu-02 was deleted", "09:30 node gpu-01 was cordoned", "09:30 2 pods of ml have unhealthy devices"}},
		{[]*snapshot.Snapshot{closed, fine, closed, fine, closed}, []string{
			"09:30 node gpu-02 became not ready", "09:30 node gpu-01 was cordoned", "09:30 pod ml/a has an unhealthy device",
			"09:30 node gpu-02 became ready", "09:30 node gpu-01 was uncordoned", "09:30 pod ml/a has healthy devices again",
		}},
	} {
		var l EventLog
		for i, after := range test.steps[1:] {
			l.Add(Events(cluster.Between(test.steps[i], after), now))
		}
		if got := eventTexts(&l); !slices.Equal(got, test.want) {
			t.Errorf("it tells %q, want %q", got, test.want)
		}
	}
}

// TestEventsBetween tells what becomes of slices and taint rules.
func TestEventsBetween(t *testing.T) {
	slice := func(generation int64) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu-01-x", UID: "1"},
			Spec:       resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", Pool: resourceapi.ResourcePool{Name: "gpu-01", Generation: generation}, Devices: make([]resourceapi.Device, 8)},
		}
	}
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "hot"}, Spec: resourceapi.DeviceTaintRuleSpec{Taint: resourceapi.DeviceTaint{Key: "heat", Effect: resourceapi.DeviceTaintEffectNoExecute}}}
	none, first := &snapshot.Snapshot{}, &snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{slice(1)}, TaintRules: []*resourceapi.DeviceTaintRule{rule}}
	second := &snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{slice(2)}, TaintRules: []*resourceapi.DeviceTaintRule{rule}}
	for _, test := range []struct {
		before, after *snapshot.Snapshot
		want          []string
	}{
		{none, first, []string{"slice gpu-01-x was published, 8 devices", "taint rule hot was created: heat:NoExecute"}},
		{first, second, []string{"slice gpu-01-x is at generation 2, 8 devices"}},
		{second, none, []string{"slice gpu-01-x was removed, 8 devices", "taint rule hot was deleted"}},
		{first, first, nil},
	} {
		var got []string
		list := Events(cluster.Between(test.before, test.after), time.Now())
		for i := range list {
			got = append(got, list[i].String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("it tells %q, want %q", got, test.want)
		}
	}
	published := Events(cluster.Between(none, first), time.Now())
	if !published[0].Objects()["gpu.example.com/gpu-01"] {
		t.Errorf("the slice is about %v", published[0].Objects())
	}
}
