// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// listing is what the verbs that list something differ in.
type listing struct {
	// kind is that of the items, plural how messages and help call them, verb
	// the command that lists them.
	kind, plural, verb string
	// reads are the resources that are looked at; nil for all. docs/rbac.md has
	// them as rights.
	reads []string
	// asks are those without which there is no answer: an error says what is
	// missing of them. What else is missing is a note, and marked in the items.
	asks []string
	// asksEverywhere is true if a namespace is not enough of them.
	asksEverywhere bool
	// unread are fields of these that nobody looks at, by resource.
	unread map[string][]snapshot.Field
	// namespaced items are listed for one namespace unless -A is given.
	namespaced bool
	// items takes the inventory.
	items func(ctx context.Context, from *listed) ([]api.Item, error)
	// keep is what the verb's own flags choose; nil keeps everything.
	keep func(item api.Item) bool
	// table is for people; wide tells which form they asked for.
	table func(items []api.Item) *metav1.Table
	// details is what -o wide has to say below the table, where a row would
	// become too long for it; nil if there is nothing.
	details func(ctx context.Context, w io.Writer, items []api.Item, from *listed) error
	// total sums the items up in one line.
	total func(items []api.Item) string
	// name is what -o name prints.
	name func(item api.Item) string
}

// listed is what a listing is made from.
type listed struct {
	*source
	alloc     *allocator.Allocator
	inventory *inventory.Inventory
	// notes are told beside the items, a line each, if people read them.
	notes []string
	// unending tells of an expression that does not end; empty if all do.
	unending string
	// writes are what was changed in the cluster, for all output formats.
	writes []string
}

// listFlags are the flags of every verb that lists something.
type listFlags struct {
	reading *readingFlags
	// fieldNames are those of a field selector, fieldValues what those of them
	// can be that have fixed values, labelsOf whose labels -l is about.
	fieldNames    []string
	fieldValues   map[string][]string
	labelsOf      string
	print         *get.PrintFlags
	labels        string
	fields        string
	sortBy        string
	allNamespaces bool
	watch         bool
	watchEvents   bool
}

// newListFlags makes the flags for items like the one given.
func newListFlags(config *genericclioptions.ConfigFlags, like api.Item, labelsOf string) *listFlags {
	return &listFlags{
		reading: newReadingFlags(config), print: get.NewGetPrintFlags(),
		fieldNames: slices.Sorted(maps.Keys(like.Fields())), fieldValues: like.FieldValues(), labelsOf: labelsOf,
	}
}

func (f *listFlags) addTo(cmd *cobra.Command, namespaced bool) {
	flags := cmd.Flags()
	flags.StringVarP(&f.labels, "selector", "l", "", "Only those with these `LABELS` of "+f.labelsOf+", such as app=train.")
	flags.StringVar(&f.fields, "field-selector", "", "Only those with these `FIELDS`, each NAME=VALUE or NAME!=VALUE. Names are "+strings.Join(f.fieldNames, ", ")+".")
	if namespaced {
		flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "List those of all namespaces.")
	}
	flags.BoolVarP(&f.watch, "watch", "w", false, "After listing, print whatever changes, until Ctrl-C. The column EVENT says what happened: ADDED, MODIFIED or DELETED.")
	group(flags, groupOutput, func(flags *pflag.FlagSet) {
		printing := &cobra.Command{}
		f.print.AddFlags(printing)
		for _, name := range []string{"output", "no-headers", "template", "allow-missing-template-keys"} {
			flags.AddFlag(printing.Flags().Lookup(name))
		}
		flags.Lookup("output").Usage = fmt.Sprintf("`FORMAT` of the output, one of %s.", strings.Join(f.print.AllowedFormats(), ", "))
		flags.BoolVar(&f.watchEvents, "output-watch-events", false,
			"With --watch and an output for programs, print watch events, each with the type and the object, in place of the objects. Tables always have the type.")
		flags.StringVar(&f.sortBy, "sort-by", "", "Sort by this `FIELD` of the JSON output, a JSONPath expression such as .ageSeconds.")
	})
	f.reading.addTo(cmd)
}

