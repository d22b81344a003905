// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

const (
	// causesRest is the least time between two looks for causes. After an expensive one it is
	// longer, by causesTimes: about a tenth of the time goes into looking.
	causesRest  = time.Second
	causesTimes = 9
	// causesRetry is the least time after a look that failed.
	causesRetry = 10 * time.Second
	// causesAge is how old causes get where nothing changes: some come with time alone. Expensive
	// ones get older, by causesAgeTimes.
	causesAge      = time.Minute
	causesAgeTimes = 400
)

// Causes are the causes of a cluster, and the answers and findings behind them. They do not change.
type Causes struct {
	Status *api.Status
	// Lines are the causes that read the same, as [render.CauseLines] returns them.
	Lines []render.CauseLine
	// Rows are the answers for pods and workloads that do not run, the oldest first.
	Rows []*cause.Row
	// Diagnosis has the findings of doctor.
	Diagnosis *api.Diagnosis
	// Namespace is the only namespace whose pods count, empty for all. At is the time of the
	// cluster.
	Namespace string
	At        time.Time

	rowOf map[api.ObjectRef]*cause.Row
	// waits has the pods that wait for devices.
	waits map[api.ObjectRef]bool
	// of is the change of the picture, and took how long it took to find them.
	of   int
	took time.Duration
}

// RowOf returns the row of a pod or of a workload; nil if it has none.
func (c *Causes) RowOf(object api.ObjectRef) *cause.Row {
	if c == nil {
		return nil
	}
	return c.rowOf[object]
}

// Blocked counts the pods that do not wait for devices and cannot work with them.
func (c *Causes) Blocked() int {
	blocked := 0
	for _, row := range c.Rows {
		for _, name := range row.Names {
			if row.Verdict == api.Blocked && row.First.Target.Kind == api.KindPod && !c.waits[api.Ref(api.KindPod, row.Namespace, name)] {
				blocked++
			}
		}
	}
	return blocked
}

// Current reports whether no picture differs from the one in which the causes were found.
func (c *Causes) Current(p *Picture) bool { return c.of == p.change }

// due reports whether a picture has to be looked at.
func (c *Causes) due(p *Picture, namespace string, fixed bool, now time.Time) bool {
	// A recording may be at another time without a change.
	if taken := p.Cluster.Snapshot.TakenAt; fixed && c != nil && !taken.IsZero() && !c.At.Equal(taken) {
		return true
	}
	return c == nil || c.of != p.change || c.Namespace != namespace || !fixed && now.Sub(c.At) >= max(causesAge, causesAgeTimes*c.took)
}

// FindCauses finds the causes of a cluster, of all namespaces or of one, and returns what they
// were found from, too.
func FindCauses(ctx context.Context, c *cluster.Cluster, namespace string) (*Causes, *cause.Found, error) {
	found, err := cause.Find(ctx, c, cause.Options{Namespace: namespace})
	if err != nil {
		return nil, nil, err
	}
	if err = forecast.AddPlaceableTo(ctx, c, found.Status.Capacity); err != nil {
		return nil, nil, fmt.Errorf("count what can be placed: %w", err)
	}
	out := &Causes{
		Status: found.Status, Lines: render.CauseLines(found.Status.Causes), Diagnosis: found.Examination.Within(namespace),
		Namespace: namespace, At: c.Snapshot.Now(), rowOf: map[api.ObjectRef]*cause.Row{}, waits: map[api.ObjectRef]bool{},
	}
	slices.SortStableFunc(out.Diagnosis.Findings, func(a, b api.Finding) int { return severityRank(a.Severity) - severityRank(b.Severity) })
	objects := append(found.Stuck(), unused(c, found, namespace)...)
	answers, err := found.Answers(ctx, objects)
	if err != nil {
		return nil, nil, fmt.Errorf("explain what does not run: %w", err)
	}
	byTarget := map[api.ObjectRef]*api.Explanation{}
	for i := range answers {
		if answers[i].Err == nil {
			byTarget[objects[i].Object] = answers[i].Explanation
		}
	}
	explanations := make([]*api.Explanation, 0, len(answers))
	for i := range answers {
		e := answers[i].Explanation
		if answers[i].Err != nil {
			o := objects[i].Object
			e = &api.Explanation{Target: o, Verdict: api.Undetermined, Summary: strings.ReplaceAll(answers[i].Err.Error(), "\n", "; ")}
		}
		explanations = append(explanations, e)
	}
	for _, pod := range c.Waiting() {
		out.waits[api.RefTo(api.KindPod, pod)] = namespace == "" || pod.Namespace == namespace
	}
	out.Rows = found.Rows(explanations)
	slices.SortStableFunc(out.Rows, func(a, b *cause.Row) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) })
	for _, row := range out.Rows {
		for _, name := range row.Names {
			out.rowOf[api.Ref(row.First.Target.Kind, row.Namespace, name)] = row
		}
		if full := byTarget[row.First.SameAs]; full != nil && len(row.First.Remedies) == 0 {
			// Equal pods share the advice of the first of them.
			shared := *row.First
			shared.Claims, shared.Remedies, shared.MoreRemedies, shared.NextSteps = full.Claims, full.Remedies, full.MoreRemedies, full.NextSteps
			row.First = &shared
		}
		row.First = widget.Trim(row.First)
		if len(row.First.Remedies) == 0 && len(row.First.NextSteps) == 0 {
			row.First.NextSteps = stepsOf(row.Causes, found.Status.Causes)
		}
	}
	return out, found, nil
}

