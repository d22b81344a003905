// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type snapshotFlags struct {
	reading *readingFlags
	path    string
	redact  bool
	force   bool
}

type snapshotOptions struct {
	reader  *reader
	path    string
	redact  bool
	force   bool
	streams genericiooptions.IOStreams
}

func newSnapshot(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &snapshotFlags{reading: newReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "snapshot [-o FILE] [--redact]",
		Short: "Save what a cluster says about devices and claims",
		Long: `Save all that this program reads of a cluster, so that the same questions can be
asked later or elsewhere: every other command takes the file with --snapshot.
It has nodes, pods, claims, templates, classes, slices and taint rules, without
environment variables and the like, but with their names; --redact replaces
those by others without changing any answer.

The file is YAML or JSON, by the ending of its name: .yaml, .yml or .json, each
also with .gz. It is readable for its owner only.`,
		Example: `  # Save it
  kubectl dra snapshot -o cluster.yaml.gz

  # For a bug report: without names
  kubectl dra snapshot --redact -o report.yaml

  # Redact or convert a file, without a cluster
  kubectl dra snapshot --snapshot cluster.yaml.gz --redact -o report.json

  # Show it
  kubectl dra snapshot | less`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := flags.toOptions(streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.path, "output", "o", "", "Write to this `FILE` instead of standard output.")
	cmd.Flags().BoolVar(&flags.redact, "redact", false, "Replace all names and values that could tell whose cluster it is.")
	cmd.Flags().BoolVar(&flags.force, "force", false, "Overwrite the file if it exists.")
	flags.reading.addTo(cmd)
	return cmd
}

func (f *snapshotFlags) toOptions(streams genericiooptions.IOStreams) (*snapshotOptions, error) {
	path := f.path
	if path == "-" {
		path = ""
	}
	if path == "" && f.force {
		return nil, usagef("Give the file with -o FILE.", "--force without a file to overwrite")
	}
	reader, err := f.reading.toReader(streams)
	if err != nil {
		return nil, err
	}
	return &snapshotOptions{reader: reader, path: path, redact: f.redact, force: f.force, streams: streams}, nil
}

func (o *snapshotOptions) run(ctx context.Context) error {
	if err := o.checkPath(); err != nil {
		return err
	}
	from, err := o.reader.read(ctx, scope{allNamespaces: o.reader.namespace == ""})
	if err != nil {
		return err
	}
	snap := from.snap
	if o.redact {
		snap = snapshot.Redact(snap)
	}
	if o.path == "" {
		return snap.Save(o.streams.Out, snapshot.FormatYAML)
	}
	if err := snapshot.SaveFile(snap, o.path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.ErrOut, "Saved %s to %s\n", contents(snap), render.Escape(o.path))
	return err
}

// checkPath fails before anything is read if the result could not be saved.
func (o *snapshotOptions) checkPath() error {
	if o.path == "" {
		return nil
	}
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(o.path), ".gz")) {
	case ".yaml", ".yml", ".json":
	default:
		return usagef("Name it .yaml, .yml or .json, each also with .gz.", "save %s: unknown format", o.path)
	}
	_, err := os.Lstat(o.path)
	switch {
	case err == nil && !o.force:
		return usagef("Choose another name, or overwrite it with --force.", "save %s: it exists", o.path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// contents counts what a snapshot has, and says what it lacks.
func contents(snap *snapshot.Snapshot) string {
	counted := []struct {
		n                int
		singular, plural string
	}{
		{len(snap.Nodes), "node", "nodes"},
		{len(snap.Slices), "slice", "slices"},
		{len(snap.Classes), "class", "classes"},
		{len(snap.Claims), "claim", "claims"},
		{len(snap.Templates), "template", "templates"},
		{len(snap.Pods), "pod", "pods"},
		{len(snap.TaintRules), "taint rule", "taint rules"},
	}
	parts := make([]string, 0, len(counted))
	for _, c := range counted {
		noun := c.plural
		if c.n == 1 {
			noun = c.singular
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.n, noun))
	}
	said := strings.Join(parts, ", ")
	for _, gap := range snap.Gaps {
		said += fmt.Sprintf("; %s are missing: %s", render.Escape(gap.Resource), render.Escape(gap.Reason))
	}
	return said
}