// inWide leads to -o wide, which says why or how something is; it is empty
// where that is printed already.
func (f *listFlags) inWide(says string) string {
	if *f.print.OutputFormat == "wide" {
		return ""
	}
	return ": -o wide shows " + says
}

// complete completes the values of the flags.
func (f *listFlags) complete(cmd *cobra.Command) {
	f.reading.completeFlags(cmd)
	fieldNames := make([]string, 0, len(f.fieldNames))
	for _, name := range f.fieldNames {
		fieldNames = append(fieldNames, name+"=")
	}
	// They only fail if somebody registered one before.
	_ = cmd.RegisterFlagCompletionFunc("field-selector", listOfFixed(fieldNames...))
	_ = cmd.RegisterFlagCompletionFunc("output", fixed(f.print.AllowedFormats()...))
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
	watchEvents   bool
	output        string
	noHeaders     bool
	// conditions are the verb's own flags that were given.
	conditions []string
	printer    printers.ResourcePrinter
	streams    genericiooptions.IOStreams
}

func (f *listFlags) toOptions(cmd *cobra.Command, args []string, what listing, streams genericiooptions.IOStreams) (*listOptions, error) {
	o := &listOptions{
		listing: what, patterns: args, sortBy: f.sortBy, allNamespaces: f.allNamespaces, watch: f.watch, watchEvents: f.watchEvents,
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
	for _, r := range o.fields.Requirements() {
		if !slices.Contains(f.fieldNames, r.Field) {
			return nil, usagef("There are "+strings.Join(f.fieldNames, ", ")+".", "read --field-selector: %s have no field %q", o.plural, r.Field)
		}
	}
	if o.fields, err = o.fields.Transform(f.knownValue); err != nil {
		return nil, err
	}
	o.verb = cmd.Name()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		// Those that are of a group, or that every list has, choose nothing.
		if groupOf(flag) != "" || slices.Contains([]string{"selector", "field-selector", "all-namespaces", "watch"}, flag.Name) {
			return
		}
		condition := "--" + flag.Name
		if flag.Value.Type() != "bool" {
			condition += " " + flag.Value.String()
		}
		o.conditions = append(o.conditions, condition)
	})
	if o.reader, err = f.reading.toReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.watchEvents && !o.watch {
		return nil, usagef("Add --watch, or leave it out.", "--output-watch-events: nothing is watched")
	}
	if o.watch && !o.reader.live() {
		return nil, usagef("Leave one of them out.", "--watch and --snapshot: nothing changes in a file")
	}
	if o.printer, err = toPrinter(f.print); err != nil {
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return nil, usagef("Allowed are "+strings.Join(f.print.AllowedFormats(), ", ")+".", "unknown output format %q", o.output)
		}
		return nil, usagef("", "read the output format: %w", err)
	}
	return o, nil
}

// knownValue writes the value of a field that has fixed ones as it is written
// here, and fails for what is none of them: it would match nothing, or all.
func (f *listFlags) knownValue(field, value string) (sameField, known string, err error) {
	values, fixed := f.fieldValues[field]
	if !fixed {
		return field, value, nil
	}
	for _, known := range values {
		if strings.EqualFold(known, value) {
			return field, known, nil
		}
	}
	named := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
	return "", "", usagef("There are "+strings.Join(named, ", ")+".", "read --field-selector: %s is never %q", field, value)
}

// forPeople reports whether a table is wanted.
func (o *listOptions) forPeople() bool { return o.output == "" || o.output == "wide" }

