// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// listFlags are the flags of every list verb.
type listFlags struct {
	reading *cli.ReadingFlags
	// fieldNames are the names of a field selector, labelsOf names the objects whose labels
	// -l selects.
	fieldNames []string
	labelsOf   string
	// groupNames are the properties that items can be grouped by, besides labels.
	groupNames []string
	// labelGroups is true if they can be grouped by labels, too.
	labelGroups   bool
	by            string
	limit         int
	print         *get.PrintFlags
	labels        string
	fields        string
	sortBy        string
	allNamespaces bool
	watch         bool
	watchEvents   bool
}

// newListFlags returns the flags for a kind of items.
func newListFlags[T runtime.Object](config *genericclioptions.ConfigFlags, items kind[T]) *listFlags {
	return &listFlags{
		reading: cli.NewReadingFlags(config), print: get.NewGetPrintFlags(),
		fieldNames: items.fieldNames(), labelsOf: items.labelsOf, groupNames: items.groupNames(), labelGroups: items.labels != nil,
	}
}

func (f *listFlags) addTo(cmd *cobra.Command, namespaced bool) {
	flags := cmd.Flags()
	if f.labelsOf != "" {
		flags.StringVarP(&f.labels, "selector", "l", "", "Only those with these `LABELS` of "+f.labelsOf+", such as app=train.")
	}
	flags.StringVar(&f.fields, "field-selector", "", "Only those with these `FIELDS`, each NAME=VALUE or NAME!=VALUE. Names are "+strings.Join(f.fieldNames, ", ")+".")
	if namespaced {
		flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "List those of all namespaces.")
	}
	flags.BoolVarP(&f.watch, "watch", "w", false, "After listing, print whatever changes, until Ctrl-C. The column EVENT says what happened: ADDED, MODIFIED or DELETED.")
	cli.AddFlags(flags, cli.GroupOutput, func(flags *pflag.FlagSet) {
		printing := &cobra.Command{}
		f.print.AddFlags(printing)
		for _, name := range []string{"output", "no-headers", "template", "allow-missing-template-keys"} {
			flags.AddFlag(printing.Flags().Lookup(name))
		}
		flags.Lookup("output").Usage = fmt.Sprintf("`FORMAT` of the output, one of %s.", strings.Join(f.print.AllowedFormats(), ", "))
		flags.BoolVar(&f.watchEvents, "output-watch-events", false,
			"With --watch and an output for programs, print watch events, each with the type and the object, in place of the objects. Tables always have the type.")
		flags.StringVar(&f.by, "by", f.by, "Count the items in groups with the same `PROPERTY`, one of "+strings.Join(f.groupings(), ", ")+".")
		flags.IntVar(&f.limit, "limit", 0, fmt.Sprintf("Print only the first `N`, 0 for all. Without the flag, tables have %d rows on a terminal, and all elsewhere and with -o wide.", terminalRows))
		flags.StringVar(&f.sortBy, "sort-by", "", "Sort by this `FIELD` of the JSON output, a JSONPath expression such as .ageSeconds.")
	})
	f.reading.AddTo(cmd)
}

// inWide returns the hint to -o wide for the reasons; empty if they are printed already.
func (f *listFlags) inWide(says string) string {
	if *f.print.OutputFormat == "wide" {
		return ""
	}
	return ": -o wide shows " + says
}

// groupings lists the values of --by.
func (f *listFlags) groupings() []string {
	if !f.labelGroups {
		return f.groupNames
	}
	return append(slices.Clone(f.groupNames), labelGroup+"KEY")
}

// complete completes the values of the flags.
func (f *listFlags) complete(cmd *cobra.Command) {
	cli.CompleteFlags(f.reading, cmd)
	fieldNames := make([]string, 0, len(f.fieldNames))
	for _, name := range f.fieldNames {
		fieldNames = append(fieldNames, name+"=")
	}
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("field-selector", cli.ListOfFixed(fieldNames...))
	_ = cmd.RegisterFlagCompletionFunc("by", cli.Fixed(f.groupNames...))
	_ = cmd.RegisterFlagCompletionFunc("output", cli.Fixed(f.print.AllowedFormats()...))
}
