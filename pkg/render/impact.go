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

// updateTitle says what an update of a driver does to pods.
func updateTitle(verb string, i *api.Impact) (string, Mark) {
	users, effects := i.Counts.NeedDriver, map[api.DriverEffect]int{}
	for k := range i.Drivers {
		effects[i.Drivers[k].Effect]++
	}
	text, mark := verb+" on "+english.Count(len(i.Drivers), "node")+": ", Good
	switch {
	case len(i.Drivers) == 0:
		return verb + ": it has no pods", Good
	case effects[api.DriverUnregistered] > 0:
		text, mark = text+english.Count(effects[api.DriverUnregistered], "node")+" would lose it", Bad
	case effects[api.DriverAway] > 0:
		text, mark = text+fmt.Sprintf("away from %s at a time", english.Count(min(i.Update.MaxUnavailable, len(i.Drivers)), "node")), Unsure
	case effects[api.DriverOverlaps] > 0:
		text += "the driver is always there"
	default:
		text += "nothing changes until its pods are deleted"
	}
	if users == 0 {
		return text + "; no pod uses its devices", mark
	}
	return text + "; " + english.Count(users, "pod") + english.Plural(users, " uses", " use") + " its devices", mark
}

// driverEffects returns the effects on the pods of drivers in the order in which they are
// drawn.
func driverEffects() []api.DriverEffect {
	return []api.DriverEffect{api.DriverLeaves, api.DriverUnregistered, api.DriverAway, api.DriverOverlaps, api.DriverStays}
}

// driverTexts returns the heading for an effect, and what else it means for pods on these nodes.
func driverTexts(effect api.DriverEffect, update *api.ImpactUpdate) (title, text string) {
	const without = "pods that run go on; pods that end stay in Terminating, and pods that start wait, until "
	switch effect {
	case api.DriverLeaves:
		return "These stay in Terminating until the driver is back", ""
	case api.DriverUnregistered:
		return "Without the driver, though its new pod runs", "kubelets before 1.33 unregister it when the old pod ends: " + without + "the new pod is restarted"
	case api.DriverAway:
		return fmt.Sprintf("Without the driver while its pod is replaced (maxUnavailable %d)", update.MaxUnavailable), without +
			"it is back; after 30s without it, no new pod is placed on its devices"
	case api.DriverOverlaps:
		return fmt.Sprintf("The new pod is ready before the old one ends (maxSurge %d)", update.MaxSurge), "pods can start and end all the time"
	default:
		return "The pods of the driver stay until somebody deletes them (OnDelete)", "then " + without + "the new pod is ready"
	}
}

// impactDrivers draws the nodes where the pod of a driver leaves or is replaced. With most,
// it names at most so many of those with pods that need the driver.
func impactDrivers(opts Options, i *api.Impact, most int) *Page {
	p := NewPage(opts)
	for _, effect := range driverEffects() {
		list := slices.DeleteFunc(slices.Clone(i.Drivers), func(d api.ImpactDriver) bool { return d.Effect != effect })
		if len(list) == 0 {
			continue
		}
		title, text := driverTexts(effect, i.Update)
		p.Heading(title)
		if text != "" {
			p.Text(2, Plain, text)
		}
		var rows [][]Cell
		var idle []string
		for k := range list {
			if len(needing(&list[k])) == 0 {
				idle = append(idle, list[k].Node)
				continue
			}
			rows = append(rows, []Cell{{Text: list[k].Node, Whole: true}, {Text: english.Count(len(needing(&list[k])), "pod"), Whole: true}, {Text: needingText(p, &list[k])}})
		}
		shown := rows[:min(len(rows), most)]
		Align(shown, maxImpactColumn, maxImpactColumn)
		for _, row := range shown {
			p.TableRow(2, row...)
		}
		if more := len(rows) - len(shown); more > 0 {
			p.Text(2, Plain, "… "+english.Count(more, "more node")+" with such pods (-o wide shows each)")
		}
		if len(idle) > 0 {
			p.Text(2, Faint, "no such pod on "+p.Some(idle, len(idle), p.Width/2))
		}
	}
	return p
}

// needing lists the pods that need a driver to end.
func needing(d *api.ImpactDriver) []string {
	pods := slices.Concat(d.Running, d.Starting, d.Ending)
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, Qualified(pod.Namespace, pod.Name))
	}
	return names
}

// needingText names the pods that need a driver to end.
func needingText(p *Page, d *api.ImpactDriver) string {
	users := needing(d)
	text := p.Some(users, len(users), p.Width*2/3)
	if n := len(d.Starting); n > 0 {
		text += fmt.Sprintf("; %d not started", n)
	}
	if n := len(d.Ending); n > 0 {
		text += fmt.Sprintf("; %d in Terminating", n)
	}
	return text
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
