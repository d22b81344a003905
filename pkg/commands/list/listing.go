// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// listing has the differences between the verbs that list something. T is a pointer to the
// type of the items.
type listing[T runtime.Object] struct {
	// name is the name of the type, plural the word for its items in messages and help.
	name, plural string
	// prefix is the part before the name with -o name: the type of the API object and a
	// slash, empty for items that are not API objects.
	prefix string
	// names returns the names that select an item, the full one first.
	names func(T) []string
	// namespaced is true for verbs with -A. namespace returns the namespace of an item; nil if
	// items have none.
	namespaced bool
	namespace  func(T) string
	// labels returns the labels for a label selector, nil if items have none; labelsOf says
	// whose, empty for verbs without -l.
	labels   func(T) map[string]string
	labelsOf string
	// fields are the fields for a field selector.
	fields []field[T]
	// groups are the properties to group items by, besides fields and labels.
	groups []group[T]
	// groupedBy are the properties by which items are groups already, besides labels: the first
	// unless --by says otherwise.
	groupedBy []string
	// devices counts the devices of items; nil if they have none.
	devices func(items []T, from *listed) api.DeviceCounts
	// uncertain reports whether a value of an item is only a bound; nil if none ever is.
	uncertain func(T) bool
	// ageless removes the ages of an item; nil if there are none.
	ageless func(T)

	// reads are the needed resources; nil for all. docs/rbac.md has them as rights.
	reads []string
	// asks are the resources without which there is no answer: gaps in them are an error.
	// Other gaps are a note, and marked in the items.
	asks []string
	// asksEverywhere is true if they are needed in all namespaces.
	asksEverywhere bool
	// domains is true if the ComputeDomains of claims matter.
	domains bool
	// unused are unused fields of these, by resource.
	unused map[string][]kinds.Field
	// proposes completes the names of items; nil if nothing does.
	proposes cli.Proposer
	// prepare checks the verb's own flags, and adapts the listing to them; nil if there is
	// nothing to do.
	prepare func(o *lister[T]) error
	// items returns the items from the inventory.
	items func(ctx context.Context, from *listed) ([]T, error)
	// absent fails for names in the verb's own flags that do not exist; nil if it has none.
	absent func(from *listed) error
	// keep applies the verb's own flags; nil keeps everything.
	keep func(item T, asked *request) bool
	// unending returns an expression in an item that does not end, empty if all do; nil for
	// items without expressions.
	unending func(item T) string
	// table returns the table for people.
	table func(items []T, from *listed) *metav1.Table
	// details writes, with -o wide, the text below the table that is too long for a row;
	// nil if there is none.
	details func(ctx context.Context, w io.Writer, items []T, from *listed) error
	// draw draws the items, for -o svg; nil if there is no drawing of them.
	draw func(items []T, from *listed) (*drawing.Drawing, error)
	// total sums the items up in one line.
	total func(items []T, from *listed) string
}

// field is a field for field selectors.
type field[T runtime.Object] struct {
	name string
	of   func(T) string
	// values are all possible values, if they are a fixed set.
	values []string
	// also is the field in which to look for a value that this one does not have.
	also string
}

// group is a property that items can be grouped by; an item may have several values.
type group[T runtime.Object] struct {
	name string
	of   func(T, *listed) []string
}

// listed is the source of a listing.
type listed struct {
	*cli.Source
	asked     *request
	cluster   *cluster.Cluster
	inventory *inventory.Inventory
	// notes are printed beside the items, a line each, if people read them.
	notes []string
	// unending describes an expression that does not end; empty if all do.
	unending string
	// writes are the changes made to the cluster, for all output formats.
	writes []string
}

func newListed(source *cli.Source, asked *request) *listed {
	c := cluster.New(source.Snap)
	return &listed{Source: source, asked: asked, cluster: c, inventory: inventory.New(c)}
}

