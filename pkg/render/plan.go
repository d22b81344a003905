// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Plan draws a table of pods in the order of the queue. With Wide, each device and the
// reason of each pod are shown. With causes, these stand in place of reasons.
func Plan(w io.Writer, plan *api.Plan, causes *PodCauses, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, PlanTotal(plan))
	for _, text := range plan.Conditions {
		p.Text(2, Plain, "if: "+text)
	}
	if plan.Today != nil {
		p.Text(2, Plain, "today: "+outcomeCounts(plan.Today))
	}
	because := causesOf(p, plan, causes)
	if len(plan.Pods) > 0 {
		p.Blank()
		writePlanned(p, plan.Pods, because)
	}
	if len(plan.Pods) > 0 {
		p.Blank()
		if plan.Counts.Undetermined > 0 && !opts.Wide && causes != nil {
			p.Text(0, Faint, "Undetermined: something that decides is not known; -o wide says what.")
		}
		p.Text(0, Faint, "Not modeled, and could change order or nodes: "+plan.NotModeled+".")
	}
	p.Assumptions(plan.Assumptions)
	return p.Print(w)
}

// PlanTotal counts the pods of a plan by their outcome in one line.
func PlanTotal(plan *api.Plan) string {
	n, where := len(plan.Pods), ""
	if plan.Namespace != "" {
		where = " in namespace " + plan.Namespace
	}
	if n == 0 {
		return "No pods wait for devices" + where
	}
	return fmt.Sprintf("%s %s for devices%s: %s", english.Count(n, "pod"), english.Plural(n, "waits", "wait"), where, outcomeCounts(&plan.Counts))
}

func outcomeCounts(c *api.PlanCounts) string {
	var parts []string
	for _, count := range []struct {
		n    int
		word string
	}{{c.Placed, "placed"}, {c.Waiting, "waiting"}, {c.Never, "never"}, {c.NotByWaiting, "not by waiting"}, {c.Gated, "gated"}, {c.Undetermined, "undetermined"}} {
		if count.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count.n, count.word))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// causesOf draws the causes of the pods that are not placed, and returns what a row says about a
// pod: its causes, or why it is not placed.
func causesOf(p *Page, plan *api.Plan, causes *PodCauses) func(*api.PlannedPod) string {
	if causes == nil {
		return func(pod *api.PlannedPod) string { return pod.Reason }
	}
	of := func(pod *api.PlannedPod) []int { return causes.Of(api.Ref(api.KindPod, pod.Namespace, pod.Name)) }
	shown := []int{}
	for i := range plan.Pods {
		if outcome := plan.Pods[i].Outcome; outcome != api.PlanPlaced && outcome != api.PlanGated {
			shown = append(shown, of(&plan.Pods[i])...)
		}
	}
	writeCauses(p, causes.Causes, causesOptions{lines: linesAbove(p.Opts), only: shown})
	_, numbers := cause.Same(causes.Causes)
	return func(pod *api.PlannedPod) string {
		if list := of(pod); len(list) > 0 && pod.Outcome != api.PlanGated {
			return causeNumbers(list, numbers)
		}
		return pod.Reason
	}
}

func writePlanned(p *Page, pods []api.PlannedPod, because func(*api.PlannedPod) string) {
	lines := [][]string{{"#", "PRIORITY", "POD", "OUTCOME", "NODE OR REASON"}}
	var marks []Mark
	for most := plannedRows(p); len(pods) > 0 && len(lines) <= most; {
		pod := &pods[0]
		position, name, n := "-", pod.Namespace+"/"+pod.Name, 1
		if !p.Opts.Wide {
			n = equalPlanned(pods, because)
		}
		if pod.Position > 0 {
			position = strconv.Itoa(pod.Position)
		}
		if n > 1 {
			position += "-" + strconv.Itoa(pods[n-1].Position)
			name = fmt.Sprintf("%s/%s (%d pods)", pod.Namespace, pod.Owner.Argument(), n)
		}
		lines = append(lines, []string{position, strconv.Itoa(int(pod.Priority)), name, plannedOutcome(pod), plannedText(p, pods[:n], because(pod))})
		marks, pods = append(marks, OutcomeMark(pod.Outcome)), pods[n:]
	}
	var widths [4]int
	for _, line := range lines {
		for i := range widths {
			widths[i] = max(widths[i], Widest(AlignWidth, line[i]))
		}
	}
	room := p.Table
	for _, width := range widths {
		room -= width + ColumnGap
	}
	for i, line := range lines {
		mark := Strong
		if i > 0 {
			mark = marks[i-1]
		}
		row := []Cell{
			{Text: line[0], Width: widths[0], Right: true}, {Text: line[1], Width: widths[1], Right: true}, {Text: line[2], Width: widths[2]}, {Text: line[3], Width: widths[3], Mark: mark},
		}
		if p.Table != Unlimited && room < leastRoom && Widest(leastRoom, line[4]) > room {
			p.TableRow(0, row...)
			p.Text(4, Plain, line[4])
			continue
		}
		p.TableRow(0, append(row, Cell{Text: line[4]})...)
	}
	if rest := len(pods); rest > 0 {
		p.Text(0, Plain, fmt.Sprintf("… %s more (-o wide shows all)", english.Thousands(rest)))
	}
}

