// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
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
	Look *widget.Look
	// Snapshot is the cluster of the overview.
	Snapshot *snapshot.Snapshot
	Fixed    bool
	Started  time.Time
	// Reason is all that is known of why a pod waits; nil if an overview has that.
	Reason func(*corev1.Pod) live.Reason
	// Hours are the histories, by name.
	Hours  map[string][]float64
	Events []inventory.Event
	// Nodes are the nodes to show as signs, in groups and in an order; nil for none.
	Nodes []*inventory.Node
	By    inventory.Grouping
	Order inventory.Order
}

// Model returns the first page.
func (s *Summary) Model(o *inventory.Overview) overview.Model {
	m := overview.Model{Names: ShortClassNames(s.Snapshot.Classes), Verdict: s.verdict(o), Classes: s.capacity(o), Hands: s.hands(o), Events: s.happened(o)}
	m.Stuck, m.Pods = s.stuck(o, m.Names)
	m.Teams = overview.Section[overview.Team]{None: s.none("nobody uses devices", snapshot.ResourceClaims), All: PlaceOf(Teams)}
	for i := range o.Teams {
		m.Teams.Rows = append(m.Teams.Rows, overview.Team{Team: o.Teams[i], Open: PlaceOfTeams(o.Teams[i].Namespace)})
	}
	if !s.Fixed {
		m.Waiting = scaled(slices.Clone(s.Hours["waiting"]))
	}
	if len(s.Nodes) > 0 {
		m.Nodes, m.NodeLegend = NodeGroups(s.Look, s.Snapshot, s.Nodes, s.By, s.Order), NodeLegend(s.Look)
		m.OpenNodes = &Place{View: Nodes, Map: &NodeMap{By: s.By, Order: s.Order}}
	}
	return m
}

// none returns the text of an empty section: text, or that the section is not known because
// a resource could not be read.
func (s *Summary) none(text string, resources ...string) string {
	for _, resource := range resources {
		if gap := s.Snapshot.Gap(resource); gap != nil {
			return "not known: " + gap.Reason
		}
	}
	return text
}

// tones returns the color of a severity.
func tones(severity api.Severity) widget.Tone {
	switch severity {
	case api.SeverityWarning:
		return widget.Warning
	case api.SeverityInfo:
		return widget.Faint
	case api.SeverityError, api.SeverityUnknown:
		return widget.Bad
	default:
		return widget.Plain
	}
}

// verdict names each issue of the cluster, the worst first.
func (s *Summary) verdict(o *inventory.Overview) []overview.Mark {
	g := &s.Look.Glyphs
	signs := map[api.IssueCode]string{
		api.IssuePoolsUnknown: g.Unusable, api.IssuePodsUnknown: g.Unusable, api.IssuePodsWaiting: g.Up, api.IssueDevicesTainted: g.Tainted,
		api.IssueDevicesTaintedInUse: g.TaintedInUse, api.IssuePodsEvicted: g.Tainted, api.IssueNodesCordoned: g.Closed, api.IssueClaimsWithoutPod: g.Free,
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
			Free: render.AtMost(d.Free, d.FreeIsUpperBound), Available: render.AtMost(min(d.Available, d.Free), d.FreeIsUpperBound),
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
			row.Used, row.Free, row.Available = "?", "?", "?"
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

// stuck returns the pods that wait, the longest first, and those that cannot work with
// their devices.
func (s *Summary) stuck(o *inventory.Overview, names map[string]string) (section overview.Section[overview.Stuck], pods int) {
	section.None, section.All = s.none("no pod waits for devices", snapshot.ResourcePods, snapshot.ResourceClaims), PlaceOf(Pending)
	for i := range o.Stuck {
		of, pod := &o.Stuck[i], &inventory.Pod{Pod: o.StuckPods[i]}
		pods += of.Count
		row := overview.Stuck{
			Wait: time.Duration(ptr.Deref(of.AgeSeconds, -1)) * time.Second, Count: of.Count, Asks: AsksText(of.Asks, names), Code: inventory.ReasonWord(&of.Reason),
			Reason: of.Reason.Summary, Outlook: string(of.Reason.Outlook), Tone: widget.Bad, Open: PlaceBehind(pod), Item: pod,
		}
		row.Who = whoText(row.Code, of.Reason.Actor)
		row.Key = of.Namespace + "/" + of.Name
		row.Name = row.Key
		if of.Count > 1 {
			row.Name, row.Open = of.Namespace+"/"+of.Owner.Argument(), PlaceOfPods(of.Owner)
		}
		if snapshot.Waits(pod.Pod) {
			row.Tone = widget.Warning
			if s.Reason != nil {
				found := s.Reason(pod.Pod)
				row.Remedies = found.Remedies
				if answer := found.Answer; answer != nil {
					row.Lines = func(width int) []string { return widget.BriefLines(s.Look, answer, width) }
				}
			}
		}
		section.Rows = append(section.Rows, row)
	}
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

// hands returns the problems that somebody has to solve, the most urgent first.
func (s *Summary) hands(o *inventory.Overview) overview.Section[overview.Hand] {
	section := overview.Section[overview.Hand]{None: s.none("nothing", snapshot.ResourceSlices), All: PlaceOf(Findings)}
	g := &s.Look.Glyphs
	for i := range o.Attention {
		a := &o.Attention[i]
		row := overview.Hand{Sign: g.Unhealthy, Tone: tones(a.Severity), Name: cmp.Or(a.Code, a.Name), Text: a.Message, Open: PlaceBehind(o.About[i]), Item: o.About[i]}
		switch item := o.About[i].(type) {
		case *api.Taint:
			row.Sign = g.Tainted
		case *inventory.Node:
			row.Open = PlaceOfDevices(item.Name)
			if a.Severity == api.SeverityWarning {
				row.Sign = g.Closed
			}
		case *api.Finding:
			if a.Severity == api.SeverityWarning {
				row.Sign = g.Tainted
			}
		case *api.Claim, nil:
			row.Sign, row.Name = g.Free, string(api.FlagWaitingForPod)
			row.Open = PlaceWithoutPod(row.Name)
		}
		section.Rows = append(section.Rows, row)
	}
	return section
}

// happened returns the events since the dashboard was started, the newest first.
func (s *Summary) happened(o *inventory.Overview) overview.Section[overview.Event] {
	var section overview.Section[overview.Event]
	if s.Fixed {
		return section
	}
	now := s.Snapshot.Now()
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
func eventTone(code inventory.EventCode) widget.Tone {
	switch code {
	case inventory.ClaimReleased, inventory.ClaimDeallocated, inventory.PodHealthy, inventory.SlicePublished, inventory.NodeUncordoned, inventory.NodeBecameReady, inventory.RuleDeleted:
		return widget.Good
	case inventory.PodUnhealthy, inventory.SliceRemoved, inventory.NodeDeleted, inventory.NodeBecameNotReady:
		return widget.Bad
	case inventory.NodeCordoned, inventory.RuleCreated:
		return widget.Warning
	case inventory.ClaimAllocated:
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
