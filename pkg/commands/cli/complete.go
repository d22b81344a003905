// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
)

// completionTime limits how long a shell waits for names, unless --request-timeout says
// otherwise.
const completionTime = 3 * time.Second

// Completion is one completion for a shell.
type Completion struct {
	Cmd    *cobra.Command
	Args   []string
	Typed  string
	Reader *Reader

	mu sync.Mutex
	// sure lists the proposals that need no snapshot.
	sure []string
}

// offer proposes words, even if the rest fails.
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

// Proposer lists completions of a word. The ones that do not begin with the typed text are
// left out later.
type Proposer func(ctx context.Context, c *Completion) ([]string, error)

// CompleteWith returns a completion function for cobra. Errors and timeouts complete to
// nothing: a shell shows printed text in the middle of the line.
func CompleteWith(f *ReadingFlags, propose Proposer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		limit := completionTime
		if chosen, err := clientcmd.ParseTimeout(*f.Config.Timeout); err == nil && chosen > 0 {
			limit = chosen
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		reading := *f
		// All verbs share the flag for namespaces, so that it does not know this verb's
		// --snapshot.
		if paths, err := cmd.Flags().GetStringArray("snapshot"); err == nil {
			reading.Paths = paths
		}
		// Standard input is none of the previews either.
		reading.Previews = slices.DeleteFunc(slices.Clone(f.Previews), func(path string) bool { return path == "-" })
		reader, err := reading.ToReader(cmd, genericiooptions.NewTestIOStreamsDiscard())
		// The user types into standard input.
		if err != nil || slices.Contains(reading.Paths, "-") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c := &Completion{Cmd: cmd, Args: args, Typed: typed, Reader: reader}
		answer := make(chan []string, 1)
		// Some calls ignore the context.
		go func() {
			proposals, err := propose(ctx, c)
			if err != nil {
				proposals = nil
			}
			answer <- proposals
		}()
		select {
		case <-ctx.Done():
			return Among(c.offered(), c.Args, c.Typed)
		case proposals := <-answer:
			return Among(slices.Concat(c.offered(), proposals), c.Args, c.Typed)
		}
	}
}

// flag returns the value of a flag, empty if the command has no such flag.
func (c *Completion) flag(name string) string {
	if flag := c.Cmd.Flags().Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// read takes some resources from the cluster or the file.
func (c *Completion) read(ctx context.Context, resources ...string) (*Source, error) {
	return c.Reader.Read(ctx, Scope{Only: resources})
}