func (o *listOptions) run(ctx context.Context) error {
	if o.watch {
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
	items, err := o.choose(all, from.namespace)
	if err != nil {
		return err
	}
	unread := o.unreadIn(from)
	if unread != nil && len(items) == 0 {
		return unread
	}
	for _, class := range typed[*api.Class](items) {
		from.unending = cmp.Or(from.unending, inventory.UnendingText(class.Failures))
	}
	missing := o.missing(all, from)
	if err := o.print(ctx, items, from, missing != nil); err != nil {
		return err
	}
	if unread != nil {
		unread.partial = true
		return unread
	}
	if missing != nil || from.unending == "" {
		return missing
	}
	return &unendingError{doing: "list " + o.plural, reason: from.unending}
}

// unreadIn is the error about what is missing of what was asked for, nil if
// nothing is.
func (o *listOptions) unreadIn(from *listed) *unreadError {
	namespace := ""
	if o.namespaced && !o.allNamespaces {
		namespace = from.namespace
	}
	gaps := gapsIn(from.snap, o.asks, namespace, o.asksEverywhere || o.allNamespaces)
	if len(gaps) == 0 {
		return nil
	}
	return &unreadError{doing: "list " + o.plural, gaps: gaps, namespace: namespace, live: o.reader.live()}
}

// stateReads are the resources that tell which devices there are and in what
// state, and more.
func stateReads(more ...string) []string {
	return append([]string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourceTaintRules, snapshot.ResourceMetrics}, more...)
}

func (o *listOptions) read(ctx context.Context) (*listed, error) {
	from, err := o.reader.read(ctx, scope{allNamespaces: o.allNamespaces, only: o.reads, unread: o.unread})
	if err != nil {
		return nil, err
	}
	alloc, err := allocator.New(ctx, from.snap)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return &listed{source: from, alloc: alloc, inventory: inventory.New(alloc, from.snap)}, nil
}

// choose takes the items that are wanted, in the wanted order. An empty
// namespace stands for all.
func (o *listOptions) choose(all []api.Item, namespace string) ([]api.Item, error) {
	var items []api.Item
	for _, item := range all {
		if !o.visible(item, namespace) ||
			!o.labels.Matches(item.LabelSet()) || !o.fields.Matches(item.Fields()) ||
			!o.named(item) || o.keep != nil && !o.keep(item) {
			continue
		}
		items = append(items, item)
	}
	if o.sortBy == "" {
		return items, nil
	}
	return sortBy(items, o.sortBy)
}

// visible reports whether an item is of the namespace that is listed.
func (o *listOptions) visible(item api.Item, namespace string) bool {
	return !o.namespaced || o.allNamespaces || namespace == "" || item.Space() == namespace
}

