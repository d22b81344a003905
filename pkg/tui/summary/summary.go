// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/nodemap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/place"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Model is the first page of facts.
func (s *Summary) Model(f *Facts) overview.Model {
	m := overview.Model{Names: views.ShortClassNames(f.From.Cluster.Snapshot.Classes), Waiting: scaled(slices.Clone(s.Hours["waiting"]))}
	m.Classes = s.capacity(f)
	m.Stuck, m.Pods = s.stuck(f)
	m.Teams = s.teams(f)
	m.Hands = s.hands(f)
	m.Events = s.happened(f.From.Cluster.Snapshot.Now())
	if s.Fixed {
		m.Waiting = nil
	}
	m.Verdict = s.verdict(f)
	if len(s.Nodes) > 0 {
		m.Nodes, m.NodeLegend = nodemap.Groups(s.Look, f.From.Cluster.Snapshot, s.Nodes, s.By, s.Order), nodemap.Legend(s.Look)
		m.OpenNodes = &place.Place{View: views.Nodes, Map: &place.Map{By: s.By, Order: s.Order}}
	}
	return m
}

// capacity has the classes or, where there are none, the drivers.
func (s *Summary) capacity(f *Facts) overview.Section[overview.Class] {
	section := overview.Section[overview.Class]{None: f.none("no DeviceClasses, and no devices", snapshot.ResourceSlices, snapshot.ResourceClasses), All: place.All(views.Classes)}
	waiting := map[string]int{}
	for i := range f.teams {
		if s.in(f.teams[i].Namespace) {
			waiting[f.teams[i].Class] += f.teams[i].Waiting
		}
	}
	for i := range f.Classes {
		c := &f.Classes[i]
		row := s.usage(c.Name, "class ", &c.DeviceCounts, c.DevicesAreLowerBounds)
		row.Waiting = waiting[c.Name]
		if c.Failing > 0 {
			row.Note = "fails on " + english.Count(c.Failing, "device")
		}
		row.Open, row.Item = place.Behind(c), c
		section.Rows = append(section.Rows, row)
	}
	if len(f.Classes) > 0 {
		return section
	}
	section.All = place.All(views.Pools)
	for _, d := range f.From.Drivers() {
		row := s.usage(d.Name, "driver ", &d.Devices, false)
		row.Open = place.Pools(d.Name)
		section.Rows = append(section.Rows, row)
	}
	return section
}

// usage is how much of a class or a driver is used.
func (s *Summary) usage(name, kind string, c *api.DeviceCounts, atLeast bool) overview.Class {
	row := overview.Class{Name: name, Counts: *c, History: s.Hours[kind+name], Used: "-"}
	row.Free, row.Placeable = render.AtMost(c.Free, c.FreeIsUpperBound), render.AtMost(min(c.Placeable, c.Free), c.FreeIsUpperBound)
	if c.Total+c.Gone > 0 {
		row.Used = fmt.Sprintf("%.0f %%", 100*used(c))
	}
	if atLeast {
		row.Used, row.Free, row.Placeable = "?", "?", "?"
	}
	if s.Fixed {
		row.History = nil
	}
	return row
}

