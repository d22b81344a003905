// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
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

const (
	// servePause is how long changes are collected before the page is made again.
	servePause = 2 * time.Second
	// headerTimeout bounds how long a browser takes to say what it wants.
	headerTimeout = 10 * time.Second
)

// checkServe checks the address of --serve: a port of this machine that nobody else reaches.
func checkServe(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Usagef("Write 127.0.0.1:PORT, or 127.0.0.1:0 for any port.", "read --serve: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("Use 127.0.0.1, [::1] or localhost; others reach it with 'kubectl port-forward' or ssh -L.",
			"read --serve: %q is not an address of this machine alone", host)
	}
	return nil
}

// serveUntil serves the page until the context is done. The page of a cluster follows its changes.
func (o *reportOptions) serveUntil(ctx context.Context) error {
	var from *cli.Source
	var watcher *collect.Watcher
	var err error
	if o.reader.Live() {
		watcher, _, err = o.reader.Watch(ctx, cli.Scope{AllNamespaces: true, ComputeDomains: true, Evicts: true, Ends: true})
	} else {
		from, err = o.reader.Read(ctx, reportScope())
	}
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.serve)
	if err != nil {
		return fmt.Errorf("serve the report: %w", err)
	}
	site := report.NewServer(rand.Text())
	server := &http.Server{Handler: site, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		err := server.Serve(listener)
		cancel()
		failed <- err
	}()
	options := report.Options{Namespace: o.reader.Only, Version: o.version, Follows: watcher != nil}
	announced := false
	show := func(ctx context.Context, snap *snapshot.Snapshot) error {
		if err := site.Show(ctx, cluster.New(snap), options); err != nil || announced {
			return err
		}
		announced = true
		_, err := fmt.Fprintf(o.streams.Out, "http://%s%s\n", listener.Addr(), site.Path())
		return err
	}
	if watcher != nil {
		err = o.followPage(ctx, watcher, site, show)
	} else if err = show(ctx, from.Snap); err == nil {
		<-ctx.Done()
	}
	if closing := server.Close(); err == nil && closing != nil {
		err = fmt.Errorf("serve the report: %w", closing)
	}
	if serving := <-failed; err == nil && !errors.Is(serving, http.ErrServerClosed) {
		err = fmt.Errorf("serve the report: %w", serving)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// followPage makes the page again after changes.
func (o *reportOptions) followPage(ctx context.Context, watcher *collect.Watcher, site *report.Server, show func(context.Context, *snapshot.Snapshot) error) error {
	following := &cli.Follower{Watcher: watcher, Kind: "the cluster", Beside: o.streams.ErrOut, Pause: servePause}
	return following.Follow(ctx, func(ctx context.Context) error {
		if _, trouble := watcher.Trouble(); trouble != nil {
			site.Lost("The connection to the cluster is lost; this is the last that is known.")
			return nil
		}
		snap, err := watcher.Problems(ctx)
		if err != nil {
			return err
		}
		return show(ctx, snap)
	})
}
