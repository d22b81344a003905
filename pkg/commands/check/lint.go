// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// lintFlags are the flags of lint.
type lintFlags struct {
	reading   *cli.ReadingFlags
	output    *cli.OutputFlags
	files     []string
	kustomize string
	cluster   bool
	findings  findingFlags
	fix, diff bool
}

// lintOptions are the parsed flags.
type lintOptions struct {
	reader    *cli.Reader
	printer   *cli.Printer
	files     []string
	kustomize string
	// against is true if a cluster or a snapshot is read.
	against   bool
	snapshots []string
	checks    checks.Choice
	failOn    api.Severity
	fix, diff bool
	version   string
	streams   genericiooptions.IOStreams
}

// NewLint makes the verb lint. The version is the program's.
func NewLint(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	f := &lintFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	f.output.Reports = cli.ReportFormats()
	cmd := &cobra.Command{
		Use:   "lint (PATH ... | -f FILE | -k DIR)",
		Short: "Check manifests of claims, classes and pods before applying",
		Long: `Check manifests for what the API server rejects, and for what it accepts and
does not work: forms of old versions, claims that no container uses, names that
do not exist, CEL expressions that fail, constraints and alternatives without
an effect. No cluster is asked.

A PATH is a file, a directory with all below it, or - for standard input; -k
builds a kustomization first. Pods, everything with a pod template, claims,
templates, classes, slices, taint rules and quotas are looked at, in all
versions of their API; other objects are skipped.

With --cluster or --snapshot, the manifests are also held against a cluster as
if they were applied: whether classes, claims and templates exist, whether the
devices can be allocated, and whether quotas and limits permit it, as 'kubectl
dra why -f' does.

Each finding begins with FILE:LINE:COLUMN and has the code of its check;
docs/checks has a page for each. --diff shows the changes that put right what
has only one way to do so, --fix makes them; comments and order stay.

The annotation ` + checks.IgnoreAnnotation + ` of an object, with codes separated by
commas, suppresses findings about it.

The exit code is 1 from the severity of --fail-on upwards, else 2 if a question
to the cluster could not be answered, else 0.`,
		Example: `  # Is anything wrong with these manifests?
  kubectl dra lint manifests/

  # What would be changed, and do it
  kubectl dra lint train.yaml --diff
  kubectl dra lint train.yaml --fix

  # Would the cluster take them, and are the devices there?
  kubectl dra lint train.yaml --cluster

  # What a kustomization makes, or another program
  kubectl dra lint -k manifests/
  cat train.yaml | kubectl dra lint -

  # In a workflow of GitHub: beside the lines of a pull request
  kubectl dra lint manifests/ -o github

  # Only what is about CEL expressions, for a list of alerts
  kubectl dra lint manifests/ --only DRA23 -o sarif > lint.sarif`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd, args, streams)
			if err != nil {
				return err
			}
			o.version = version
			return o.run(cmd.Context())
		},
	}
	f.addTo(cmd)
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	return cmd
}

func (f *lintFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "Check this `FILE` or directory, as PATH does; - is standard input. Can be repeated.")
	cmd.Flags().StringVarP(&f.kustomize, "kustomize", "k", "", "Build the kustomization in this `DIRECTORY` and check its objects. Cannot be used with files.")
	cmd.Flags().BoolVar(&f.cluster, "cluster", false, "Hold the manifests against the cluster as well.")
	f.findings.addTo(cmd, lint.Descriptions(), "DRA23,DRA2101", api.SeverityWarning)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.fix, "fix", false, "Change the files where there is only one way to put something right, and report what is left.")
		flags.BoolVar(&f.diff, "diff", false, "Show what --fix would change as a unified diff, and change nothing.")
	})
}

func (f *lintFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*lintOptions, error) {
	o := &lintOptions{
		files: slices.Concat(args, f.files), kustomize: f.kustomize,
		fix: f.fix, diff: f.diff, against: f.cluster || len(f.reading.Paths) > 0, snapshots: f.reading.Paths, streams: streams,
	}
	switch {
	case len(o.files) == 0 && o.kustomize == "":
		return nil, cli.Usagef(cli.HelpHint(cmd), "expected a file, a directory or - for standard input, found none")
	case len(o.files) > 0 && o.kustomize != "":
		return nil, cli.Usagef("Leave one of them out.", "files and -k: only one can be used")
	case f.cluster && len(f.reading.Paths) > 0:
		return nil, cli.Usagef("Leave one of them out.", "--cluster and --snapshot: only one can be used")
	case f.fix && f.diff:
		return nil, cli.Usagef("Leave one of them out.", "--fix and --diff: only one can be used")
	case (f.fix || f.diff) && o.kustomize != "":
		return nil, cli.Usagef("Check the files that the kustomization is made of.", "--fix, --diff and -k: what a kustomization makes is in no file")
	case (f.fix || f.diff) && slices.Contains(o.files, "-"):
		return nil, cli.Usagef("Save it to a file.", "--fix, --diff and -: standard input cannot be changed")
	}
	var err error
	if o.checks, o.failOn, err = f.findings.toChoice(lint.Descriptions(), lint.Groups()); err != nil {
		return nil, err
	}
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if err := cli.OnceStdin(o.files, f.reading.Paths); err != nil {
		return nil, err
	}
	o.printer, err = toFindingsPrinter(f.output, streams)
	return o, err
}

