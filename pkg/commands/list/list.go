// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
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

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// listing has the differences between the verbs that list something.
type listing[T runtime.Object] struct {
	kind[T]
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
	// items returns the items from the inventory.
	items func(ctx context.Context, from *listed) ([]T, error)
	// keep applies the verb's own flags; nil keeps everything.
	keep func(item T) bool
	// unending returns an expression in an item that does not end, empty if all do; nil for
	// items without expressions.
	unending func(item T) string
	// table returns the table for people.
	table func(items []T, from *listed) *metav1.Table
	// details writes, with -o wide, the text below the table that is too long for a row;
	// nil if there is none.
	details func(ctx context.Context, w io.Writer, items []T, from *listed) error
	// total sums the items up in one line.
	total func(items []T, from *listed) string
}

// listed is the source of a listing.
type listed struct {
	*cli.Source
	cluster   *cluster.Cluster
	inventory *inventory.Inventory
	// notes are printed beside the items, a line each, if people read them.
	notes []string
	// unending describes an expression that does not end; empty if all do.
	unending string
	// writes are the changes made to the cluster, for all output formats.
	writes []string
}

// listOptions are the parsed flags.
type listOptions[T runtime.Object] struct {
	listing[T]
	// verb is the command that lists the items.
	verb     string
	reader   *cli.Reader
	patterns []string
	labels   labels.Selector
	fields   fields.Selector
	sortBy   string
	// by is the property to group the items by; empty for none.
	by string
	// limit is how many rows or objects to print; 0 for all.
	limit         int
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

// newListOptions parses the flags of a list verb.
func newListOptions[T runtime.Object](f *listFlags, cmd *cobra.Command, args []string, what listing[T], streams genericiooptions.IOStreams) (*listOptions[T], error) {
	o := &listOptions[T]{
		listing: what, verb: cmd.Name(), patterns: args, sortBy: f.sortBy, by: f.by, limit: f.limit, allNamespaces: f.allNamespaces, watch: f.watch, watchEvents: f.watchEvents,
		output: *f.print.OutputFormat, noHeaders: *f.print.NoHeaders, streams: streams,
	}
	for _, pattern := range args {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, cli.Usagef("A pattern has * and ? and [a-z], like a file name in a shell.", "read %q: %w", pattern, err)
		}
	}
	var err error
	if o.labels, err = labels.Parse(f.labels); err != nil {
		return nil, cli.Usagef("Write it as for kubectl get: -l app=train,tier!=test.", "read --selector: %w", err)
	}
	if o.fields, err = fields.ParseSelector(f.fields); err != nil {
		return nil, cli.Usagef("Write it as for kubectl get: --field-selector driver=gpu.example.com.", "read --field-selector: %w", err)
	}
	for _, r := range o.fields.Requirements() {
		if !slices.Contains(f.fieldNames, r.Field) {
			return nil, cli.Usagef("There are "+strings.Join(f.fieldNames, ", ")+".", "read --field-selector: %s have no field %q", o.plural, r.Field)
		}
	}
	if o.fields, err = o.fields.Transform(o.knownValue); err != nil {
		return nil, err
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		// Flags of a group, and flags of every list, choose nothing.
		if cli.GroupOf(flag) != "" || slices.Contains([]string{"selector", "field-selector", "all-namespaces", "watch"}, flag.Name) {
			return
		}
		condition := "--" + flag.Name
		if flag.Value.Type() != "bool" {
			condition += " " + flag.Value.String()
		}
		o.conditions = append(o.conditions, condition)
	})
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.watchEvents && !o.watch {
		return nil, cli.Usagef("Add --watch, or leave it out.", "--output-watch-events: nothing is watched")
	}
	if err := o.checkGroups(f); err != nil {
		return nil, err
	}
	switch limited := cmd.Flags().Changed("limit"); {
	case o.limit < 0:
		return nil, cli.Usagef("0 stands for all.", "read --limit: %d is negative", o.limit)
	case o.watch && limited:
		return nil, cli.Usagef("Leave one of them out.", "--limit and --watch: each change is printed")
	case !limited && o.fits():
		o.limit = terminalRows
	}
	if o.watch && !o.reader.Live() {
		return nil, cli.Usagef("Leave one of them out.", "--watch and --snapshot: nothing changes in a file")
	}
	if o.printer, err = cli.NewPrinter(f.print); err != nil {
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return nil, cli.Usagef("Allowed are "+strings.Join(f.print.AllowedFormats(), ", ")+".", "unknown output format %q", o.output)
		}
		return nil, cli.Usagef("", "read the output format: %w", err)
	}
	return o, nil
}

