// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// notWithWhySince returns the flags for questions about a single state.
func notWithWhySince() []string {
	return []string{"filename", "kustomize", "all-namespaces", "selector", "node", "device", "all-remedies", "commands", "with-preview"}
}

// validateSince checks the flags and arguments of a question about a time.
func (f *whyFlags) validateSince(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("since") {
		return nil
	}
	for _, name := range notWithWhySince() {
		if cmd.Flags().Changed(name) {
			return cli.Usagef(cli.HelpHint(cmd), "--since and --%s do not go together", name)
		}
	}
	if f.since == "" {
		return cli.Usagef(cli.HelpHint(cmd), "--since is empty")
	}
	if len(args) == 0 {
		return cli.Usagef(cli.HelpHint(cmd), "--since needs a target")
	}
	return nil
}

// explainSince explains how the answer about the only target changed.
func (o *whyOptions) explainSince(ctx context.Context) error {
	if len(o.targets) != 1 {
		return cli.Usagef("Ask about one after the other.", "--since takes one target, found %d", len(o.targets))
	}
	if o.printer.Names {
		return cli.Usagef("Print the times with -o jsonpath='{.entries[*].time}'.", "-o name: a history has no name")
	}
	if o.reader.Live() {
		return cli.NeedsRecording()
	}
	last, err := o.reader.Read(ctx, cli.Scope{Target: &o.targets[0], AllNamespaces: true})
	if err != nil {
		return err
	}
	since, err := cli.ParseTime(o.since, last.Snap.TakenAt, time.Local)
	if err != nil {
		return err
	}
	target, err := o.resolve(last, last.Snap, o.targets[0])
	if err != nil {
		return err
	}
	moments, err := o.moments(ctx, since)
	if err != nil {
		return err
	}
	h, err := diff.History(ctx, moments, target)
	if err != nil {
		return err
	}
	if err := o.printHistory(h); err != nil {
		return err
	}
	if code := cli.VerdictCode(h.Now.Verdict); code != cli.ExitFits {
		return &cli.OutcomeError{Code: code}
	}
	return nil
}

func (o *whyOptions) printHistory(h *api.History) error {
	var err error
	if o.printer.Machine != nil {
		err = o.printer.Machine.PrintObj(h, o.streams.Out)
	} else {
		err = render.History(o.streams.Out, h, time.Local, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print the history: %w", err)
	}
	return nil
}