func (o *lintOptions) run(ctx context.Context) error {
	texts, err := o.texts(ctx)
	if err != nil {
		return err
	}
	options, err := o.options(ctx, texts)
	if err != nil {
		return err
	}
	found, err := lint.Lint(ctx, texts, options)
	if err != nil {
		return err
	}
	fixable := o.kustomize == "" && !slices.Contains(o.files, "-")
	fixes := manifest.NewFixes(texts, o.files)
	if o.fix || o.diff {
		if found, err = o.repair(ctx, fixes, found, options); err != nil || o.diff {
			return err
		}
	} else if fixable {
		fixes.Check(found.Findings)
	}
	isText, err := o.printer.PrintFindings(found, func() *render.Report { return o.report(found) },
		func(w io.Writer, opts render.Options) error { return render.Lint(w, found, fixable, opts) })
	if err != nil {
		return err
	}
	var notes []string
	if options.Cluster != nil {
		notes = notRead(options.Cluster, found.Findings)
	} else if found.Objects > 0 && len(found.NotChecked) > 0 {
		notes = []string{"not checked without a cluster: which objects exist in it, and whether it has the devices and permits them; add --cluster or --snapshot PATH"}
	}
	if isText {
		if err := cli.PrintNotes(o.streams, notes...); err != nil {
			return err
		}
	}
	return outcome(found.Counts, o.failOn)
}

// texts reads the manifests.
func (o *lintOptions) texts(ctx context.Context) ([]files.Text, error) {
	if o.kustomize != "" {
		return manifest.KustomizationTexts(ctx, o.kustomize, o.reader.Options)
	}
	texts, err := files.Texts(ctx, o.files, o.reader.Options)
	if err == nil && len(texts) == 0 {
		// What is missing must not look like what is clean.
		return nil, cli.Usagef("Name files, or directories with files that end in .yaml, .yml or .json.",
			"check %s: there are no Kubernetes objects in it", strings.Join(o.files, ", "))
	}
	return texts, err
}

// options returns what lint has to know, with the cluster if it is to be read.
func (o *lintOptions) options(ctx context.Context, texts []files.Text) (lint.Options, error) {
	options := lint.Options{
		Choice: o.checks, Namespace: o.reader.Namespace,
		Gates: o.reader.Options.Gates, KubernetesVersion: o.reader.Options.KubernetesVersion,
	}
	if !o.against {
		return options, nil
	}
	from, err := o.reader.Read(ctx, cli.Scope{Manifests: lint.Manifests(ctx, texts, options)})
	if err != nil {
		return options, err
	}
	options.Cluster, options.Namespace = from.Snap, cmp.Or(from.Namespace, metav1.NamespaceDefault)
	options.WhyCommand = o.whyCommand
	options.Explain = func(ctx context.Context, given, all *snapshot.Snapshot) ([]lint.Answer, error) {
		return explainManifests(ctx, manifest.Place(given, options.Namespace, nil), all)
	}
	return options, nil
}

// whyCommand asks the same cluster about a file.
func (o *lintOptions) whyCommand(file string) string {
	command := "kubectl dra why -f " + shell.Quote(file)
	switch {
	case o.kustomize != "":
		command = "kubectl dra why -k " + shell.Quote(o.kustomize)
	case slices.Contains(o.files, "-"):
		// It may be what stood there, and has been read.
		return ""
	}
	for _, path := range o.snapshots {
		command += " --snapshot " + shell.Quote(path)
	}
	return command
}

// report returns the findings for programs that read the reports of linters.
func (o *lintOptions) report(found *api.LintReport) *render.Report {
	return &render.Report{
		Verb: "lint", Version: o.version, Source: cmp.Or(found.Source, english.Count(found.Files, "file")), Findings: found.Findings, FailOn: o.failOn,
		Rules: rules(lint.Descriptions(), found.Checks),
	}
}

// explainManifests answers for the targets of manifests in a cluster that they are a
// part of. There are none if nothing in them uses devices.
func explainManifests(ctx context.Context, given *manifest.Manifests, snap *snapshot.Snapshot) ([]lint.Answer, error) {
	c := cluster.New(snap)
	targets, _, err := given.Targets(c.WantsDevices)
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := explain.ExplainEach(ctx, c, targets)
	if err != nil {
		return nil, err
	}
	answers := make([]lint.Answer, len(found))
	for i := range found {
		answers[i] = lint.Answer{Object: targets[i].Object, Explanation: found[i].Explanation, Err: found[i].Err}
	}
	return answers, nil
}

// maxRepairs bounds how often the changed documents are checked again.
const maxRepairs = 200

// repair changes the documents as the findings say until there is nothing left to change,
// then writes the files or the difference. It returns what is left.
func (o *lintOptions) repair(ctx context.Context, fixes *manifest.Fixes, found *api.LintReport, options lint.Options) (*api.LintReport, error) {
	fixed := 0
	for range maxRepairs {
		made := fixes.Make(found.Findings)
		if len(made) == 0 {
			break
		}
		fixed += len(made)
		var err error
		if found, err = lint.Lint(ctx, fixes.Texts(), options); err != nil {
			return nil, err
		}
	}
	if o.diff {
		return found, o.showDiff(fixes.Diff())
	}
	fixes.Check(found.Findings)
	files, err := fixes.Write()
	if err != nil {
		return nil, err
	}
	return found, cli.PrintNotes(o.streams, fmt.Sprintf("changed %s: %s", english.Count(files, "file"), english.Count(fixed, "finding")))
}

// showDiff prints a unified diff; the exit code is diff's: 1 if there is one.
func (o *lintOptions) showDiff(text string) error {
	if text == "" {
		return cli.PrintNotes(o.streams, "nothing that --fix would change")
	}
	if _, err := io.WriteString(o.streams.Out, render.EscapeLines(text)); err != nil {
		return fmt.Errorf("print the difference: %w", err)
	}
	return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
}
