// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

func (o *listOptions[T]) run(ctx context.Context) error {
	if o.watch {
		if o.by != "" {
			return cli.Usagef("Leave one of them out.", "--by and --watch: only items are watched")
		}
		return o.follow(ctx)
	}
	from, err := o.read(ctx)
	if err != nil {
		return err
	}
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
