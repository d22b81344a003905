// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

type impactSection struct {
	effect api.ImpactEffect
	title  string
	// devices is the verb before the devices of a pod.
	devices string
	wide    bool
}

func impactSections() []impactSection {
	return []impactSection{
		{api.EffectEvicted, "Evicted", "releases", false},
		{api.EffectDevicesLost, "Without their devices (nobody evicts them; once they are deleted, replacements go to)", "loses", false},
		{api.EffectFitLost, "Waiting pods that fit now, and not then", "has", false},
		{api.EffectFitGained, "Waiting pods that would fit", "has", false},
		{api.EffectRemoved, "Gone with the node", "releases", true},
		{api.EffectStays, "On the node after that", "has", true},
	}
}

func withEffect(pods []api.ImpactPod, effect api.ImpactEffect) []api.ImpactPod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod api.ImpactPod) bool { return pod.Effect != effect })
}

// impactPods draws each pod.
func impactPods(opts Options, i *api.Impact, now time.Time) *Page {
	p := NewPage(opts)
	for _, section := range impactSections() {
		writeImpactPods(p, i, section, now)
	}
	return p
}

func writeImpactPods(p *Page, i *api.Impact, section impactSection, now time.Time) {
	pods := withEffect(i.Pods, section.effect)
	if len(pods) == 0 || section.wide && !p.Opts.Wide {
		return
	}
	p.Heading(section.title)
	rows := make([][]Cell, 0, len(pods))
	for k := range pods {
		rows = append(rows, []Cell{{Text: Qualified(pods[k].Namespace, pods[k].Name), Whole: true}, {Text: ownerText(&pods[k]), Whole: true, Mark: Faint}})
	}
	Align(rows, maxImpactColumn, maxImpactColumn)
	for _, same := range sameReason(pods) {
		reason := pods[same[0]].Reason
		for _, k := range same {
			text, mark := impactText(&pods[k], now)
			if len(same) == 1 {
				text += english.PrecededBy(". ", reason)
			}
			p.TableRow(2, append(rows[k], Cell{Text: text, Mark: mark})...)
			if p.Opts.Wide && len(pods[k].Devices) > 0 {
				devices := slices.Clone(pods[k].Devices)
				devices[0] = section.devices + " " + devices[0]
				p.List(6, Faint, devices)
			}
		}
		if len(same) > 1 {
			p.Text(6, Plain, reason)
		}
	}
}

// sameReason puts pods with the same reason together, by their indices; each without one is
// alone.
func sameReason(pods []api.ImpactPod) [][]int {
	var groups [][]int
	at := map[string]int{}
	for k := range pods {
		reason := pods[k].Reason
		if group, known := at[reason]; known && reason != "" {
			groups[group] = append(groups[group], k)
			continue
		}
		at[reason] = len(groups)
		groups = append(groups, []int{k})
	}
	return groups
}

// maxImpactColumn bounds the columns of names.
const maxImpactColumn = 48

func ownerText(pod *api.ImpactPod) string {
	switch {
	case len(pod.Drivers) > 0:
		return "driver " + strings.Join(pod.Drivers, ", ")
	case pod.Owner.Kind == "" && pod.Node != "":
		return "bare pod"
	default:
		return pod.Owner.Argument()
	}
}

// impactText says when something becomes of a pod, and what, without the reason.
func impactText(pod *api.ImpactPod, now time.Time) (string, Mark) {
	return impactTextOf([]*api.ImpactPod{pod}, now)
}

// impactTextOf says when something becomes of equal pods, and what, without the reason.
func impactTextOf(pods []*api.ImpactPod, now time.Time) (string, Mark) {
	text, mark := replacementText(pods)
	if at := pods[0].EvictionAt; at != nil {
		text = moment(at.Time, now) + " " + text
	}
	return text, mark
}

// replacementText says where replacements of equal pods go, or others like them if nothing
// creates them again.
func replacementText(pods []*api.ImpactPod) (string, Mark) {
	pod, n, nodes := pods[0], len(pods), ""
	if pod.Placement != nil {
		nodes = english.Sample(nodesOf(pods), 2)
	}
	nowhere := ""
	if pod.UnfitNow {
		nowhere = ", even without this change"
	}
	switch pod.Outcome {
	case api.OutcomePlaced:
		return "-> " + nodes, Good
	case api.OutcomeNoPlace:
		return "no place" + nowhere, Bad
	case api.OutcomeNotRecreated:
		text := "not created again"
		switch {
		case pod.Placement != nil:
			text += english.Plural(n, "; one like it fits on ", "; others like them fit on ") + nodes
		case pod.Reason != "":
			text += english.Plural(n, "; no place for one like it", "; no place for others like them") + nowhere
		}
		return text, Bad
	case api.OutcomeUndetermined:
		return "not known", Unsure
	default:
		return "", Plain
	}
}

