// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Summary makes the model of the first page of an overview of a cluster, and of what else is
// known by then.
type Summary struct {
	Look    *widget.Look
	Fixed   bool
	Started time.Time
	// Cluster and Inventory have what waits. Causes is nil as long as none are found, and Problem is
	// why; Changes are what somebody has not seen yet.
	Cluster   *cluster.Cluster
	Inventory *inventory.Inventory
	Causes    *live.Causes
	Problem   error
	Changes   *live.Changes
	// Stale says of when the causes are, if the cluster has changed since.
	Stale string
	// Hours are the histories, by name.
	Hours  map[string][]float64
	Events []diff.Event
	// Nodes are the nodes to show as cells, in groups and in an order; nil for none. Room says how
	// many large claims fit.
	Nodes []*inventory.Node
	By    inventory.Grouping
	Order inventory.Order
	Room  []string
}

// Model returns the first page.
func (s *Summary) Model(o *inventory.Overview) overview.Model {
	m := overview.Model{Names: ShortClassNames(s.Cluster.Snapshot.Classes), Verdict: s.verdict(o), Classes: s.capacity(o), Causes: s.causes(), Severities: Severities(s.Look, s.Causes), Changes: cmp.Or(s.Changes.String(), s.Stale), Events: s.happened(o)}
	m.Stuck, m.Pods = s.stuck(o)
	m.Teams = overview.Section[overview.Team]{None: s.none("nobody uses devices", snapshot.ResourceClaims), All: PlaceOf(Teams)}
	for i := range o.Teams {
		m.Teams.Rows = append(m.Teams.Rows, overview.Team{Team: o.Teams[i], Open: PlaceOfTeams(o.Teams[i].Namespace)})
	}
	if !s.Fixed {
		m.Waiting = scaled(slices.Clone(s.Hours["waiting"]))
	}
	if len(s.Nodes) > 0 {
		m.Nodes, m.NodeLegend = NodeGroups(s.Look, s.Cluster.Snapshot, s.Nodes, s.By, s.Order), func(narrow bool) []string { return NodeLegend(s.Look, narrow) }
		all := len(s.Cluster.Snapshot.Nodes)
		if s.Cluster.Snapshot.Gap(snapshot.ResourceNodes) != nil {
			all = 0
		}
		m.NodesTitle = NodesText(s.Nodes, all)
		m.Room, m.OpenNodes = s.Room, &Place{View: Nodes, Map: &NodeMap{By: s.By, Order: s.Order}}
		m.Node = func(key string) overview.Node {
			at := slices.IndexFunc(s.Nodes, func(n *inventory.Node) bool { return n.Scope == key })
			if at < 0 {
				return overview.Node{}
			}
			return overview.Node{About: aboutNode(s.Look, s.Nodes[at]), Open: PlaceBehind(s.Nodes[at]), Item: s.Nodes[at]}
		}
	}
	return m
}

// none returns the text of an empty section: text, or that the section is not known because
// a resource could not be read.
func (s *Summary) none(text string, resources ...string) string {
	for _, resource := range resources {
		if gap := s.Cluster.Snapshot.Gap(resource); gap != nil {
			return "not known: " + gap.Reason
		}
	}
	return text
}

// verdict names each issue of the cluster, the worst first.
func (s *Summary) verdict(o *inventory.Overview) []overview.Mark {
	g := &s.Look.Glyphs
	signs := map[api.IssueCode]string{
		api.IssuePoolsUnknown: g.Unusable, api.IssuePodsUnknown: g.Unusable, api.IssuePodsWaiting: g.Up, api.IssueDevicesTainted: g.Tainted,
		api.IssueDevicesTaintedInUse: g.TaintedInUse, api.IssuePodsEvicted: g.Tainted, api.IssueNodesCordoned: g.Closed, api.IssueClaimsWithoutPod: g.Free,
	}
	if len(o.Issues) == 0 && s.Causes != nil && len(s.Causes.Lines) > 0 {
		worst := &s.Causes.Lines[0]
		return []overview.Mark{{Sign: g.Unhealthy, Tone: causeTone(worst), Text: worst.Causes[0].Message}}
	}
	if len(o.Issues) == 0 {
		return []overview.Mark{{Sign: g.Fine, Tone: widget.Good, Text: "no pod waits, no pool is broken, no device is tainted"}}
	}
	marks := make([]overview.Mark, 0, len(o.Issues))
	for i := range o.Issues {
		issue := &o.Issues[i]
		marks = append(marks, overview.Mark{Sign: cmp.Or(signs[issue.Code], g.Unhealthy), Tone: tones(issue.Severity), Text: issue.Message})
	}
	return marks
}

// capacity returns the classes or, where there are none, the drivers.
func (s *Summary) capacity(o *inventory.Overview) overview.Section[overview.Class] {
	section := overview.Section[overview.Class]{None: s.none("no DeviceClasses, and no devices", snapshot.ResourceSlices, snapshot.ResourceClasses), All: PlaceOf(Classes)}
	for i := range o.Capacity {
		c := &o.Capacity[i]
		d := &c.Devices
		row := overview.Class{
			Name: cmp.Or(c.Class, c.Driver), Counts: *d, Used: "-", Waiting: c.Waiting,
			Free: english.Grouped(render.AtMost(d.Free, d.FreeIsUpperBound)), Placeable: s.placeable(c),
		}
		if c.Class == "" {
			section.All, row.Open = PlaceOf(Pools), PlaceOfPools(c.Driver)
		} else {
			class := &api.Class{Name: c.Class}
			row.Open, row.Item = PlaceBehind(class), class
		}
		if c.Share != nil {
			row.Used = fmt.Sprintf("%.0f %%", 100**c.Share)
		}
		if c.DevicesAreLowerBounds {
			row.Used, row.Free = "?", "?"
		}
		if c.Failing > 0 {
			row.Note = "fails on " + english.Count(c.Failing, "device")
		}
		if !s.Fixed {
			row.History = s.Hours[seriesOf(c)]
		}
		section.Rows = append(section.Rows, row)
	}
	return section
}

