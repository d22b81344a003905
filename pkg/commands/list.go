// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// listing is what the verbs that list something differ in.
type listing struct {
	// kind is that of the items, plural how messages and help call them.
	kind, plural string
	// reads are the resources that are looked at besides slices, claims, rules
	// and feature gates; nil for all.
	reads []string
	// namespaced items are listed for one namespace unless -A is given.
	namespaced bool
	// items takes the inventory.
	items func(ctx context.Context, from *listed) ([]inventory.Item, error)
	// keep is what the verb's own flags choose; nil keeps everything.
	keep func(item inventory.Item) bool
	// table is for people; wide tells which form they asked for.
	table func(items []inventory.Item) *metav1.Table
	// total sums the items up in one line.
	total func(items []inventory.Item) string
	// name is what -o name prints.
	name func(item inventory.Item) string
}

// listed is what a listing is made from.
type listed struct {
	*source
	alloc     *allocator.Allocator
	inventory *inventory.Inventory
	// notes are told beside the items, a line each.
	notes []string
}

// listFlags are the flags of every verb that lists something.
type listFlags struct {
	reading       *readingFlags
	print         *get.PrintFlags
	labels        string
	fields        string
	sortBy        string
	allNamespaces bool
	watch         bool
}

func newListFlags(config *genericclioptions.ConfigFlags) *listFlags {
	return &listFlags{reading: newReadingFlags(config), print: get.NewGetPrintFlags()}
}

func (f *listFlags) addTo(cmd *cobra.Command, namespaced bool) {
	flags := cmd.Flags()
	flags.StringVarP(&f.labels, "selector", "l", "", "Only those with these `LABELS`, such as app=train.")
	flags.StringVar(&f.fields, "field-selector", "", "Only those with these `FIELDS`, such as driver=gpu.example.com,state=Free.")
	if namespaced {
		flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "List those of all namespaces.")
	}
	flags.BoolVarP(&f.watch, "watch", "w", false, "After listing, print whatever changes, until Ctrl-C.")
	group(flags, groupOutput, func(flags *pflag.FlagSet) {
		printing := &cobra.Command{}
		f.print.AddFlags(printing)
		for _, name := range []string{"output", "no-headers", "template", "allow-missing-template-keys"} {
			flags.AddFlag(printing.Flags().Lookup(name))
		}
		flags.Lookup("output").Usage = fmt.Sprintf("Output format. One of: (%s).", strings.Join(f.print.AllowedFormats(), ", "))
		flags.StringVar(&f.sortBy, "sort-by", "", "Sort by this `FIELD` of the JSON output, a JSONPath expression such as .ageSeconds.")
	})
	f.reading.addTo(cmd)
}

// listOptions are what the flags come down to.
type listOptions struct {
	listing
	reader        *reader
	patterns      []string
	labels        labels.Selector
	fields        fields.Selector
	sortBy        string
	allNamespaces bool
	watch         bool
	output        string
	noHeaders     bool
	printer       printers.ResourcePrinter
	streams       genericiooptions.IOStreams
}

func (f *listFlags) toOptions(cmd *cobra.Command, args []string, what listing, streams genericiooptions.IOStreams) (*listOptions, error) {
	o := &listOptions{
		listing: what, patterns: args, sortBy: f.sortBy, allNamespaces: f.allNamespaces, watch: f.watch,
		output: *f.print.OutputFormat, noHeaders: *f.print.NoHeaders, streams: streams,
	}
	for _, pattern := range args {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, usagef("A pattern has * and ? and [a-z], like a file name in a shell.", "read %q: %w", pattern, err)
		}
	}
	var err error
	if o.labels, err = labels.Parse(f.labels); err != nil {
		return nil, usagef("Write it as for kubectl get: -l app=train,tier!=test.", "read --selector: %w", err)
	}
	if o.fields, err = fields.ParseSelector(f.fields); err != nil {
		return nil, usagef("Write it as for kubectl get: --field-selector driver=gpu.example.com.", "read --field-selector: %w", err)
	}
	if o.reader, err = f.reading.toReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.watch && !o.reader.live() {
		return nil, usagef("Leave one of them out.", "--watch and --snapshot: nothing changes in a file")
	}
	if o.printer, err = f.print.ToPrinter(); err != nil {
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return nil, usagef("Allowed are "+strings.Join(f.print.AllowedFormats(), ", ")+".", "unknown output format %q", o.output)
		}
		return nil, usagef("", "read the output format: %w", err)
	}
	return o, nil
}

// forPeople tells whether a table is wanted.
func (o *listOptions) forPeople() bool { return o.output == "" || o.output == "wide" }

func (o *listOptions) run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	from, err := o.read(ctx)
	if err != nil {
		return err
	}
	items, err := o.choose(ctx, from)
	if err != nil {
		return err
	}
	return o.print(items, from)
}

// only are the resources that matter.
func (o *listOptions) only() []string {
	if o.reads == nil {
		return nil
	}
	return append([]string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourceTaintRules, snapshot.ResourceMetrics}, o.reads...)
}

