// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

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
