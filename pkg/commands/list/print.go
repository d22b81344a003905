// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// print writes the items and the notes on them. If explained, nothing is said about an
// empty list.
func (o *lister[T]) print(ctx context.Context, items []T, from *listed, explained bool) error {
	if err := o.printItems(ctx, items, from); err != nil {
		return fmt.Errorf("print %s: %w", o.plural, err)
	}
	if len(items) == 0 && o.forPeople() && !explained {
		if _, err := fmt.Fprintln(o.streams.ErrOut, o.nothing(from)); err != nil {
			return fmt.Errorf("print %s: %w", o.plural, err)
		}
	}
	return cli.PrintNotes(o.streams, o.notes(items, from, o.gapError(from))...)
}

// notes returns notes on the items: the gaps, and the uncertainty that they cause unless
// JSON and YAML mark it. The notes omit gaps that an error reports.
func (o *lister[T]) notes(items []T, from *listed, reported *cli.GapError) []string {
	bounded := o.output != "json" && o.output != "yaml" && o.anyUncertain(items)
	notes := append(snapshot.PreviewAssumptions(from.Snap), cli.GapNotes(from.Snap, reported)...)
	if bounded {
		notes = append(notes, from.inventory.NotRead()...)
	}
	if o.forPeople() {
		notes = append(notes, from.notes...)
	}
	return append(notes, from.writes...)
}

func (o *lister[T]) printItems(ctx context.Context, items []T, from *listed) error {
	if o.counts() {
		printing, groups, err := o.grouped(items, from)
		if err != nil {
			return err
		}
		return printing.printItems(ctx, groups, from)
	}
	printed := items
	if o.limit > 0 && o.limit < len(items) && !o.fits() {
		printed = items[:o.limit]
		from.writes = append(from.writes, fmt.Sprintf("%s more (--limit 0 shows all)", english.Thousands(len(items)-o.limit)))
	}
	switch {
	case o.output == "name":
		for _, item := range printed {
			if _, err := fmt.Fprintln(o.streams.Out, o.prefix+o.nameOf(item)); err != nil {
				return err
			}
		}
		return nil
	case o.draws():
		d, err := o.draw(printed, from)
		if err != nil {
			return err
		}
		return d.Write(o.streams.Out)
	case !o.forPeople():
		return o.printer.PrintObj(cli.NewList(o.name, printed), o.streams.Out)
	case len(items) == 0:
		return nil
	}
	if err := o.printTable(printed, from); err != nil {
		return err
	}
	if o.noHeaders {
		return nil
	}
	if err := o.printDetails(ctx, printed, from); err != nil {
		return err
	}
	width := 0
	if o.fits() {
		width = cli.OutputWidth(o.streams.Out)
	}
	page := render.NewPage(render.Options{Width: width})
	page.Text(0, render.Plain, o.total(items, from))
	return page.Print(o.streams.Out)
}

// printTable writes the table in one piece, on a terminal so that it fits. The aligner writes each cell and each gap on
// its own, which is too many calls for the operating system.
func (o *lister[T]) printTable(items []T, from *listed) error {
	buffer := bufio.NewWriterSize(o.streams.Out, 64<<10)
	if o.fits() {
		color, err := cli.UseColor(cli.ColorAuto, o.streams.Out)
		if err != nil {
			return err
		}
		opts := render.Options{Width: cli.OutputWidth(o.streams.Out), Color: color}
		cut := render.ListOptions{Limit: o.limit, Hint: "--limit 0 shows all"}
		if o.fitsHeight {
			opts.Height = cli.OutputHeight(o.streams.Out)
			cut.Limit, cut.Last = max(render.TerminalRows, opts.Height), o.sortBy != ""
		}
		if err := render.List(buffer, o.table(items, from), cut, opts); err != nil {
			return err
		}
		return buffer.Flush()
	}
	aligned := printers.GetNewTabWriter(buffer)
	if err := o.printer.PrintObj(o.table(items, from), aligned); err != nil {
		return err
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	return buffer.Flush()
}

// printDetails writes the details of -o wide below the table.
func (o *lister[T]) printDetails(ctx context.Context, items []T, from *listed) error {
	if o.output != "wide" || o.details == nil {
		return nil
	}
	return o.details(ctx, o.streams.Out, items, from)
}

// nothing describes the search that found nothing.
func (o *lister[T]) nothing(from *listed) string {
	text := "No " + o.plural
	if len(o.patterns) > 0 {
		text += " named " + strings.Join(o.patterns, " or ")
	}
	var conditions []string
	for _, condition := range []string{o.byLabels.String(), o.byFields.String()} {
		if condition != "" {
			conditions = append(conditions, condition)
		}
	}
	if len(conditions) > 0 {
		text += " with " + strings.Join(conditions, " and ")
	}
	if o.namespace != nil && !o.allNamespaces && from.Namespace != "" {
		text += " in namespace " + from.Namespace
	}
	text += " found in " + from.Snap.Source
	if len(o.conditions) > 0 {
		text += " (" + strings.Join(o.conditions, " ") + ")"
	}
	return render.Escape(text + ".")
}
