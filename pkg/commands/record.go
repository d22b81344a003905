// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

const (
	// recordEvery is how long changes are collected before they are recorded.
	recordEvery = time.Second
	// stoppedFor is a time without a look after which the recorder must have been stopped: a look
	// comes every second, and some take seconds.
	stoppedFor = 30 * time.Second
	// refreshEvery is how often the lists are read again that are not watched.
	refreshEvery = time.Minute
)

type recordFlags struct {
	reading *cli.ReadingFlags
	path    string
	keep    time.Duration
	lasts   time.Duration
	size    string
	redact  bool
	since   string
}

type recordOptions struct {
	reader  *cli.Reader
	path    string
	limits  recording.Limits
	lasts   time.Duration
	redact  bool
	since   string
	streams genericiooptions.IOStreams
}

func newRecord(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &recordFlags{reading: cli.NewReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "record -o FILE",
		Short: "Record what happens to devices and claims",
		Long: `Watch a cluster, and write each of its states to a file. Other commands read the
file with --snapshot as it was at the time of --at or, without that, at its end.

Changes are in the file within two seconds, also if this program is killed. If
the file exists, its recording is continued. A time in which this program did
not run, or the API server did not answer, is noted as not known.

It ends with Ctrl-C, or after the time of --for. --keep and --max-size bound the
file: what is oldest is removed in pieces. The file has the same objects, with
their names, as 'kubectl dra snapshot' saves, and only its owner can read it.

With --snapshot, another recording is copied: a part of it with --since and
--at, and without names with --redact. Pseudonyms take the order of all names in
it, so that a recording can only be redacted when it is there.`,
		Example: `  # Record until Ctrl-C
  kubectl dra record -o cluster.rec

  # The last day, in at most 500 MiB
  kubectl dra record -o cluster.rec --keep 24h --max-size 500Mi

  # For a bug report: the last two hours, without names
  kubectl dra record --snapshot cluster.rec --since 2h --redact -o report.rec

  # Why was the pod pending at nine?
  kubectl dra why pod/pretrain-0 --snapshot cluster.rec --at 09:00

  # What changed in the last two hours?
  kubectl dra diff cluster.rec@-2h cluster.rec`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("Name the file with -o FILE.", "read the arguments: expected none, found %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&f.path, "output", "o", "", "Write to this `FILE`, or go on with it.")
	cmd.Flags().DurationVar(&f.keep, "keep", 0, "Remove what is older than this `DURATION`, such as 24h; 0 keeps all.")
	cmd.Flags().StringVar(&f.size, "max-size", "", "Largest `SIZE` of the file, such as 500Mi; none is the default.")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "Stop after this `DURATION`, such as 1h.")
	cmd.Flags().BoolVar(&f.redact, "redact", false, "Copy the recording of --snapshot with pseudonyms instead of names, as 'kubectl dra snapshot --redact' does.")
	cmd.Flags().StringVar(&f.since, "since", "", "Copy the recording of --snapshot since this `TIME`, as for --at.")
	f.reading.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func (f *recordFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*recordOptions, error) {
	switch {
	case f.path == "":
		return nil, cli.Usagef("Name it with -o FILE.", "expected a file to record to")
	case f.path == "-":
		return nil, cli.Usagef("Name a file.", "-o -: a recording cannot go to standard output")
	case len(f.reading.Paths) == 0 && (f.redact || f.since != ""):
		return nil, cli.Usagef("Record it first, then: kubectl dra record --snapshot FILE --redact -o OTHER", "--redact and --since copy a recording: name it with --snapshot")
	case len(f.reading.Paths) > 0 && f.lasts > 0:
		return nil, cli.Usagef("Choose a part with --since and --at.", "--for is for a cluster, not for a recording")
	case f.keep < 0:
		return nil, cli.Usagef("Write 24h, or 0 to keep all.", "read --keep: expected a duration from 0 on, found %s", f.keep)
	case f.lasts < 0:
		return nil, cli.Usagef("Write 1h, or 0 for no end.", "read --for: expected a duration from 0 on, found %s", f.lasts)
	}
	o := &recordOptions{path: f.path, limits: recording.Limits{Keep: f.keep}, lasts: f.lasts, redact: f.redact, since: f.since, streams: streams}
	if f.size != "" {
		size, err := resource.ParseQuantity(f.size)
		if err != nil || size.Sign() < 0 {
			return nil, cli.Usagef("Write 500Mi or 2Gi.", "read --max-size: expected a size, found %q", f.size)
		}
		o.limits.Size = size.Value()
	}
	var err error
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	return o, o.checkPath()
}

// checkPath fails before a cluster is read if nothing can be recorded.
func (o *recordOptions) checkPath() error {
	info, err := os.Stat(o.path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return cli.Usagef("Name a file.", "record %s: it is not a file", o.path)
	case err == nil && info.Size() > 0 && !o.reader.Live():
		return cli.Usagef("Name another file.", "record %s: it exists, and a copy is not added to a recording", o.path)
	case err == nil && info.Size() > 0:
		r, err := recording.Open(o.path)
		if errors.Is(err, recording.ErrEmpty) {
			return nil
		}
		if err != nil {
			return cli.Usagef("Name another file.", "%w", err)
		}
		return r.Close()
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(o.path)); err != nil || !info.IsDir() {
			return cli.Usagef("Make the directory, or name another one.", "record %s: there is no directory %s", o.path, filepath.Dir(o.path))
		}
		return nil
	case err != nil:
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

func (o *recordOptions) run(ctx context.Context) error {
	if !o.reader.Live() {
		return o.copy(ctx)
	}
	if o.lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.lasts)
		defer cancel()
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Reading the cluster")
	defer bar.Done()
	watcher, _, err := o.reader.Watch(ctx, cli.Scope{AllNamespaces: o.reader.Only == "", ComputeDomains: true, Evicts: true, Ends: true})
	if err != nil {
		return err
	}
	first, err := watcher.Refresh(ctx)
	if err != nil {
		return err
	}
	writer, err := recording.Create(ctx, o.path, first, o.limits)
	if err != nil {
		return err
	}
	r := &recorder{watcher: watcher, writer: writer, refreshed: time.Now(), known: first.TakenAt, streams: o.streams}
	err = r.follow(ctx, func(text string) { bar.Say("Recording to " + o.path + ": " + text + "; Ctrl-C ends it") })
	if closing := writer.Close(r.known); err == nil {
		err = closing
	}
	bar.Done()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.ErrOut, "Recorded %s to %s\n", r.summary(), render.Escape(o.path))
	return err
}

// copy copies a recording, or a part of it.
func (o *recordOptions) copy(ctx context.Context) (err error) {
	from, err := o.reader.Recording(ctx)
	switch {
	case err != nil:
		return err
	case from == nil:
		return cli.Usagef("", "--snapshot of record needs a recording: kubectl dra record -o FILE, then --snapshot FILE")
	}
	defer func() { _ = from.Close() }()
	since := from.Begins
	if o.since != "" {
		if since, err = cli.ParseTime(o.since, from.At, time.Local); err != nil {
			return err
		}
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Copying "+from.Name)
	defer bar.Done()
	moments := from.Between(ctx, since)
	var missed *recording.Missed
	states := iter.Seq2[*snapshot.Snapshot, error](func(yield func(*snapshot.Snapshot, error) bool) {
		for m, err := range moments {
			if missed = m.Missed; !yield(m.Snapshot, err) {
				return
			}
		}
	})
	if o.redact {
		states = redact.Each(states)
	}
	var writer *recording.Writer
	var end time.Time
	for s, err := range states {
		switch {
		case err != nil:
		case writer == nil:
			writer, err = recording.Create(ctx, o.path, s, o.limits)
		case missed != nil:
			err = writer.AddAfter(*missed, s)
		default:
			err = writer.Add(s)
		}
		if err != nil {
			if writer != nil {
				_ = writer.Close(time.Time{})
				// Half a copy is in the way of the next attempt.
				_ = os.Remove(o.path)
			}
			return err
		}
		end = s.TakenAt
	}
	if err := writer.Close(end); err != nil {
		return err
	}
	bar.Done()
	_, err = fmt.Fprintf(o.streams.ErrOut, "Copied %s, %.1f MiB, to %s\n", english.Count(writer.Changes, "change"), float64(writer.Size())/(1<<20), render.Escape(o.path))
	return err
}

// recorder follows a cluster.
type recorder struct {
	watcher   *collect.Watcher
	writer    *recording.Writer
	refreshed time.Time
	// known is the time up to which the cluster is known, lost is since when it is not, because of
	// reason.
	known, lost time.Time
	reason      string
	streams     genericiooptions.IOStreams
}

// follow records until the context is done. It says how far it is.
func (r *recorder) follow(ctx context.Context, say func(string)) error {
	ticker := time.NewTicker(recordEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := r.look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		say(r.summary())
	}
}

func (r *recorder) summary() string {
	return fmt.Sprintf("%s, %s, %.1f MiB", duration.HumanDuration(r.known.Sub(r.writer.Begins())), english.Count(r.writer.Changes, "change"), float64(r.writer.Size())/(1<<20))
}

// look records the cluster as it is, unless the connection is lost.
func (r *recorder) look(ctx context.Context) error {
	if since, trouble := r.watcher.Trouble(); trouble != nil {
		return r.loses(since, trouble)
	}
	// A process that was stopped, as while a machine sleeps, has no trouble that it knows of.
	if now := time.Now().Round(0); r.lost.IsZero() && now.Sub(r.known.Round(0)) > stoppedFor {
		r.lost, r.reason = r.known, "the recorder was stopped"
	}
	s, err := r.state(ctx)
	var lost *collect.ServerError
	if errors.As(err, &lost) && ctx.Err() == nil {
		return r.loses(r.known, err)
	}
	if err != nil {
		return err
	}
	if r.lost.IsZero() {
		err = r.writer.Add(s)
	} else {
		err = r.writer.AddAfter(recording.Missed{Since: r.lost.Round(0), Reason: r.reason}, s)
	}
	if err != nil {
		return err
	}
	r.known = s.TakenAt
	if r.lost.IsZero() {
		return nil
	}
	r.lost = time.Time{}
	return cli.PrintNotes(r.streams, "connected again; the recording says what it missed: "+r.reason)
}

// state returns the cluster as it is. After a lost connection, and from time to time, all is read.
func (r *recorder) state(ctx context.Context) (*snapshot.Snapshot, error) {
	if r.lost.IsZero() && time.Since(r.refreshed) < refreshEvery {
		return r.watcher.Snapshot(), nil
	}
	s, err := r.watcher.Refresh(ctx)
	if err == nil {
		r.refreshed = time.Now()
	}
	return s, err
}

// loses notes since when nothing is known.
func (r *recorder) loses(since time.Time, trouble error) error {
	if !r.lost.IsZero() {
		return nil
	}
	r.lost, r.reason = since, "the API server did not answer"
	if r.known.Before(since) {
		r.known = since
	}
	return cli.PrintNotes(r.streams, trouble.Error()+"; nothing is recorded until it is back")
}
