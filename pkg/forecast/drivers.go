// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// use is a pod on a node with devices that drivers have to unprepare before it can end.
type use struct {
	pod     *corev1.Pod
	drivers []string
}

// usesOn finds, by node, the pods that need drivers to end.
func usesOn(facts *cluster.Cluster) map[string][]use {
	found := map[string][]use{}
	for _, pod := range facts.Snapshot.Pods {
		if pod.Spec.NodeName == "" || snapshot.Finished(pod) {
			continue
		}
		if drivers, _ := lifecycle.Unpreparers(facts, pod, facts.Claims.OfPod(pod)); len(drivers) > 0 {
			found[pod.Spec.NodeName] = append(found[pod.Spec.NodeName], use{pod, drivers})
		}
	}
	return found
}

// impactDriver describes the pods of drivers on a node, and the pods that need them.
func impactDriver(snap *snapshot.Snapshot, node string, drivers []string, plugins []*corev1.Pod, uses []use) api.ImpactDriver {
	drivers = slices.Compact(slices.Sorted(slices.Values(drivers)))
	out := api.ImpactDriver{Node: node, Drivers: drivers}
	if n := snap.Node(node); n != nil {
		out.KubeletVersion = n.Status.NodeInfo.KubeletVersion
	}
	for _, pod := range plugins {
		out.Pods = append(out.Pods, api.RefTo(api.KindPod, pod))
	}
	for _, u := range uses {
		list := &out.Running
		switch {
		case !slices.ContainsFunc(u.drivers, func(driver string) bool { return slices.Contains(drivers, driver) }):
			continue
		case u.pod.DeletionTimestamp != nil:
			list = &out.Ending
		case cmp.Or(u.pod.Status.Phase, corev1.PodPending) == corev1.PodPending:
			list = &out.Starting
		}
		*list = append(*list, api.RefTo(api.KindPod, u.pod))
	}
	return out
}

// needed counts the pods that need the driver.
func needed(d *api.ImpactDriver) int { return len(d.Running) + len(d.Starting) + len(d.Ending) }

// sortDrivers puts the nodes with most pods that need the driver first.
func sortDrivers(list []api.ImpactDriver) {
	slices.SortFunc(list, func(a, b api.ImpactDriver) int {
		return cmp.Or(cmp.Compare(needed(&b), needed(&a)), english.CompareNames(a.Node, b.Node))
	})
}

// leavingDrivers finds the nodes that the last pod of a driver leaves, though pods there
// need the driver to end, by what becomes of the pods that run. Pods that are evicted
// earlier than the driver are taken to have ended.
func leavingDrivers(before *cluster.Cluster, plugins map[*corev1.Pod][]string, list []fate) []api.ImpactDriver {
	leaving := map[*corev1.Pod]*fate{}
	for i := range list {
		if f := &list[i]; f.effect == api.EffectEvicted {
			leaving[f.pod] = f
		}
	}
	staying := map[[2]string]bool{}
	for pod, drivers := range plugins {
		for _, driver := range drivers {
			if leaving[pod] == nil && pod.DeletionTimestamp == nil {
				staying[[2]string{pod.Spec.NodeName, driver}] = true
			}
		}
	}
	type departure struct {
		fate    *fate
		drivers []string
	}
	departures := map[string][]departure{}
	for i := range list {
		f := &list[i]
		node := f.pod.Spec.NodeName
		drivers := slices.DeleteFunc(slices.Clone(f.drivers), func(driver string) bool { return staying[[2]string{node, driver}] })
		if leaving[f.pod] == f && len(drivers) > 0 {
			departures[node] = append(departures[node], departure{f, drivers})
		}
	}
	if len(departures) == 0 {
		return nil
	}
	uses := usesOn(before)
	var found []api.ImpactDriver
	for node, gone := range departures {
		var drivers []string
		var pods []*corev1.Pod
		last := gone[0].fate.at
		for _, d := range gone {
			drivers, pods = append(drivers, d.drivers...), append(pods, d.fate.pod)
			if d.fate.at.After(last) {
				last = d.fate.at
			}
		}
		slices.Sort(drivers)
		left := slices.DeleteFunc(slices.Clone(uses[node]), func(u use) bool {
			f := leaving[u.pod]
			return slices.Contains(pods, u.pod) || f != nil && f.at.Before(last)
		})
		out := impactDriver(before.Snapshot, node, slices.Compact(drivers), pods, left)
		if out.Effect = api.DriverLeaves; needed(&out) > 0 {
			found = append(found, out)
		}
	}
	sortDrivers(found)
	return found
}

