// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

func (o *lister[T]) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	defaultBy := ""
	if len(o.groupedBy) > 0 {
		defaultBy = o.groupedBy[0]
	}
	if o.labelsOf != "" {
		flags.StringVarP(&o.labelSelector, "selector", "l", "", "Only those with these `LABELS` of "+o.labelsOf+", such as app=train.")
	}
	flags.StringVar(&o.fieldSelector, "field-selector", "", "Only those with these `FIELDS`, each NAME=VALUE or NAME!=VALUE. Names are "+strings.Join(o.fieldNames(), ", ")+".")
	if o.namespaced {
		flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List those of all namespaces.")
	}
	flags.BoolVarP(&o.watch, "watch", "w", false, "After listing, print whatever changes, until Ctrl-C. The column EVENT says what happened: ADDED, MODIFIED or DELETED.")
	cli.AddFlags(flags, cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.StringVarP(&o.printing.Output, "output", "o", "", fmt.Sprintf("`FORMAT` of the output, one of %s.", strings.Join(o.formats(), ", ")))
		o.printing.AddTo(flags)
		flags.BoolVar(&o.watchEvents, "output-watch-events", false,
			"With --watch and an output for programs, print watch events, each with the type and the object, in place of the objects. Tables always have the type.")
		flags.StringVar(&o.by, "by", defaultBy, "Count the items in groups with the same `PROPERTY`, one of "+strings.Join(o.groupings("KEY"), ", ")+".")
		flags.IntVar(&o.limit, "limit", 0, "Print only the first `N`, 0 for all. Without the flag, tables have the rows that fit a terminal, the last ones with --sort-by, and all elsewhere and with -o wide.")
		flags.StringVar(&o.sortBy, "sort-by", "", "Sort by this `FIELD` of the JSON output, a JSONPath expression such as .ageSeconds.")
	})
	o.reading.AddTo(cmd)
}

// complete completes the values of the flags.
func (o *lister[T]) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if o.proposes != nil {
		cmd.ValidArgsFunction = cli.CompleteWith(o.reading, o.proposes)
	}
	cli.CompleteFlags(o.reading, cmd)
	fieldNames := o.fieldNames()
	for i := range fieldNames {
		fieldNames[i] += "="
	}
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("field-selector", cli.ListOfFixed(fieldNames...))
	_ = cmd.RegisterFlagCompletionFunc("by", cli.Fixed(o.groupings("")...))
	_ = cmd.RegisterFlagCompletionFunc("output", cli.Fixed(o.formats()...))
}

// parse reads the flags and the arguments.
func (o *lister[T]) parse(cmd *cobra.Command, args []string) error {
	o.patterns, o.output, o.noHeaders = args, o.printing.Output, o.printing.NoHeaders
	for _, pattern := range args {
		if _, err := path.Match(pattern, ""); err != nil {
			return cli.Usagef("A pattern has * and ? and [a-z], like a file name in a shell.", "read %q: %w", pattern, err)
		}
	}
	var err error
	if o.byLabels, err = labels.Parse(o.labelSelector); err != nil {
		return cli.Usagef("Write it as for kubectl get: -l app=train,tier!=test.", "read --selector: %w", err)
	}
	if o.byFields, err = fields.ParseSelector(o.fieldSelector); err != nil {
		return cli.Usagef("Write it as for kubectl get: --field-selector driver=gpu.example.com.", "read --field-selector: %w", err)
	}
	for _, r := range o.byFields.Requirements() {
		if !slices.Contains(o.fieldNames(), r.Field) {
			return cli.Usagef("There are "+strings.Join(o.fieldNames(), ", ")+".", "read --field-selector: %s have no field %q%s", o.plural, r.Field, english.DidYouMean(r.Field, o.fieldNames()))
		}
	}
	if o.byFields, err = o.byFields.Transform(o.knownValue); err != nil {
		return err
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
	if o.reader, err = o.reading.ToReader(cmd, o.streams); err != nil {
		return err
	}
	if o.watchEvents && !o.watch {
		return cli.Usagef("Add --watch, or leave it out.", "--output-watch-events: nothing is watched")
	}
	if err := o.checkGroups(); err != nil {
		return err
	}
	switch limited := cmd.Flags().Changed("limit"); {
	case o.limit < 0:
		return cli.Usagef("0 stands for all.", "read --limit: %d is negative", o.limit)
	case o.watch && limited:
		return cli.Usagef("Leave one of them out.", "--limit and --watch: each change is printed")
	case !limited && o.fits():
		o.fitsHeight = true
	}
	if o.watch && !o.reader.Live() {
		return cli.Usagef("Leave one of them out.", "--watch and --snapshot: nothing changes in a file")
	}
	switch {
	case !o.draws():
		if o.printer, err = o.printing.ToPrinter(o.formats()...); err != nil {
			return err
		}
	case o.watch:
		return cli.Usagef("Leave one of them out.", "-o svg and --watch: a drawing does not change")
	case o.counts():
		return cli.Usagef("Leave one of them out.", "-o svg and --by: there is no drawing of groups")
	}
	if o.prepare != nil {
		if err := o.prepare(o); err != nil {
			return err
		}
	}
	if o.watch && o.counts() {
		return cli.Usagef("Leave one of them out.", "--by and --watch: only items are watched")
	}
	return nil
}

// knownValue returns a fixed value of a field in its canonical spelling. It fails for other
// values, which would match nothing, or everything.
func (o *lister[T]) knownValue(field, value string) (sameField, known string, err error) {
	f := o.fieldNamed(field)
	if f.values == nil {
		return field, value, nil
	}
	for _, known := range f.values {
		if strings.EqualFold(known, value) {
			return field, known, nil
		}
	}
	if f.also != "" && value != "" {
		if other, known, err := o.knownValue(f.also, value); err == nil {
			return other, known, nil
		}
	}
	named := slices.DeleteFunc(slices.Clone(f.values), func(value string) bool { return value == "" })
	return "", "", cli.Usagef("There are "+strings.Join(named, ", ")+".", "read --field-selector: %s is never %q%s", field, value, english.DidYouMean(value, named))
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
