// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Team is a namespace's use of a DeviceClass, and the demand of its pods. Where usage is by
// something else, Namespace is the name of the group.
type Team struct {
	Namespace string
	api.TeamClass
	// idleSeconds is how long the first of the idle devices is idle.
	idleSeconds int64
}

// Space returns the namespace.
func (t *Team) Space() string { return t.Namespace }

// usageCounter counts what groups of claims and pods use and wait for.
type usageCounter struct {
	cluster *cluster.Cluster
	notRead notRead
}

type teamKey struct{ namespace, class string }

// Teams says who uses and who waits for what, by namespace and class. Namespaces
// that neither have nor want devices are left out.
func (v *Inventory) Teams() []Team {
	counter := usageCounter{v.cluster, v.notRead}
	return counter.teams(byNamespace())
}

// teams is like [Inventory.Teams], for other groups.
func (u *usageCounter) teams(by usageGroups) []Team {
	teams := map[teamKey]*Team{}
	team := func(group, namespace, class string) *Team {
		key := teamKey{group, class}
		if teams[key] == nil {
			teams[key] = &Team{Namespace: group, TeamClass: api.TeamClass{Class: class, UsedIsLowerBound: u.notRead.claims}}
		}
		teams[key].PodsAreUnknown = teams[key].PodsAreUnknown || !podsKnown(u.cluster, namespace)
		return teams[key]
	}
	type use struct {
		teamKey
		id cluster.DeviceID
	}
	// counted has whether a claim that counts has a device, or only others.
	counted := map[use]bool{}
	used := map[string]int{}
	for _, claim := range u.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		idle, group := !u.inUse(claim), by.ofClaim(claim)
		wanted := by.has(claim)
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			result := &results[i]
			if ptr.Deref(result.AdminAccess, false) {
				continue
			}
			class := classOf(claim, result.Request)
			one := use{teamKey{group, class}, deviceID(result)}
			before, known := counted[one]
			if counted[one] = before || wanted; !known {
				used[class]++
			}
			if before || !wanted {
				continue
			}
			t := team(group, claim.Namespace, class)
			t.Used++
			if idle && !t.PodsAreUnknown {
				t.Idle++
				t.idleSeconds = max(t.idleSeconds, u.idleSeconds(claim))
			}
		}
	}
	for _, pod := range u.cluster.Waiting() {
		if !by.hasPod(pod) {
			continue
		}
		_, seconds := age(u.cluster, pod.CreationTimestamp)
		for _, class := range AskedClasses(asksOf(u.cluster, pod)) {
			t := team(by.ofPod(pod), pod.Namespace, class)
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
func (u *usageCounter) inUse(claim *resourceapi.ResourceClaim) bool {
	if slices.ContainsFunc(u.cluster.Claims.Users(claim.Namespace, claim.Name), func(pod *corev1.Pod) bool { return !snapshot.Finished(pod) }) {
		return true
	}
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return stale(u.cluster, claim.Namespace, consumer) == ""
	})
}

// classOf returns the class that devices for a request were taken from; empty if the claim
// does not say so any more.
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

