// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// TimeInName splits FILE@TIME, unless there is a file of that name.
func TimeInName(path string) (file, at string) {
	if i := strings.LastIndexByte(path, '@'); i > 0 {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// ReadFiles reads the cluster in files, or in a recording as it was at a time; without one, as it
// was last.
func (r *Reader) ReadFiles(ctx context.Context, paths []string, at string, options files.Options) (*snapshot.Snapshot, error) {
	if len(paths) == 1 {
		path, own := TimeInName(paths[0])
		if at != "" && own != "" {
			return nil, Usagef("Leave one of them out.", "read %s: the name has a time, and --at is %s", paths[0], at)
		}
		at, paths = cmp.Or(at, own), []string{path}
		from, err := openRecording(path, &options)
		if err != nil {
			return nil, err
		}
		if from != nil {
			defer func() { _ = from.Close() }()
			return r.readRecording(ctx, from, path, at, options)
		}
	}
	if at != "" {
		return nil, Usagef("Record a cluster with: kubectl dra record -o FILE", "read %s at %s: it is no recording, so that nothing is known of other times", strings.Join(paths, ", "), at)
	}
	return files.Load(ctx, paths, options)
}

// openRecording opens a file if it is a recording. It returns nil for other files, and for those
// that cannot be read, for which there are better errors.
func openRecording(path string, options *files.Options) (*recording.Recording, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
		head := make([]byte, 4)
		if n, _ := io.ReadFull(file, head); !recording.Is(head[:n]) {
			return nil, nil
		}
		return recording.Open(path)
	}
	if options.Stdin == nil {
		return nil, nil
	}
	input := bufio.NewReader(options.Stdin)
	options.Stdin = input
	if head, _ := input.Peek(4); !recording.Is(head) {
		return nil, nil
	}
	const limit = 1 << 30
	content, err := io.ReadAll(io.LimitReader(input, limit+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("it has more than %d MiB; name the file", limit>>20)
	}
	if err != nil {
		return nil, &files.InputError{Path: "standard input", Err: err}
	}
	return recording.Bytes("standard input", content)
}

// momentAt parses a time at which to look at a recording. Printed times have whole seconds, and
// moments do not: a time without a fraction is the end of its second.
func momentAt(text string, end time.Time) (time.Time, error) {
	at, err := ParseTime(text, end, time.Local)
	if _, noDuration := time.ParseDuration(text); err != nil || noDuration == nil || at.Nanosecond() > 0 {
		return at, err
	}
	if last := at.Add(time.Second - time.Nanosecond); last.Before(end) {
		return last, nil
	}
	return end, nil
}

// timeForms says how to write a time.
const timeForms = "Write a time of day such as 09:14 or 09:14:30, a time such as 2026-07-01T09:14:00Z, or how long before the end, such as 2h or 90s."

// ParseTime parses a time at or before end: RFC 3339, a time of day in the zone, which is the last
// such one before the end, or a duration before the end, with or without a minus.
func ParseTime(text string, end time.Time, zone *time.Location) (time.Time, error) {
	if before, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		if before < 0 {
			return time.Time{}, Usagef(timeForms, "parse the time %q: more than one minus", text)
		}
		return end.Add(-before), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.After(end) {
			return time.Time{}, Usagef(timeForms, "parse the time %q: it is after the end, %s", text, end.In(zone).Format(time.RFC3339))
		}
		return at, nil
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		at, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		day := end.In(zone)
		for {
			found := time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), at.Second(), 0, zone)
			if !found.After(end) {
				return found, nil
			}
			day = day.AddDate(0, 0, -1)
		}
	}
	return time.Time{}, Usagef(timeForms, "parse the time %q: it is neither a time nor a duration", text)
}

