// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/place"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// evicted counts the pods that the taints of devices evict, each once, and says when
// the next one is.
func (f *Facts) evicted() (pods int, next time.Duration) {
	known := map[string]bool{}
	now := f.From.Cluster.Snapshot.Now()
	for i := range f.taints {
		if left, due := inventory.EvictionDue(&f.taints[i], now); due && (len(known) == 0 || left < next) {
			next = left
		}
		for j := range f.taints[i].Pods {
			if pod := &f.taints[i].Pods[j]; pod.Evicted {
				known[pod.Namespace+"/"+pod.Name] = true
			}
		}
	}
	return len(known), next
}

func inTime(left time.Duration) string {
	if left <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(left)
}

// verdict says in a line how the cluster is, the worst first.
func (s *Summary) verdict(f *Facts) []overview.Mark {
	var marks []overview.Mark
	g := &s.Look.Glyphs
	add := func(t widget.Tone, sign, format string, args ...any) {
		marks = append(marks, overview.Mark{Sign: sign, Tone: t, Text: fmt.Sprintf(format, args...)})
	}
	unknown := func(what string, resources ...string) {
		for _, resource := range resources {
			if gap := f.From.Cluster.Snapshot.Gap(resource); gap != nil && gap.Namespace == "" && !gap.LeftOut {
				add(widget.Bad, g.Unusable, "%s not known", what)
				return
			}
		}
	}
	broken, devices := live.Broken(f.From.Pools), 0
	for _, pool := range broken {
		devices += pool.Devices.Total + pool.Devices.Gone
	}
	switch {
	case len(broken) == 1:
		add(widget.Bad, g.Unhealthy, "%s", brokenText(broken[0]))
	case len(broken) > 1:
		add(widget.Bad, g.Unhealthy, "%d pools are broken (%s)", len(broken), english.Count(devices, "device"))
	}
	unknown("pools", snapshot.ResourceSlices)
	waiting, longest, blocked := 0, time.Duration(0), 0
	for i := range f.waiting {
		w := &f.waiting[i]
		if !s.in(w.pod.Namespace) {
			continue
		}
		waiting++
		if !w.pod.CreationTimestamp.IsZero() {
			longest = max(longest, f.From.Cluster.Snapshot.Now().Sub(w.pod.CreationTimestamp.Time))
		}
	}
	for i := range f.blocked {
		if s.in(f.blocked[i].Namespace) {
			blocked++
		}
	}
	if waiting > 0 {
		verb := "wait"
		if waiting == 1 {
			verb = "waits"
		}
		add(widget.Warning, g.Up, "%s %s, longest %s", english.Count(waiting, "pod"), verb, duration.HumanDuration(longest))
	}
	if blocked > 0 {
		add(widget.Bad, g.Unhealthy, "%s cannot work with the devices", english.Count(blocked, "pod"))
	}
	unknown("pods that wait", snapshot.ResourcePods)
	tainted, inUse := 0, 0
	for i := range f.From.Pools {
		tainted += f.From.Pools[i].Devices.Tainted
		inUse += f.From.Pools[i].Devices.TaintedInUse
	}
	if tainted > 0 {
		add(widget.Warning, g.Tainted, "%d tainted", tainted)
	}
	if inUse > 0 {
		add(widget.Bad, g.TaintedInUse, "%d used and tainted", inUse)
	}
	if evicted, next := f.evicted(); evicted > 0 {
		add(widget.Bad, g.Tainted, "%s evicted %s", english.Count(evicted, "pod"), inTime(next))
	}
	gone, notReady, cordoned := 0, 0, 0
	for i := range f.closed {
		switch f.closed[i].State {
		case inventory.NodeGone:
			gone++
		case inventory.NodeNotReady:
			notReady++
		default:
			cordoned++
		}
	}
	if gone > 0 {
		add(widget.Bad, g.Unhealthy, "%s gone", english.Count(gone, "node"))
	}
	if notReady > 0 {
		add(widget.Bad, g.Unhealthy, "%s not ready", english.Count(notReady, "node"))
	}
	if cordoned > 0 {
		add(widget.Warning, g.Closed, "%s cordoned", english.Count(cordoned, "node"))
	}
	unused := 0
	for _, claim := range f.unused {
		if s.in(claim.Namespace) {
			unused++
		}
	}
	if unused > 0 {
		add(widget.Faint, g.Free, "%s without a pod", english.Count(unused, "claim"))
	}
	if len(marks) == 0 {
		add(widget.Good, g.Fine, "no pod waits, no pool is broken, no device is tainted")
	}
	return marks
}

// brokenText says what is wrong with a pool.
func brokenText(pool *api.Pool) string {
	if pool.State == api.PoolStateNoSlices {
		return fmt.Sprintf("pool %s has no slices", pool.Name)
	}
	if pool.State == api.PoolStateNodeGone {
		return fmt.Sprintf("node of pool %s does not exist", pool.Name)
	}
	return fmt.Sprintf("pool %s is %s", pool.Name, strings.ToLower(string(pool.State)))
}

func devices(n int) string { return english.Count(n, "device") }

