// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// assessment goes through what follows from a change.
type assessment struct {
	out *api.Impact
	// emptied is the node that pods leave, empty for none: of that is known why it takes none.
	emptied string
	// before is the cluster as it is, state the one with the change and with what has
	// happened since.
	before, state *cluster.Cluster
	// placed has the pods that wait now and found a place since the change.
	placed map[types.NamespacedName]*explain.Decision
	// decided has what became of them last.
	decided []explain.Decision
	// withoutDevices is set if replacements were placed that have no claims.
	withoutDevices bool
}

// waiting returns the pods that wait for devices and are in the queue.
func waiting(state *cluster.Cluster) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(state.Waiting()), func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })
}

// described returns the known facts about a pod without asking where it fits.
func described(f *fate) api.ImpactPod {
	out := api.ImpactPod{
		Namespace: f.pod.Namespace, Name: f.pod.Name, Effect: f.effect, Node: f.pod.Spec.NodeName,
		Owner: whatif.Owner(f.pod), Devices: f.devices, Drivers: f.drivers,
	}
	if !f.at.IsZero() {
		out.EvictionAt = &metav1.Time{Time: f.at}
	}
	return out
}

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// fate is the effect of a change on a running pod.
type fate struct {
	pod    *corev1.Pod
	effect api.ImpactEffect
	// at is when it is evicted, zero for at once.
	at time.Time
	// devices are the devices that it loses or releases, drivers the drivers whose plugin
	// it is.
	devices, drivers []string
}

// fates finds what a change does to the pods that run, those that leave first in front.
// emptied is the node that they leave, empty for none, gone is set if it is removed. plugins are the
// pods of drivers.
func fates(emptied string, gone bool, before, after *cluster.Cluster, plugins map[*corev1.Pod][]string) []fate {
	now := before.Snapshot.Now()
	var list []fate
	for _, pod := range before.Snapshot.Pods {
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || snapshot.Finished(pod) {
			continue
		}
		f := fate{pod: pod, devices: devicesHeldBy(before, pod), drivers: plugins[pod]}
		at, evicted := eviction(before, after, pod)
		lost := lostOf(before, after, pod)
		switch {
		case emptied == pod.Spec.NodeName && snapshot.StaysOnDrain(pod):
			f.effect, f.devices = api.EffectStays, nil
			if gone {
				f.effect = api.EffectRemoved
			}
		case emptied == pod.Spec.NodeName:
			f.effect = api.EffectEvicted
		case evicted:
			f.effect = api.EffectEvicted
			if at.After(now) {
				f.at = at
			}
		case len(lost) > 0:
			f.effect, f.devices = api.EffectDevicesLost, lost
		default:
			continue
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b fate) int { return a.at.Compare(b.at) })
	return list
}

// pluginsOf finds the pods of drivers, each with the drivers whose kubelet plugin it is.
func pluginsOf(snap *snapshot.Snapshot) map[*corev1.Pod][]string {
	found := map[*corev1.Pod][]string{}
	for _, driver := range driversIn(snap, "") {
		pods, _ := lifecycle.DriverPods(snap, driver)
		for _, pod := range pods {
			found[pod] = append(found[pod], driver)
		}
	}
	return found
}

// driversIn lists the drivers with slices of a node alone, or all drivers with slices or
// allocated devices for an empty name.
func driversIn(snap *snapshot.Snapshot, node string) []string {
	var drivers []string
	for _, slice := range snap.Slices {
		if node == "" || slice.Spec.NodeName != nil && *slice.Spec.NodeName == node {
			drivers = append(drivers, slice.Spec.Driver)
		}
	}
	for _, claim := range snap.Claims {
		if allocation := claim.Status.Allocation; node == "" && allocation != nil {
			for i := range allocation.Devices.Results {
				drivers = append(drivers, allocation.Devices.Results[i].Driver)
			}
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// eviction returns when taints evict a pod after a change, if they do not do so before.
func eviction(before, after *cluster.Cluster, pod *corev1.Pod) (time.Time, bool) {
	at, evicted := taintEviction(after, pod)
	was, anyway := taintEviction(before, pod)
	return at, evicted && (!anyway || at.Before(was))
}

// taintEviction returns when the taints of devices or of its node evict a pod.
func taintEviction(state *cluster.Cluster, pod *corev1.Pod) (at time.Time, evicted bool) {
	if evictions := state.Taints.PodEvictions(pod); len(evictions) > 0 {
		at, evicted = evictions[0].At, true
	}
	node := state.Snapshot.Node(pod.Spec.NodeName)
	if node == nil {
		return at, evicted
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		due, tolerated := nodeTaintEviction(state.Snapshot.Now(), pod, taint)
		if !tolerated && (!evicted || due.Before(at)) {
			at, evicted = due, true
		}
	}
	return at, evicted
}

// nodeTaintEviction returns when a taint of its node evicts a pod: after the shortest time
// of all tolerations that match, as the taint eviction controller counts.
func nodeTaintEviction(now time.Time, pod *corev1.Pod, taint *corev1.Taint) (at time.Time, forever bool) {
	since := now
	if taint.TimeAdded != nil {
		since = taint.TimeAdded.Time
	}
	matches, shortest := 0, time.Duration(-1)
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !corev1helpers.TolerationsTolerateTaint(klog.Background(), []corev1.Toleration{*t}, taint, true) {
			continue
		}
		matches++
		if t.TolerationSeconds == nil {
			continue
		}
		if d := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second; shortest < 0 || d < shortest {
			shortest = d
		}
	}
	if matches > 0 && shortest < 0 {
		return time.Time{}, true
	}
	return since.Add(max(shortest, 0)), false
}

// devicesOf lists the devices of the claims that are reserved for a pod.
func devicesHeldBy(facts *cluster.Cluster, pod *corev1.Pod) []string {
	var list []string
	eachDevice(facts, pod, func(id cluster.DeviceID) { list = append(list, id.String()) })
	return list
}

// lostOf lists the devices of a pod that a change takes away.
func lostOf(before, after *cluster.Cluster, pod *corev1.Pod) []string {
	var list []string
	eachDevice(before, pod, func(id cluster.DeviceID) {
		if before.Pools.Device(id) != nil && after.Pools.Device(id) == nil {
			list = append(list, id.String())
		}
	})
	return list
}

func eachDevice(facts *cluster.Cluster, pod *corev1.Pod, each func(cluster.DeviceID)) {
	for _, pc := range facts.Claims.OfPod(pod) {
		if pc.Claim == nil || pc.Claim.Status.Allocation == nil || !facts.Claims.Reserved(pc.Claim, pod) {
			continue
		}
		for _, result := range pc.Claim.Status.Allocation.Devices.Results {
			each(cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		}
	}
}
