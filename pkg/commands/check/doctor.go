// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	reading     *cli.ReadingFlags
	output      *cli.OutputFlags
	findings    findingFlags
	commands    bool
	probe, logs bool
	kubelets    bool
	nodeReports []string
	olderThan   time.Duration
}

// doctorOptions are the parsed flags.
type doctorOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	checks  doctor.Options
	// probe, logs and kubelets ask the cluster for more.
	probe, logs, kubelets bool
	// failOn is the severity from which on the exit code is 1.
	failOn  api.Severity
	version string
	streams genericiooptions.IOStreams
}

// NewDoctor makes the verb doctor. The version is the program's.
func NewDoctor(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	f := &doctorFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	f.output.Reports = cli.ReportFormats()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check drivers, pools, classes, claims and taints for faults",
		Long: `Check the whole cluster for what is wrong with Dynamic Resource Allocation,
also where no pod says so: drivers that run on no node or publish nothing, pools
that the scheduler refuses, classes that select nothing, claims that keep
devices for nobody, rules that were forgotten, pods that can never fit, and
known bugs of the Kubernetes release.

The answer begins with the causes behind errors and warnings, as 'kubectl dra
status' has them. Each finding has the code of its check, the objects, and what
can be done: -o wide lists them, and so does the choice of checks. A
check that needs something you are not permitted to list is named under "Not
checked". docs/checks has a page for each code. -o wide shows the evidence and
the commands.

The annotation ` + checks.IgnoreAnnotation + ` of an object, with codes separated by
commas, suppresses findings that are about that object alone.

The checks always look at all namespaces. With -n, findings that are about
objects of other namespaces alone are left out and do not count; those about
drivers and about what is cluster-wide stay.

The exit code is 1 from the severity of --fail-on upwards, else 2 if a check
could not be made, else 0.`,
		Example: `  # Is anything wrong?
  kubectl dra doctor

  # With the evidence, and the commands of the remedies
  kubectl dra doctor -o wide

  # What matters to a team: its namespace, drivers, and what is cluster-wide
  kubectl dra doctor -n research

  # Only drivers, slices and pools
  kubectl dra doctor --only DRA11,DRA12

  # In a pipeline: fail from warnings on
  kubectl dra doctor --fail-on Warning --min-severity Warning

  # For the list of alerts of a repository, or for a page of test results
  kubectl dra doctor -o sarif > doctor.sarif
  kubectl dra doctor -o junit > doctor.xml

  # Of a saved cluster, the codes of all findings
  kubectl dra doctor --snapshot cluster.yaml.gz -o \
    jsonpath='{range .findings[*]}{.code} {.message}{"\n"}{end}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			o.version = version
			return o.run(cmd.Context())
		},
	}
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	f.findings.addTo(cmd, doctor.Descriptions(), "DRA12,DRA1301", api.SeverityError)
	cmd.Flags().DurationVar(&f.olderThan, "older-than", doctor.RuleAge, "Report DeviceTaintRules that are older than this `DURATION`, such as 168h for a week.")
	cmd.Flags().BoolVar(&f.probe, "probe", false, "Send a claim and a pod to the API server as a dry run, which stores nothing, and see which fields it or a webhook drops.")
	cmd.Flags().BoolVar(&f.logs, "logs", false, "Add the last lines with errors from the logs of driver pods to the evidence; what looks like a secret is left out.")
	cmd.Flags().BoolVar(&f.kubelets, "kubelets", false, "Compare the feature gates of kubelets, too, at most 100 of nodes with devices; takes the right to get nodes/proxy.")
	cmd.Flags().StringArrayVar(&f.nodeReports, "node-report", nil, "Include the problems in this `FILE`, which 'kubectl dra node-probe -o json' wrote; - is standard input. Can be repeated.")
	f.output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.commands, "commands", false, "Show the commands of the remedies.")
	})
	return cmd
}

func (f *doctorFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*doctorOptions, error) {
	o := &doctorOptions{probe: f.probe, logs: f.logs, kubelets: f.kubelets, streams: streams}
	var err error
	if o.checks.Choice, o.failOn, err = f.findings.toChoice(doctor.Descriptions(), doctor.Groups()); err != nil {
		return nil, err
	}
	if f.olderThan <= 0 {
		return nil, cli.Usagef("Give a duration such as 720h.", "read --older-than: expected a duration greater than zero, found %s", f.olderThan)
	}
	o.checks.OlderThan = f.olderThan
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	o.checks.Namespace = o.reader.Only
	if err := f.checkInput(o.reader); err != nil {
		return nil, err
	}
	if err := f.someCheck(&o.checks.Choice); err != nil {
		return nil, err
	}
	if o.checks.NodeReports, err = readNodeReports(f.nodeReports, streams.In); err != nil {
		return nil, err
	}
	if o.printer, err = toFindingsPrinter(f.output, streams); err != nil {
		return nil, err
	}
	o.printer.Text.Commands = f.commands
	return o, nil
}

// checkInput fails for what a file cannot answer, and for two readers of standard
// input.
func (f *doctorFlags) checkInput(reader *cli.Reader) error {
	for name, set := range map[string]bool{"probe": f.probe, "logs": f.logs, "kubelets": f.kubelets} {
		if set && !reader.Live() {
			return cli.Usagef("Leave one of them out.", "--snapshot and --%s: a file has no API server", name)
		}
	}
	return cli.OnceStdin(f.reading.Paths, f.reading.Previews, f.nodeReports)
}

// someCheck fails if no check is left.
func (f *doctorFlags) someCheck(choice *checks.Choice) error {
	given := map[string]bool{"": true, "probe": f.probe, "node-report": len(f.nodeReports) > 0}
	var lacking []string
	for _, check := range doctor.Checks() {
		switch {
		case !choice.Makes(check.Code):
		case given[check.Flag]:
			return nil
		default:
			lacking = append(lacking, check.Code+" takes --"+check.Flag)
		}
	}
	if len(lacking) > 0 {
		return cli.Usagef("Give the flag, too.", "read --only: no check is left: %s", strings.Join(lacking, ", "))
	}
	return cli.Usagef("Skip less than what --only chooses.", "read --only: --skip leaves no check")
}

func (o *doctorOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true}.WithCauses())
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	if o.probe {
		if o.checks.Probes, err = probeServer(ctx, from.Clients); err != nil {
			return err
		}
	}
	if from.Clients != nil && o.checks.Makes(doctor.CodeRights) {
		o.checks.Reviews = reviewRights(ctx, from.Clients, doctor.Rights(c))
	}
	if o.kubelets && o.checks.Makes(doctor.CodeGates) {
		o.checks.Kubelets = askKubelets(ctx, from.Clients, doctor.KubeletNodes(from.Snap))
	}
	found, causes, err := o.look(ctx, c)
	if err != nil {
		return err
	}
	if o.logs {
		addLogs(ctx, from.Clients, from.Snap, found)
	}
	isText, err := o.printer.PrintFindings(found, func() *render.Report { return o.report(found) },
		func(w io.Writer, opts render.Options) error { return render.Diagnosis(w, found, causes, opts) })
	if err != nil {
		return err
	}
	if isText {
		if err := cli.PrintNotes(o.streams, notRead(from.Snap, found.Findings)...); err != nil {
			return err
		}
	}
	return outcome(found.Counts, o.failOn)
}

// look makes the checks. If all are made, for text that is not wide, it finds the causes behind the
// findings, too.
func (o *doctorOptions) look(ctx context.Context, c *cluster.Cluster) (*api.Diagnosis, []api.Cause, error) {
	if !o.printer.IsShort() || !o.checks.All() || o.logs {
		found, err := doctor.Diagnose(ctx, c, o.checks)
		return found, nil, err
	}
	found, err := cause.Find(ctx, c, cause.Options{Namespace: o.checks.Namespace, Checks: o.checks})
	if err != nil {
		return nil, nil, err
	}
	return found.Examination.Within(o.checks.Namespace), found.Status.Causes, nil
}

// report returns the diagnosis for programs that read the reports of linters and tests.
func (o *doctorOptions) report(found *api.Diagnosis) *render.Report {
	return &render.Report{
		Verb: "doctor", Version: o.version, Source: found.Source, Findings: found.Findings, FailOn: o.failOn, Rules: rules(doctor.Descriptions(), found.Checks),
	}
}