// stepsOf returns the first steps of some of the causes, each once.
func stepsOf(some []int, causes []api.Cause) []api.NextStep {
	var steps []api.NextStep
	for _, at := range some {
		next := causes[at].NextStep
		if next != nil && !slices.ContainsFunc(steps, func(s api.NextStep) bool { return s.Text == next.Text }) {
			steps = append(steps, *next)
		}
	}
	return steps
}

// unusedMost limits how many claims that no pod uses are explained.
const unusedMost = 20

// unused returns the pending claims that no pod uses, or the first of them.
func unused(c *cluster.Cluster, found *cause.Found, namespace string) []explain.Options {
	var claims []explain.Options
	for _, claim := range c.Snapshot.Claims {
		if (namespace == "" || claim.Namespace == namespace) && found.Examination.Inventory.WaitsForPod(claim) && len(claims) < unusedMost {
			claims = append(claims, explain.Options{Object: api.RefTo(api.KindClaim, claim)})
		}
	}
	return claims
}

// severityRank returns 0 for the worst findings. Checks that could not be made are last.
func severityRank(severity api.Severity) int {
	return slices.Index([]api.Severity{api.SeverityError, api.SeverityWarning, api.SeverityInfo, api.SeverityUnknown}, severity)
}

// Causes returns the causes of a namespace, or of all, that were found last; nil if there are none
// yet. The error is why there are no newer ones.
func (c *Cluster) Causes(namespace string) (*Causes, error) {
	if c.causes == nil || c.causes.Namespace != namespace {
		return nil, c.noCauses
	}
	return c.causes, c.noCauses
}

// find looks for causes while somebody can see them.
func (c *Cluster) find(seen Seen) tea.Cmd {
	namespace := seen.Namespace
	paused := c.pausing && (c.causes == nil || c.causes.Namespace == namespace)
	if c.finding || paused || c.picture == nil || !c.worked || c.frozen || !seen.Causes || !c.causes.due(c.picture, namespace, c.opts.Fixed, c.opts.Now()) {
		return nil
	}
	c.finding = true
	ctx, p, source, now, fixed := c.ctx, c.picture, c.opts.Source, c.opts.Now(), c.opts.Fixed
	return func() tea.Msg {
		start := time.Now()
		found, err := findIn(ctx, source, p, namespace)
		if ctx.Err() != nil {
			return causesMsg{}
		}
		took := time.Since(start)
		if found != nil {
			found.of, found.took = p.change, took
			if !fixed {
				found.At = now
			}
		}
		return causesMsg{found, err, took}
	}
}

// findIn finds the causes of a picture, with events and what else the server is asked for only
// then.
func findIn(ctx context.Context, source Source, p *Picture, namespace string) (*Causes, error) {
	snap, err := source.Problems(ctx)
	if err != nil {
		return nil, fmt.Errorf("find causes: %w", err)
	}
	c := p.Cluster
	if snap != c.Snapshot {
		c = c.Amended(snap)
	}
	found, _, err := FindCauses(ctx, c, namespace)
	return found, err
}

