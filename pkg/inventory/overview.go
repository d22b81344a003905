// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Survey has what an overview is made of besides reasons and findings. It holds as long as
// the cluster does not change.
type Survey struct {
	inventory *Inventory
	pools     []api.Pool
	classes   []api.Class
	teams     []Team
	taints    []api.Taint
	closed    []Node
	blocked   []blockedPod
	// waiting are the pods that wait, the oldest first, with what they ask for.
	waiting []waitingPod
	// unused are the pending claims that no pod uses.
	unused []*resourceapi.ResourceClaim
}

type waitingPod struct {
	*corev1.Pod
	asks []api.Ask
}

type blockedPod struct {
	*corev1.Pod
	why lifecycle.BlockedPod
}

// Survey looks at a cluster whose pools [Inventory.Usage] has listed. The error is from
// ctx.
func (v *Inventory) Survey(ctx context.Context, pools []api.Pool) (*Survey, error) {
	classes, err := v.Classes(ctx)
	if err != nil {
		return nil, err
	}
	s := &Survey{
		inventory: v, pools: pools, classes: classes, teams: v.Teams(), taints: v.Taints(), closed: v.ClosedNodes(pools),
	}
	for _, b := range lifecycle.NewStages(v.cluster).BlockedPods() {
		// A pod without a node waits: it is explained, and that says the same.
		if pod := v.cluster.Snapshot.Pod(b.Namespace, b.Name); pod != nil && !snapshot.Waits(pod) {
			s.blocked = append(s.blocked, blockedPod{pod, b})
		}
	}
	for _, claim := range v.cluster.Snapshot.Claims {
		if v.WaitsForPod(claim) {
			s.unused = append(s.unused, claim)
		}
	}
	for _, pod := range v.cluster.Waiting() {
		s.waiting = append(s.waiting, waitingPod{pod, v.Asks(pod)})
	}
	slices.SortStableFunc(s.waiting, func(a, b waitingPod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return s, nil
}

// Waiting returns how many pods wait for devices.
func (s *Survey) Waiting() int { return len(s.waiting) }

// Known has explanations and findings that were made elsewhere.
type Known struct {
	// Namespace is the namespace whose pods and claims are wanted; empty for all.
	Namespace string
	// Reason is why a pod waits; the zero value where that is not known.
	Reason func(*corev1.Pod) api.StuckReason
	// Findings are the results of doctor's checks.
	Findings []api.Finding
}

// in reports whether something of a namespace is wanted.
func (k *Known) in(namespace string) bool { return k.Namespace == "" || namespace == k.Namespace }

// Overview is an overview with the objects that its entries are about, in the same order.
type Overview struct {
	api.Overview
	// StuckPods has the first pod of each entry of Stuck.
	StuckPods []*corev1.Pod
	// About has the *api.Taint, *api.Pool, *Node, *api.Finding or *api.Claim of each entry of
	// Attention; for several claims it is nil.
	About []any
	// Unending says which class has an expression that does not end, so that not all is known;
	// empty if none has.
	Unending string
}

// Overview makes the overview of a cluster, but for its nodes.
func (s *Survey) Overview(k Known) *Overview {
	snap := s.inventory.cluster.Snapshot
	o := &Overview{Overview: api.Overview{
		TypeMeta: typeMeta("Overview"), Source: snap.Source, Namespace: k.Namespace,
		Issues: s.issues(&k), Capacity: s.capacity(&k), Teams: s.teamsOf(&k), Assumptions: Assumptions(snap),
	}}
	for i := range s.classes {
		if text := UnendingText(s.classes[i].Failures); text != "" && o.Unending == "" {
			o.Unending = "class " + s.classes[i].Name + ": " + text
		}
	}
	s.stuck(o, &k)
	s.attention(o, &k)
	return o
}

// AddNodes lists the nodes in an overview.
func (o *Overview) AddNodes(nodes []Node) {
	o.Nodes = make([]api.Node, 0, len(nodes))
	for i := range nodes {
		o.Nodes = append(o.Nodes, nodes[i].Node)
	}
}

// issues counts the problems of the cluster. Pods that wait come first, then errors: where there is
// little room, the last issues are cut.
func (s *Survey) issues(k *Known) []api.Issue {
	snap := s.inventory.cluster.Snapshot
	list := []api.Issue{}
	add := func(severity api.Severity, code api.IssueCode, count int, message string) *api.Issue {
		list = append(list, api.Issue{Code: code, Severity: severity, Count: count, Message: message})
		return &list[len(list)-1]
	}
	count := func(severity api.Severity, code api.IssueCode, count int) {
		if count > 0 {
			add(severity, code, count, countText(code, count))
		}
	}
	unknown := func(code api.IssueCode, resource string) {
		if gap := snap.Gap(resource); gap != nil && gap.Namespace == "" && !gap.LeftOut {
			add(api.SeverityUnknown, code, 0, countText(code, 0))
		}
	}
	waiting, longest := 0, time.Duration(0)
	for i := range s.waiting {
		if pod := &s.waiting[i]; k.in(pod.Namespace) {
			waiting++
			if !pod.CreationTimestamp.IsZero() {
				longest = max(longest, snap.Now().Sub(pod.CreationTimestamp.Time))
			}
		}
	}
	if waiting > 0 {
		add(api.SeverityWarning, api.IssuePodsWaiting, waiting, waitingText(waiting, longest)).LongestSeconds = int64(longest.Seconds())
	}
	nodes := map[api.IssueCode]int{}
	for i := range s.closed {
		switch s.closed[i].State {
		case NodeGone:
			nodes[api.IssueNodesGone]++
		case NodeNotReady:
			nodes[api.IssueNodesNotReady]++
		default:
			nodes[api.IssueNodesCordoned]++
		}
	}
	count(api.SeverityError, api.IssueNodesGone, nodes[api.IssueNodesGone])
	count(api.SeverityError, api.IssueNodesNotReady, nodes[api.IssueNodesNotReady])
	if pools := broken(s.pools); len(pools) > 0 {
		add(api.SeverityError, api.IssuePoolsBroken, len(pools), brokenText(pools))
	}
	unknown(api.IssuePoolsUnknown, snapshot.ResourceSlices)
	blocked := 0
	for i := range s.blocked {
		if k.in(s.blocked[i].Namespace) {
			blocked++
		}
	}
	count(api.SeverityError, api.IssuePodsBlocked, blocked)
	unknown(api.IssuePodsUnknown, snapshot.ResourcePods)
	if evicted, next := s.Evicted(); evicted > 0 {
		add(api.SeverityError, api.IssuePodsEvicted, evicted, evictedText(evicted, next, snap.Now())).NextEviction = next
	}
	tainted, inUse := 0, 0
	for i := range s.pools {
		tainted += s.pools[i].Devices.Tainted
		inUse += s.pools[i].Devices.TaintedInUse
	}
	count(api.SeverityError, api.IssueDevicesTaintedInUse, inUse)
	count(api.SeverityWarning, api.IssueDevicesTainted, tainted)
	count(api.SeverityWarning, api.IssueNodesCordoned, nodes[api.IssueNodesCordoned])
	unused, _ := s.unusedClaims(k)
	count(api.SeverityInfo, api.IssueClaimsWithoutPod, unused)
	return list
}

// Evicted counts the pods that the taints of devices evict, each once, and says when
// the next one is.
func (s *Survey) Evicted() (pods int, next *metav1.Time) {
	known := map[string]bool{}
	for i := range s.taints {
		if due := s.taints[i].NextEviction; due != nil && (next == nil || due.Before(next)) {
			next = due
		}
		for j := range s.taints[i].Pods {
			if pod := &s.taints[i].Pods[j]; pod.Evicted {
				known[pod.Namespace+"/"+pod.Name] = true
			}
		}
	}
	return len(known), next
}

// unusedClaims counts the pending claims that no pod uses, and has the first of them.
func (s *Survey) unusedClaims(k *Known) (count int, first *resourceapi.ResourceClaim) {
	for _, claim := range s.unused {
		if k.in(claim.Namespace) {
			first = cmp.Or(first, claim)
			count++
		}
	}
	return count, first
}

// capacity returns the classes or, where there are none, the drivers.
func (s *Survey) capacity(k *Known) []api.ClassCapacity {
	waiting := map[string]int{}
	for i := range s.teams {
		if k.in(s.teams[i].Namespace) {
			waiting[s.teams[i].Class] += s.teams[i].Waiting
		}
	}
	list := []api.ClassCapacity{}
	for i := range s.classes {
		c := &s.classes[i]
		list = append(list, api.ClassCapacity{
			Class: c.Name, Devices: c.DeviceCounts, DevicesAreLowerBounds: c.DevicesAreLowerBounds, Failing: c.Failing, Waiting: waiting[c.Name],
		})
	}
	for i := range s.pools {
		pool := &s.pools[i]
		if len(s.classes) > 0 {
			break
		}
		if i == 0 || list[len(list)-1].Driver != pool.Driver {
			list = append(list, api.ClassCapacity{Driver: pool.Driver})
		}
		AddCounts(&list[len(list)-1].Devices, pool.Devices)
	}
	for i := range list {
		if d := &list[i].Devices; d.Total+d.Gone > 0 {
			list[i].Share = ptr.To(float64(d.Allocated+d.Shared+d.Gone) / float64(d.Total+d.Gone))
		}
	}
	return list
}

// stuck adds the pods that wait, the longest first, and those that cannot work with
// their devices. Pods of one owner with the same reason are one entry.
func (s *Survey) stuck(o *Overview, k *Known) {
	snap := s.inventory.cluster.Snapshot
	type row struct {
		api.StuckPods
		pod *corev1.Pod
	}
	rows := []row{}
	type key struct {
		of     api.ObjectRef
		reason string
	}
	known := map[key]int{}
	add := func(pod *corev1.Pod, asks []api.Ask, reason api.StuckReason) {
		owner := whatif.Owner(pod)
		of := key{cmp.Or(owner, api.RefTo(api.KindPod, pod)), ReasonWord(&reason)}
		if at, ok := known[of]; ok {
			rows[at].Count++
			return
		}
		known[of] = len(rows)
		r := row{api.StuckPods{Namespace: pod.Namespace, Name: pod.Name, Owner: owner, Count: 1, Asks: asks, Reason: reason}, pod}
		if !pod.CreationTimestamp.IsZero() {
			r.AgeSeconds = ptr.To(int64(snap.Now().Sub(pod.CreationTimestamp.Time).Seconds()))
		}
		rows = append(rows, r)
	}
	for i := range s.waiting {
		if w := &s.waiting[i]; k.in(w.Namespace) {
			add(w.Pod, w.asks, k.Reason(w.Pod))
		}
	}
	for i := range s.blocked {
		if b := &s.blocked[i]; k.in(b.Namespace) {
			add(b.Pod, nil, api.StuckReason{Code: b.why.Code, Stage: b.why.Stage, Summary: b.why.Summary, Actor: b.why.Actor})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(ptr.Deref(b.AgeSeconds, -1), ptr.Deref(a.AgeSeconds, -1)) })
	o.Stuck = make([]api.StuckPods, 0, len(rows))
	for i := range rows {
		o.Stuck, o.StuckPods = append(o.Stuck, rows[i].StuckPods), append(o.StuckPods, rows[i].pod)
	}
}

// ReasonWord returns a reason in one word: the code or, if there is none, the verdict.
func ReasonWord(r *api.StuckReason) string { return cmp.Or(string(r.Code), string(r.Verdict)) }

// teamsOf sums up what namespaces use, the largest first.
func (s *Survey) teamsOf(k *Known) []api.Team {
	teams := map[string]*api.Team{}
	total, certain := 0, true
	for i := range s.teams {
		t := &s.teams[i]
		total += t.Used
		certain = certain && !t.UsedIsLowerBound
		if !k.in(t.Namespace) {
			continue
		}
		if teams[t.Namespace] == nil {
			teams[t.Namespace] = &api.Team{Namespace: t.Namespace}
		}
		team := teams[t.Namespace]
		team.Classes = append(team.Classes, t.TeamClass)
		team.Idle += t.Idle
		team.Used += t.Used
	}
	for i := range s.waiting {
		// A pod that asks for several classes is one.
		if team := teams[s.waiting[i].Namespace]; team != nil {
			team.Waiting++
		}
	}
	list := make([]api.Team, 0, len(teams))
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		team := teams[name]
		slices.SortStableFunc(team.Classes, func(a, b api.TeamClass) int { return cmp.Compare(b.Used, a.Used) })
		switch {
		case !certain:
		case total > 0:
			team.Share = ptr.To(float64(team.Used) / float64(total))
		default:
			team.Share = new(float64)
		}
		list = append(list, *team)
	}
	slices.SortStableFunc(list, func(a, b api.Team) int { return cmp.Compare(b.Used, a.Used) })
	return list
}

// attention adds what somebody should look at, the most urgent first.
func (s *Survey) attention(o *Overview, k *Known) {
	o.Attention = []api.Attention{}
	add := func(about any, a api.Attention) {
		o.Attention, o.About = append(o.Attention, a), append(o.About, about)
	}
	now := s.inventory.cluster.Snapshot.Now()
	taints := func(evicting bool, severity api.Severity) {
		for i := range s.taints {
			if t := &s.taints[i]; (t.NextEviction != nil) == evicting {
				add(t, api.Attention{Kind: "Taint", Severity: severity, Driver: t.Driver, Name: TaintText(t), Message: taintText(t, now)})
			}
		}
	}
	taints(true, api.SeverityError)
	for _, pool := range broken(s.pools) {
		add(pool, api.Attention{Kind: "Pool", Severity: api.SeverityError, Driver: pool.Driver, Name: pool.Name, Message: string(pool.State) + ": " + pool.Reason})
	}
	for i := range s.closed {
		n, severity := &s.closed[i], api.SeverityWarning
		if n.isDown() {
			severity = api.SeverityError
		}
		add(n, api.Attention{Kind: api.KindNode, Severity: severity, Name: n.Name, Message: closedText(n)})
	}
	findings := func(severity api.Severity) {
		for _, f := range s.findings(k, severity) {
			add(f, api.Attention{Kind: "Finding", Severity: severity, Code: f.Code, Message: f.Message})
		}
	}
	findings(api.SeverityError)
	taints(false, api.SeverityWarning)
	findings(api.SeverityWarning)
	if n, first := s.unusedClaims(k); n > 0 {
		var about any
		if n == 1 {
			about = &api.Claim{Namespace: first.Namespace, Name: first.Name}
		}
		add(about, api.Attention{Kind: api.KindClaim, Severity: api.SeverityInfo, Namespace: first.Namespace, Name: first.Name, Message: unusedText(n, first)})
	}
}

// shownAnyway returns the checks whose findings have entries of their own: pools that are
// incomplete or invalid, or have no slices.
func shownAnyway() []string { return []string{"DRA1108", "DRA1201", "DRA1203"} }

// findings returns findings of doctor, without those that an overview already has.
func (s *Survey) findings(k *Known, severity api.Severity) []*api.Finding {
	stuck := map[api.ObjectRef]bool{}
	for i := range s.waiting {
		stuck[api.Ref(api.KindPod, s.waiting[i].Namespace, s.waiting[i].Name)] = true
	}
	for i := range s.blocked {
		stuck[api.Ref(api.KindPod, s.blocked[i].Namespace, s.blocked[i].Name)] = true
	}
	var list []*api.Finding
	for i := range k.Findings {
		f := &k.Findings[i]
		if f.Severity != severity || k.Namespace != "" && !Concerns(f, k.Namespace) || slices.Contains(shownAnyway(), f.Code) ||
			len(f.Objects) > 0 && stuck[f.Objects[0]] {
			continue
		}
		list = append(list, f)
	}
	return list
}

// Concerns reports whether a finding concerns a namespace, or none.
func Concerns(f *api.Finding, namespace string) bool {
	namespaced := false
	for _, object := range f.Objects {
		if object.Namespace == namespace {
			return true
		}
		namespaced = namespaced || object.Namespace != ""
	}
	return !namespaced
}