// readRecording reads a recording at a time.
func (r *Reader) readRecording(ctx context.Context, from *recording.Recording, path, at string, options files.Options) (*snapshot.Snapshot, error) {
	_, when, err := from.Range(ctx)
	if err == nil && at != "" {
		when, err = momentAt(at, when)
	}
	if err != nil {
		return nil, err
	}
	moment, err := from.At(ctx, when, options)
	if err != nil {
		return nil, err
	}
	named := *moment.Snapshot
	named.Source = fmt.Sprintf("recording %s at %s", path, named.TakenAt.Local().Format(time.RFC3339))
	note := ""
	if !r.SaysSource {
		note = "this is the cluster at " + named.TakenAt.Local().Format(time.RFC3339)
	}
	switch missed := moment.After; {
	case missed != nil:
		note = fmt.Sprintf("nothing is known of %s: the recording has nothing after %s, since %s; this is the cluster as it was then",
			when.Local().Format(time.TimeOnly), missed.Since.Local().Format(time.TimeOnly), missed.Reason)
	case at == "" && from.Cut():
		note = fmt.Sprintf("the last that is known is the cluster at %s: the recording is being written, or was cut off", named.TakenAt.Local().Format(time.RFC3339))
	}
	if note != "" {
		// A note that cannot be printed does not prevent the answer.
		_ = PrintNotes(r.streams, note)
	}
	return &named, nil
}

// Recorded is a recording that the flags name.
type Recorded struct {
	*recording.Recording
	Options files.Options
	// Name is the file.
	Name string
	// Begins and Ends are its first and last moment, At is the chosen one, the last by default.
	Begins, Ends, At time.Time
}

// Recording opens the recording of the flags; nil if they name none. Somebody has to close it.
func (r *Reader) Recording(ctx context.Context) (*Recorded, error) {
	if len(r.paths) != 1 {
		return nil, nil
	}
	path, own := TimeInName(r.paths[0])
	out := &Recorded{Options: r.Options, Name: path}
	var err error
	if out.Recording, err = openRecording(path, &out.Options); err != nil || out.Recording == nil {
		// What was looked at in standard input is still there.
		r.Options.Stdin = out.Options.Stdin
		return nil, err
	}
	if out.Begins, out.Ends, err = out.Range(ctx); err == nil {
		out.At = out.Ends
		if at := cmp.Or(r.at, own); at != "" {
			out.At, err = momentAt(at, out.Ends)
		}
	}
	if err == nil && out.At.Before(out.Begins) {
		err = &recording.RangeError{Path: path, At: out.At, From: out.Begins, To: out.Ends}
	}
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return out, nil
}

// IsRecording reports whether the flags name the file of a recording.
func (r *Reader) IsRecording(ctx context.Context) (bool, error) {
	if len(r.paths) != 1 || r.paths[0] == "-" {
		return false, nil
	}
	from, err := r.Recording(ctx)
	if from == nil || err != nil {
		return false, err
	}
	return true, from.Close()
}

// NeedsRecording returns the error for --since with a cluster or a snapshot.
func NeedsRecording() error {
	return Usagef("", "--since needs a recording: kubectl dra record -o FILE, then --snapshot FILE")
}

// Moments returns the states of a recording from a time on, up to the time of --at. It is for the
// verbs that follow what happened. A time before the recording stands for its beginning.
func (r *Reader) Moments(ctx context.Context, since time.Time) (iter.Seq2[recording.Moment, error], error) {
	if len(r.paths) == 1 && r.paths[0] == "-" {
		return nil, Usagef("Save it to a file.", "--since needs a recording in a file, not in standard input")
	}
	from, err := r.Recording(ctx)
	if err != nil {
		return nil, err
	}
	if from == nil {
		return nil, NeedsRecording()
	}
	return func(yield func(recording.Moment, error) bool) {
		defer func() { _ = from.Close() }()
		from.Between(ctx, since)(yield)
	}, nil
}

// Between returns the states from a time on, up to the chosen one. A time before the recording
// stands for its beginning.
func (from *Recorded) Between(ctx context.Context, since time.Time) iter.Seq2[recording.Moment, error] {
	if since.Before(from.Begins) {
		since = from.Begins
	}
	return func(yield func(recording.Moment, error) bool) {
		var last recording.Moment
		for moment, err := range from.From(ctx, since, from.Options) {
			if err == nil && moment.Snapshot.TakenAt.After(from.At) {
				// The one before was true until then, or until it was not known any more.
				end := from.At
				if missed := moment.Missed; missed != nil && missed.Since.Before(end) {
					end = missed.Since
				}
				if last.Snapshot != nil && end.After(last.Snapshot.TakenAt) {
					known := *last.Snapshot
					known.TakenAt = end
					yield(recording.Moment{Snapshot: &known}, nil)
				}
				return
			}
			if !yield(moment, err) {
				return
			}
			last = moment
		}
	}
}
