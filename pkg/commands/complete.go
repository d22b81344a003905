// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

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
func (f *readingFlags) complete(propose proposer) cobra.CompletionFunc {
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
			return c.among(c.offered())
		case proposals := <-answer:
			return c.among(slices.Concat(c.offered(), proposals))
		}
	}
}

// among keeps those proposals that begin with what is typed. No blank follows
// one that has to be continued. Names that a shell would have to quote are left
// out, see [isInert].
func (c *completing) among(proposals []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var list []cobra.Completion
	for _, proposal := range proposals {
		if !strings.HasPrefix(proposal, c.typed) || slices.Contains(c.args, proposal) || !isInert(proposal) {
			continue
		}
		list = append(list, proposal)
		if strings.HasSuffix(proposal, "/") || strings.HasSuffix(proposal, "=") || strings.HasSuffix(proposal, ":") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	slices.Sort(list)
	return slices.Compact(list), directive
}

// isInert reports whether all shells read a word as it is written, and print it as
// it is: it has letters, digits and a few signs. Names in a cluster and in a
// kubeconfig can be commands in a shell, and the scripts that ask for completions
// do not quote all that they insert, and evaluate the line again with the next Tab.
func isInert(word string) bool {
	return !strings.HasPrefix(word, "=") && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,@%+", r)
	})
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

// fixed proposes what is always the same.
func fixed(values ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return (&completing{cmd: cmd, args: nil, typed: typed}).among(values)
	}
}

// listOfFixed proposes for the last part of a list with commas.
func listOfFixed(values ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return (&completing{cmd: cmd, args: nil, typed: typed}).among(continued(typed, values))
	}
}

// continued puts the finished parts of a list with commas before values.
func continued(typed string, values []string) []string {
	done := typed[:strings.LastIndexByte(typed, ',')+1]
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, done+value)
	}
	return list
}

// completeFlags completes the values of those flags that a command has.
func (f *readingFlags) completeFlags(cmd *cobra.Command) {
	gates := make([]string, 0, 2*len(snapshot.KnownGates()))
	for _, gate := range snapshot.KnownGates() {
		gates = append(gates, gate+"=true", gate+"=false")
	}
	device := f.complete(proposeDevices)
	if cmd.Flags().Lookup("driver") != nil {
		// There, the three flags together name a device.
		device = f.complete(proposeSliceParts(func(s sliceParts) []string { return s.devices }))
	}
	values := map[string]cobra.CompletionFunc{
		"node":               f.complete(proposeNames("node")),
		"class":              f.complete(proposeNames("class")),
		"driver":             f.complete(proposeSliceParts(func(s sliceParts) []string { return []string{s.driver} })),
		"pool":               f.complete(proposeSliceParts(func(s sliceParts) []string { return []string{s.pool} })),
		"device":             device,
		"columns":            f.complete(proposeAttributes),
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
func (f *readingFlags) completeClusterFlags(root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"namespace": f.complete(proposeNames("namespace")),
		"context":   f.complete(proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Contexts) })),
		"cluster":   f.complete(proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Clusters) })),
		"user":      f.complete(proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) })),
	}
	for name, value := range values {
		_ = root.RegisterFlagCompletionFunc(name, value)
	}
}
