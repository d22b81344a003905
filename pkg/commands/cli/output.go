// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
)

// OutputFlags are kubectl's output flags, with the wide form of the text and colors.
type OutputFlags struct {
	*PrintFlags
	Color string
	// Reports are the report formats that the verb supports; see [ReportFormats].
	Reports []string
	// Drawings are the formats of drawings that the verb supports: [FormatSVG], for trees also
	// [FormatDOT] and [FormatMermaid].
	Drawings []string
}

// NewOutputFlags returns the flags, with the formats of drawings that the verb supports.
func NewOutputFlags(drawings ...string) *OutputFlags {
	return &OutputFlags{PrintFlags: NewPrintFlags(), Drawings: drawings}
}

// AddTo adds the flags to a verb.
func (f *OutputFlags) AddTo(cmd *cobra.Command) {
	formats := f.Formats()
	AddFlags(cmd.Flags(), GroupOutput, func(flags *pflag.FlagSet) {
		f.addOutput(flags, formats)
		flags.StringVar(&f.Color, "color", ColorAuto, "`WHEN` to use colors: auto, always or never. auto is never if NO_COLOR is set.")
		f.PrintFlags.AddTo(flags)
	})
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("output", Fixed(formats...))
}

// Formats lists the formats of the verb.
func (f *OutputFlags) Formats() []string {
	return slices.Concat([]string{"wide"}, f.AllowedFormats(), f.Reports, f.Drawings)
}

// AddReports gives a command below the verb a flag --output of its own, which names the formats of
// reports too. The caller sets Reports when the command runs.
func (f *OutputFlags) AddReports(cmd *cobra.Command, reports ...string) {
	formats := slices.Concat(f.Formats(), reports)
	AddFlags(cmd.Flags(), GroupOutput, func(flags *pflag.FlagSet) { f.addOutput(flags, formats) })
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("output", Fixed(formats...))
}

func (f *OutputFlags) addOutput(flags *pflag.FlagSet, formats []string) {
	flags.StringVarP(&f.Output, "output", "o", "", fmt.Sprintf("`FORMAT` of the output, one of %s.", strings.Join(formats, ", ")))
}

// Printer prints explanations in the format of the flags.
type Printer struct {
	out io.Writer
	// Text has the options for text; machine prints for programs, if that was asked for.
	Text    render.Options
	Machine printers.ResourcePrinter
	// Names is true to print only the targets.
	Names bool
	// report is the format of a report, empty if none was asked for.
	report string
}

// ToPrinter checks the flags and returns the printer.
func (f *OutputFlags) ToPrinter(streams genericiooptions.IOStreams) (*Printer, error) {
	color, err := UseColor(f.Color, streams.Out)
	if err != nil {
		return nil, err
	}
	_, noBars := streams.Out.(*TextReader)
	p := &Printer{
		out:   streams.Out,
		Text:  render.Options{Width: OutputWidth(streams.Out), Height: OutputHeight(streams.Out), Color: color, NoBars: noBars, Wide: f.Output == "wide"},
		Names: f.Output == "name",
	}
	if slices.Contains(f.Reports, f.Output) {
		p.report = f.Output
		return p, nil
	}
	if slices.Contains(f.Drawings, f.Output) {
		p.Machine = drawer{f.Output}
		return p, nil
	}
	if f.Output == "" || p.Text.Wide {
		return p, nil
	}
	if p.Machine, err = f.PrintFlags.ToPrinter(f.Formats()...); err != nil {
		return nil, err
	}
	return p, nil
}

// FormatJUnit is the format of the report of a test suite.
const FormatJUnit = "junit"

// ReportFormats returns the formats of reports, for verbs that have findings.
func ReportFormats() []string { return slices.Sorted(maps.Keys(reportWriters())) }

func reportWriters() map[string]func(io.Writer, *render.Report) error {
	return map[string]func(io.Writer, *render.Report) error{"github": render.GitHub, FormatJUnit: render.JUnit, "sarif": render.SARIF}
}

// IsShort reports whether the answer is the text for people that is not wide.
func (p *Printer) IsShort() bool {
	return p.Machine == nil && p.report == "" && !p.Names && !p.Text.Wide
}

