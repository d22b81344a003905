// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// explainWaiting explains all pods that wait for devices.
func (o *whyOptions) explainWaiting(ctx context.Context) error {
	isTable := o.printer.IsShort()
	scope := cli.Scope{AllNamespaces: o.waiting.allNamespaces, Starting: true, Admission: true, ComputeDomains: true}
	if isTable {
		scope = scope.WithCauses()
	}
	from, err := o.reader.Read(ctx, scope)
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	namespace := from.Namespace
	if o.waiting.allNamespaces {
		namespace = ""
	}
	a, targets := &whyAnswers{}, o.waiting.in(c, namespace)
	var causes *cause.Found
	var found []explain.Answer
	if isTable && len(targets) > 0 {
		if causes, err = cause.Find(ctx, c, cause.Options{Namespace: namespace}); err != nil {
			return err
		}
		found, err = causes.Answers(ctx, targets)
	} else {
		found, err = explain.ExplainEach(ctx, c, targets)
	}
	if err != nil {
		return err
	}
	for _, answer := range found {
		a.add(answer.Explanation, answer.Err)
	}
	hidden := from.Snap.Gap(snapshot.ResourcePods)
	if hidden != nil && hidden.Namespace != "" && hidden.Namespace == namespace {
		hidden = nil
	}
	if err := o.printWaiting(causes, a.explanations, namespace, from.NamespaceGone(namespace), hidden); err != nil {
		return err
	}
	if isTable {
		notes := snapshot.PreviewAssumptions(from.Snap)
		if gap := from.Snap.Gap(snapshot.ResourceEvents); gap != nil && from.Clients != nil {
			notes = append(notes, gap.Reason+": pods that their nodes failed to start less than a minute ago may be missing, and workloads whose pods the API server refuses")
		}
		if err := cli.PrintNotes(o.streams, notes...); err != nil {
			return err
		}
	}
	err = a.outcome(func(err error) { cli.PrintError(o.streams.ErrOut, err) })
	if err == nil && hidden != nil {
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	}
	return err
}

// waitingPods selects pods that wait for devices.
type waitingPods struct {
	allNamespaces bool
	selector      labels.Selector
}

func newWaitingPods(allNamespaces bool, selector string) (waitingPods, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return waitingPods{}, cli.Usagef("Write it as for kubectl get: -l app=train,tier!=test.", "read --selector: %w", err)
	}
	return waitingPods{allNamespaces: allNamespaces, selector: parsed}, nil
}

// in lists the pods of a namespace, or of all if that is empty, that use devices and do not
// work: pods without a node, and pods that are blocked after their devices were allocated.
// After them come the workloads whose pods the API server refuses.
func (w waitingPods) in(c *cluster.Cluster, namespace string) []explain.Options {
	blocked := map[types.NamespacedName]bool{}
	for _, pod := range lifecycle.NewStages(c).BlockedPods() {
		blocked[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
	}
	var targets []explain.Options
	// They stay in the order of the snapshot.
	for _, pod := range c.Snapshot.Pods {
		asked := (namespace == "" || pod.Namespace == namespace) && w.selector.Matches(labels.Set(pod.Labels))
		if asked && (blocked[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] || snapshot.Waits(pod) && c.WantsDevices(pod)) {
			targets = append(targets, explain.Options{Object: api.RefTo(api.KindPod, pod)})
		}
	}
	for _, r := range explain.RefusedWorkloads(c) {
		if o := r.Workload; (namespace == "" || o.Namespace == namespace) && w.selector.Matches(labels.Set(o.Template.Labels)) {
			targets = append(targets, explain.Options{Object: api.Ref(o.Kind, o.Namespace, o.Name)})
		}
	}
	return targets
}

// printWaiting writes a table, or the format of -o. The namespace may be gone.
func (o *whyOptions) printWaiting(causes *cause.Found, explanations []*api.Explanation, namespace string, gone bool, hidden *snapshot.Gap) error {
	if hidden != nil {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "pods: %s\n", render.Escape(hidden.Reason)); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
	}
	if o.printer.Machine != nil {
		return o.printer.Print(explanations, true)
	}
	if len(explanations) > 0 {
		if causes == nil {
			return o.printer.Print(explanations, true)
		}
		if err := render.Waiting(o.streams.Out, causes.Status.Causes, causes.Rows(explanations), o.printer.Text); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
		return nil
	}
	if hidden != nil {
		return nil
	}
	which, where := "", ""
	if !o.waiting.selector.Empty() {
		which = " with labels " + render.Escape(o.waiting.selector.String())
	}
	if namespace != "" {
		where = " in namespace " + render.Escape(namespace)
	}
	if gone {
		where += ", which does not exist"
	}
	if _, err := fmt.Fprintf(o.streams.ErrOut, "No pods%s are waiting for devices%s.\n", which, where); err != nil {
		return fmt.Errorf("print explanations: %w", err)
	}
	return nil
}
