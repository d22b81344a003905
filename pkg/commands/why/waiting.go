// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// explainWaiting explains all pods that wait for devices.
func (o *options) explainWaiting(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: o.waiting.allNamespaces, Starting: true, Admission: true, ComputeDomains: true})
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	namespace := from.Namespace
	if o.waiting.allNamespaces {
		namespace = ""
	}
	a := &answers{}
	each := explain.ExplainEach
	if o.printer.Machine == nil && !o.printer.Text.Wide {
		// The table has no remedies.
		each = explain.ExplainEquivalent
	}
	found, err := each(ctx, c, o.waiting.in(c, namespace))
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
	if err := o.printWaiting(a.explanations, namespace, from.NamespaceGone(namespace), hidden); err != nil {
		return err
	}
	if o.printer.Machine == nil && !o.printer.Text.Wide {
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
func (o *options) printWaiting(explanations []*api.Explanation, namespace string, gone bool, hidden *snapshot.Gap) error {
	if hidden != nil {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "pods: %s\n", render.Escape(hidden.Reason)); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
	}
	if o.printer.Machine != nil {
		return o.printer.Print(explanations, true)
	}
	if len(explanations) > 0 {
		if o.printer.Text.Wide {
			return o.printer.Print(explanations, true)
		}
		return printTable(o.streams.Out, explanations)
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

// printTable prints one line for pods with one owner and one answer.
func printTable(w io.Writer, explanations []*api.Explanation) error {
	table := printers.GetNewTabWriter(w)
	rows := [][]string{{"NAMESPACE", "NAME", "VERDICT", "STAGE", "OUTLOOK", "AGE", "REASON"}}
	for _, group := range explain.GroupAnswers(explanations) {
		e, age := group.First, "<unknown>"
		if group.Oldest > 0 {
			age = duration.HumanDuration(time.Duration(group.Oldest) * time.Second)
		}
		rows = append(rows, []string{e.Target.Namespace, group.Name(), string(e.Verdict), string(e.Stage), string(explain.When(e)), age, group.Summary()})
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = render.Escape(cell)
		}
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print explanations: %w", err)
	}
	return nil
}
