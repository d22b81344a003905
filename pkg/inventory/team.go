// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Team is what a namespace has of a DeviceClass, and what its pods wait for.
type Team struct {
	Namespace, Class string
	// Used counts the devices that claims of the namespace have of the class, each
	// once. Idle are those of them that no pod uses that is still there.
	Used, Idle int
	// Share is Used in relation to what all namespaces use of the class, from 0 to 1.
	Share float64
	// Waiting counts the pods without a node that ask for the class. LongestSeconds
	// is how long the first of them has been waiting.
	Waiting        int
	LongestSeconds int64
	// UsedIsLowerBound is true if not all claims could be read, IdleIsKnown and
	// WaitingIsKnown are false if pods could not be.
	UsedIsLowerBound            bool
	IdleIsKnown, WaitingIsKnown bool
}

// Space is the namespace.
func (t *Team) Space() string { return t.Namespace }

type teamKey struct{ namespace, class string }

// Teams says who uses and who waits for what, by namespace and class. Namespaces
// that neither have nor want devices are left out.
func (v *Inventory) Teams() []Team {
	teams := map[teamKey]*Team{}
	team := func(namespace, class string) *Team {
		key := teamKey{namespace, class}
		if teams[key] == nil {
			known := podsKnown(v.cluster, namespace)
			teams[key] = &Team{Namespace: namespace, Class: class, UsedIsLowerBound: v.notRead.claims, IdleIsKnown: known, WaitingIsKnown: known}
		}
		return teams[key]
	}
	type use struct {
		teamKey
		id cluster.DeviceID
	}
	counted := map[use]bool{}
	used := map[string]int{}
	for _, claim := range v.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		idle := !v.inUse(claim)
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			result := &results[i]
			if ptr.Deref(result.AdminAccess, false) {
				continue
			}
			class := classOf(claim, result.Request)
			one := use{teamKey{claim.Namespace, class}, deviceID(result)}
			if counted[one] {
				continue
			}
			counted[one] = true
			t := team(claim.Namespace, class)
			t.Used++
			used[class]++
			if idle && t.IdleIsKnown {
				t.Idle++
			}
		}
	}
	for _, pod := range v.cluster.Waiting() {
		_, seconds := age(v.cluster, pod.CreationTimestamp)
		for _, class := range v.classesOf(pod) {
			t := team(pod.Namespace, class)
			t.Waiting++
			t.LongestSeconds = max(t.LongestSeconds, seconds)
		}
	}
	list := make([]Team, 0, len(teams))
	for _, t := range teams {
		if used[t.Class] > 0 {
			t.Share = float64(t.Used) / float64(used[t.Class])
		}
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Team) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// inUse reports whether somebody uses an allocated claim: a pod that is not
// finished, or something that is not a pod.
func (v *Inventory) inUse(claim *resourceapi.ResourceClaim) bool {
	if slices.ContainsFunc(v.pods.of(claim), func(pod *corev1.Pod) bool { return !snapshot.Finished(pod) }) {
		return true
	}
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return stale(v.cluster, claim.Namespace, consumer) == ""
	})
}

// classOf is the class that devices for a request were taken from; empty if the
// claim does not say so any more.
func classOf(claim *resourceapi.ResourceClaim, request string) string {
	base := resourceclaim.BaseRequestRef(request)
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if r.Name != base {
			continue
		}
		if r.Exactly != nil {
			return r.Exactly.DeviceClassName
		}
		for j := range r.FirstAvailable {
			if resourceclaim.CreateSubRequestRef(r.Name, r.FirstAvailable[j].Name) == request {
				return r.FirstAvailable[j].DeviceClassName
			}
		}
	}
	return ""
}

// classesOf lists the classes that the claims of a pod ask for, each once.
func (v *Inventory) classesOf(pod *corev1.Pod) []string {
	var classes []string
	for _, ask := range v.Asks(pod) {
		for _, class := range ask.Classes {
			if !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}
	return classes
}

// Ask is what a request of a pod wants.
type Ask struct {
	// Classes is the class or, for a prioritized list, those of its alternatives.
	Classes []string
	// Count is how many devices, of a prioritized list for the first alternative; 0
	// for all that there are.
	Count int64
}

// Asks lists the requests of the claims of a pod, also of those that do not exist yet.
func (v *Inventory) Asks(pod *corev1.Pod) []Ask {
	var asks []Ask
	count := func(mode resourceapi.DeviceAllocationMode, count int64) int64 {
		if mode == resourceapi.DeviceAllocationModeAll {
			return 0
		}
		return max(count, 1)
	}
	for _, pc := range v.cluster.Claims.OfPod(pod) {
		if pc.Claim == nil {
			continue
		}
		for i := range pc.Claim.Spec.Devices.Requests {
			r := &pc.Claim.Spec.Devices.Requests[i]
			if r.Exactly != nil {
				asks = append(asks, Ask{[]string{r.Exactly.DeviceClassName}, count(r.Exactly.AllocationMode, r.Exactly.Count)})
				continue
			}
			var ask Ask
			for j := range r.FirstAvailable {
				if j == 0 {
					ask.Count = count(r.FirstAvailable[j].AllocationMode, r.FirstAvailable[j].Count)
				}
				ask.Classes = append(ask.Classes, r.FirstAvailable[j].DeviceClassName)
			}
			asks = append(asks, ask)
		}
	}
	return asks
}