// plannedRows returns the limit for the rows of pods: on a terminal, what there is room for below
// the causes, at least leastRows.
func plannedRows(p *Page) int {
	const below = 7
	switch {
	case p.Opts.Wide || p.Opts.Width == 0:
		return math.MaxInt
	case p.Opts.Height > 0:
		return max(leastRows, p.Opts.Height-p.Lines()-below)
	default:
		return TerminalRows
	}
}

// leastRoom is the room on the right from which on a text of several lines reads well there:
// with less, it is below its row.
const leastRoom = 40

// OutcomeMark marks the outcome of a pod.
func OutcomeMark(o api.PlanOutcome) Mark {
	switch o {
	case api.PlanPlaced:
		return Good
	case api.PlanNever, api.PlanNotByWaiting:
		return Bad
	case api.PlanUndetermined:
		return Unsure
	default:
		return Plain
	}
}

// plannedOutcome says what becomes of a pod, and what becomes of it today.
func plannedOutcome(pod *api.PlannedPod) string {
	if pod.Today == nil {
		return string(pod.Outcome)
	}
	today := string(pod.Today.Outcome)
	if today == "" {
		today = "Running"
	}
	return fmt.Sprintf("%s (today %s)", pod.Outcome, today)
}

// equalPlanned counts the pods at the front of a queue that belong to one workload and
// are not placed for the same reason: one row is enough for them.
func equalPlanned(pods []api.PlannedPod, because func(*api.PlannedPod) string) int {
	first, n := &pods[0], 1
	if first.Owner.Kind == "" || first.Position == 0 || first.Preempts != nil {
		return n
	}
	for n < len(pods) {
		pod := &pods[n]
		if pod.Namespace != first.Namespace || pod.Owner != first.Owner || pod.Priority != first.Priority || pod.Outcome != first.Outcome ||
			because(pod) != because(first) || pod.Preempts != nil || !reflect.DeepEqual(pod.Behind, first.Behind) || !reflect.DeepEqual(pod.Today, first.Today) {
			break
		}
		n++
	}
	return n
}

// plannedText describes the placement of equal pods, or why they wait and behind which pods.
func plannedText(p *Page, pods []api.PlannedPod, because string) string {
	pod, n := &pods[0], len(pods)
	if pod.Outcome == api.PlanPlaced {
		if n > 1 {
			return plannedNodes(pods)
		}
		text := pod.Node
		if len(pod.Devices) > 0 {
			text += ": " + DeviceNames(devicePaths(pod.Devices))
		}
		if len(pod.Preempts) > 0 {
			text += "; preempts " + podsText(p, pod.Preempts, len(pod.Preempts))
		}
		return text
	}
	var parts []string
	if len(pod.Behind) > 0 {
		parts = append(parts, behindText(p, pod, n))
	}
	if because != "" && (len(pod.Behind) == 0 || p.Opts.Wide) {
		parts = append(parts, because)
	}
	return strings.Join(parts, "; ")
}

// plannedNodes names the nodes of placed pods and the number of their devices.
func plannedNodes(pods []api.PlannedPod) string {
	var nodes []string
	devices := 0
	for i := range pods {
		devices += len(pods[i].Devices)
		if !slices.Contains(nodes, pods[i].Node) {
			nodes = append(nodes, pods[i].Node)
		}
	}
	return fmt.Sprintf("%s: %s", english.Sample(nodes, 3), english.Count(devices, "device"))
}

// behindText says that only some of the pods behind others may get their place.
func behindText(p *Page, pod *api.PlannedPod, n int) string {
	text := "behind " + podsText(p, pod.Behind, pod.BehindCount)
	if pod.BehindWith > 0 {
		text += fmt.Sprintf(", after %s that %s for the same", english.Count(pod.BehindWith, "pod"), english.Plural(pod.BehindWith, "waits", "wait"))
	}
	if n > 1 {
		text += ", one after another"
	}
	return text
}

// podsText names pods that have devices, of which there may be more.
func podsText(p *Page, pods []api.BlockingPod, count int) string {
	const shown = 2
	texts := make([]string, 0, len(pods))
	for i := range pods {
		b := &pods[i]
		text := b.Namespace + "/" + b.Name
		switch {
		case p.Opts.Wide && len(b.Devices) > 0:
			text += fmt.Sprintf(" (%s: %s)", b.Node, DeviceNames(devicePaths(b.Devices)))
		case len(b.Devices) > 0:
			text += fmt.Sprintf(" (%s on %s)", english.Count(len(b.Devices), "device"), b.Node)
		}
		if b.EndsWithinSeconds != nil {
			text += fmt.Sprintf(", which ends within %s at most", duration.HumanDuration(time.Duration(*b.EndsWithinSeconds)*time.Second))
		}
		texts = append(texts, text)
	}
	total := max(count, len(texts))
	if !p.Opts.Wide {
		texts = texts[:min(shown, len(texts))]
	}
	text := strings.Join(texts, ", ")
	if more := total - len(texts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func devicePaths(devices []api.AllocatedDevice) []string {
	paths := make([]string, 0, len(devices))
	for i := range devices {
		paths = append(paths, devices[i].Driver+"/"+devices[i].Pool+"/"+devices[i].Device)
	}
	return paths
}
