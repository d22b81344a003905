// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// otherQuestions returns the flags for pods and claims that do not go with devices and
// nodes.
func otherQuestions() []string {
	return []string{"filename", "kustomize", "all-namespaces", "selector", "all-remedies", "commands", "node", "device", "since"}
}

// explainUse explains devices and nodes: who uses them, or why nobody does.
func (f *whyFlags) explainUse(cmd *cobra.Command, targets []api.ObjectRef, streams genericiooptions.IOStreams) error {
	for _, name := range otherQuestions() {
		if cmd.Flags().Changed(name) {
			return cli.Usagef(cli.HelpHint(cmd), "--%s does not go with devices and nodes as targets", name)
		}
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return err
	}
	printer, err := f.output.ToPrinter(streams)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	// The pods of all namespaces wait for one and the same device.
	from, err := reader.Read(ctx, cli.Scope{AllNamespaces: true})
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	var answers []*api.UseExplanation
	var failures []error
	for _, t := range targets {
		ask := explain.UseOfDevice
		if t.Kind == api.KindNode {
			ask = explain.UseOfNode
		}
		answer, err := ask(ctx, c, t.Name)
		switch {
		case err == nil:
			answers = append(answers, answer)
		case ctx.Err() != nil:
			return err
		default:
			failures = append(failures, err)
		}
	}
	if len(answers) > 0 {
		if err := printer.PrintUse(answers, len(targets) > 1); err != nil {
			return err
		}
	}
	return whyUseOutcome(answers, failures, func(err error) { cli.PrintError(streams.ErrOut, err) })
}

// whyUseOutcome returns the error with the worst exit code. All other failures are passed to
// report.
func whyUseOutcome(answers []*api.UseExplanation, failures []error, report func(error)) error {
	if len(failures) == 1 && len(answers) == 0 {
		return failures[0]
	}
	code := cli.ExitFits
	for _, err := range failures {
		report(err)
		code = cli.Worse(code, cli.ExitCode(err))
	}
	for _, answer := range answers {
		if answer.Undetermined != "" {
			code = cli.Worse(code, cli.ExitUndetermined)
		}
	}
	if code == cli.ExitFits {
		return nil
	}
	return &cli.OutcomeError{Code: code}
}