// nodesOf names the nodes of placements, each once.
func nodesOf(pods []*api.ImpactPod) []string {
	var names []string
	for _, pod := range pods {
		if !slices.Contains(names, pod.Placement.Node) {
			names = append(names, pod.Placement.Node)
		}
	}
	return names
}

// impactGroup is the pods of one owner with one answer.
type impactGroup struct {
	pods    []*api.ImpactPod
	reasons []string
}

// groupImpact groups pods by owner and answer, those that lose most first.
func groupImpact(pods []api.ImpactPod, now time.Time) []*impactGroup {
	type key struct {
		owner, answer string
		fits, now     bool
	}
	var groups []*impactGroup
	at := map[key]*impactGroup{}
	for k := range pods {
		pod := &pods[k]
		owner := ownerText(pod)
		if pod.Owner.Kind != "" {
			owner = Qualified(pod.Namespace, owner)
		}
		when := ""
		if pod.EvictionAt != nil {
			when = moment(pod.EvictionAt.Time, now)
		}
		is := key{owner, string(pod.Outcome) + when, pod.Placement != nil, pod.UnfitNow}
		group := at[is]
		if group == nil {
			group = &impactGroup{}
			at[is], groups = group, append(groups, group)
		}
		group.pods = append(group.pods, pod)
		if pod.Reason != "" && !slices.Contains(group.reasons, pod.Reason) {
			group.reasons = append(group.reasons, pod.Reason)
		}
	}
	worst := func(g *impactGroup) int {
		pod := g.pods[0]
		switch {
		case pod.Placement != nil && pod.Outcome == api.OutcomePlaced:
			return 3
		case pod.Placement != nil:
			return 2
		case pod.Outcome == api.OutcomeUndetermined:
			return 1
		default:
			return 0
		}
	}
	slices.SortStableFunc(groups, func(x, y *impactGroup) int {
		return cmp.Or(cmp.Compare(worst(x), worst(y)), cmp.Compare(len(y.pods), len(x.pods)))
	})
	return groups
}

// impactGroupsWithin draws groups of pods: all that there is room for, at least one for each
// effect.
func impactGroupsWithin(opts Options, i *api.Impact, now time.Time, room int) *Page {
	most := 1
	for _, section := range impactSections() {
		most = max(most, len(groupImpact(withEffect(i.Pods, section.effect), now)))
	}
	for ; ; most-- {
		p := NewPage(opts)
		for _, section := range impactSections() {
			writeImpactGroups(p, i, section, most, now)
		}
		if most == 1 || p.Lines() <= room {
			return p
		}
	}
}

// writeImpactGroups draws at most so many groups of pods with one effect.
func writeImpactGroups(p *Page, i *api.Impact, section impactSection, most int, now time.Time) {
	groups := groupImpact(withEffect(i.Pods, section.effect), now)
	if len(groups) == 0 || section.wide {
		return
	}
	p.Heading(section.title + " (-o wide shows each pod)")
	shown := groups[:min(most, len(groups))]
	rows := make([][]Cell, 0, len(shown))
	for _, g := range shown {
		name, owner := Qualified(g.pods[0].Namespace, g.pods[0].Name), ownerText(g.pods[0])
		switch n := len(g.pods); {
		case len(g.pods[0].Drivers) > 0:
			name = english.Count(n, "pod")
		case n > 1 && g.pods[0].Owner.Kind == "":
			name, owner = english.Count(n, "pod"), "bare pods"
		case n > 1:
			name, owner = english.Count(n, "pod"), Qualified(g.pods[0].Namespace, owner)
		}
		rows = append(rows, []Cell{{Text: name, Whole: true}, {Text: owner, Whole: true, Mark: Faint}})
	}
	Align(rows, maxImpactColumn, maxImpactColumn)
	for k, g := range shown {
		text, mark := impactTextOf(g.pods, now)
		if len(g.reasons) > 0 {
			text += ". " + g.reasons[0]
		}
		if n := len(g.reasons) - 1; n > 0 {
			text += fmt.Sprintf(" And %s.", english.Count(n, "other reason"))
		}
		p.TableRow(2, append(rows[k], Cell{Text: text, Mark: mark, Lines: 3})...)
	}
	rest := 0
	for _, g := range groups[len(shown):] {
		rest += len(g.pods)
	}
	if rest > 0 {
		p.Text(2, Plain, "… "+english.Count(rest, "more pod"))
	}
}

// moment says when something happens.
func moment(at, now time.Time) string {
	if at.After(now) {
		return "in " + duration.HumanDuration(at.Sub(now))
	}
	return "at once"
}
