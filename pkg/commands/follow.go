// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// followPause is how long changes are collected before they are printed.
const followPause = 200 * time.Millisecond

// follow prints the items and then each that changes, until the context is
// done. Lost connections are told once, and again when they are back.
func (o *listOptions) follow(ctx context.Context) error {
	clients, err := snapshot.NewClients(o.reader.config)
	if err != nil {
		return usagef("Check --kubeconfig, --context and the other flags.", "%w", err)
	}
	watcher, err := snapshot.Watch(ctx, clients, snapshot.CollectOptions{
		Options: o.reader.options, Namespace: clients.Namespace, AllNamespaces: o.allNamespaces, Only: o.reads,
	})
	if err != nil {
		return err
	}
	f := &follower{
		listOptions: o, told: map[string]bool{},
		rows:    printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.noHeaders, Wide: o.output == "wide"}),
		aligned: printers.GetNewTabWriter(o.streams.Out),
	}
	for {
		if err := f.look(ctx, watcher, clients.Namespace); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Changed():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// follower remembers what was printed.
type follower struct {
	*listOptions
	known map[string]inventory.Item
	// told are the notes that were printed.
	told map[string]bool
	// started is true after the first picture.
	started bool
	lost    bool
	// rows prints the headers once, and aligned remembers how wide the columns
	// were: later rows stand below the first ones.
	rows    printers.ResourcePrinter
	aligned interface {
		io.Writer
		Flush() error
	}
}

func (f *follower) look(ctx context.Context, watcher *snapshot.Watcher, namespace string) error {
	if err := f.connection(watcher); err != nil {
		return err
	}
	snap := watcher.Snapshot()
	alloc, err := allocator.New(ctx, snap)
	if err != nil {
		return fmt.Errorf("set up the allocator: %w", err)
	}
	from := &listed{source: &source{snap: snap, namespace: namespace}, alloc: alloc, inventory: inventory.New(alloc, snap)}
	all, err := f.items(ctx, from)
	if err != nil {
		return err
	}
	items, err := f.choose(all, namespace)
	if err != nil {
		return err
	}
	present := make(map[string]inventory.Item, len(items))
	var changed []inventory.Item
	for _, item := range items {
		id := item.Space() + "/" + item.Names()[0]
		present[id] = item
		if before, ok := f.known[id]; !ok || !sameItem(before, item) {
			changed = append(changed, item)
		}
	}
	for id := range f.known {
		if present[id] == nil {
			if err := f.tell("%s is gone", f.known[id].Names()[0]); err != nil {
				return err
			}
		}
	}
	f.known = present
	if err := f.printChanged(ctx, changed, from); err != nil {
		return err
	}
	return f.beside(items, from)
}

// beside prints what else there is to know: once, for people, that there is
// nothing yet, and each note when it is new.
func (f *follower) beside(items []inventory.Item, from *listed) error {
	first := !f.started
	f.started = true
	if first && len(items) == 0 && f.forPeople() {
		if err := f.say(f.nothing(from)); err != nil {
			return err
		}
	}
	for _, note := range f.notes(items, from) {
		if f.told[note] {
			continue
		}
		f.told[note] = true
		if err := f.say("Note: " + render.Escape(note)); err != nil {
			return err
		}
	}
	return nil
}

// sameItem compares items without their ages.
func sameItem(a, b inventory.Item) bool {
	return reflect.DeepEqual(a.Ageless(), b.Ageless())
}

func (f *follower) printChanged(ctx context.Context, items []inventory.Item, from *listed) error {
	if len(items) == 0 {
		return nil
	}
	var err error
	switch {
	case f.output == "name":
		err = f.printItems(ctx, items, from)
	case !f.forPeople():
		for _, item := range items {
			if err = printObject(f.printer, item, f.streams.Out); err != nil {
				break
			}
		}
	default:
		if err = f.rows.PrintObj(f.table(items), f.aligned); err == nil {
			err = f.aligned.Flush()
		}
		if err == nil {
			err = f.printDetails(ctx, items, from)
		}
	}
	if err != nil {
		return fmt.Errorf("print %s: %w", f.plural, err)
	}
	return nil
}

// connection tells when it is lost, and when it is back.
func (f *follower) connection(watcher *snapshot.Watcher) error {
	_, trouble := watcher.Trouble()
	lost := trouble != nil
	if lost == f.lost {
		return nil
	}
	f.lost = lost
	if lost {
		return f.tell("%v\nTrying again; what was printed is the last that is known.", trouble)
	}
	return f.tell("Connected again.")
}

func (f *follower) tell(format string, args ...any) error {
	return f.say(render.EscapeLines(fmt.Sprintf(format, args...)))
}

// say prints, beside the items, what is escaped already.
func (f *follower) say(text string) error {
	if _, err := fmt.Fprintln(f.streams.ErrOut, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