// hands are what needs a hand, the most urgent first.
func (s *Summary) hands(f *Facts) overview.Section[overview.Hand] {
	section := overview.Section[overview.Hand]{None: f.none("nothing", snapshot.ResourceSlices), All: place.All(views.Findings)}
	add := func(rows ...overview.Hand) { section.Rows = append(section.Rows, rows...) }
	evicting, others := s.taints(f)
	add(evicting...)
	for _, pool := range live.Broken(f.From.Pools) {
		add(overview.Hand{Sign: s.Look.Glyphs.Unhealthy, Tone: widget.Bad, Name: pool.Name, Text: string(pool.State) + ": " + pool.Reason, Open: place.Behind(pool), Item: pool})
	}
	for i := range f.closed {
		add(s.closedNode(&f.closed[i]))
	}
	add(s.findings(f, api.SeverityError)...)
	add(others...)
	add(s.findings(f, api.SeverityWarning)...)
	if unused := s.unusedClaims(f); unused != nil {
		add(*unused)
	}
	return section
}

// taints are those that evict pods, and all others.
func (s *Summary) taints(f *Facts) (evicting, others []overview.Hand) {
	now := f.From.Cluster.Snapshot.Now()
	for i := range f.taints {
		t := &f.taints[i]
		row := overview.Hand{Sign: s.Look.Glyphs.Tainted, Tone: widget.Warning, Name: inventory.TaintText(t), Text: devices(len(t.Devices)), Open: place.Behind(t), Item: t}
		left, due := inventory.EvictionDue(t, now)
		if !due {
			if len(t.Claims) > 0 {
				row.Text += ", used by " + english.Count(len(t.Claims), "claim")
			}
			others = append(others, row)
			continue
		}
		evicted := 0
		for _, pod := range t.Pods {
			if pod.Evicted {
				evicted++
			}
		}
		row.Tone = widget.Bad
		row.Text += fmt.Sprintf(", evicts %d of %d pods, the next %s", evicted, len(t.Pods), inTime(left))
		evicting = append(evicting, row)
	}
	return evicting, others
}

func (s *Summary) closedNode(n *inventory.ClosedNode) overview.Hand {
	row := overview.Hand{Sign: s.Look.Glyphs.Closed, Tone: widget.Warning, Name: n.Name, Text: "cordoned", Open: place.Devices(n.Name), Item: &inventory.Node{Name: n.Name, Scope: n.Name, State: n.State, Cordoned: n.Cordoned}}
	if n.State != "" {
		row.Sign, row.Tone, row.Text = s.Look.Glyphs.Unhealthy, widget.Bad, n.State
		if n.Cordoned {
			row.Text += ", cordoned"
		}
	}
	if n.Devices.Free > 0 {
		row.Text += fmt.Sprintf(", %d free", n.Devices.Free)
	}
	if used := n.Devices.Allocated + n.Devices.Shared; used > 0 {
		row.Text += fmt.Sprintf(", %d used", used)
	}
	return row
}

// shownAnyway are checks whose findings have a row of their own: pools that are
// incomplete or invalid, or have
// no slices.
func shownAnyway() []string { return []string{"DRA1108", "DRA1201", "DRA1203"} }

// findings are those of doctor, but for what is on the page already.
func (s *Summary) findings(f *Facts, severity api.Severity) []overview.Hand {
	found, err := s.Diagnosis.Newest()
	if found == nil || err != nil {
		return nil
	}
	stuck := map[string]bool{}
	for i := range f.waiting {
		pod := f.waiting[i].pod
		stuck[api.KindPod+"/"+pod.Namespace+"/"+pod.Name] = true
	}
	for i := range f.blocked {
		stuck[api.KindPod+"/"+f.blocked[i].Namespace+"/"+f.blocked[i].Name] = true
	}
	var rows []overview.Hand
	for i := range found.Findings {
		finding := &found.Findings[i]
		if finding.Severity != severity || s.Namespace != "" && !live.Concerns(finding, s.Namespace) || slices.Contains(shownAnyway(), finding.Code) ||
			len(finding.Objects) > 0 && stuck[finding.Objects[0]] {
			continue
		}
		sign := s.Look.Glyphs.Unhealthy
		if severity != api.SeverityError {
			sign = s.Look.Glyphs.Tainted
		}
		rows = append(rows, overview.Hand{Sign: sign, Tone: views.FindingTone(finding), Name: finding.Code, Text: finding.Message, Open: place.Behind(finding), Item: finding})
	}
	return rows
}

// unusedClaims are the pending claims that no pod uses: nothing waits for them.
func (s *Summary) unusedClaims(f *Facts) *overview.Hand {
	n, first := 0, (*resourceapi.ResourceClaim)(nil)
	for _, claim := range f.unused {
		if s.in(claim.Namespace) {
			if n == 0 {
				first = claim
			}
			n++
		}
	}
	if n == 0 {
		return nil
	}
	name := string(api.FlagWaitingForPod)
	row := &overview.Hand{
		Sign: s.Look.Glyphs.Free, Tone: widget.Faint, Name: name, Text: first.Namespace + "/" + first.Name + ": " + inventory.NoPodUsesIt,
		Open: place.WithoutPod(name),
	}
	if n == 1 {
		row.Item = &api.Claim{Namespace: first.Namespace, Name: first.Name}
	} else {
		row.Text = fmt.Sprintf("%d claims, such as %s", n, row.Text)
	}
	return row
}