// AskedClasses lists the classes that are asked for, each once.
func AskedClasses(asks []api.Ask) []string {
	var classes []string
	for _, ask := range asks {
		for _, class := range ask.Classes {
			if !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}
	return classes
}

// Asks lists the requests of the claims of a pod, also of those that do not exist yet.
func (v *Inventory) Asks(pod *corev1.Pod) []api.Ask { return asksOf(v.cluster, pod) }

func asksOf(c *cluster.Cluster, pod *corev1.Pod) []api.Ask {
	var asks []api.Ask
	count := func(mode resourceapi.DeviceAllocationMode, count int64) int64 {
		if mode == resourceapi.DeviceAllocationModeAll {
			return 0
		}
		return max(count, 1)
	}
	for _, pc := range c.Claims.OfPod(pod) {
		if pc.Claim == nil {
			continue
		}
		for i := range pc.Claim.Spec.Devices.Requests {
			r := &pc.Claim.Spec.Devices.Requests[i]
			if r.Exactly != nil {
				asks = append(asks, api.Ask{Classes: []string{r.Exactly.DeviceClassName}, Count: count(r.Exactly.AllocationMode, r.Exactly.Count)})
				continue
			}
			var ask api.Ask
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

// UsageBy says what groups use and wait for, the largest use first. Shares are always of the
// whole cluster.
func (v *Inventory) UsageBy(of UsageOf) []api.Usage {
	counter := usageCounter{v.cluster, v.notRead}
	groups := counter.groups(of)
	byName := map[string]*api.Usage{}
	usage := func(name string) *api.Usage {
		if byName[name] == nil {
			byName[name] = &api.Usage{TypeMeta: typeMeta("Usage"), By: of.By, Name: name, UsedIsLowerBound: v.notRead.claims, Classes: []api.TeamClass{}}
		}
		return byName[name]
	}
	total := 0
	for _, t := range counter.teams(byNamespace()) {
		total += t.Used
	}
	teams := counter.teams(groups)
	for i := range teams {
		t := &teams[i]
		u := usage(t.Namespace)
		u.Classes = append(u.Classes, t.TeamClass)
		u.Used += t.Used
		u.Idle += t.Idle
		u.IdleSeconds = max(u.IdleSeconds, t.idleSeconds)
		u.PodsAreUnknown = u.PodsAreUnknown || t.PodsAreUnknown
	}
	for _, pod := range v.cluster.Waiting() {
		if !groups.hasPod(pod) {
			continue
		}
		// A pod that asks for several classes is one, and so is a pod of whose claims
		// nothing is known yet.
		u := usage(groups.ofPod(pod))
		u.Waiting++
		_, seconds := age(v.cluster, pod.CreationTimestamp)
		u.LongestSeconds = max(u.LongestSeconds, seconds)
		u.PodsAreUnknown = u.PodsAreUnknown || !podsKnown(v.cluster, pod.Namespace)
	}
	list := make([]api.Usage, 0, len(byName))
	for _, u := range byName {
		slices.SortStableFunc(u.Classes, func(a, b api.TeamClass) int { return cmp.Compare(b.Used, a.Used) })
		if !u.UsedIsLowerBound {
			u.Share = ptr.To(float64(u.Used) / float64(max(total, 1)))
		}
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b api.Usage) int { return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Name, b.Name)) })
	return list
}

// UsageOf chooses what counts as use, and how it is grouped.
type UsageOf struct {
	// By is "namespace", "owner" or "label=KEY".
	By string
	// Namespace is the only namespace that counts, empty for all; Labels select pods and
	// claims, nil for all.
	Namespace string
	Labels    labels.Selector
}

// usageGroups puts claims and waiting pods into groups.
type usageGroups struct {
	ofClaim func(*resourceapi.ResourceClaim) string
	ofPod   func(*corev1.Pod) string
	// has and hasPod report whether a claim, or a pod, counts.
	has    func(*resourceapi.ResourceClaim) bool
	hasPod func(*corev1.Pod) bool
}

func byNamespace() usageGroups {
	return usageGroups{
		ofClaim: func(claim *resourceapi.ResourceClaim) string { return claim.Namespace },
		ofPod:   func(pod *corev1.Pod) string { return pod.Namespace },
		has:     func(*resourceapi.ResourceClaim) bool { return true },
		hasPod:  func(*corev1.Pod) bool { return true },
	}
}

// groups returns the groups that a user chose.
func (u *usageCounter) groups(of UsageOf) usageGroups {
	groups := byNamespace()
	if key, ok := strings.CutPrefix(of.By, "label="); ok {
		groups.ofPod = func(pod *corev1.Pod) string { return u.labelsOfPod(pod)[key] }
		groups.ofClaim = func(claim *resourceapi.ResourceClaim) string { return u.labelsOfClaim(claim)[key] }
	} else if of.By == "owner" {
		groups.ofPod, groups.ofClaim = ownerName, u.ownerOfClaim
	}
	in := func(namespace string) bool { return of.Namespace == "" || of.Namespace == namespace }
	all := of.Labels == nil || of.Labels.Empty()
	groups.hasPod = func(pod *corev1.Pod) bool { return in(pod.Namespace) && (all || of.Labels.Matches(u.labelsOfPod(pod))) }
	groups.has = func(claim *resourceapi.ResourceClaim) bool {
		return in(claim.Namespace) && (all || of.Labels.Matches(u.labelsOfClaim(claim)))
	}
	return groups
}

// ownerOfClaim returns the workload whose pod uses a claim, or the claim if no pod does.
func (u *usageCounter) ownerOfClaim(claim *resourceapi.ResourceClaim) string {
	if pods := u.cluster.Claims.Users(claim.Namespace, claim.Name); len(pods) > 0 {
		return ownerName(pods[0])
	}
	return claim.Namespace + "/" + api.RefTo(api.KindClaim, claim).Argument()
}

// ownerName returns NAMESPACE/TYPE/NAME of the workload of a pod, or of a pod without one.
func ownerName(pod *corev1.Pod) string {
	owner := whatif.Owner(pod)
	if owner.Kind == "" {
		owner = api.RefTo(api.KindPod, pod)
	}
	return pod.Namespace + "/" + owner.Argument()
}

// labelsOfPod returns the labels of a pod and, where it has none of a key, of its namespace.
func (u *usageCounter) labelsOfPod(pod *corev1.Pod) labels.Set {
	if namespace := u.cluster.Snapshot.Namespace(pod.Namespace); namespace != nil {
		return labels.Merge(namespace.Labels, pod.Labels)
	}
	return pod.Labels
}

// labelsOfClaim returns the labels of the pods of a claim and, where they have none of a key,
// of the claim or of its namespace.
func (u *usageCounter) labelsOfClaim(claim *resourceapi.ResourceClaim) labels.Set {
	set := labels.Merge(nil, claim.Labels)
	if namespace := u.cluster.Snapshot.Namespace(claim.Namespace); namespace != nil {
		set = labels.Merge(namespace.Labels, set)
	}
	for _, pod := range slices.Backward(u.cluster.Claims.Users(claim.Namespace, claim.Name)) {
		set = labels.Merge(set, pod.Labels)
	}
	return set
}

// idleSeconds returns for how long no pod uses an allocated claim.
func (u *usageCounter) idleSeconds(claim *resourceapi.ResourceClaim) int64 {
	since := cmp.Or(claim.Status.Allocation.AllocationTimestamp, &claim.CreationTimestamp)
	for _, pod := range u.cluster.Claims.Users(claim.Namespace, claim.Name) {
		for i := range pod.Status.ContainerStatuses {
			if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil && since.Before(&end.FinishedAt) {
				since = &end.FinishedAt
			}
		}
	}
	_, seconds := age(u.cluster, ptr.Deref(since, metav1.Time{}))
	return seconds
}

// UsageHours adds up usage over time.
type UsageHours struct {
	of   map[string]*api.UsageHours
	last []api.Usage
	at   time.Time
	// Known is how long it was known how the cluster was.
	Known time.Duration
}

// Add goes on to a time, with the usage from then on. If it was missed how the cluster was until
// then, the time since the last call does not count.
func (h *UsageHours) Add(at time.Time, missed bool, list []api.Usage) {
	if h.of == nil {
		h.of = map[string]*api.UsageHours{}
	}
	passed := max(at.Sub(h.at), 0)
	if missed || h.at.IsZero() {
		passed = 0
	}
	hours := passed.Hours()
	h.Known += passed
	for i := range h.last {
		u := &h.last[i]
		if h.of[u.Name] == nil {
			h.of[u.Name] = &api.UsageHours{}
		}
		sum := h.of[u.Name]
		sum.Devices += hours * float64(u.Used)
		sum.Idle += hours * float64(u.Idle)
		sum.Waiting += hours * float64(u.Waiting)
	}
	h.last = list
	if at.After(h.at) {
		h.at = at
	}
}

// Usage returns the last usage with all hours, and the groups that use nothing any more. The largest
// use of all that time is first.
func (h *UsageHours) Usage(by string) []api.Usage {
	list := slices.Clone(h.last)
	for i := range list {
		list[i].Hours = &api.UsageHours{}
		if sum := h.of[list[i].Name]; sum != nil {
			list[i].Hours = sum
		}
	}
	for name, sum := range h.of {
		if !slices.ContainsFunc(h.last, func(u api.Usage) bool { return u.Name == name }) {
			list = append(list, api.Usage{TypeMeta: typeMeta("Usage"), By: by, Name: name, Classes: []api.TeamClass{}, Hours: sum})
		}
	}
	slices.SortFunc(list, func(a, b api.Usage) int {
		return cmp.Or(cmp.Compare(b.Hours.Devices, a.Hours.Devices), cmp.Compare(b.Hours.Waiting, a.Hours.Waiting), cmp.Compare(a.Name, b.Name))
	})
	return list
}