// stuck has the pods that wait, the longest first, and those that cannot work with
// their devices. Pods of one owner with the same reason are one row.
func (s *Summary) stuck(f *Facts) (section overview.Section[overview.Stuck], pods int) {
	section.None, section.All = f.none("no pod waits for devices", snapshot.ResourcePods, snapshot.ResourceClaims), place.All(views.Pending)
	known := map[[3]string]int{}
	add := func(namespace, name, owner, code string, row overview.Stuck) {
		pods++
		key := [3]string{namespace, cmp.Or(owner, "pod/"+name), code}
		if at, ok := known[key]; ok {
			section.Rows[at].Count++
			section.Rows[at].Name = namespace + "/" + owner
			section.Rows[at].Open = place.Pods(namespace, owner)
			return
		}
		known[key] = len(section.Rows)
		row.Name, row.Count = namespace+"/"+name, 1
		row.Key = row.Name
		section.Rows = append(section.Rows, row)
	}
	names, now := views.ShortClassNames(f.From.Cluster.Snapshot.Classes), f.From.Cluster.Snapshot.Now()
	for i := range f.waiting {
		w := &f.waiting[i]
		if !s.in(w.pod.Namespace) {
			continue
		}
		found := s.Reasons.Get(w.of)
		row := overview.Stuck{
			Wait: now.Sub(w.pod.CreationTimestamp.Time), Asks: views.AsksText(w.asks, names), Code: found.Code, Reason: found.Summary,
			Who: whoText(found.Code, found.Actor), Remedies: found.Remedies, Outlook: found.Outlook, Tone: widget.Warning,
		}
		pod := &inventory.Pod{Pod: w.pod}
		row.Open, row.Item = place.Behind(pod), pod
		if answer := found.Answer; answer != nil {
			row.Lines = func(width int) []string { return widget.BriefLines(s.Look, answer, width) }
		}
		if w.pod.CreationTimestamp.IsZero() {
			row.Wait = -1
		}
		add(w.pod.Namespace, w.pod.Name, lifecycle.WorkloadName(w.pod), found.Code, row)
	}
	for i := range f.blocked {
		b := &f.blocked[i]
		if !s.in(b.Namespace) {
			continue
		}
		row := overview.Stuck{Wait: -1, Code: string(b.Code), Reason: b.Summary, Who: whoText(string(b.Code), b.Actor), Tone: widget.Bad}
		pod := &inventory.Pod{Pod: f.From.Cluster.Snapshot.Pod(b.Namespace, b.Name)}
		if pod.Pod == nil {
			pod.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}}
		}
		row.Open, row.Item = place.Behind(pod), pod
		if !pod.CreationTimestamp.IsZero() {
			row.Wait = now.Sub(pod.CreationTimestamp.Time)
		}
		add(b.Namespace, b.Name, b.Owner, string(b.Code), row)
	}
	slices.SortStableFunc(section.Rows, func(a, b overview.Stuck) int { return cmp.Compare(b.Wait, a.Wait) })
	return section, pods
}

// whoText says who can act.
func whoText(code, actor string) string {
	switch {
	case code == string(api.Fits):
		return "will fit"
	case actor == api.ActorUser:
		return "you can fix"
	case actor == api.ActorAdmin:
		return "admin"
	case actor == api.ActorNobody:
		return "wait"
	default:
		return ""
	}
}

// teams are namespaces, those that use most first.
func (s *Summary) teams(f *Facts) overview.Section[overview.Team] {
	section := overview.Section[overview.Team]{None: f.none("nobody uses devices", snapshot.ResourceClaims), All: place.All(views.Teams)}
	teams := map[string]*overview.Team{}
	total, sums, certain := 0, map[string]int{}, true
	for i := range f.teams {
		t := &f.teams[i]
		total += t.Used
		certain = certain && !t.UsedIsLowerBound
		if !s.in(t.Namespace) {
			continue
		}
		if teams[t.Namespace] == nil {
			teams[t.Namespace] = &overview.Team{Namespace: t.Namespace, Open: place.Teams(t.Namespace)}
		}
		team := teams[t.Namespace]
		team.Uses = append(team.Uses, overview.Use{Class: t.Class, Used: t.Used, Waiting: t.Waiting, Idle: t.Idle, Share: t.Share})
		team.Idle += t.Idle
		sums[t.Namespace] += t.Used
	}
	for i := range f.waiting {
		// A pod that asks for several classes is one.
		if team := teams[f.waiting[i].pod.Namespace]; team != nil {
			team.Waiting++
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(teams), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	}) {
		team := teams[name]
		slices.SortStableFunc(team.Uses, func(a, b overview.Use) int { return cmp.Compare(b.Used, a.Used) })
		switch {
		case !certain:
			team.Share = -1
		case total > 0:
			team.Share = float64(sums[name]) / float64(total)
		}
		section.Rows = append(section.Rows, *team)
	}
	return section
}

// happened is what happened while the dashboard looked, the newest first.
func (s *Summary) happened(now time.Time) overview.Section[overview.Event] {
	var section overview.Section[overview.Event]
	if s.Fixed {
		return section
	}
	section.None = "none since " + when(s.Started, now)
	for i := range s.Events {
		e := &s.Events[i]
		if s.in(cmp.Or(e.Namespace, s.Namespace)) {
			section.Rows = append(section.Rows, overview.Event{Key: e.Key(), At: e.Last, When: when(e.Last, now), Tone: e.Tone, Text: e.String(), Open: place.BehindEvent(e), Item: place.ItemOf(e)})
		}
	}
	return section
}

// when is the time of today, and else the date.
func when(at, now time.Time) string {
	if at.Format(time.DateOnly) == now.In(at.Location()).Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan _2")
}
