// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
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
