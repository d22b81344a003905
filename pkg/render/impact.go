// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Impact draws what a change would do. On a terminal that has no room for each pod, it draws groups
// of them, and only counts notes and assumptions if there is no room for these either. With Wide,
// the devices of each pod are shown, and the pods that stay.
func Impact(w io.Writer, i *api.Impact, now time.Time, opts Options) error {
	p := NewPage(opts)
	title, mark := ImpactTitle(i)
	p.Text(0, mark, title)
	pods, rest, drivers := impactPods(opts, i, now), impactRest(opts, i, true), impactDrivers(opts, i, len(i.Drivers))
	// Blank lines above each, and the prompt below.
	apart := 3 + min(drivers.Lines(), 1)
	room := func() int { return opts.Height - p.Lines() - rest.Lines() - drivers.Lines() - apart }
	if !opts.Wide && opts.Width > 0 && opts.Height > 0 && pods.Lines() > room() {
		pods = impactGroupsWithin(opts, i, now, room())
		if pods.Lines() > room() {
			rest = impactRest(opts, i, false)
			pods = impactGroupsWithin(opts, i, now, room())
		}
		for most := len(i.Drivers); most > 1 && pods.Lines() > room(); most-- {
			drivers = impactDrivers(opts, i, most-1)
		}
	}
	for _, part := range []*Page{drivers, pods, rest} {
		if part.Lines() > 0 {
			p.Blank()
			p.Buf.Write(part.Buf.Bytes())
		}
	}
	return p.Print(w)
}

// impactRest draws what else there is to know than the pods. Without notes, these and the
// assumptions are only counted.
func impactRest(opts Options, i *api.Impact, notes bool) *Page {
	p := NewPage(opts)
	writeImpactClaims(p, i.Claims)
	if stay := withEffect(i.Pods, api.EffectStays); len(stay) > 0 && !opts.Wide {
		p.Blank()
		p.Text(0, Faint, english.Count(len(stay), "pod")+" of DaemonSets or of the node itself stay; -o wide lists them")
	}
	writeImpactBudgets(p, i.Budgets)
	writeImpactSteps(p, i.Steps)
	if !notes {
		var more []string
		if n := len(i.Notes); n > 0 {
			more = append(more, english.Count(n, "note"))
		}
		if n := len(i.Assumptions); n > 0 {
			more = append(more, english.Count(n, "assumption"))
		}
		if more != nil {
			p.Text(0, Faint, "… "+english.JoinAnd(more)+" (-o wide shows all)")
		}
		return p
	}
	if len(i.Notes) > 0 {
		p.Heading("Notes")
		p.Items(i.Notes...)
	}
	p.Assumptions(i.Assumptions)
	return p
}

// ImpactTitle says in a sentence what becomes of the pods that run.
func ImpactTitle(i *api.Impact) (string, Mark) {
	c := i.Counts
	running := c.Evicted + c.DevicesLost
	verb := english.Capitalized(i.Change)
	if i.Update != nil {
		return updateTitle(verb, i)
	}
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
	text += ": " + strings.Join(impactOutcomes(i), ", ")
	if len(i.Drivers) > 0 {
		return text + "; the driver leaves before pods that need it", Bad
	}
	if blocking := blockingBudgets(i.Budgets); blocking != nil {
		text += "; blocked by PodDisruptionBudget " + english.Sample(blocking, 2)
	}
	switch {
	case c.NoPlace+c.NotRecreated > 0:
		return text, Bad
	case c.Undetermined > 0:
		return text, Unsure
	default:
		return text, Good
	}
}

// impactOutcomes counts the pods that run by what becomes of them.
func impactOutcomes(i *api.Impact) []string {
	var outcomes []string
	say := func(n int, text string) {
		if n > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%d %s", n, text))
		}
	}
	fit, unfit, bareUnfit := 0, 0, 0
	for k := range i.Pods {
		switch pod := &i.Pods[k]; {
		case pod.Outcome == api.OutcomeNotRecreated && pod.Placement != nil:
			fit++
		case pod.Outcome == api.OutcomeNotRecreated && pod.UnfitNow:
			bareUnfit++
		case pod.UnfitNow:
			unfit++
		}
	}
	c, even := i.Counts, ""
	if unfit > 0 {
		even = fmt.Sprintf(" (%d even without this change)", unfit)
	}
	say(c.NoPlace, english.Plural(c.NoPlace, "finds no place", "find no place")+even)
	if n := c.NotRecreated; n > 0 {
		var like []string
		for _, o := range []struct {
			n    int
			text string
		}{{fit, "elsewhere"}, {n - fit - bareUnfit, "nowhere"}, {bareUnfit, "nowhere even without this change"}} {
			if o.n > 0 {
				like = append(like, fmt.Sprintf("%d would fit %s", o.n, o.text))
			}
		}
		say(n, "not created again ("+strings.Join(like, ", ")+")")
	}
	say(c.Undetermined, "not known")
	say(c.Placed, english.Plural(c.Placed, "fits elsewhere", "fit elsewhere"))
	return outcomes
}

// blockingBudgets names the PodDisruptionBudgets that allow no eviction.
func blockingBudgets(budgets []api.ImpactBudget) []string {
	var names []string
	for k := range budgets {
		if b := &budgets[k]; b.Effect == api.BudgetBlocks {
			names = append(names, Qualified(b.Namespace, b.Name))
		}
	}
	return names
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
