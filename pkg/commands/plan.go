// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// planFlags are the flags of plan.
type planFlags struct {
	reading             *cli.ReadingFlags
	output              *cli.OutputFlags
	without, drain, add []string
	preempt             bool
}

// planOptions are the parsed flags.
type planOptions struct {
	reader     *cli.Reader
	printer    *cli.Printer
	conditions forecast.Conditions
	// without are the given pods, with or without a namespace.
	without []string
	added   []cli.AddedNodes
	streams genericiooptions.IOStreams
}

func newPlan(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &planFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(cli.FormatSVG)}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show who gets devices next, and who waits behind whom",
		Long: `Decide all pods that wait for devices one after another, in the order of the
scheduling queue: by priority, then by age. A pod that fits gets its node and
its devices before the next one is looked at; the pods of a gang are placed
together or not at all. The verdict is that of the scheduler's own allocator.
The answer begins with the causes of the pods that are not placed, as 'kubectl
dra status' has them.

Each pod is Placed, Waiting, Never (it does not fit on the hardware that is
there, or the allocator fails for it), NotByWaiting (claims that are released do
not help), Gated or Undetermined. One that waits is shown with the pods that
get, or have, what it needs.

With --without, --drain, --add, --preempt, --feature-gates or
--kubernetes-version, the queue is decided under these conditions, and the
answer says what is different from today. A drained node is cordoned and its
pods wait again, after all others of their priority; those of DaemonSets stay.
With --preempt, a pod that fits nowhere takes the place of pods of lower
priority on one node, of as few and as unimportant ones as possible: KEP-5690
proposes this, and no release up to 1.37 does it. The pods of all namespaces are
decided; with -n, those of one namespace are shown and count.

Nothing is said about when pods end, unless activeDeadlineSeconds of them or of
their Job sets an upper bound. What is not modeled is named below the table.

The exit code is 0 if all pods are placed or gated, 1 if one waits or never
fits, 2 if something cannot be determined, 3 for wrong usage or unreadable
input, 4 if the cluster or what was asked about cannot be read.`,
		Example: `  # Who gets devices next, and who waits behind whom?
  kubectl dra plan

  # Which devices does each pod get?
  kubectl dra plan -o wide

  # What if this pod was deleted?
  kubectl dra plan --without pod/research/finetune-0

  # What if a node was drained, and two like another one were added?
  kubectl dra plan --drain node/gpu-02 --add node=gpu-03,count=2

  # Whose devices would a pod of higher priority get, if pods were preempted?
  kubectl dra plan --preempt

  # What if a feature was turned on?
  kubectl dra plan --feature-gates DRAConsumableCapacity=true

  # Of a saved cluster, the pods that never get their devices
  kubectl dra plan --snapshot cluster.yaml.gz -o \
    jsonpath='{range .pods[?(@.outcome=="Never")]}{.name}{"\n"}{end}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	cmd.Flags().StringArrayVar(&f.without, "without", nil, "Decide the queue without this `POD`: pod/NAME, or pod/NAMESPACE/NAME. Can be repeated.")
	cmd.Flags().StringArrayVar(&f.drain, "drain", nil, "Decide the queue after this `NODE` was drained: node/NAME or NAME. Can be repeated.")
	cmd.Flags().StringArrayVar(&f.add, "add", nil, "Decide the queue with more nodes like one of the cluster: `node=NAME` or node=NAME,count=N. Can be repeated.")
	cmd.Flags().BoolVar(&f.preempt, "preempt", false, "Decide the queue as if pods of higher priority could preempt others for devices. No release up to 1.37 does this; KEP-5690 proposes it.")
	f.output.AddTo(cmd)
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("without", cli.CompleteWith(f.reading, prefixed("pod/", cli.Propose("pod"))))
	_ = cmd.RegisterFlagCompletionFunc("drain", cli.CompleteWith(f.reading, prefixed("node/", cli.Propose("node"))))
	_ = cmd.RegisterFlagCompletionFunc("add", cli.CompleteWith(f.reading, cli.ProposeAdded))
	return cmd
}

// prefixed proposes words with a prefix.
func prefixed(prefix string, propose cli.Proposer) cli.Proposer {
	return func(ctx context.Context, c *cli.Completion) ([]string, error) {
		words, err := propose(ctx, c)
		for i, word := range words {
			words[i] = prefix + word
		}
		return words, err
	}
}

func (f *planFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*planOptions, error) {
	o := &planOptions{streams: streams}
	for _, text := range f.without {
		name, ok := strings.CutPrefix(text, "pod/")
		if !ok || !validNames(name, 2) {
			return nil, cli.Usagef("Write pod/NAME, or pod/NAMESPACE/NAME.", "read --without: %q does not name a pod", text)
		}
		o.without = append(o.without, name)
	}
	for _, text := range f.drain {
		name := strings.TrimPrefix(text, "node/")
		if !validNames(name, 1) {
			return nil, cli.Usagef("Write node/NAME.", "read --drain: %q does not name a node", text)
		}
		o.conditions.Drain = append(o.conditions.Drain, name)
	}
	o.conditions.Preempt = f.preempt
	var err error
	if o.added, err = cli.ParseAdded(f.add); err != nil {
		return nil, err
	}
	for _, a := range o.added {
		o.conditions.Add = append(o.conditions.Add, forecast.NewNodes{Like: a.Like, Count: a.Count})
	}
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	// These flags are conditions: the present cluster is read without them.
	o.conditions.Gates, o.conditions.KubernetesVersion = o.reader.Options.Gates, o.reader.Options.KubernetesVersion
	o.reader.Options.Gates, o.reader.Options.KubernetesVersion = nil, ""
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print them with -o jsonpath='{.pods[*].name}'.", "-o name: a plan has no name")
	}
	return o, nil
}

// validNames reports whether a text is a name, or up to so many names with slashes between.
func validNames(text string, most int) bool {
	parts := strings.Split(text, "/")
	return len(parts) <= most && !slices.ContainsFunc(parts, func(part string) bool { return len(validation.IsDNS1123Subdomain(part)) > 0 })
}

func (o *planOptions) run(ctx context.Context) error {
	scope := cli.Scope{AllNamespaces: true, Admission: true, Ends: true}
	if o.printer.IsShort() {
		scope = scope.WithCauses()
	}
	from, err := o.reader.Read(ctx, scope)
	if err != nil {
		return err
	}
	state := cluster.New(from.Snap)
	for _, name := range o.without {
		namespace, pod, both := strings.Cut(name, "/")
		if !both {
			namespace, pod = from.Namespace, name
			if namespace == "" {
				namespace = "default"
			}
		}
		o.conditions.Without = append(o.conditions.Without, [2]string{namespace, pod})
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Deciding the queue")
	out, causes, err := o.decide(ctx, state)
	bar.Done()
	if err != nil {
		return err
	}
	gaps := cli.GapsIn(from.Snap, []string{snapshot.ResourcePods}, "", true)
	if len(gaps) > 0 && len(out.Pods) == 0 {
		return &cli.GapError{Doing: "plan", Gaps: gaps, Live: o.reader.Live()}
	}
	if o.printer.Machine != nil {
		if err := o.printer.Machine.PrintObj(out, o.streams.Out); err != nil {
			return fmt.Errorf("print the plan: %w", err)
		}
	} else if err := render.Plan(o.streams.Out, out, causes, o.printer.Text); err != nil {
		return err
	}
	if len(gaps) > 0 {
		return &cli.GapError{Doing: "plan", Gaps: gaps, Live: o.reader.Live(), Partial: true}
	}
	switch {
	case out.Counts.Waiting+out.Counts.Never+out.Counts.NotByWaiting > 0:
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case out.Counts.Undetermined > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}

// decide decides the queue, and under conditions a second time. For text that is not wide, it finds
// the causes why pods are not placed.
func (o *planOptions) decide(ctx context.Context, state *cluster.Cluster) (*api.Plan, *render.PodCauses, error) {
	if !o.conditions.Any() {
		out, err := o.make(ctx, state, false)
		if err != nil || !o.printer.IsShort() || out.Counts.Waiting+out.Counts.Never+out.Counts.NotByWaiting+out.Counts.Undetermined == 0 {
			return out, nil, err
		}
		found, err := cause.Find(ctx, state, cause.Options{Namespace: o.reader.Only})
		if err != nil {
			return nil, nil, err
		}
		return out, &render.PodCauses{Causes: found.Status.Causes, Of: found.Of}, nil
	}
	out, err := o.compare(ctx, state)
	return out, nil, err
}

// compare decides the queue under the conditions, and compares it with the queue of today.
func (o *planOptions) compare(ctx context.Context, state *cluster.Cluster) (*api.Plan, error) {
	after, words, err := o.conditions.Apply(state)
	var missing *forecast.MissingError
	if errors.As(err, &missing) {
		return nil, cli.NotFound(missing.Kind, missing.Name, state.Snapshot.Source+english.Suggestion(missing.Near))
	}
	if err != nil {
		return nil, err
	}
	today, err := o.make(ctx, state, false)
	if err != nil {
		return nil, err
	}
	out, err := o.make(ctx, after, o.conditions.Preempt)
	if err != nil {
		return nil, err
	}
	out.Conditions = words
	forecast.ComparePlan(out, today, state)
	return out, nil
}

// make decides the queue once, and keeps the pods of one namespace if only these are
// printed.
func (o *planOptions) make(ctx context.Context, state *cluster.Cluster, preempt bool) (*api.Plan, error) {
	out, err := forecast.MakePlan(ctx, state, preempt)
	if err == nil && o.reader.Only != "" {
		forecast.PlanWithin(out, o.reader.Only)
	}
	return out, err
}