// PrintFindings writes findings in the format of the flags: the object for machines, the
// report, or the text. It reports whether it was the text.
func (p *Printer) PrintFindings(object runtime.Object, of func() *render.Report, text func(io.Writer, render.Options) error) (bool, error) {
	return p.PrintReport(object, func(w io.Writer, format string) error { return reportWriters()[format](w, of()) }, text)
}

// PrintTest writes the result of a test in the format of the flags, of which [FormatJUnit]
// is one.
func (p *Printer) PrintTest(r *api.TestReport) error {
	_, err := p.PrintReport(r, func(w io.Writer, _ string) error { return render.TrialsJUnit(w, r) },
		func(w io.Writer, opts render.Options) error { return render.Trials(w, r, opts) })
	return err
}

// PrintReport is like [Printer.PrintFindings], for a verb that writes its reports itself.
func (p *Printer) PrintReport(object runtime.Object, write func(w io.Writer, format string) error, text func(io.Writer, render.Options) error) (isText bool, err error) {
	switch {
	case p.report != "":
		return false, write(p.out, p.report)
	case p.Machine != nil:
		if err := p.Machine.PrintObj(object, p.out); err != nil {
			return false, fmt.Errorf("print what was found: %w", err)
		}
		return false, nil
	default:
		return true, text(p.out, p.Text)
	}
}

// Print writes the answers: a list of them, or the only one.
func (p *Printer) Print(explanations []*api.Explanation, asList bool) error {
	list := &api.ExplanationList{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "ExplanationList"},
		Items:    make([]api.Explanation, 0, len(explanations)),
	}
	for _, e := range explanations {
		list.Items = append(list.Items, *e)
	}
	return printAnswers(p, explanations, list, asList, func(e *api.Explanation) *api.ObjectRef { return &e.Target }, explanation.Brief)
}

// PrintUse writes the answers about devices and nodes: a list of them, or the only
// one.
func (p *Printer) PrintUse(explanations []*api.UseExplanation, asList bool) error {
	list := &api.UseExplanationList{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "UseExplanationList"},
		Items:    make([]api.UseExplanation, 0, len(explanations)),
	}
	for _, e := range explanations {
		list.Items = append(list.Items, *e)
	}
	return printAnswers(p, explanations, list, asList, func(e *api.UseExplanation) *api.ObjectRef { return &e.Target }, explanation.Use)
}

// printAnswers writes answers of one kind: all as a list, or the only one.
func printAnswers[T runtime.Object](p *Printer, answers []T, list runtime.Object, asList bool, target func(T) *api.ObjectRef, text func(io.Writer, T, render.Options) error) error {
	switch {
	case p.Names:
		for _, e := range answers {
			of := target(e)
			name := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: apiVersionOf(of.Kind), Kind: of.Kind},
				ObjectMeta: metav1.ObjectMeta{Name: of.Name},
			}
			if err := p.Machine.PrintObj(name, p.out); err != nil {
				return fmt.Errorf("print name: %w", err)
			}
		}
		return nil
	case p.Machine != nil && !asList && len(answers) == 1:
		if err := p.Machine.PrintObj(answers[0], p.out); err != nil {
			return fmt.Errorf("print explanation: %w", err)
		}
		return nil
	case p.Machine != nil:
		if err := p.Machine.PrintObj(list, p.out); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
		return nil
	}
	for i, e := range answers {
		if i > 0 {
			if _, err := io.WriteString(p.out, "\n"); err != nil {
				return fmt.Errorf("print explanation: %w", err)
			}
		}
		if err := text(p.out, e, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// apiVersionOf returns the API version of built-in kinds, for -o name. Explanations lack it
// for others; kubectl finds those by kind.
func apiVersionOf(kind string) string {
	switch kind {
	case api.KindClaim, api.KindTemplate:
		return "resource.k8s.io/v1"
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return "apps/v1"
	case "Job", "CronJob":
		return "batch/v1"
	default:
		return "v1"
	}
}

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

// PrintNotes prints notes that an answer lacks, a line each, beside the answer, so that a
// program that reads it does not stumble over them.
func PrintNotes(streams genericiooptions.IOStreams, notes ...string) error {
	return WriteNotes(streams.ErrOut, notes...)
}

// WriteNotes writes notes after the text that they belong to.
func WriteNotes(w io.Writer, notes ...string) error {
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "Note: %s\n", render.Escape(note)); err != nil {
			return fmt.Errorf("print a note: %w", err)
		}
	}
	return nil
}