// overlapping is the first release whose kubelet keeps a driver registered while a second
// pod of it takes over (k8s.io/dynamic-resource-allocation/kubeletplugin/doc.go).
const overlapping = "1.33"

// replacedDrivers finds what an update of the DaemonSet of drivers does on each node.
func replacedDrivers(before *cluster.Cluster, set *snapshot.Workload, drivers []string, update *api.ImpactUpdate) []api.ImpactDriver {
	pods := map[string][]*corev1.Pod{}
	for _, pod := range lifecycle.Pods(before.Snapshot, set) {
		if node := lifecycle.DaemonNode(pod); node != "" {
			pods[node] = append(pods[node], pod)
		}
	}
	uses := usesOn(before)
	var found []api.ImpactDriver
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		out := impactDriver(before.Snapshot, node, drivers, pods[node], uses[node])
		switch {
		case update.Type == string(appsv1.OnDeleteDaemonSetStrategyType):
			out.Effect = api.DriverStays
		case update.MaxSurge == 0:
			out.Effect = api.DriverAway
		case olderThan(out.KubeletVersion, overlapping):
			out.Effect = api.DriverUnregistered
		default:
			out.Effect = api.DriverOverlaps
		}
		found = append(found, out)
	}
	sortDrivers(found)
	return found
}

// olderThan reports whether a version is known and older than another one.
func olderThan(text, than string) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.LessThan(version.MustParseGeneric(than))
}

// updateOf returns how a DaemonSet replaces its pods, with the defaults of the API server.
func updateOf(snap *snapshot.Snapshot, set *snapshot.Workload) *api.ImpactUpdate {
	desired := len(lifecycle.Pods(snap, set))
	if set.Daemon != nil {
		desired = int(set.Daemon.Desired)
	}
	out := &api.ImpactUpdate{Type: string(appsv1.RollingUpdateDaemonSetStrategyType)}
	limits := &snapshot.RollingUpdate{}
	if set.Update != nil {
		out.Type = cmp.Or(set.Update.Type, out.Type)
		limits = cmp.Or(set.Update.RollingUpdate, limits)
	}
	if out.Type != string(appsv1.RollingUpdateDaemonSetStrategyType) {
		return out
	}
	out.MaxSurge = scaled(limits.MaxSurge, desired)
	// As the controller does where both are 0 (updatedDesiredNodeCounts in
	// pkg/controller/daemon/update.go of Kubernetes v1.37.1). Only one of them can be set.
	if out.MaxSurge == 0 {
		out.MaxUnavailable = max(scaled(limits.MaxUnavailable, desired), 1)
	}
	return out
}

// scaled returns a number, or a percentage of all rounded up, 0 if it is not set.
func scaled(value *intstr.IntOrString, all int) int {
	if value == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, all, true)
	if err != nil {
		return 0
	}
	return n
}

// DriversOf lists the drivers whose kubelet plugin the pods of a DaemonSet are.
func DriversOf(snap *snapshot.Snapshot, set *snapshot.Workload) []string {
	return slices.DeleteFunc(driversIn(snap, ""), func(driver string) bool {
		return !slices.ContainsFunc(lifecycle.DaemonSets(snap, driver), func(of lifecycle.DaemonSet) bool { return of.Workload == set })
	})
}
