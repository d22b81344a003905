// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// ruleChange is a DeviceTaintRule to be created or deleted, and how.
type ruleChange struct {
	reader *cli.Reader
	dryRun string
	yes    bool
	// printer prints the added rule; nil to print a sentence. Everything else goes to words
	// then, which is standard output if there is no printer.
	printer printers.ResourcePrinter
	words   io.Writer
	streams genericiooptions.IOStreams
}

type ruleChangeFlags struct {
	RuleFlags
	reading *cli.ReadingFlags
	dryRun  string
	yes     bool
}

func (f *ruleChangeFlags) toChange(cmd *cobra.Command, streams genericiooptions.IOStreams) (*ruleChange, error) {
	if !slices.Contains(cli.DryRuns(), f.dryRun) {
		return nil, cli.NotAllowed("dry-run", f.dryRun, cli.DryRuns())
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	if !reader.Live() && f.dryRun != cli.DryRunClient {
		return nil, cli.Usagef("Add --dry-run=client to see what would happen.", "a snapshot file cannot be changed")
	}
	return &ruleChange{reader: reader, dryRun: f.dryRun, yes: f.yes, words: streams.Out, streams: streams}, nil
}

// addTo adds the flags; does is the verb for their help.
func (f *ruleChangeFlags) addTo(cmd *cobra.Command, does string) {
	flags := cmd.Flags()
	f.AddTo(flags, does)
	flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "`MODE` client only shows what would happen, server lets the API server check it, too, none does it.")
	f.reading.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
}

// rules returns the API for DeviceTaintRules.
func (c *ruleChange) rules() (*Rules, error) {
	clients, err := collect.NewClients(c.reader.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return RulesOf(clients)
}

func (c *ruleChange) dryRunOption() []string {
	if c.dryRun == cli.DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (c *ruleChange) suffix() string {
	if c.dryRun == cli.DryRunServer {
		return " (server dry run)"
	}
	return ""
}

// errNotConfirmed ends a change that nobody confirmed.
var errNotConfirmed = errors.New("nothing was changed")

// confirm asks on a terminal; elsewhere --yes must have answered already.
func (c *ruleChange) confirm(question string) error {
	if c.yes {
		return nil
	}
	if _, isTerminal := cli.Terminal(c.streams.In); !isTerminal {
		return cli.Usagef("Add --yes to do it, or --dry-run=client to see what would happen.", "%w: %s There is no terminal to ask on", errNotConfirmed, question)
	}
	if _, err := fmt.Fprintf(c.streams.ErrOut, "%s Go on? [y/N] ", question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answer, err := bufio.NewReader(c.streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return cli.Usagef("", "%w", errNotConfirmed)
	}
	return nil
}

func (c *ruleChange) say(format string, args ...any) error {
	if _, err := fmt.Fprintln(c.words, render.Escape(fmt.Sprintf(format, args...))); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
