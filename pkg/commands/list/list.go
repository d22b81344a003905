// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// newCommand returns the verb of a listing. The command has the help and the verb's own flags.
func newCommand[T runtime.Object](streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, cmd *cobra.Command, what listing[T]) *cobra.Command {
	o := &lister[T]{what, &request{reading: cli.NewReadingFlags(config), printing: cli.NewListPrintFlags(), streams: streams}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(cmd, args); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
	o.addTo(cmd)
	o.complete(cmd)
	return cmd
}

func (o *lister[T]) run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	source, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: o.allNamespaces, Only: o.reads, Unused: o.unused, ComputeDomains: o.domains})
	if err != nil {
		return err
	}
	from := newListed(source, o.request)
	all, err := o.items(ctx, from)
	if err != nil {
		return err
	}
	items, err := o.choose(all, from.Namespace)
	if err != nil {
		return err
	}
	gapErr := o.gapError(from)
	if gapErr != nil && len(items) == 0 {
		return gapErr
	}
	if len(items) == 0 {
		if err := o.absentNames(ctx, from); err != nil {
			return err
		}
	}
	if o.unending != nil {
		for _, item := range items {
			from.unending = cmp.Or(from.unending, o.unending(item))
		}
	}
	missing := o.missing(all, from)
	if err := o.print(ctx, items, from, missing != nil); err != nil {
		return err
	}
	if gapErr != nil {
		gapErr.Partial = true
		return gapErr
	}
	if missing != nil || from.unending == "" {
		return missing
	}
	return &cli.UnendingError{Doing: "list " + o.plural, Reason: from.unending}
}