// knownValue returns a fixed value of a field in its canonical spelling. It fails for other
// values, which would match nothing, or everything.
func (o *listOptions[T]) knownValue(field, value string) (sameField, known string, err error) {
	values, fixed := o.fixedValues(field)
	if !fixed {
		return field, value, nil
	}
	for _, known := range values {
		if strings.EqualFold(known, value) {
			return field, known, nil
		}
	}
	if also := o.alsoIn(field); also != "" && value != "" {
		if other, known, err := o.knownValue(also, value); err == nil {
			return other, known, nil
		}
	}
	named := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
	return "", "", cli.Usagef("There are "+strings.Join(named, ", ")+".", "read --field-selector: %s is never %q", field, value)
}

// forPeople reports whether to print a table.
func (o *listOptions[T]) forPeople() bool { return o.output == "" || o.output == "wide" }

// fits reports whether a table has to fit a terminal.
func (o *listOptions[T]) fits() bool {
	_, isTerminal := cli.Terminal(o.streams.Out)
	return isTerminal && o.output == "" && !o.noHeaders
}

// gapError returns the error about the gaps in the requested objects, nil if there are
// none.
func (o *listOptions[T]) gapError(from *listed) *cli.GapError {
	namespace := ""
	if o.namespace != nil && !o.allNamespaces {
		namespace = from.Namespace
	}
	gaps := cli.GapsIn(from.Snap, o.asks, namespace, o.asksEverywhere || o.allNamespaces)
	if len(gaps) == 0 {
		return nil
	}
	return &cli.GapError{Doing: "list " + o.plural, Gaps: gaps, Namespace: namespace, Live: o.reader.Live()}
}

func (o *listOptions[T]) read(ctx context.Context) (*listed, error) {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: o.allNamespaces, Only: o.reads, Unused: o.unused, ComputeDomains: o.domains})
	if err != nil {
		return nil, err
	}
	c := cluster.New(from.Snap)
	return &listed{Source: from, cluster: c, inventory: inventory.New(c)}, nil
}

// choose returns the wanted items in the wanted order. An empty namespace stands for all.
func (o *listOptions[T]) choose(all []T, namespace string) ([]T, error) {
	var items []T
	for _, item := range all {
		if !o.visible(item, namespace) ||
			!o.labeled(item, o.labels) || !o.fields.Matches(o.fieldSet(item)) ||
			!called(o.patterns, o.names(item)) || o.keep != nil && !o.keep(item) {
			continue
		}
		items = append(items, item)
	}
	if o.sortBy == "" || o.by != "" {
		return items, nil
	}
	return sortBy(items, o.sortBy)
}

// visible reports whether an item is in the listed namespace.
func (o *listOptions[T]) visible(item T, namespace string) bool {
	return o.namespace == nil || o.allNamespaces || namespace == "" || o.namespace(item) == namespace
}

// missing fails for names that no item has. A pattern may match nothing, and items that the
// flags leave out exist all the same.
func (o *listOptions[T]) missing(all []T, from *listed) error {
	var lacking, elsewhere []string
	for _, name := range o.patterns {
		if strings.ContainsAny(name, `*?[\`) {
			continue
		}
		found := false
		for _, item := range all {
			switch {
			case !slices.Contains(o.names(item), name):
			case o.visible(item, from.Namespace):
				found = true
			default:
				elsewhere = append(elsewhere, o.namespaceOf(item))
			}
		}
		if !found {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	where := from.Snap.Source
	if len(from.Snap.Gaps) > 0 {
		where = "what can be read of " + where
	}
	if o.namespace != nil && !o.allNamespaces && from.Namespace != "" {
		where = "namespace " + from.Namespace + " of " + where
	}
	out := "List what there is: kubectl dra " + o.verb
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		out = "There is one in namespace " + strings.Join(slices.Compact(elsewhere), ", ") + ": choose it with -n."
	}
	return cli.NotFound(strings.ToLower(o.name), strings.Join(lacking, ", "), where, out)
}
