// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

type snapshotFlags struct {
	reading *cli.ReadingFlags
	path    string
	format  string
	redact  bool
	force   bool
}

type snapshotOptions struct {
	outputFile
	reader *cli.Reader
	// format is the format of standard output and of paths that are not regular files.
	format  files.Format
	redact  bool
	streams genericiooptions.IOStreams
}

func newSnapshot(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &snapshotFlags{reading: cli.NewReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "snapshot [-o FILE] [--redact]",
		Short: "Save what a cluster has about devices and claims",
		Long: `Save all that this program reads of a cluster, so that the same questions can be
asked later or elsewhere: every other command takes the file with --snapshot.
It has nodes, pods, claims, templates, classes, slices and taint rules, without
environment variables and the like, but with their names; --redact replaces the
names without changing any answer.

The file is YAML or JSON, by the ending of its name: .yaml, .yml or .json, each
also with .gz. Only its owner can read it.

With --with-preview, the file has what a driver would publish, in place of what
it has published for those nodes. The slices are marked, so that every answer
from the file says so.

All namespaces are saved, since the devices may be allocated to claims of any of
them. If you are not permitted to list them all, only the one of -n or of the
context is read.`,
		Example: `  # Save it
  kubectl dra snapshot -o cluster.yaml.gz

  # For a bug report: without names
  kubectl dra snapshot --redact -o report.yaml

  # Redact or convert a file, without a cluster
  kubectl dra snapshot --snapshot cluster.yaml.gz --redact -o report.json

  # As if the driver had started on a node
  kubectl dra snapshot --with-preview preview.yaml -o planned.yaml.gz

  # Show it
  kubectl dra snapshot | less`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := flags.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.path, "output", "o", "", "Write to this `FILE` instead of standard output.")
	cmd.Flags().StringVar(&flags.format, "format", "", "`FORMAT` on standard output: yaml (the default) or json.")
	cmd.Flags().BoolVar(&flags.redact, "redact", false,
		"Replace names of namespaces, nodes, pods, claims and images, addresses and IDs by pseudonyms; drivers, classes, "+
			"attributes and CEL expressions stay. Read the file before you publish it.")
	cmd.Flags().BoolVar(&flags.force, "force", false, "Overwrite the file if it exists.")
	flags.reading.AddTo(cmd)
	flags.reading.AddPreviewTo(cmd)
	cli.CompleteFlags(flags.reading, cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func (f *snapshotFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*snapshotOptions, error) {
	path := f.path
	if path == "-" {
		path = ""
	}
	format := files.Format(f.format)
	switch format {
	case "":
		format = files.YAML
	case files.JSON, files.YAML:
		if path != "" && !isSpecial(path) {
			return nil, cli.Usagef("Leave --format out: the ending of the file's name determines it.", "--format is for standard output, not for a file")
		}
	default:
		return nil, cli.Usagef("Use yaml or json.", "unknown format %q", f.format)
	}
	if path == "" && f.force {
		return nil, cli.Usagef("Give the file with -o FILE.", "--force without a file to overwrite")
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	return &snapshotOptions{outputFile: outputFile{path: path, force: f.force}, reader: reader, format: format, redact: f.redact, streams: streams}, nil
}

func (o *snapshotOptions) run(ctx context.Context) error {
	if err := o.checkPath(); err != nil {
		return err
	}
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: o.reader.Only == "", Starting: true, Health: true, Admission: true, Evicts: true, Ends: true, ComputeDomains: true, DevicePlugins: true})
	if err != nil {
		return err
	}
	snap := from.Snap
	if o.redact {
		snap = redact.Snapshot(snap)
	}
	if err := o.save(ctx, snap); err != nil || o.path == "" {
		return err
	}
	_, err = fmt.Fprintln(o.streams.ErrOut, strings.Join(o.report(snap), "\n"))
	return err
}

func (o *snapshotOptions) save(ctx context.Context, snap *snapshot.Snapshot) error {
	if o.isRegular() {
		return files.Save(ctx, snap, o.path)
	}
	return o.write(ctx, o.streams.Out, func(w io.Writer) error { return files.Write(w, snap, o.format) })
}

// checkPath fails before anything is read if the snapshot could not be saved.
func (o *snapshotOptions) checkPath() error {
	if o.path == "json" || o.path == "yaml" {
		return cli.Usagef(fmt.Sprintf("-o is a file name here. For %s: -o FILE.%s, or --format %s for standard output.", strings.ToUpper(o.path), o.path, o.path),
			"save %s: unknown format", o.path)
	}
	return o.check("Name it .yaml, .yml or .json, each also with .gz.", func(name string) bool {
		return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(strings.TrimSuffix(name, ".gz")))
	})
}

// report lists the saved objects and the gaps.
func (o *snapshotOptions) report(snap *snapshot.Snapshot) []string {
	lines := append([]string{fmt.Sprintf("Saved %s to %s", contents(snap), o.path)}, snapshot.PreviewAssumptions(snap)...)
	for _, gap := range snap.Gaps {
		lines = append(lines, gap.Resource+": "+gap.Reason)
	}
	if o.reader.Only != "" {
		lines = append(lines, fmt.Sprintf("-n %s only counts where not all namespaces may be listed; all that could be read is in the file", o.reader.Only))
	}
	if o.redact {
		lines = append(lines, "Drivers, classes, attributes and CEL expressions are as they were: read the file before you publish it")
	}
	for i, line := range lines {
		lines[i] = render.Escape(line)
	}
	return lines
}

// contents counts the objects of a snapshot.
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
	return strings.Join(parts, ", ")
}
