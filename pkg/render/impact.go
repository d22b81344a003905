// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Impact draws what a change would do. With Wide, the devices of each pod are shown, and
// the pods that stay.
func Impact(w io.Writer, i *api.Impact, now time.Time, opts Options) error {
	p := NewPage(opts)
	title, mark := ImpactTitle(i)
	p.Text(0, mark, title)
	for _, section := range impactSections() {
		writeImpactPods(p, i, section, now)
	}
	writeImpactClaims(p, i.Claims)
	if stay := withEffect(i.Pods, api.EffectStays); len(stay) > 0 && !p.Opts.Wide {
		p.Blank()
		p.Text(0, Faint, english.Count(len(stay), "pod")+" of DaemonSets or of the node itself stay; -o wide lists them")
	}
	writeImpactBudgets(p, i.Budgets)
	writeImpactSteps(p, i.Steps)
	if len(i.Notes) > 0 {
		p.Heading("Notes")
		p.Items(i.Notes...)
	}
	if len(i.Assumptions) > 0 {
		p.Heading("Assumptions (not verified)")
		p.Items(i.Assumptions...)
	}
	return p.Print(w)
}

// ImpactTitle says in a sentence what becomes of the pods that run.
func ImpactTitle(i *api.Impact) (string, Mark) {
	c := i.Counts
	running := c.Evicted + c.DevicesLost
	verb := strings.ToUpper(i.Change[:1]) + i.Change[1:]
	if running == 0 {
		switch {
		case c.FitLost > 0:
			return verb + ": no pod that runs is affected, and " + english.Count(c.FitLost, "waiting pod") + " would not fit any more", Unsure
		default:
			return verb + ": no pod that runs is affected", Good
		}
	}
	var parts []string
	if c.Evicted > 0 {
		parts = append(parts, english.Count(c.Evicted, "pod")+" evicted")
	}
	if c.DevicesLost > 0 {
		parts = append(parts, english.Count(c.DevicesLost, "pod")+english.Plural(c.DevicesLost, " without its devices", " without their devices"))
	}
	text := verb + ": " + strings.Join(parts, ", ")
	var outcomes []string
	for _, o := range []struct {
		n    int
		text string
	}{{c.NoPlace, "find no place"}, {c.NotRecreated, "not created again"}, {c.Undetermined, "not known"}, {c.Placed, "fit elsewhere"}} {
		if o.n > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%d %s", o.n, o.text))
		}
	}
	text += ": " + strings.Join(outcomes, ", ")
	switch {
	case c.NoPlace+c.NotRecreated > 0:
		return text, Bad
	case c.Undetermined > 0:
		return text, Unsure
	default:
		return text, Good
	}
}

type impactSection struct {
	effect api.ImpactEffect
	title  string
	wide   bool
}

func impactSections() []impactSection {
	return []impactSection{
		{api.EffectEvicted, "Evicted", false},
		{api.EffectDevicesLost, "Without their devices (nobody evicts them; once they are deleted, replacements go to)", false},
		{api.EffectFitLost, "Waiting pods that fit now, and not then", false},
		{api.EffectFitGained, "Waiting pods that would fit", false},
		{api.EffectRemoved, "Gone with the node", true},
		{api.EffectStays, "On the node after that", true},
	}
}

func withEffect(pods []api.ImpactPod, effect api.ImpactEffect) []api.ImpactPod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod api.ImpactPod) bool { return pod.Effect != effect })
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
				p.List(6, Faint, pods[k].Devices)
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
	text, mark := replacementText(pod)
	if pod.EvictionAt != nil {
		text = moment(pod.EvictionAt.Time, now) + " " + text
	}
	return text, mark
}

// replacementText says where a replacement of the pod goes, or one like it if nothing
// creates it again.
func replacementText(pod *api.ImpactPod) (string, Mark) {
	switch pod.Outcome {
	case api.OutcomePlaced:
		return "-> " + pod.Placement.Node, Good
	case api.OutcomeNoPlace:
		return "no place", Bad
	case api.OutcomeNotRecreated:
		text := "not created again"
		switch {
		case pod.Placement != nil:
			text += "; one like it fits on " + pod.Placement.Node
		case pod.Reason != "":
			text += "; no place for one like it"
		}
		return text, Bad
	case api.OutcomeUndetermined:
		return "not known", Unsure
	default:
		return "", Plain
	}
}

func writeImpactClaims(p *Page, claims []api.ImpactClaim) {
	if len(claims) == 0 {
		return
	}
	p.Heading("Claims that no longer match (they stay allocated, and new ones get other devices)")
	for k := range claims {
		c := &claims[k]
		text := fmt.Sprintf("%s: class %s does not select %s", Qualified(c.Namespace, c.Name), c.DeviceClass, p.Some(c.Devices, len(c.Devices), p.Width/2))
		if len(c.Pods) > 0 {
			text += ", used by " + p.Some(c.Pods, len(c.Pods), p.Width/3)
		}
		p.Items(text)
	}
}

// writeImpactBudgets says what PodDisruptionBudgets do to the evictions.
func writeImpactBudgets(p *Page, budgets []api.ImpactBudget) {
	if len(budgets) == 0 {
		return
	}
	p.Heading("PodDisruptionBudgets")
	for k := range budgets {
		b := &budgets[k]
		pods := english.Count(len(b.Pods), "pod")
		text := fmt.Sprintf("%s allows %s now, %s to be evicted (%s)", Qualified(b.Namespace, b.Name), english.Count(b.Allowed, "eviction"), pods+english.Plural(len(b.Pods), " has", " have"), p.Some(b.Pods, len(b.Pods), p.Width/2))
		switch b.Effect {
		case api.BudgetBlocks:
			text += ": kubectl drain waits until it allows one"
		case api.BudgetStops:
			text += ": kubectl drain waits for the others until replacements are ready, and not all of these find a place"
		case api.BudgetDelays:
			text += ": kubectl drain waits for the others until replacements are ready"
		case api.BudgetAllows:
		}
		p.Items(text)
	}
}

func writeImpactSteps(p *Page, steps []api.NextStep) {
	if len(steps) == 0 {
		return
	}
	p.Heading("In this order")
	for n, step := range steps {
		p.Row(2, Cell{Text: fmt.Sprint(n + 1), Width: 2, Right: true}, Cell{Text: step.Text})
		for _, command := range step.Commands {
			p.Verbatim(6, command)
		}
	}
}
