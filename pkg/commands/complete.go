// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// completionTime is how long a shell waits for names at most, unless
// --request-timeout says otherwise.
const completionTime = 3 * time.Second

// completing is one question of a shell: what the word that is being typed can
// become.
type completing struct {
	cmd    *cobra.Command
	args   []string
	typed  string
	reader *reader

	mu sync.Mutex
	// sure is what can be proposed before anything was read.
	sure []string
}

// offer proposes something, whatever becomes of the rest.
func (c *completing) offer(words ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sure = append(c.sure, words...)
}

func (c *completing) offered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sure
}

// proposer lists what a word can become. Those that do not begin with what is
// typed are left out later.
type proposer func(ctx context.Context, c *completing) ([]string, error)

// complete makes the completion function that cobra wants. Whatever goes wrong,
// and whatever takes too long, completes to nothing: a shell shows what is
// printed in the middle of the line.
func complete(f *readingFlags, propose proposer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		limit := completionTime
		if chosen, err := clientcmd.ParseTimeout(*f.config.Timeout); err == nil && chosen > 0 {
			limit = chosen
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		reading := *f
		// The flag for namespaces is the same for all verbs, so that it is not
		// this verb's --snapshot that it knows.
		if paths, err := cmd.Flags().GetStringArray("snapshot"); err == nil {
			reading.paths = paths
		}
		// Nor is standard input one of the previews.
		reading.previews = slices.DeleteFunc(slices.Clone(f.previews), func(path string) bool { return path == "-" })
		reader, err := reading.toReader(cmd, genericiooptions.NewTestIOStreamsDiscard())
		// Standard input is where the user types.
		if err != nil || slices.Contains(reading.paths, "-") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c := &completing{cmd: cmd, args: args, typed: typed, reader: reader}
		answer := make(chan []string, 1)
		// Not everything that is asked on the way heeds the context.
		go func() {
			proposals, err := propose(ctx, c)
			if err != nil {
				proposals = nil
			}
			answer <- proposals
		}()
		select {
		case <-ctx.Done():
			return among(c.offered(), c.args, c.typed)
		case proposals := <-answer:
			return among(slices.Concat(c.offered(), proposals), c.args, c.typed)
		}
	}
}

// flag is the value of a flag, empty if the command has no such flag.
func (c *completing) flag(name string) string {
	if flag := c.cmd.Flags().Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// read takes some resources from the cluster or the file.
func (c *completing) read(ctx context.Context, resources ...string) (*source, error) {
	return c.reader.read(ctx, scope{only: resources})
}

// completeFlags completes the values of those flags that a command has.
func completeFlags(f *readingFlags, cmd *cobra.Command) {
	gates := make([]string, 0, 2*len(snapshot.KnownGates()))
	for _, gate := range snapshot.KnownGates() {
		gates = append(gates, gate+"=true", gate+"=false")
	}
	device := complete(f, proposeDevices)
	if cmd.Flags().Lookup("driver") != nil {
		// There, the three flags together name a device.
		device = complete(f, proposeSliceParts(func(s sliceParts) []string { return s.devices }))
	}
	values := map[string]cobra.CompletionFunc{
		"node":               complete(f, proposeNames("node")),
		"class":              complete(f, proposeNames("class")),
		"driver":             complete(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.driver} })),
		"pool":               complete(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.pool} })),
		"device":             device,
		"columns":            complete(f, proposeAttributes),
		"feature-gates":      listOfFixed(gates...),
		"color":              fixed(colorAuto, colorAlways, colorNever),
		"dry-run":            fixed(dryRunNone, dryRunClient, dryRunServer),
		"format":             fixed(string(snapshot.FormatYAML), string(snapshot.FormatJSON)),
		"where":              cobra.NoFileCompletions,
		"name":               cobra.NoFileCompletions,
		"selector":           cobra.NoFileCompletions,
		"sort-by":            cobra.NoFileCompletions,
		"kubernetes-version": cobra.NoFileCompletions,
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if cmd.Flags().Lookup(name) != nil {
			// It only fails if somebody registered one before.
			_ = cmd.RegisterFlagCompletionFunc(name, values[name])
		}
	}
}

// completeClusterFlags completes those of kubectl's own flags whose values are
// names, for all commands.
func completeClusterFlags(f *readingFlags, root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"namespace": complete(f, proposeNames("namespace")),
		"context":   complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Contexts) })),
		"cluster":   complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Clusters) })),
		"user":      complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) })),
	}
	for name, value := range values {
		_ = root.RegisterFlagCompletionFunc(name, value)
	}
}
