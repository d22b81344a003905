// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

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
