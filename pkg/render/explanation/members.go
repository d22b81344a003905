// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// memberTitle returns what the pods of a target are called.
func memberTitle(e *api.Explanation) string {
	switch e.Target.Kind {
	case api.KindPodGroup:
		return "Members"
	case "Job", "CronJob", "DaemonSet":
		return "Pods"
	default:
		return "Replicas"
	}
}

// memberCounts returns "2 of 5 replicas have devices, 0 more fit now".
func memberCounts(e *api.Explanation) string {
	m := e.Members
	if m == nil || m.Desired == nil && m.Waiting == 0 && e.Target.Kind != api.KindPodGroup || m.Desired != nil && *m.Desired == 0 && m.Existing == 0 {
		return ""
	}
	text := withDevices(e)
	if m.Waiting > 0 && (e.Verdict != api.Blocked || e.Code == api.GangIncomplete) {
		text += fmt.Sprintf(", %d more %s now", m.FitNow, english.Plural(m.FitNow, "fits", "fit"))
	}
	return text
}

// withDevices returns "2 of 5 replicas have devices".
func withDevices(e *api.Explanation) string {
	total := memberTotal(e.Members)
	has := "have"
	if e.Members.WithDevices == 1 || total == 1 {
		has = "has"
	}
	noun := strings.ToLower(strings.TrimSuffix(memberTitle(e), "s"))
	return fmt.Sprintf("%d of %s %s devices", e.Members.WithDevices, english.Count(total, noun), has)
}

// memberTotal returns how many pods there should be, or are.
func memberTotal(m *api.Members) int {
	if m.Desired != nil {
		return int(*m.Desired)
	}
	return m.WithDevices + m.Waiting
}

// membersVerdict ends the sentence about a target with pods with and without devices: the
// verdict on one pod does not hold for the whole. It is empty for others.
func membersVerdict(e *api.Explanation) string {
	m := e.Members
	if m == nil || m.WithDevices == 0 {
		return ""
	}
	total := memberTotal(m)
	switch e.Verdict {
	case api.Blocked:
		if m.WithDevices < total {
			return " is blocked: " + withDevices(e)
		}
	case api.Allocated:
		if m.WithDevices < total {
			return ": " + withDevices(e)
		}
	case api.DoesNotFit:
		if m.WithDevices >= total {
			return fmt.Sprintf(": %s, and %s not fit", withDevices(e), english.Count(m.Waiting-m.FitNow, "new pod")+english.Plural(m.Waiting-m.FitNow, " does", " do"))
		}
		if m.FitNow == 0 {
			return ": " + withDevices(e) + ", no more fit"
		}
		return fmt.Sprintf(": %s, only %d more %s", withDevices(e), m.FitNow, english.Plural(m.FitNow, "fits", "fit"))
	case api.Fits, api.Error, api.Undetermined:
	}
	return ""
}

// writeMembers lists the pods of a workload or a PodGroup, equal ones with one answer
// on a line, and below what the PodGroup requires.
func writeMembers(p *page, e *api.Explanation) {
	m := e.Members
	if m == nil || m.Group == nil && len(m.Kinds) < 2 && len(m.Prospects) == 0 {
		return
	}
	lines := make([]api.NodeGroup, 0, len(m.Kinds))
	for i := range m.Kinds {
		kind := &m.Kinds[i]
		line := api.NodeGroup{Count: kind.Count, Names: kind.Names, Verdict: kind.Verdict, Code: kind.Code, Message: kind.Message}
		switch kind.Verdict {
		case api.Fits:
			line.Message = memberNodes("on", kind)
		case api.Allocated:
			line.Message = memberNodes("allocated on", kind)
		case api.DoesNotFit, api.Blocked, api.Error, api.Undetermined:
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		p.Heading("Members")
		writeNodeGroups(p, lines)
	}
	if text := podGroupText(m.Group); text != "" {
		p.Text(2, render.Plain, text)
	}
	if len(m.Prospects) > 0 {
		p.Heading("All members fit (verified one after another)")
		for i := range m.Prospects {
			p.Items(prospectText(&m.Prospects[i], m))
		}
	}
}

// memberNodes says where members are or fit.
func memberNodes(where string, kind *api.MemberKind) string {
	const shown = 3
	if kind.NodeCount == 0 {
		return ""
	}
	if kind.NodeCount > shown {
		return fmt.Sprintf("%s %d nodes", where, kind.NodeCount)
	}
	return where + " " + english.JoinAnd(kind.Nodes)
}

// podGroupText says what a PodGroup requires and whether that is so.
func podGroupText(g *api.MemberGroup) string {
	if g == nil {
		return ""
	}
	text := "PodGroup " + g.Name + ": "
	switch {
	case g.MinCount == nil:
		text += "its pods are scheduled one by one."
	case g.Existing < int(*g.MinCount):
		text += fmt.Sprintf("a gang of at least %d, and only %d %s. None is scheduled before.", *g.MinCount, g.Existing, english.Plural(g.Existing, "exists", "exist"))
	case g.Fit >= int(*g.MinCount) && !g.Fits:
		text += fmt.Sprintf("a gang of at least %d, and %d %s.", *g.MinCount, g.Fit, english.Plural(g.Fit, "fits", "fit"))
	case g.Fits:
		text += fmt.Sprintf("a gang of at least %d, and %d %s: it is scheduled.", *g.MinCount, g.Fit, english.Plural(g.Fit, "fits", "fit"))
	default:
		text += fmt.Sprintf("a gang of at least %d, and only %d %s: none is scheduled.", *g.MinCount, g.Fit, english.Plural(g.Fit, "fits", "fit"))
	}
	if len(g.Claims) > 0 {
		text += " Its pods share " + english.JoinAnd(g.Claims) + "."
	}
	if g.Parent != "" && len(g.Composites) == 0 {
		text += " It belongs to CompositePodGroup " + g.Parent + "."
	}
	for i := range g.Composites {
		text += " " + compositeText(&g.Composites[i])
	}
	return text
}

// compositeText says what a CompositePodGroup requires and whether that is so.
func compositeText(c *api.CompositeGroup) string {
	text := fmt.Sprintf("CompositePodGroup %s: ", c.Name)
	if c.MinGroupCount != nil {
		text += fmt.Sprintf("at least %d of %s are scheduled at the same time, or none. ", *c.MinGroupCount, english.Count(c.Groups, "group"))
	}
	text += fmt.Sprintf("%d of %d %s", c.Fit, c.Groups, english.Plural(c.Fit, "fits", "fit"))
	if !c.Fits {
		text += ": none is scheduled"
	}
	return text + "."
}

// prospectText says under which condition all members fit.
func prospectText(p *api.MemberProspect, m *api.Members) string {
	text := ""
	switch p.Condition {
	case api.LowerPrioritiesGone:
		text = "when the claims of pods of lower priority are released"
	case api.ClaimsReleased:
		text = "when all claims of other pods are released"
	default:
		text = fmt.Sprintf("with %s like %s", english.Count(p.NodeCount, "more empty node"), p.Like)
	}
	if p.Verdict != api.Fits {
		return fmt.Sprintf("not %s: %d of %d", text, p.Fit, m.WithDevices+m.Waiting)
	}
	return text
}
