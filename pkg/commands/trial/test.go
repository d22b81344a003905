// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	nodeprobeverb "github.com/kubectl-dra/kubectl-dra/pkg/commands/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// endLimit limits the wait for deleted pods after Ctrl-C.
const endLimit = 20 * time.Second

// test makes the trials of a plan.
type test struct {
	*options

	clients collect.Clients
	watcher *collect.Watcher
	plan    *Plan
	// uid is the UID of the namespace.
	uid string

	mu      sync.Mutex
	records map[string]*Record
	// changed is closed, and replaced, at each change.
	changed chan struct{}
	// probed are the nodes looked at, by case.
	probed map[string]bool
	left   []api.ObjectRef
}

func newTest(o *options, clients collect.Clients, watcher *collect.Watcher, plan *Plan) *test {
	return &test{
		options: o, clients: clients, watcher: watcher, plan: plan,
		records: map[string]*Record{}, changed: make(chan struct{}), probed: map[string]bool{},
	}
}

// run makes the trials and adds them to the report. Whatever happens, it deletes its
// objects. The second context lasts until then.
func (t *test) run(ctx, following context.Context, report *api.TestReport) (err error) {
	name := t.plan.Namespace.Name
	namespace, err := create(ctx, namespaces(t.clients), t.plan.Namespace)
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	t.uid = string(namespace.GetUID())
	defer func() {
		if deleteErr := deleteNamespace(ctx, t.clients, name, t.uid); deleteErr != nil {
			err = errors.Join(err, fmt.Errorf("delete namespace %s: %w\nDelete it by hand: kubectl delete namespace %s", name, deleteErr, name))
		}
		report.Left = t.left
	}()
	if err := collect.FollowNamespace(following, t.clients, name, t.see); err != nil {
		return err
	}
	bar := cli.NewProgress(t.streams.ErrOut, "Making trials")
	defer bar.Done()
	total := 0
	for i := range t.plan.Groups {
		total += len(t.plan.Groups[i].Trials)
	}
	done := 0
	for i := range t.plan.Groups {
		group := &t.plan.Groups[i]
		if ctx.Err() != nil {
			report.Skipped = append(report.Skipped, interrupted(group))
			continue
		}
		if _, err := create(ctx, templates(t.clients, name), group.Template); err != nil {
			return fmt.Errorf("create ResourceClaimTemplate %s/%s: %w", name, group.Template.Name, err)
		}
		trials := t.tryAll(ctx, group, func() {
			done++
			bar.Say(fmt.Sprintf("%d of %d trials, now %s", done, total, group.Case.Name()))
		})
		report.Trials = append(report.Trials, trials...)
	}
	return nil
}

func interrupted(group *Group) api.SkippedTrial {
	return api.SkippedTrial{Class: group.Case.Class, File: group.Case.File, Reason: api.SkipInterrupted, Message: "the test was ended before"}
}

// tryAll makes the trials of a group, as many at the same time as it allows.
func (t *test) tryAll(ctx context.Context, group *Group, begun func()) []api.Trial {
	var mu sync.Mutex
	made := make([]*api.Trial, len(group.Trials))
	var running errgroup.Group
	running.SetLimit(group.Parallel)
	for i := range group.Trials {
		running.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			mu.Lock()
			begun()
			mu.Unlock()
			one := t.try(ctx, group, &group.Trials[i])
			made[i] = &one
			return nil
		})
	}
	// None of them fails.
	_ = running.Wait()
	var trials []api.Trial
	for _, one := range made {
		if one != nil {
			trials = append(trials, *one)
		}
	}
	return trials
}

