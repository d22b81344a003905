// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

// PrintFlags are kubectl's flags for output that programs read, but for Go templates: a program that
// executes templates keeps the methods of all its types, a tenth of its size.
type PrintFlags struct {
	Output string
	// NoHeaders leaves the headers of tables out.
	NoHeaders bool
	// columns has the columns that the user chooses; nil if no table is printed.
	columns *get.CustomColumnsPrintFlags
	paths   *genericclioptions.JSONPathPrintFlags
}

// NewPrintFlags returns the flags of a verb that prints objects.
func NewPrintFlags() *PrintFlags {
	return &PrintFlags{paths: &genericclioptions.JSONPathPrintFlags{AllowMissingKeys: new(true)}}
}

// NewListPrintFlags returns the flags of a verb that prints tables, too.
func NewListPrintFlags() *PrintFlags {
	f := NewPrintFlags()
	f.columns = get.NewCustomColumnsPrintFlags()
	return f
}

// AddTo adds the flags other than --output.
func (f *PrintFlags) AddTo(flags *pflag.FlagSet) {
	flags.BoolVar(f.paths.AllowMissingKeys, "allow-missing-template-keys", true, "Ignore fields in JSONPath expressions that are missing.")
	if f.columns != nil {
		flags.BoolVar(&f.NoHeaders, "no-headers", false, "Do not print headers and totals.")
	}
}

// printerFlags are the flags of some formats.
type printerFlags interface {
	AllowedFormats() []string
	ToPrinter(format string) (printers.ResourcePrinter, error)
}

// kinds lists the flags by format.
func (f *PrintFlags) kinds() []printerFlags {
	list := []printerFlags{genericclioptions.NewJSONYamlPrintFlags()}
	if f.columns != nil {
		f.columns.NoHeaders = f.NoHeaders
		list = append(list, &get.HumanPrintFlags{NoHeaders: f.NoHeaders}, f.columns)
	}
	// The printer of names takes the empty format, too.
	return append(list, genericclioptions.NewNamePrintFlags(""), f.paths)
}

// AllowedFormats lists the formats.
func (f *PrintFlags) AllowedFormats() []string {
	var formats []string
	for _, kind := range f.kinds() {
		formats = append(formats, kind.AllowedFormats()...)
	}
	return formats
}

// ToPrinter returns the printer for --output. An error names the formats of a verb that has
// more than these, or else these.
func (f *PrintFlags) ToPrinter(formats ...string) (printers.ResourcePrinter, error) {
	for _, kind := range f.kinds() {
		printer, err := kind.ToPrinter(f.Output)
		switch {
		case genericclioptions.IsNoCompatiblePrinterError(err):
			continue
		case err != nil:
			return nil, Usagef("Write -o FORMAT=…, such as -o jsonpath='{.metadata.name}' or -o custom-columns=NAME:.metadata.name; -o json shows the fields.", "-o %s: %w", f.Output, err)
		}
		return safePrinter(printer), nil
	}
	if formats == nil {
		formats = f.AllowedFormats()
	}
	return nil, NotAllowed("output", f.Output, formats)
}
