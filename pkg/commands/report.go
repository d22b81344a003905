// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/report"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

type reportFlags struct {
	reading *cli.ReadingFlags
	path    string
	serve   string
	since   string
	redact  bool
	with    bool
	force   bool
}

type reportOptions struct {
	outputFile
	reader *cli.Reader
	// serve is the address to serve the page at, empty for a file.
	serve   string
	since   string
	redact  bool
	with    bool
	version string
	streams genericiooptions.IOStreams
}

func newReport(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	f := &reportFlags{reading: cli.NewReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "report (-o FILE.html | --serve)",
		Short: "Write what is wrong, and why, as a page for a browser",
		Long: `Write a page for a browser: the causes and what mends them, the capacity of each
class, a map of the nodes, the answer for each pod that waits with its funnel
and its remedies, the queue, partitions, and who uses what. It is one file that
loads nothing and can be sent by mail: it reads well on a phone, on paper, and
with a screen reader, and follows the light or dark theme of the reader.

--with-snapshot puts the cluster itself into the page, so that everybody who has
it can ask further questions: every other command reads the page with
--snapshot. --redact replaces names by pseudonyms, as 'kubectl dra snapshot'
does.

From a recording, the page has the history of the answers about the first ten
that wait, since its beginning or since the time of --since; not with --redact.

With --serve, the page is served on this machine until Ctrl-C, at the address
that is printed. It follows the cluster, explains any pod, and decides what
would happen if claims were created, a node was drained, or something was
tainted. It changes nothing, and answers only to who knows the address.

The exit code is 0 if the page was written or served.`,
		Example: `  # A page to look at, and to send
  kubectl dra report -o report.html

  # For a bug report: without names, and with the cluster inside
  kubectl dra report --redact --with-snapshot -o report.html

  # Ask further questions of a page that somebody sent
  kubectl dra why -A --snapshot report.html

  # Keep it open in a browser, and ask what if
  kubectl dra report --serve

  # What happened last night
  kubectl dra report --snapshot cluster.rec --since 12h -o night.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams, version)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&f.path, "output", "o", "", "Write to this `FILE`, - for standard output.")
	cmd.Flags().StringVar(&f.serve, "serve", "", "Serve the page at this `ADDRESS` of this machine; 127.0.0.1 and any port without one.")
	cmd.Flags().Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	cmd.Flags().StringVar(&f.since, "since", "", "Begin the histories of a recording at this `TIME`, as for --at.")
	cmd.Flags().BoolVar(&f.redact, "redact", false, "Replace names by pseudonyms, as in 'kubectl dra snapshot'. Read the page before you publish it.")
	cmd.Flags().BoolVar(&f.with, "with-snapshot", false, "Put the cluster into the page, for --snapshot.")
	cmd.Flags().BoolVar(&f.force, "force", false, "Overwrite the file if it exists.")
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

func (f *reportFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams, version string) (*reportOptions, error) {
	o := &reportOptions{outputFile: outputFile{path: f.path, force: f.force}, serve: f.serve, since: f.since, redact: f.redact, with: f.with, version: version, streams: streams}
	if f.serve != "" {
		for _, name := range []string{"output", "since", "redact", "with-snapshot", "force"} {
			if cmd.Flags().Changed(name) {
				return nil, cli.Usagef("Leave one of them out.", "--serve and --%s do not go together", name)
			}
		}
		if err := checkServe(f.serve); err != nil {
			return nil, err
		}
	}
	switch {
	case f.path == "" && f.serve == "":
		return nil, cli.Usagef("Name the file: -o report.html, or -o - for standard output.", "there is no file to write to")
	case f.path == "-":
		o.path = ""
	}
	if f.redact && f.since != "" {
		return nil, cli.Usagef("Leave one of them out.", "--redact and --since: a redacted page has no histories")
	}
	err := o.check("Name it .html or .htm.", func(name string) bool {
		return slices.Contains([]string{".html", ".htm"}, filepath.Ext(name))
	})
	if err != nil {
		return nil, err
	}
	o.reader, err = f.reading.ToReader(cmd, streams)
	if err == nil && f.since != "" && o.reader.Live() {
		err = cli.NeedsRecording()
	}
	return o, err
}

// reportScope says what a page reads of a cluster.
func reportScope() cli.Scope {
	return cli.Scope{AllNamespaces: true, Evicts: true, Ends: true}.WithCauses()
}

func (o *reportOptions) run(ctx context.Context) error {
	if o.serve != "" {
		return o.serveUntil(ctx)
	}
	from, err := o.reader.Read(ctx, reportScope())
	if err != nil {
		return err
	}
	snap := from.Snap
	if o.redact {
		snap = redact.Snapshot(snap)
	}
	options := report.Options{Namespace: o.reader.Only, Version: o.version}
	if options.History, err = o.histories(ctx, snap); err != nil {
		return err
	}
	if o.with {
		if options.Snapshot, err = files.Packed(snap); err != nil {
			return err
		}
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Writing the page")
	content, err := report.Of(ctx, cluster.New(snap), options)
	bar.Done()
	if err != nil {
		return err
	}
	if err := o.write(ctx, o.streams.Out, content.Write); err != nil || o.path == "" {
		return err
	}
	lines := append([]string{"Wrote " + o.path}, cli.GapNotes(snap, nil)...)
	if o.redact {
		lines = append(lines, "Drivers, classes, attributes and CEL expressions are as they were: read the page before you publish it")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.streams.ErrOut, render.Escape(line)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// histories returns how to get the history of an answer from a recording; nil without one.
func (o *reportOptions) histories(ctx context.Context, last *snapshot.Snapshot) (func(context.Context, explain.Options) (*api.History, error), error) {
	if o.reader.Live() || o.redact {
		return nil, nil
	}
	is, err := o.reader.IsRecording(ctx)
	switch {
	case err != nil:
		return nil, err
	case !is && o.since != "":
		return nil, cli.NeedsRecording()
	case !is:
		return nil, nil
	}
	var since time.Time
	if o.since != "" {
		if since, err = cli.ParseTime(o.since, last.TakenAt, time.Local); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, object explain.Options) (*api.History, error) {
		moments, err := o.reader.Moments(ctx, since)
		if err != nil {
			return nil, err
		}
		return diff.History(ctx, moments, object)
	}, nil
}