// see adds a change in the namespace to the records.
func (t *test) see(change collect.NamespaceChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, record := range t.records {
		switch {
		case change.Pod != nil:
			record.SeePod(change.Pod, change.Deleted, change.At)
		case change.Claim != nil:
			record.SeeClaim(change.Claim, change.Deleted, change.At)
		case change.Event != nil && !change.Deleted:
			record.SeeEvent(change.Event, change.At)
		}
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits until a record meets a condition, and reports whether it does in time, and
// before the context ends.
func (t *test) await(ctx context.Context, record *Record, limit time.Duration, is func(*Record) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		t.mu.Lock()
		met, changed := is(record), t.changed
		t.mu.Unlock()
		if met {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// try makes one trial, from the creation of the pod to the deletion of everything.
func (t *test) try(ctx context.Context, group *Group, p *Planned) api.Trial {
	out := &Outcome{Timeout: t.timeout}
	record := NewRecord(p.Pod.Name, time.Now())
	t.mu.Lock()
	t.records[p.Pod.Name] = record
	t.mu.Unlock()
	if err := createPod(ctx, t.clients, p.Pod); err != nil {
		out.Hopeless, out.Unfit, out.Interrupted = fmt.Sprintf("create pod %s/%s: %v", p.Pod.Namespace, p.Pod.Name, err), true, ctx.Err() != nil
		return t.close(p, record, out)
	}
	t.await(ctx, record, t.timeout, func(r *Record) bool {
		out.Hopeless, out.Unfit = r.Hopeless()
		return out.Hopeless != "" || r.Running()
	})
	started := t.startedOrGivenUp(record)
	var looked *looked
	switch {
	case ctx.Err() != nil:
		out.Interrupted = true
	case started:
		out.Hopeless, out.Unfit = "", false
		looked = t.lookAt(ctx, group, p, record)
		out.Checks = t.checkStarted(ctx, group, p, record, looked)
	case !out.Unfit:
		out.Explanation = t.explain(ctx, p.Pod)
		out.Checks = append(out.Checks, t.probeFailure(ctx, record)...)
	}
	t.end(ctx, p, record, out, looked)
	return t.close(p, record, out)
}

// startedOrGivenUp reports whether the containers of a trial run. If they do not, it has
// failed, whatever happens later.
func (t *test) startedOrGivenUp(record *Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if record.Running() {
		return true
	}
	record.GiveUp()
	return false
}

// end deletes the pod and waits until it and the claim are gone.
func (t *test) end(ctx context.Context, p *Planned, record *Record, out *Outcome, seen *looked) {
	t.mu.Lock()
	record.DeletePod(time.Now())
	t.mu.Unlock()
	limit, waiting := t.timeout, ctx
	if ctx.Err() != nil {
		limit, waiting = min(limit, endLimit), context.WithoutCancel(ctx)
	}
	if err := deletePod(ctx, t.clients, p.Pod.Namespace, p.Pod.Name); err != nil {
		t.leave(api.RefTo(api.KindPod, p.Pod))
		return
	}
	gone := func(r *Record) bool { return r.Reached(api.TrialCleaned) }
	cleaned := t.await(waiting, record, limit, gone)
	if !cleaned && waiting.Err() != nil {
		// Ctrl-C came meanwhile.
		out.Interrupted = true
		cleaned = t.await(context.WithoutCancel(ctx), record, min(limit, endLimit), gone)
	}
	switch {
	case !cleaned:
		t.mu.Lock()
		left := record.Left(p.Pod.Namespace)
		t.mu.Unlock()
		t.leave(left)
		if ctx.Err() == nil && out.Explanation == nil {
			if left.Kind == api.KindPod {
				out.Explanation = t.explain(ctx, p.Pod)
			}
			out.Checks = append(out.Checks, t.probeFailure(ctx, record)...)
		}
	case ctx.Err() != nil, seen == nil:
		return
	}
	if seen != nil && ctx.Err() == nil {
		out.Checks = append(out.Checks, t.checkEnded(ctx, record, seen, cleaned)...)
	}
}

// leave records an object that could not be deleted.
func (t *test) leave(object api.ObjectRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = append(t.left, object)
}

// close ends the record of a trial.
func (t *test) close(p *Planned, record *Record, out *Outcome) api.Trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.records, record.Name)
	return Finish(p, record, out)
}

// explain returns the answer of "why" about a pod, nil if there is none.
func (t *test) explain(ctx context.Context, pod *corev1.Pod) *api.Explanation {
	snap, err := t.watcher.Target(ctx, snapshot.Argument{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name})
	if err != nil {
		return nil
	}
	e, err := explain.Explain(ctx, snap, explain.Options{Object: api.RefTo(api.KindPod, pod)})
	if err != nil {
		return nil
	}
	return e
}

// looked has the observations while the containers of a trial ran.
type looked struct {
	// before is the cluster of the trial's plan, after the cluster with the pod.
	before, after *snapshot.Snapshot
	// edits are the edits of the node's CDI specs; nil if nobody looked at the node.
	edits         *NodeEdits
	with, without *Contents
	// err says why nobody could look into the containers.
	err error
}

// lookAt looks at the node, if that is wanted and was not done for this case, and into the
// containers.
func (t *test) lookAt(ctx context.Context, group *Group, p *Planned, record *Record) *looked {
	seen := &looked{before: group.Before.Snapshot, after: t.watcher.Snapshot()}
	if t.probe.look && t.firstLook(group, record.Node()) {
		edits := NodeEdits{}
		if report, err := t.probeNode(ctx, record.Node()); err != nil {
			edits.Problem = fmt.Sprintf("look at node %s: %v", record.Node(), err)
		} else {
			edits = EditsOf(record.ClaimUID(), handedOf(report), report.CDI)
		}
		seen.edits = &edits
	}
	var paths []string
	if seen.edits != nil {
		paths = DevicePaths(seen.edits.Edits)
	}
	if seen.with, seen.err = lookInto(ctx, t.clients, p.Pod.Namespace, p.Pod.Name, ClaimContainer, paths); seen.err == nil {
		seen.without, seen.err = lookInto(ctx, t.clients, p.Pod.Namespace, p.Pod.Name, OtherContainer, paths)
	}
	return seen
}

// firstLook reports whether no other trial of the case looks at the node: that takes
// seconds, and more trials would show the same.
func (t *test) firstLook(group *Group, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := group.Template.Name + "/" + node
	first := !t.probed[key]
	t.probed[key] = true
	return first
}

func (t *test) probeNode(ctx context.Context, name string) (*nodeprobe.Report, error) {
	return nodeprobeverb.Look(ctx, t.reader, &nodeprobeverb.LookOptions{
		Node: name, Namespace: t.plan.Namespace.Name, Image: t.image, Binary: t.probe.binary,
		KubeletRoot: t.probe.kubelet, CDIDirs: t.probe.cdi,
	})
}

func handedOf(report *nodeprobe.Report) cdi.Handed {
	if report.State == nil {
		return nil
	}
	return report.State.Handed()
}

// checkStarted returns the checks while the pod runs.
func (t *test) checkStarted(ctx context.Context, group *Group, p *Planned, record *Record, seen *looked) []api.TrialCheck {
	onNode, err := group.Predict(ctx, p, record.Node())
	if err != nil {
		onNode = nil
	}
	others := OthersChanged(seen.before, seen.after, p.Pod.Namespace)
	checks := []api.TrialCheck{
		Predicted(record, onNode, group.Parallel == 1, others),
		Exclusive(record, seen.after),
	}
	if seen.err != nil {
		reason := fmt.Sprintf("look into the containers: %v; --image needs sh, cat and ls", seen.err)
		return append(checks, NotChecked(api.CheckContainer, reason))
	}
	return append(checks, InContainer(record, seen.with, seen.without, seen.edits)...)
}

// checkEnded returns the checks after the pod is gone.
func (t *test) checkEnded(ctx context.Context, record *Record, seen *looked, cleaned bool) []api.TrialCheck {
	checks := []api.TrialCheck{Released(record, t.watcher.Snapshot())}
	switch {
	case !cleaned:
		return checks
	case seen.edits == nil:
		return append(checks, NotChecked(api.CheckNode, "not looked for what is left on the node: "+NeedsNode))
	}
	report, err := t.probeNode(ctx, record.Node())
	if err != nil {
		return append(checks, NotChecked(api.CheckNode, fmt.Sprintf("look at node %s: %v", record.Node(), err)))
	}
	return append(checks, LeftOnNode(record.ClaimUID(), record.Node(), handedOf(report), report.CDI))
}

// probeFailure returns node-probe's findings on the node of a failed trial.
func (t *test) probeFailure(ctx context.Context, record *Record) []api.TrialCheck {
	name := record.Node()
	if name == "" {
		return nil
	}
	if !t.probe.look {
		return []api.TrialCheck{NotChecked(api.CheckNode, fmt.Sprintf("what the node has to do with it, this may show: kubectl dra node-probe --node %s", name))}
	}
	report, err := t.probeNode(ctx, name)
	if err != nil {
		return []api.TrialCheck{NotChecked(api.CheckNode, fmt.Sprintf("look at node %s: %v", name, err))}
	}
	var problems []NodeProblem
	for _, check := range report.Checks() {
		if check.State == node.Problem {
			problems = append(problems, NodeProblem{Check: check.Name, Path: check.Path, Message: check.Message})
		}
	}
	return []api.TrialCheck{OnNode(name, problems)}
}
