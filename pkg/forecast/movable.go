// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mostChoices limits how many sets of the pods of a node are considered.
const mostChoices = 12

// mover is a pod that could run on another node: it has devices of its node only, of claims
// that nobody else uses, and is not bound to the node.
type mover struct {
	pod    *corev1.Pod
	claims []*resourceapi.ResourceClaim
	// class is the class of its first request, devices how many it has.
	class   string
	devices int
}

// moversIn returns the pods of a snapshot that could run elsewhere.
func moversIn(snap *snapshot.Snapshot) []*mover {
	local := map[snapshot.PoolID]bool{}
	for _, slice := range snap.Slices {
		id := snapshot.PoolOf(slice)
		_, known := local[id]
		local[id] = ptr.Deref(slice.Spec.NodeName, "") != "" && (!known || local[id])
	}
	var movers []*mover
	at, kept := map[*corev1.Pod]*mover{}, map[*corev1.Pod]bool{}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.ReservedFor {
			consumer := &claim.Status.ReservedFor[i]
			pod := snap.Pod(claim.Namespace, consumer.Name)
			if pod == nil || pod.UID != consumer.UID || cluster.ConsumerKind(consumer) != "pod" {
				continue
			}
			if at[pod] == nil {
				at[pod] = &mover{pod: pod}
				movers = append(movers, at[pod])
			}
			if len(claim.Status.ReservedFor) > 1 || !at[pod].add(claim, local) {
				kept[pod] = true
			}
		}
	}
	return slices.DeleteFunc(movers, func(m *mover) bool { return kept[m.pod] || !mayLeave(m.pod) })
}

// add counts the devices of a claim, and reports whether all of them belong to a node.
func (m *mover) add(claim *resourceapi.ResourceClaim, local map[snapshot.PoolID]bool) bool {
	m.claims = append(m.claims, claim)
	if len(claim.Spec.Devices.Requests) > 0 && m.class == "" {
		if exactly := claim.Spec.Devices.Requests[0].Exactly; exactly != nil {
			m.class = exactly.DeviceClassName
		}
	}
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if !local[snapshot.PoolID{Driver: results[i].Driver, Name: results[i].Pool}] {
			return false
		}
	}
	m.devices += len(results)
	return true
}

// user is a mover that has devices of those that serve a shape, or some that are in its way,
// as partitions are.
type user struct {
	*mover
	// weight is how many of them serve the shape, at least one.
	weight int
	// first is one of them, so that pods can be put in the order of their devices.
	first string
}

// usersAmong returns the movers that have some of the devices, or of their pools, by their
// node.
func (d *devices) usersAmong(movers []*mover) map[string][]*user {
	users := map[string][]*user{}
	for _, m := range movers {
		if u := d.userOf(m); u != nil {
			users[m.pod.Spec.NodeName] = append(users[m.pod.Spec.NodeName], u)
		}
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b *user) int {
			return cmp.Or(strings.Compare(a.first, b.first), strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
		})
	}
	return users
}

// userOf weighs the devices of a mover. It is nil if it has none of their pools.
func (d *devices) userOf(m *mover) *user {
	var found *user
	for _, claim := range m.claims {
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			if !d.pools[snapshot.PoolID{Driver: results[i].Driver, Name: results[i].Pool}] {
				continue
			}
			name := results[i].Pool + "/" + results[i].Device
			if found == nil {
				found = &user{mover: m, first: name}
			}
			found.first = min(found.first, name)
			if d.eligible[resultID(&results[i])] {
				found.weight++
			}
		}
	}
	if found != nil {
		found.weight = max(found.weight, 1)
	}
	return found
}

// mayLeave reports whether a pod would get a node from the scheduler again.
func mayLeave(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(pod)
	if a := pod.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) || len(pod.Spec.TopologySpreadConstraints) > 0 {
		// Where it may go depends on other pods.
		return false
	}
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !snapshot.Finished(pod) && !mirror && (owner == nil || owner.Kind != snapshot.KindDaemonSet)
}

// choicesOf returns sets of pods with so many devices: single ones, and such as have
// devices side by side; the smallest first.
func choicesOf(users []*user, missing int) [][]*user {
	type choice struct{ from, to, weight int }
	var choices []choice
	for from := range users {
		weight := 0
		for to := from; to < len(users); to++ {
			if weight += users[to].weight; weight >= missing {
				choices = append(choices, choice{from, to + 1, weight})
				break
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.to-a.from, b.to-b.from))
	})
	sets := make([][]*user, 0, len(choices))
	for _, c := range choices[:min(len(choices), mostChoices)] {
		sets = append(sets, users[c.from:c.to])
	}
	return sets
}

// resultID returns the device that a claim has.
func resultID(r *resourceapi.DeviceRequestAllocationResult) cluster.DeviceID {
	return cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
}

// packedBound returns a number of claims of a shape of which it is proved that no more fit,
// whichever nodes pods are on: of the devices that can serve them, some are always in use,
// because they belong to claims that no others can serve.
func packedBound(snap *snapshot.Snapshot, all []*mover, shape *claimShape, later *slotCount) int {
	if later.divisible || len(shape.Capacity)+len(shape.Tolerations) > 0 || slices.ContainsFunc(later.unsuitable, func(node *corev1.Node) bool { return !closed(node) }) {
		return unlimited
	}
	movers := map[*resourceapi.ResourceClaim]bool{}
	for _, users := range later.movable(all) {
		for _, u := range users {
			free := slices.ContainsFunc(u.pod.Spec.Tolerations, opens)
			for _, claim := range u.claims {
				if free || !asksWithin(claim, shape) {
					movers[claim] = true
				}
			}
		}
	}
	kept := 0
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil || movers[claim] {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if later.eligible[resultID(&claim.Status.Allocation.Devices.Results[i])] {
				kept++
			}
		}
	}
	return max(0, len(later.eligible)-kept) / shape.Devices
}

// asksWithin reports whether a claim can be served by nothing else than what serves
// claims of a shape.
func asksWithin(claim *resourceapi.ResourceClaim, shape *claimShape) bool {
	for i := range claim.Spec.Devices.Requests {
		exactly := claim.Spec.Devices.Requests[i].Exactly
		if exactly == nil || exactly.DeviceClassName != shape.Class || len(exactly.Tolerations) > 0 || ptr.Deref(exactly.AdminAccess, false) {
			return false
		}
		for _, expression := range shape.Selectors {
			if !slices.ContainsFunc(exactly.Selectors, func(s resourceapi.DeviceSelector) bool { return s.CEL != nil && s.CEL.Expression == expression }) {
				return false
			}
		}
	}
	return true
}

// ownTaint reports whether Kubernetes itself gives nodes a taint of this key.
func ownTaint(key string) bool { return strings.HasPrefix(key, "node.kubernetes.io/") }

// closed reports whether a node is closed to all pods that tolerate nothing but what
// Kubernetes adds to them.
func closed(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !ownTaint(t.Key)
	})
}

// opens reports whether a toleration can let a pod on nodes that are closed.
func opens(t corev1.Toleration) bool {
	return !ownTaint(t.Key) || t.Key == corev1.TaintNodeUnschedulable
}
