// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Found has the causes of a cluster, and what they were found from.
type Found struct {
	// Status has the causes, the worst first.
	Status *api.Status
	// Examination has the answers about pods, and the findings.
	Examination *doctor.Examination
	of          map[api.ObjectRef][]int
	cluster     *cluster.Cluster
	stuck       []explain.Options
}

// Of returns the indices in the status of the causes of a pod or of a refused workload.
func (f *Found) Of(object api.ObjectRef) []int { return f.of[object] }

// Options choose the pods and the checks.
type Options struct {
	// Namespace is the only namespace whose pods count, if it is set: causes that concern
	// neither it nor what all namespaces share are left out.
	Namespace string
	// Checks are options of doctor's checks.
	Checks doctor.Options
}

// Find returns the causes of a cluster. It fails if ctx is done or a check fails.
func Find(ctx context.Context, c *cluster.Cluster, opts Options) (*Found, error) {
	f, err := find(ctx, c, opts)
	if err != nil {
		return nil, err
	}
	causes := f.ranked()
	if err := mend(ctx, c, causes); err != nil {
		return nil, err
	}
	found := &Found{cluster: c, Examination: f.exam, of: map[api.ObjectRef][]int{}, Status: &api.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Status"},
		Source:   c.Snapshot.Source, Namespace: f.namespace,
		Pods: f.count(), Capacity: f.overview.Capacity, Causes: make([]api.Cause, 0, len(causes)),
		Upcoming: f.upcoming(), NotChecked: notChecked(f.exam.Diagnosis), Assumptions: f.overview.Assumptions,
	}}
	for i, c := range causes {
		found.Status.Causes = append(found.Status.Causes, c.shown())
		for _, s := range c.stuck {
			found.of[s.ref] = append(found.of[s.ref], i)
		}
	}
	_, numbers := Same(found.Status.Causes)
	for i, number := range numbers {
		found.Status.Causes[i].Number = number
	}
	for _, s := range f.stuck {
		if f.in(s.ref.Namespace) {
			found.stuck = append(found.stuck, explain.Options{Object: s.ref})
		}
	}
	return found, nil
}

// find finds the causes of a cluster, in no order.
func find(ctx context.Context, c *cluster.Cluster, opts Options) (*finder, error) {
	x, err := doctor.Examine(ctx, c, opts.Checks)
	if err != nil {
		return nil, fmt.Errorf("find causes: %w", err)
	}
	f := &finder{cluster: c, exam: x, namespace: opts.Namespace, causes: causeSet{byKey: map[key]*cause{}, byObject: map[api.ObjectRef]*cause{}}, byRef: map[api.ObjectRef]*stuck{}}
	f.overview = x.Survey.Overview(inventory.Known{Namespace: opts.Namespace, Reason: func(*corev1.Pod) api.StuckReason { return api.StuckReason{} }})
	f.list()
	f.fromFindings()
	f.fromConditions()
	f.fromSymptoms(true)
	f.fromAnswers()
	f.fromSymptoms(false)
	return f, nil
}

// count counts the pods of the namespace that wait or are blocked.
func (f *finder) count() api.StatusPods {
	var pods api.StatusPods
	for _, s := range f.stuck {
		switch {
		case !f.in(s.ref.Namespace):
		case s.blocked != nil:
			pods.Blocked++
		case s.answer != nil:
			pods.Waiting++
			pods.LongestSeconds = max(pods.LongestSeconds, s.age)
			if s.starts() && s.answer.Stage != api.StageClaimGeneration {
				pods.Starting++
			}
		}
	}
	return pods
}

// upcoming lists evictions that are due, and claims that are being released.
func (f *finder) upcoming() []api.Upcoming {
	var list []api.Upcoming
	now := f.cluster.Snapshot.Now()
	for i := range f.taints {
		t := &f.taints[i]
		pods := 0
		for j := range t.Pods {
			if t.Pods[j].Evicted && f.in(t.Pods[j].Namespace) {
				pods++
			}
		}
		if t.NextEviction == nil || pods == 0 {
			continue
		}
		due := "now"
		if left := t.NextEviction.Sub(now); left > 0 {
			due = "in " + duration.HumanDuration(left)
		}
		list = append(list, api.Upcoming{
			Kind: api.UpcomingEviction, Count: pods, At: t.NextEviction,
			Message: fmt.Sprintf("taint %s evicts %s, the first %s", inventory.TaintText(t), english.Count(pods, "pod"), due),
		})
	}
	slices.SortStableFunc(list, func(a, b api.Upcoming) int { return a.At.Compare(b.At.Time) })
	claims, devices := 0, 0
	for _, claim := range f.cluster.Snapshot.Claims {
		if claim.DeletionTimestamp != nil && claim.Status.Allocation != nil && f.in(claim.Namespace) {
			claims++
			devices += len(claim.Status.Allocation.Devices.Results)
		}
	}
	if claims > 0 {
		list = append(list, api.Upcoming{
			Kind: api.UpcomingRelease, Count: claims,
			Message: fmt.Sprintf("%s %s being deleted, with %s", english.Count(claims, "claim"), english.Plural(claims, "is", "are"), english.Count(devices, "device")),
		})
	}
	return list
}

// notChecked lists the checks that could not be made by their reasons.
func notChecked(d *api.Diagnosis) []string {
	var reasons []string
	codes := map[string][]string{}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Severity != api.SeverityUnknown {
			continue
		}
		if codes[f.Message] == nil {
			reasons = append(reasons, f.Message)
		}
		codes[f.Message] = append(codes[f.Message], f.Code)
	}
	list := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		list = append(list, fmt.Sprintf("%s: %s", english.Count(len(codes[reason]), "check"), strings.TrimPrefix(reason, "not checked: ")))
	}
	return list
}