// foundCauses takes in causes, and pauses.
func (c *Cluster) foundCauses(msg causesMsg) (tea.Cmd, News) {
	c.finding, c.noCauses = false, msg.err
	if msg.causes == nil && msg.err == nil {
		return nil, NoNews
	}
	if msg.causes != nil {
		if c.causes == nil || c.causes.Namespace != msg.causes.Namespace {
			c.before = glance{c.opts.Now(), msg.causes}
			c.last = c.before
		}
		c.causes = msg.causes
	}
	c.pausing = true
	pause := max(causesRest, causesTimes*msg.took)
	if c.opts.Fixed {
		pause = causesRest
	}
	if msg.err != nil {
		pause = max(pause, causesRetry)
	}
	return c.opts.After(pause, causesRestedMsg{}), NewCauses
}

// WaitingPods counts the pods of a namespace, or of all, that wait for devices in the picture.
func (c *Cluster) WaitingPods(namespace string) int {
	waiting := 0
	for of, n := range c.troubles.Waiting {
		if namespace == "" || of == namespace {
			waiting += n
		}
	}
	return waiting
}

// away is how long nobody presses a key before the next key is another look at the dashboard.
const away = time.Minute

// glance has the causes that somebody saw.
type glance struct {
	at     time.Time
	causes *Causes
}

// Changes are the causes that began and ended since somebody looked before.
type Changes struct {
	At time.Time
	// Back is true if that was at a later time of a recording.
	Back  bool
	Began map[string]bool
	Ended []api.Cause
	// Started counts the pods that waited then and have a node now.
	Started int
}

// Looked notes that somebody pressed a key.
func (c *Cluster) Looked() {
	if c.opts.Fixed {
		// What changes is what somebody goes to, see [Cluster.Turn].
		return
	}
	now := c.opts.Now()
	if now.Sub(c.last.at) >= away {
		c.before = c.last
	}
	c.last = glance{now, c.causes}
}

// Changes returns what changed since somebody looked before; nil if nothing did.
func (c *Cluster) Changes(namespace string) *Changes {
	before, now := c.before, c.causes
	if c.last.causes != nil && c.opts.Now().Sub(c.last.at) >= away {
		before = c.last
	}
	if before.causes == nil || now == nil || before.causes.Namespace != namespace || now.Namespace != namespace {
		return nil
	}
	out := &Changes{At: before.at, Back: now.At.Before(before.at), Began: map[string]bool{}}
	has := func(causes []api.Cause, id string) bool {
		return slices.ContainsFunc(causes, func(c api.Cause) bool { return c.ID == id })
	}
	for _, cause := range now.Status.Causes {
		if !has(before.causes.Status.Causes, cause.ID) {
			out.Began[cause.ID] = true
		}
	}
	for _, cause := range before.causes.Status.Causes {
		if !has(now.Status.Causes, cause.ID) {
			out.Ended = append(out.Ended, cause)
		}
	}
	for pod, waited := range before.causes.waits {
		if !waited || now.waits[pod] {
			continue
		}
		if now := c.picture.Cluster.Snapshot.Pod(pod.Namespace, pod.Name); now != nil && now.Spec.NodeName != "" {
			out.Started++
		}
	}
	if len(out.Began)+len(out.Ended)+out.Started == 0 {
		return nil
	}
	return out
}

// String says in a few words what changed; it is empty if nothing did.
func (c *Changes) String() string {
	if c == nil {
		return ""
	}
	var parts []string
	if n := len(c.Began); n > 0 {
		parts = append(parts, "+"+english.Count(n, "cause"))
	}
	if n := len(c.Ended); n > 0 && len(c.Began) > 0 {
		parts = append(parts, fmt.Sprint(-n))
	} else if n > 0 {
		parts = append(parts, "-"+english.Count(n, "cause"))
	}
	if c.Started > 0 {
		parts = append(parts, english.Count(c.Started, "pod")+" started")
	}
	if c.Back {
		return "back from " + c.At.Local().Format("15:04") + ": " + strings.Join(parts, ", ")
	}
	return "since " + c.At.Format("15:04") + ": " + strings.Join(parts, ", ")
}
