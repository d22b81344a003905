// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package names

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

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// completionTime is how long a shell waits for names at most, unless
// --request-timeout says otherwise.
const completionTime = 3 * time.Second

// Completion is one question of a shell: what the word that is being typed can
// become.
type Completion struct {
	Cmd    *cobra.Command
	Args   []string
	Typed  string
	Reader *cli.Reader

	mu sync.Mutex
	// sure is what can be proposed before anything was read.
	sure []string
}

// offer proposes something, whatever becomes of the rest.
func (c *Completion) offer(words ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sure = append(c.sure, words...)
}

func (c *Completion) offered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sure
}

// Proposer lists what a word can become. Those that do not begin with what is
// typed are left out later.
type Proposer func(ctx context.Context, c *Completion) ([]string, error)

// Complete makes the completion function that cobra wants. Whatever goes wrong,
// and whatever takes too long, completes to nothing: a shell shows what is
// printed in the middle of the line.
func Complete(f *cli.ReadingFlags, propose Proposer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		limit := completionTime
		if chosen, err := clientcmd.ParseTimeout(*f.Config.Timeout); err == nil && chosen > 0 {
			limit = chosen
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		reading := *f
		// The flag for namespaces is the same for all verbs, so that it is not
		// this verb's --snapshot that it knows.
		if paths, err := cmd.Flags().GetStringArray("snapshot"); err == nil {
			reading.Paths = paths
		}
		// Nor is standard input one of the previews.
		reading.Previews = slices.DeleteFunc(slices.Clone(f.Previews), func(path string) bool { return path == "-" })
		reader, err := reading.ToReader(cmd, genericiooptions.NewTestIOStreamsDiscard())
		// Standard input is where the user types.
		if err != nil || slices.Contains(reading.Paths, "-") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c := &Completion{Cmd: cmd, Args: args, Typed: typed, Reader: reader}
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
			return cli.Among(c.offered(), c.Args, c.Typed)
		case proposals := <-answer:
			return cli.Among(slices.Concat(c.offered(), proposals), c.Args, c.Typed)
		}
	}
}

// flag is the value of a flag, empty if the command has no such flag.
func (c *Completion) flag(name string) string {
	if flag := c.Cmd.Flags().Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// read takes some resources from the cluster or the file.
func (c *Completion) read(ctx context.Context, resources ...string) (*cli.Source, error) {
	return c.Reader.Read(ctx, cli.Scope{Only: resources})
}

// CompleteFlags completes the values of those flags that a command has.
func CompleteFlags(f *cli.ReadingFlags, cmd *cobra.Command) {
	gates := make([]string, 0, 2*len(snapshot.KnownGates()))
	for _, gate := range snapshot.KnownGates() {
		gates = append(gates, gate+"=true", gate+"=false")
	}
	device := Complete(f, ProposeDevices)
	if cmd.Flags().Lookup("driver") != nil {
		// There, the three flags together name a device.
		device = Complete(f, proposeSliceParts(func(s sliceParts) []string { return s.devices }))
	}
	values := map[string]cobra.CompletionFunc{
		"node":               Complete(f, Propose("node")),
		"class":              Complete(f, Propose("class")),
		"driver":             Complete(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.driver} })),
		"pool":               Complete(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.pool} })),
		"device":             device,
		"columns":            Complete(f, proposeAttributes),
		"feature-gates":      cli.ListOfFixed(gates...),
		"color":              cli.Fixed(cli.ColorAuto, cli.ColorAlways, cli.ColorNever),
		"dry-run":            cli.Fixed(cli.DryRunNone, cli.DryRunClient, cli.DryRunServer),
		"format":             cli.Fixed(string(snapshot.FormatYAML), string(snapshot.FormatJSON)),
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

// CompleteClusterFlags completes those of kubectl's own flags whose values are
// names, for all commands.
func CompleteClusterFlags(f *cli.ReadingFlags, root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"namespace": Complete(f, Propose("namespace")),
		"context":   Complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Contexts) })),
		"cluster":   Complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Clusters) })),
		"user":      Complete(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) })),
	}
	for name, value := range values {
		_ = root.RegisterFlagCompletionFunc(name, value)
	}
}