// request has the flags of a list verb, and the values that they and the arguments stand for.
type request struct {
	streams       genericiooptions.IOStreams
	reading       *cli.ReadingFlags
	printing      *cli.PrintFlags
	labelSelector string
	fieldSelector string
	sortBy        string
	// by is the property to group the items by; empty for none.
	by string
	// limit is how many rows or objects to print; 0 for all.
	limit int
	// fitsHeight limits the rows to the height of the terminal.
	fitsHeight    bool
	allNamespaces bool
	watch         bool
	watchEvents   bool

	// verb is the command that lists the items.
	patterns  []string
	reader    *cli.Reader
	byLabels  labels.Selector
	byFields  fields.Selector
	output    string
	noHeaders bool
	// conditions are the verb's own flags that were given.
	conditions []string
	printer    printers.ResourcePrinter
}

// forPeople reports whether to print a table.
func (r *request) forPeople() bool { return r.output == "" || r.output == "wide" }

// fits reports whether a table has to fit a terminal.
func (r *request) fits() bool {
	_, isTerminal := cli.Terminal(r.streams.Out)
	return isTerminal && r.output == "" && !r.noHeaders
}

// inWide returns the hint to -o wide for the reasons; empty if they are printed already.
func (r *request) inWide(says string) string {
	if r.output == "wide" {
		return ""
	}
	return ": -o wide shows " + says
}

// lister lists the items of a listing that a request is for.
type lister[T runtime.Object] struct {
	listing[T]
	*request
}

// plain adapts a table that depends on nothing but the items.
func plain[T any](table func([]T) *metav1.Table) func([]T, *listed) *metav1.Table {
	return func(items []T, _ *listed) *metav1.Table { return table(items) }
}

// formats lists the formats of the verb.
func (o *lister[T]) formats() []string {
	formats := o.printing.AllowedFormats()
	if o.draw != nil {
		formats = append(formats, cli.FormatSVG)
	}
	return formats
}

// draws reports whether a drawing is asked for, and there is one.
func (o *lister[T]) draws() bool { return o.draw != nil && o.output == cli.FormatSVG }

// nameOf returns the full name of an item.
func (l *listing[T]) nameOf(item T) string { return l.names(item)[0] }

// namespaceOf returns the namespace of an item, empty if it has none.
func (l *listing[T]) namespaceOf(item T) string {
	if l.namespace == nil {
		return ""
	}
	return l.namespace(item)
}

// selected reports whether the labels and the fields of an item match selectors.
func (l *listing[T]) selected(item T, byLabels labels.Selector, byFields fields.Selector) bool {
	return (l.labels == nil || byLabels.Matches(labels.Set(l.labels(item)))) && byFields.Matches(l.fieldSet(item))
}

// fieldNames returns the names of the fields, in order.
func (l *listing[T]) fieldNames() []string {
	names := make([]string, 0, len(l.fields))
	for _, f := range l.fields {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// fieldSet returns the fields for a field selector.
func (l *listing[T]) fieldSet(item T) fields.Set {
	set := make(fields.Set, len(l.fields))
	for _, f := range l.fields {
		set[f.name] = f.of(item)
	}
	return set
}

// fieldNamed returns a field; it is empty if there is none of the name.
func (l *listing[T]) fieldNamed(name string) (found field[T]) {
	for _, f := range l.fields {
		if f.name == name {
			found = f
		}
	}
	return found
}

// withoutAge returns an item without ages.
func (l *listing[T]) withoutAge(item T) T {
	if l.ageless == nil {
		return item
	}
	copied, _ := item.DeepCopyObject().(T)
	l.ageless(copied)
	return copied
}

// anyUncertain reports whether a value of one of the items is only a bound.
func (l *listing[T]) anyUncertain(items []T) bool {
	return l.uncertain != nil && slices.ContainsFunc(items, l.uncertain)
}

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	all := make([]*T, 0, len(list))
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// texts returns constants of one type as plain texts.
func texts[T ~string](values ...T) []string {
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}