// list lists the pods that do not run, and the workloads whose pods are refused.
func (f *finder) list() {
	now := f.cluster.Snapshot.Now()
	f.taints = f.exam.Inventory.Taints()
	for i, pod := range f.cluster.Waiting() {
		s := f.add(&stuck{ref: api.RefTo(api.KindPod, pod), pod: pod, err: f.exam.Answers[i].Err, answer: f.exam.Answers[i].Explanation})
		if !pod.CreationTimestamp.IsZero() {
			s.age = int64(now.Sub(pod.CreationTimestamp.Time).Seconds())
		}
	}
	for i := range f.exam.Blocked {
		b := &f.exam.Blocked[i]
		pod := f.cluster.Snapshot.Pod(b.Namespace, b.Name)
		if pod == nil || snapshot.Waits(pod) {
			// A pod without a node waits: it is explained, and that says the same.
			continue
		}
		s := f.add(&stuck{ref: api.RefTo(api.KindPod, pod), pod: pod, blocked: b})
		if !pod.CreationTimestamp.IsZero() {
			s.age = int64(now.Sub(pod.CreationTimestamp.Time).Seconds())
		}
	}
	for _, r := range explain.RefusedWorkloads(f.cluster) {
		f.add(&stuck{ref: r.Workload.Ref(), refused: r})
	}
	// The answer of equal pods has the advice of the first of them.
	for _, s := range f.stuck {
		if s.full = s.answer; s.answer != nil && s.answer.SameAs.Kind != "" {
			if first := f.byRef[s.answer.SameAs]; first != nil && first.answer != nil {
				s.full = first.answer
			}
		}
	}
}

// Same puts causes together that read the same, such as two templates that ask for equally many
// devices: text has them as one, with one number and one next step. They stay apart in the status,
// because each has the id of its object. The second result has the number of each cause's group,
// counted from 1.
func Same(causes []api.Cause) (groups [][]*api.Cause, numbers []int) {
	type text struct{ severity, message, step, mended string }
	known := map[text]int{}
	for i := range causes {
		c := &causes[i]
		t := text{severity: string(c.Severity), message: c.Message}
		if c.NextStep != nil {
			t.step = c.NextStep.Actor + c.NextStep.Text
		}
		if c.Mended != nil {
			t.mended = c.Mended.Message
		}
		number := known[t]
		if number == 0 {
			groups = append(groups, nil)
			number = len(groups)
			known[t] = number
		}
		groups[number-1] = append(groups[number-1], c)
		numbers = append(numbers, number)
	}
	return groups, numbers
}

// Row has the answer for pods that do not run and have one owner, or for a workload whose pods
// are refused.
type Row struct {
	Namespace, Name string
	Verdict         api.Verdict
	Stage           api.Stage
	Outlook         api.Condition
	// AgeSeconds is the age of the oldest pod, 0 if it is not known.
	AgeSeconds int64
	Summary    string
	// Node is the node that the first of the pods gets, if nothing else is to be said.
	Node string
	// Names are the names of the pods, or of the workload.
	Names []string
	// Causes are the indices of their causes in the status.
	Causes []int
	// First is the explanation of the first of the pods, Owner the workload of the pods.
	First *api.Explanation
	Owner api.ObjectRef
}

// Rows puts answers about objects that do not run into rows.
func (f *Found) Rows(answers []*api.Explanation) []*Row {
	var rows []*Row
	for _, group := range explain.GroupAnswers(answers) {
		e := group.First
		row := &Row{
			Namespace: e.Target.Namespace, Name: group.Name(), Verdict: e.Verdict, Stage: e.Stage, Outlook: explain.When(e), AgeSeconds: group.Oldest,
			Summary: group.Summary(), Names: group.Names, First: e, Owner: group.Owner,
		}
		if e.Verdict == api.Fits && e.Placement != nil && e.OtherScheduler == nil {
			row.Node = e.Placement.Node
		}
		for _, name := range group.Names {
			row.Causes = append(row.Causes, f.Of(api.Ref(e.Target.Kind, e.Target.Namespace, name))...)
		}
		rows = append(rows, row)
	}
	return rows
}

// Answers returns the answers about some objects. Pods that wait have been explained; others, such
// as pods on their nodes and workloads without pods, are not in the queue.
func (f *Found) Answers(ctx context.Context, targets []explain.Options) ([]explain.Answer, error) {
	known := map[api.ObjectRef]explain.Answer{}
	for i, pod := range f.cluster.Waiting() {
		known[api.RefTo(api.KindPod, pod)] = f.Examination.Answers[i]
	}
	var others []explain.Options
	for i := range targets {
		if _, ok := known[targets[i].Object]; !ok {
			others = append(others, targets[i])
		}
	}
	more, err := explain.ExplainEach(ctx, f.cluster, others)
	if err != nil {
		return nil, err
	}
	for i := range others {
		known[others[i].Object] = more[i]
	}
	found := make([]explain.Answer, 0, len(targets))
	for i := range targets {
		found = append(found, known[targets[i].Object])
	}
	return found, nil
}

// Stuck returns the objects of the namespace that do not run: pods that wait, pods that cannot
// work with their devices, and workloads whose pods are refused.
func (f *Found) Stuck() []explain.Options { return f.stuck }
