// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// outputFlags are those of kubectl, with the wide form of the text and colours.
type outputFlags struct {
	print  *genericclioptions.PrintFlags
	output string
	color  string
}

func newOutputFlags() *outputFlags {
	return &outputFlags{print: genericclioptions.NewPrintFlags("")}
}

func (f *outputFlags) addTo(cmd *cobra.Command) {
	formats := append([]string{"wide"}, f.print.AllowedFormats()...)
	group(cmd.Flags(), groupOutput, func(flags *pflag.FlagSet) {
		flags.StringVarP(&f.output, "output", "o", "", fmt.Sprintf("`FORMAT` of the output, one of %s.", strings.Join(formats, ", ")))
		flags.StringVar(&f.color, "color", colorAuto, "`WHEN` to use colours: auto, always or never. auto is never if NO_COLOR is set.")
		templates := &cobra.Command{}
		f.print.TemplatePrinterFlags.AddFlags(templates)
		flags.AddFlagSet(templates.Flags())
	})
	// It only fails if somebody registered one before.
	_ = cmd.RegisterFlagCompletionFunc("output", fixed(formats...))
	f.print.OutputFormat = &f.output
	f.print.OutputFlagSpecified = func() bool { return cmd.Flags().Changed("output") }
}

// explanationPrinter prints explanations in the form that the flags ask for.
type explanationPrinter struct {
	out io.Writer
	// text is for people; machine for programs, if that was asked for.
	text    render.Options
	machine printers.ResourcePrinter
	// names prints the targets alone.
	names bool
}

func (f *outputFlags) toPrinter(streams genericiooptions.IOStreams) (*explanationPrinter, error) {
	color, err := useColor(f.color, streams.Out)
	if err != nil {
		return nil, err
	}
	p := &explanationPrinter{
		out:   streams.Out,
		text:  render.Options{Width: outputWidth(streams.Out), Color: color, Wide: f.output == "wide"},
		names: f.output == "name",
	}
	template := f.print.TemplatePrinterFlags.TemplateArgument
	if f.output == "" && (template == nil || *template == "") || p.text.Wide {
		return p, nil
	}
	if p.machine, err = toPrinter(f.print); err != nil {
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return nil, usagef("Allowed are wide, "+strings.Join(f.print.AllowedFormats(), ", ")+".", "unknown output format %q", f.output)
		}
		return nil, usagef("", "read the output format: %w", err)
	}
	return p, nil
}

// print writes the answers: a list of them, or the only one.
func (p *explanationPrinter) print(explanations []*api.Explanation, asList bool) error {
	switch {
	case p.names:
		for _, e := range explanations {
			target := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: apiVersionOf(e.Target.Kind), Kind: e.Target.Kind},
				ObjectMeta: metav1.ObjectMeta{Name: e.Target.Name},
			}
			if err := p.machine.PrintObj(target, p.out); err != nil {
				return fmt.Errorf("print name: %w", err)
			}
		}
		return nil
	case p.machine != nil && !asList && len(explanations) == 1:
		if err := p.machine.PrintObj(explanations[0], p.out); err != nil {
			return fmt.Errorf("print explanation: %w", err)
		}
		return nil
	case p.machine != nil:
		list := &api.ExplanationList{
			TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "ExplanationList"},
			Items:    make([]api.Explanation, 0, len(explanations)),
		}
		for _, e := range explanations {
			list.Items = append(list.Items, *e)
		}
		if err := p.machine.PrintObj(list, p.out); err != nil {
			return fmt.Errorf("print explanations: %w", err)
		}
		return nil
	}
	for i, e := range explanations {
		if i > 0 {
			if _, err := io.WriteString(p.out, "\n"); err != nil {
				return fmt.Errorf("print explanation: %w", err)
			}
		}
		if err := render.Explanation(p.out, e, p.text); err != nil {
			return err
		}
	}
	return nil
}

// apiVersionOf returns the API version of built-in kinds, for -o name. An
// explanation does not tell it for others; kubectl finds those by kind.
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