// placeable writes how many claims for one device of a class can be placed. That is counted with the
// causes.
func (s *Summary) placeable(of *api.ClassCapacity) string {
	switch {
	case of.Class == "":
		return "-"
	case s.Causes == nil && s.Problem != nil:
		return "?"
	case s.Causes == nil:
		return s.Look.Glyphs.More
	}
	for i := range s.Causes.Status.Capacity {
		if c := &s.Causes.Status.Capacity[i]; c.Class == of.Class {
			return english.Grouped(render.PlaceableText(c))
		}
	}
	return s.Look.Glyphs.More
}

// causes returns the causes of a status, and those that ended since somebody looked.
func (s *Summary) causes() overview.Section[overview.Cause] {
	section := overview.Section[overview.Cause]{None: "One moment" + s.Look.Glyphs.More, All: PlaceOf(Causes)}
	if s.Problem != nil {
		section.None = s.Problem.Error()
	}
	if s.Causes == nil {
		return section
	}
	if section.None = "no causes: nothing is wrong"; len(s.Causes.Status.NotChecked) > 0 {
		section.None = "no causes; not checked: " + s.Causes.Status.NotChecked[0]
	}
	for i := range s.Causes.Lines {
		of := &s.Causes.Lines[i]
		row := overview.Cause{
			Key: causeKey(of), Number: strconv.Itoa(of.Number), Sign: severitySign(s.Look, of.Causes[0].Severity), Age: of.Age, Message: of.Causes[0].Message, Pods: of.Pods, Affected: of.Affected,
			Who: of.Who, Step: of.Step, Then: of.Then, Tone: causeTone(of), Open: PlaceBehind(of), Item: of,
			Lines: func(width int) []string { return causeLines(s.Look, of, width) },
		}
		if s.Changes != nil && slices.ContainsFunc(of.Causes, func(c *api.Cause) bool { return s.Changes.Began[c.ID] }) {
			row.Mark = s.Look.Glyphs.Changed
		}
		section.Rows = append(section.Rows, row)
	}
	if s.Changes == nil {
		return section
	}
	over := render.CauseLines(s.Changes.Ended)
	for i := range over {
		section.Rows = append(section.Rows, overview.Cause{
			Key: causeKey(&over[i]), Mark: s.Look.Glyphs.Fine, Age: "over", Message: over[i].Causes[0].Message, Tone: widget.Good, Open: PlaceBehind(&over[i]),
		})
	}
	return section
}

// stuck returns the pods that wait, the longest first, and others that do not run.
func (s *Summary) stuck(o *inventory.Overview) (section overview.Section[overview.Stuck], pods int) {
	section.None, section.All = s.none("no pod waits for devices", snapshot.ResourcePods, snapshot.ResourceClaims), PlaceOf(Pending)
	list := whatWaits(s.Cluster, s.Inventory, s.Causes, o.Namespace)
	for i := range list {
		w := &list[i]
		pods += w.count
		row := overview.Stuck{
			Wait: w.wait(s.Cluster.Snapshot.Now()), Key: w.name, Name: w.name, Count: w.count, Asks: w.asks, Answer: w.answer, Reason: w.reason, Summary: w.summary(), Step: w.step(),
			Tone: w.tone(), Open: PlaceBehind(w.item), Item: w.item,
		}
		if w.row != nil && len(w.row.Causes) > 0 {
			// The causes stand above, and the answer has their numbers.
			row.Reason = ""
		}
		if w.row != nil {
			row.Lines = func(width int) []string { return w.lines(s.Look, width) }
		}
		if w.count > 1 && w.row != nil && w.row.Owner.Kind != "" {
			row.Open = PlaceOfPods(w.row.Owner)
		}
		section.Rows = append(section.Rows, row)
	}
	return section, pods
}

// happened returns the events since the dashboard was started, the newest first.
func (s *Summary) happened(o *inventory.Overview) overview.Section[overview.Event] {
	var section overview.Section[overview.Event]
	if s.Fixed {
		return section
	}
	now := s.Cluster.Snapshot.Now()
	section.None = "none since " + when(s.Started, now)
	for i := range s.Events {
		e := &s.Events[i]
		if o.Namespace == "" || e.Namespace == "" || e.Namespace == o.Namespace {
			section.Rows = append(section.Rows, overview.Event{Key: e.Key(), At: e.Last, When: when(e.Last, now), Tone: eventTone(e.Code), Text: e.String(), Open: PlaceBehindEvent(e), Item: ItemOfEvent(e)})
		}
	}
	return section
}

// eventTone returns whether an event is good or bad, as a color.
func eventTone(code diff.EventCode) widget.Tone {
	switch code {
	case diff.ClaimReleased, diff.ClaimDeallocated, diff.PodHealthy, diff.SlicePublished, diff.NodeUncordoned, diff.NodeBecameReady, diff.RuleDeleted:
		return widget.Good
	case diff.PodUnhealthy, diff.SliceRemoved, diff.NodeDeleted, diff.NodeBecameNotReady:
		return widget.Bad
	case diff.NodeCordoned, diff.RuleCreated:
		return widget.Warning
	case diff.ClaimAllocated:
		return widget.Busy
	default:
		return widget.Plain
	}
}

// when returns the time of an event of today, and otherwise its date.
func when(at, now time.Time) string {
	if at.Format(time.DateOnly) == now.In(at.Location()).Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan _2")
}
