// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// whySince asks how the answer about a pod of the example changed over some states, given the flags.
func whySince(t *testing.T, moments []recording.Moment, pod string, flags ...string) (string, error) {
	t.Helper()
	config := genericclioptions.NewConfigFlags(true)
	*config.Namespace = "research"
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	reading, output, cmd := cli.NewReadingFlags(config), cli.NewOutputFlags(), &cobra.Command{}
	o := &whyOptions{args: []string{pod}, streams: streams}
	cmd.Flags().StringVar(&o.since, "since", "", "")
	reading.AddTo(cmd)
	output.AddTo(cmd)
	err := cmd.ParseFlags(append(flags, "--snapshot", filepath.Join("..", "..", "examples", "cluster")))
	if err == nil {
		o.targets, err = cli.ParseTargets(o.args)
	}
	if err == nil {
		o.reader, err = reading.ToReader(cmd, streams)
	}
	if err == nil {
		o.printer, err = output.ToPrinter(streams)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.moments = func(_ context.Context, since time.Time) (iter.Seq2[recording.Moment, error], error) {
		return func(yield func(recording.Moment, error) bool) {
			for _, m := range moments {
				if !m.Snapshot.TakenAt.Before(since) && !yield(m, nil) {
					return
				}
			}
		}, nil
	}
	err = o.run(t.Context())
	return out.String(), err
}

// cordoned returns the states of the example: some nodes were cordoned ten minutes before its end, and
// one hour before they were not.
func cordoned(t *testing.T) []recording.Moment {
	t.Helper()
	last, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, some := *last, *last
	all.TakenAt, some.TakenAt = last.TakenAt.Add(-time.Hour), last.TakenAt.Add(-10*time.Minute)
	all.Slices, all.Claims = last.Slices, slices.Clone(last.Claims)
	for i, claim := range all.Claims {
		if claim.Status.Allocation != nil {
			all.Claims[i] = claim.DeepCopy()
			all.Claims[i].Status = resourceapi.ResourceClaimStatus{}
		}
	}
	return []recording.Moment{{Snapshot: &all}, {Snapshot: &some}, {Snapshot: last}}
}

func TestSince(t *testing.T) {
	moments := cordoned(t)
	end := moments[2].Snapshot.TakenAt
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--since", "2h"}, "does not fit; pending since"},
		{[]string{"--since", "30m"}, "(10m)"},
		{[]string{"--since", end.Add(-time.Hour).Format(time.RFC3339)}, "(60m)"},
		{[]string{"--since", "2h", "-o", "jsonpath={.kind} {.now.verdict} {.entries[0].event}"}, "History DoesNotFit Existed"},
		{[]string{"--since", "2h", "-o", "yaml"}, "kind: History"},
	} {
		out, err := whySince(t, moments, "pod/pretrain-0", test.flags...)
		if cli.ExitCode(err) != cli.ExitDoesNotFit || !strings.Contains(out, test.want) {
			t.Errorf("%v: %v, want %q in\n%s", test.flags, err, test.want, out)
		}
	}
	out, err := whySince(t, moments, "pod/pretrain-0", "--since", "2h", "-o", "json")
	var h api.History
	if jsonErr := json.Unmarshal([]byte(out), &h); jsonErr != nil || cli.ExitCode(err) != cli.ExitDoesNotFit || !h.To.Time.Equal(end.Truncate(time.Second)) {
		t.Errorf("%v, %v:\n%s", err, jsonErr, out)
	}
	for want, args := range map[string][]string{
		"neither a time nor a duration": {"pod/pretrain-0", "--since", "soon"},
		"a history has no name":         {"pod/pretrain-0", "--since", "2h", "-o", "name"},
		"find Pod research/absent":      {"pod/absent", "--since", "2h"},
	} {
		if out, err := whySince(t, moments, args[0], args[1:]...); err == nil || cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v, want %q; printed %s", args, err, want, out)
		}
	}
}

// TestSinceIsRefused uses --since where it has no meaning.
func TestSinceIsRefused(t *testing.T) {
	snapshots := []string{"--snapshot", filepath.Join("..", "..", "examples", "cluster")}
	for want, args := range map[string][]string{
		"--since needs a recording: kubectl dra record -o FILE, then --snapshot FILE": {"pod/pretrain-0", "--since", "2h"},
		"--since and --node do not go together":                                       {"pod/pretrain-0", "--since", "2h", "--node", "gpu-01"},
		"--since and --all-namespaces do not go together":                             {"--since", "2h", "-A"},
		"--since needs a target":                                                      {"--since", "2h"},
		"--since is empty":                                                            {"pod/pretrain-0", "--since", ""},
		"--since takes one target, found 2":                                           {"pod/pretrain-0", "pod/pretrain-1", "--since", "2h"},
		"--since does not go with devices and nodes as targets":                       {"node/gpu-01", "--since", "2h"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		cmd := newWhy(streams, genericclioptions.NewConfigFlags(true))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(args, snapshots...))
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want || cli.ExitCode(err) != cli.ExitUsage || out.Len() > 0 {
			t.Errorf("%v: %v, want %q; printed %s", args, err, want, out)
		}
	}
}
