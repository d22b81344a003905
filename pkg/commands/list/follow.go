// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// followPause is how long changes are collected before they are printed.
const followPause = 200 * time.Millisecond

// follow prints the items and then each change, until the context is done.
func (o *lister[T]) follow(ctx context.Context) error {
	watcher, clients, err := o.reader.Watch(ctx, cli.Scope{AllNamespaces: o.allNamespaces, Only: o.reads, ComputeDomains: o.domains})
	if err != nil {
		return err
	}
	f := &follower[T]{
		lister: o, reported: map[string]bool{},
		rows:    printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.noHeaders, Wide: o.output == "wide"}),
		aligned: printers.GetNewTabWriter(o.streams.Out),
	}
	following := &cli.Follower{Watcher: watcher, Kind: f.plural, Beside: o.streams.ErrOut, Pause: followPause}
	return following.Follow(ctx, func(ctx context.Context) error { return f.look(ctx, watcher.Snapshot(), clients.Namespace) })
}

// follower remembers the printed items.
type follower[T runtime.Object] struct {
	*lister[T]
	known map[string]T
	// reported are the printed notes.
	reported map[string]bool
	// started is true after the first picture.
	started bool
	// rows prints the headers once, and aligned remembers the widths of the columns: later
	// rows stand below the first ones.
	rows    printers.ResourcePrinter
	aligned interface {
		io.Writer
		Flush() error
	}
}

func (f *follower[T]) look(ctx context.Context, snap *snapshot.Snapshot, namespace string) error {
	from := newListed(&cli.Source{Snap: snap, Namespace: namespace}, f.request)
	all, err := f.items(ctx, from)
	if err != nil {
		return err
	}
	items, err := f.choose(all, namespace)
	if err != nil {
		return err
	}
	if gapErr := f.gapError(from); gapErr != nil && !f.started && len(items) == 0 {
		return gapErr
	}
	if err := f.printChanged(ctx, f.changes(items), from); err != nil {
		return err
	}
	return f.beside(items, from)
}

// change is a change of an item since the last look; for a deleted item, it has its last
// state.
type change[T runtime.Object] struct {
	event watch.EventType
	item  T
}

// changes compares the items with the last look, and returns the present items in their
// order and then the deleted ones.
func (f *follower[T]) changes(items []T) []change[T] {
	present := make(map[string]T, len(items))
	var changed []change[T]
	for _, item := range items {
		id := f.namespaceOf(item) + "/" + f.nameOf(item)
		present[id] = item
		before, ok := f.known[id]
		switch {
		case !ok:
			changed = append(changed, change[T]{watch.Added, item})
		case !reflect.DeepEqual(f.withoutAge(before), f.withoutAge(item)):
			changed = append(changed, change[T]{watch.Modified, item})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.known)) {
		if _, ok := present[id]; !ok {
			changed = append(changed, change[T]{watch.Deleted, f.known[id]})
		}
	}
	f.known = present
	return changed
}

// beside prints notes: once, for people, that there is nothing yet, and each note when it
// is new.
func (f *follower[T]) beside(items []T, from *listed) error {
	first := !f.started
	f.started = true
	if first && len(items) == 0 && f.forPeople() {
		if err := f.say(f.nothing(from)); err != nil {
			return err
		}
	}
	for _, note := range f.notes(items, from, nil) {
		if f.reported[note] {
			continue
		}
		f.reported[note] = true
		if err := cli.PrintNotes(f.streams, note); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower[T]) printChanged(ctx context.Context, changed []change[T], from *listed) error {
	if len(changed) == 0 {
		return nil
	}
	if err := f.printChanges(ctx, changed, from); err != nil {
		return fmt.Errorf("print %s: %w", f.plural, err)
	}
	return nil
}

// printChanges prints a table with the events in front, or, for a program, one object after
// the other: a watch event for each if that was asked for, else the items alone; deleted
// items are named beside the output.
func (f *follower[T]) printChanges(ctx context.Context, changed []change[T], from *listed) error {
	var present []T
	for _, c := range changed {
		if c.event != watch.Deleted {
			present = append(present, c.item)
		}
	}
	if f.forPeople() {
		if err := f.rows.PrintObj(f.eventTable(changed, from), f.aligned); err != nil {
			return err
		}
		if err := f.aligned.Flush(); err != nil || len(present) == 0 {
			return err
		}
		return f.printDetails(ctx, present, from)
	}
	if f.watchEvents && f.output != "name" {
		for _, c := range changed {
			event, err := f.watchEvent(c)
			if err == nil {
				err = f.printer.PrintObj(event, f.streams.Out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range changed {
		var err error
		switch {
		case c.event == watch.Deleted:
			err = f.tell("%s is gone", f.nameOf(c.item))
		case f.output == "name":
			err = f.printItems(ctx, []T{c.item}, from)
		default:
			err = f.printer.PrintObj(c.item, f.streams.Out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchEvent returns the object that the printer accepts for a change: JSON and YAML know
// watch events, templates take the object in them.
func (f *follower[T]) watchEvent(c change[T]) (runtime.Object, error) {
	if f.output == "json" || f.output == "yaml" {
		return &metav1.WatchEvent{Type: string(c.event), Object: runtime.RawExtension{Object: c.item}}, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.item)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", f.nameOf(c.item), err)
	}
	return &unstructured.Unstructured{Object: map[string]any{"type": string(c.event), "object": content}}, nil
}

// eventTable returns the table of the items with a column for their events, as kubectl get
// --output-watch-events has it.
func (f *follower[T]) eventTable(changed []change[T], from *listed) *metav1.Table {
	items := make([]T, 0, len(changed))
	for _, c := range changed {
		items = append(items, c.item)
	}
	table := f.table(items, from)
	// All events have the same width, so that rows stand below earlier ones.
	wide := func(text string) string { return fmt.Sprintf("%-*s", len(watch.Modified), text) }
	event := metav1.TableColumnDefinition{Name: wide("Event"), Type: "string"}
	table.ColumnDefinitions = append([]metav1.TableColumnDefinition{event}, table.ColumnDefinitions...)
	for i := range table.Rows {
		table.Rows[i].Cells = append([]any{wide(string(changed[i].event))}, table.Rows[i].Cells...)
	}
	return table
}

func (f *follower[T]) tell(format string, args ...any) error {
	return f.say(render.EscapeLines(fmt.Sprintf(format, args...)))
}

// say prints escaped text beside the items.
func (f *follower[T]) say(text string) error {
	if _, err := fmt.Fprintln(f.streams.ErrOut, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