// missing fails for names that no item has. A pattern may match nothing, and
// what the flags leave out is there all the same.
func (o *listOptions) missing(all []api.Item, from *listed) error {
	var lacking, elsewhere []string
	for _, name := range o.patterns {
		if strings.ContainsAny(name, `*?[\`) {
			continue
		}
		found := false
		for _, item := range all {
			switch {
			case !slices.Contains(item.Names(), name):
			case o.visible(item, from.namespace):
				found = true
			default:
				elsewhere = append(elsewhere, item.Space())
			}
		}
		if !found {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	where := from.snap.Source
	if len(from.snap.Gaps) > 0 {
		where = "what can be read of " + where
	}
	if o.namespaced && !o.allNamespaces && from.namespace != "" {
		where = "namespace " + from.namespace + " of " + where
	}
	out := "List what there is: kubectl dra " + o.verb
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		out = "There is one in namespace " + strings.Join(slices.Compact(elsewhere), ", ") + ": choose it with -n."
	}
	return usagef(out, "find %s %s: not found in %s", strings.ToLower(o.kind), strings.Join(lacking, ", "), where)
}

// named reports whether an item is one of those asked for by name or pattern.
func (o *listOptions) named(item api.Item) bool {
	return namedBy(o.patterns, item)
}

// namedBy reports whether a pattern is a name of an item, or there is none.
func namedBy(patterns []string, item api.Item) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(item.Names(), func(name string) bool {
			matches, _ := path.Match(pattern, name)
			return matches || pattern == name
		})
	})
}

// print writes the items, and what is to be said about them. Nothing is said
// about there being none if that is explained elsewhere.
func (o *listOptions) print(ctx context.Context, items []api.Item, from *listed, explained bool) error {
	if err := o.printItems(ctx, items, from); err != nil {
		return fmt.Errorf("print %s: %w", o.plural, err)
	}
	if len(items) == 0 && o.forPeople() && !explained {
		if _, err := fmt.Fprintln(o.streams.ErrOut, o.nothing(from)); err != nil {
			return fmt.Errorf("print %s: %w", o.plural, err)
		}
	}
	for _, note := range o.notes(items, from, o.unreadIn(from)) {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "Note: %s\n", render.Escape(note)); err != nil {
			return fmt.Errorf("print %s: %w", o.plural, err)
		}
	}
	return nil
}

// notes are what the items do not tell: what could not be read and, unless it is
// marked in JSON and YAML, what is not certain for that. What an error tells is
// left out.
func (o *listOptions) notes(items []api.Item, from *listed, told *unreadError) []string {
	bounded := o.output != "json" && o.output != "yaml" && anyBounded(items)
	notes := append(from.snap.PreviewAssumptions(), gapNotes(from.snap, told)...)
	if bounded {
		notes = append(notes, from.inventory.Unseen()...)
	}
	if o.forPeople() {
		notes = append(notes, from.notes...)
	}
	return append(notes, from.writes...)
}

// anyBounded reports whether something about one of the items is not certain.
func anyBounded(items []api.Item) bool {
	return slices.ContainsFunc(items, func(item api.Item) bool {
		bounded, ok := item.(interface{ Bounded() bool })
		return ok && bounded.Bounded()
	})
}

func (o *listOptions) printItems(ctx context.Context, items []api.Item, from *listed) error {
	switch {
	case o.output == "name":
		for _, item := range items {
			if _, err := fmt.Fprintln(o.streams.Out, o.name(item)); err != nil {
				return err
			}
		}
		return nil
	case !o.forPeople():
		return o.printer.PrintObj(api.NewList(o.kind, items), o.streams.Out)
	case len(items) == 0:
		return nil
	}
	if err := o.printTable(items); err != nil {
		return err
	}
	if o.noHeaders {
		return nil
	}
	if err := o.printDetails(ctx, items, from); err != nil {
		return err
	}
	_, err := io.WriteString(o.streams.Out, render.Escape(o.total(items))+"\n")
	return err
}

// printTable writes the table. What aligns it writes each cell and each gap on
// its own, which is too many calls for the operating system.
func (o *listOptions) printTable(items []api.Item) error {
	buffer := bufio.NewWriterSize(o.streams.Out, 64<<10)
	aligned := printers.GetNewTabWriter(buffer)
	if err := o.printer.PrintObj(o.table(items), aligned); err != nil {
		return err
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	return buffer.Flush()
}

// printDetails writes what -o wide has besides the table.
func (o *listOptions) printDetails(ctx context.Context, items []api.Item, from *listed) error {
	if o.output != "wide" || o.details == nil {
		return nil
	}
	return o.details(ctx, o.streams.Out, items, from)
}

// nothing says what was looked for and not found.
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
	text += " found in " + from.snap.Source
	if len(o.conditions) > 0 {
		text += " (" + strings.Join(o.conditions, " ") + ")"
	}
	return render.Escape(text + ".")
}

// typed picks the items of a verb out of the common list.
func typed[T api.Item](items []api.Item) []T {
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
	api.Item
}](list []T,
) []api.Item {
	items := make([]api.Item, 0, len(list))
	for i := range list {
		items = append(items, P(&list[i]))
	}
	return items
}

// counted counts something for the last line: "1 slice", "3 slices".