func (o *listOptions) read(ctx context.Context) (*listed, error) {
	from, err := o.reader.read(ctx, scope{allNamespaces: o.allNamespaces, only: o.only()})
	if err != nil {
		return nil, err
	}
	alloc, err := allocator.New(ctx, from.snap)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return &listed{source: from, alloc: alloc, inventory: inventory.New(alloc, from.snap)}, nil
}

// choose takes the items that are wanted, in the wanted order.
func (o *listOptions) choose(ctx context.Context, from *listed) ([]inventory.Item, error) {
	all, err := o.items(ctx, from)
	if err != nil {
		return nil, err
	}
	if err := o.checkFields(all); err != nil {
		return nil, err
	}
	var items []inventory.Item
	for _, item := range all {
		space := item.Space()
		if o.namespaced && !o.allNamespaces && from.namespace != "" && space != from.namespace ||
			!o.labels.Matches(item.LabelSet()) || !o.fields.Matches(item.Fields()) ||
			!o.named(item) || o.keep != nil && !o.keep(item) {
			continue
		}
		items = append(items, item)
	}
	return o.sorted(items)
}

// checkFields fails for a field that no item has.
func (o *listOptions) checkFields(all []inventory.Item) error {
	if len(all) == 0 {
		return nil
	}
	known := all[0].Fields()
	for _, r := range o.fields.Requirements() {
		if !known.Has(r.Field) {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			return usagef("There are "+strings.Join(names, ", ")+".", "read --field-selector: %s have no field %q", o.plural, r.Field)
		}
	}
	return nil
}

// named tells whether an item is one of those asked for by name or pattern.
func (o *listOptions) named(item inventory.Item) bool {
	if len(o.patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(o.patterns, func(pattern string) bool {
		return slices.ContainsFunc(item.Names(), func(name string) bool {
			matches, _ := path.Match(pattern, name)
			return matches || pattern == name
		})
	})
}

func (o *listOptions) sorted(items []inventory.Item) ([]inventory.Item, error) {
	if o.sortBy == "" || len(items) == 0 {
		return items, nil
	}
	objects := make([]runtime.Object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item)
	}
	sorter, err := get.SortObjects(nil, objects, o.sortBy)
	if err != nil {
		return nil, usagef("It is a JSONPath expression over the fields of -o json, such as .name.", "read --sort-by: %w", err)
	}
	sorted := make([]inventory.Item, 0, len(items))
	for i := range items {
		sorted = append(sorted, items[sorter.OriginalPosition(i)])
	}
	return sorted, nil
}

func (o *listOptions) print(items []inventory.Item, from *listed) error {
	if err := o.printItems(items); err != nil {
		return fmt.Errorf("print %s: %w", o.plural, err)
	}
	if !o.forPeople() {
		return nil
	}
	if len(items) == 0 {
		if _, err := fmt.Fprintln(o.streams.ErrOut, o.nothing(from)); err != nil {
			return fmt.Errorf("print %s: %w", o.plural, err)
		}
	}
	for _, gap := range from.snap.Gaps {
		from.notes = append(from.notes, gap.Reason)
	}
	for _, note := range from.notes {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "Note: %s\n", render.Escape(note)); err != nil {
			return fmt.Errorf("print %s: %w", o.plural, err)
		}
	}
	return nil
}

func (o *listOptions) printItems(items []inventory.Item) error {
	switch {
	case o.output == "name":
		for _, item := range items {
			if _, err := fmt.Fprintln(o.streams.Out, o.name(item)); err != nil {
				return err
			}
		}
		return nil
	case !o.forPeople():
		return o.printer.PrintObj(inventory.NewList(o.kind, items), o.streams.Out)
	case len(items) == 0:
		return nil
	}
	writer := printers.GetNewTabWriter(o.streams.Out)
	if err := o.printer.PrintObj(o.table(items), writer); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	if o.noHeaders {
		return nil
	}
	_, err := io.WriteString(o.streams.Out, render.Escape(o.total(items))+"\n")
	return err
}

// nothing says what was looked for in vain.
func (o *listOptions) nothing(from *listed) string {
	text := "No " + o.plural
	if len(o.patterns) > 0 {
		text += " named " + strings.Join(o.patterns, " or ")
	}
	var conditions []string
	for _, condition := range []string{o.labels.String(), o.fields.String()} {
		if condition != "" {
			conditions = append(conditions, condition)
		}
	}
	if len(conditions) > 0 {
		text += " with " + strings.Join(conditions, " and ")
	}
	if o.namespaced && !o.allNamespaces && from.namespace != "" {
		text += " in namespace " + from.namespace
	}
	return render.Escape(text + " found in " + from.snap.Source + ".")
}

// typed picks the items of a verb out of the common list.
func typed[T inventory.Item](items []inventory.Item) []T {
	list := make([]T, 0, len(items))
	for _, item := range items {
		if one, ok := item.(T); ok {
			list = append(list, one)
		}
	}
	return list
}

// asItems is the way back.
func asItems[T any, P interface {
	*T
	inventory.Item
}](list []T,
) []inventory.Item {
	items := make([]inventory.Item, 0, len(list))
	for i := range list {
		items = append(items, P(&list[i]))
	}
	return items
}

// counted counts something for the last line: "1 slice", "3 slices".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
