// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

type whyFlags struct {
	reading       *cli.ReadingFlags
	output        *cli.OutputFlags
	files         []string
	kustomize     string
	allNamespaces bool
	selector      string
	allRemedies   bool
	commands      bool
	near          scopeFlags
	since         string
}

type whyOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	// args are the unparsed targets.
	args    []string
	targets []snapshot.Argument
	files   []string
	// kustomize is the directory of a kustomization, in place of files.
	kustomize string
	near      scopeFlags
	// waiting chooses pods if there are neither targets nor files.
	waiting waitingPods
	// allRemedies asks for all remedies, not only the most useful ones.
	allRemedies bool
	// whySince asks how the answer changed since a time, as the user wrote it; empty for the answer
	// alone. moments reads the states of the cluster since then.
	since   string
	moments func(ctx context.Context, since time.Time) (iter.Seq2[recording.Moment, error], error)
	streams genericiooptions.IOStreams
}

// newWhy returns the verb.
func newWhy(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &whyFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(cli.FormatSVG)}
	cmd := &cobra.Command{
		Use:   "why [NAME | TYPE/NAME ... | -f FILE | -k DIR | -A]",
		Short: "Explain why a claim, a pod or a workload does not get its devices",
		Long: `Explain whether a claim, a pod or a workload can get its devices. If not, show
which devices and nodes are rejected by which check, the conflict that remains,
and verified remedies. The verdict is that of the scheduler's own allocator,
which is part of this program.

A bare NAME is a ResourceClaim, or a pod if there is no claim of that name. TYPE
is claim, pod, template (a ResourceClaimTemplate), podgroup or anything with a
pod template: deployment, job, statefulset, a custom resource. The claims of a
pod are allocated together, as the scheduler does. The pods of a workload or a
PodGroup are decided one after another; the answer says how many of them fit.
With -f, the answer is for the cluster as if the objects in the files were
applied, and each target among them is explained; with -k, those of a
kustomization.

With --node, the answer is for one node: every reason why it is not suitable for
the pod, its pools, and why each of its devices is rejected. With --device, it
is for one device: its properties, the claims it is allocated to, and the result
of every check. Other devices and nodes are not shown then.

With --with-preview, the answer is for the cluster as if a driver had started on
a node: the ResourceSlices that 'kubectl dra node-probe preview -o yaml' wrote
there replace what the driver has published for that node. The answer says so.

Of device/POOL/DEVICE and node/NAME, it says who uses the device, or each device
of the node. If nobody does, it says what blocks the device for everybody, which
requests of waiting pods could use it, in the order of the scheduling queue, and
why each of them does not get it. DRIVER/POOL/DEVICE and DEVICE work as well.

With --since, the answer is for a time of a recording: when the verdict changed,
with a minimal set of changes that did it, which claims of others got devices
that the target could have used while it waited, and why their pods came first.
The time is a duration before the end of the recording, such as 2h, a time of
day such as 09:14, or a time such as 2026-07-01T09:14:00Z.

Without a target, the answer is about the pods that have no devices or cannot
work with those that they got, in the namespace or, with -A, in all of them:
their causes, as 'kubectl dra status' has them, and a line for each pod; equal
pods of one owner share a line. A workload whose pods the API server refuses has
a line, too. -l chooses among those pods, and -o wide explains each of them.

The exit code is 0 if it is allocated or fits, 1 if it does not fit, if
something else blocks it or if the allocator fails, 2 if the verdict cannot be
determined, 3 for wrong usage or unreadable input, 4 if the cluster or what was
asked about cannot be read. Of several targets the worst counts, in the order
4, 3, 1, 2, 0. With --since, the last answer counts; it is 2 if the target is
gone. For devices and nodes it is 0 if the answer is known, else 2.`,
		Example: `  # Why is this pod pending?
  kubectl dra why pod/pretrain-0 -n research

  # Which pods wait for devices, and why?
  kubectl dra why -A

  # Would this manifest fit, before it is applied?
  kubectl dra why -f train.yaml

  # With the commands for the changes that would make it fit
  kubectl dra why pod/pretrain-0 -n research --commands

  # Do the pods of a StatefulSet get their devices?
  kubectl dra why sts/embed -n serving

  # Why is this claim not allocated?
  kubectl dra why eval-0-gpu-6k8jp -n research

  # Does the gang fit as a whole, and which of its pods do not?
  kubectl dra why podgroup/sweep -n research -f gang.yaml

  # Why not on this node?
  kubectl dra why pod/pretrain-0 -n research --node gpu-03

  # What is wrong with this device?
  kubectl dra why pod/pretrain-0 -n research --device gpu-02/gpu-3

  # Why does nobody use this device, while pods wait?
  kubectl dra why device/gpu-02/gpu-3

  # Why was it pending this morning, and who got the devices meanwhile?
  kubectl dra why pod/replicate-0 -n storage --snapshot cluster.rec --since 3h

  # What becomes of the devices of this node?
  kubectl dra why node/gpu-02

  # Would it fit if the NVIDIA driver came up on that node?
  kubectl dra node-probe preview --node gpu-01 -o yaml > preview.yaml
  kubectl dra why pod/pretrain-0 -n research --with-preview preview.yaml

  # With every rejected device and the evidence
  kubectl dra why pod/pretrain-0 -n research -o wide

  # Only the reason codes, for a script
  kubectl dra why pod/pretrain-0 -n research \
    -o jsonpath='{.claims[*].requests[*].rejected[*].code}'

  # The same question to a file that somebody sent
  kubectl dra why pod/pretrain-0 -n research --snapshot cluster.yaml.gz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validateSince(cmd, args); err != nil {
				return err
			}
			if used, err := cli.ParseUsed(args); err != nil || len(used) > 0 {
				if err != nil {
					return err
				}
				return f.explainUse(cmd, used, streams)
			}
			options, err := f.toOptions(cmd, args, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil,
		"Explain the objects in this `FILE` as if they were applied; - is standard input. Can be repeated.")
	cmd.Flags().StringVarP(&f.kustomize, "kustomize", "k", "", "Build the kustomization in this `DIRECTORY` and explain its objects. Cannot be used with -f.")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Explain the waiting pods of all namespaces.")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Explain only waiting pods that have these `LABELS`, such as app=train.")
	cmd.Flags().BoolVar(&f.allRemedies, "all-remedies", false, "Show every change found that would make it fit, not only the most useful ones.")
	cmd.Flags().BoolVar(&f.commands, "commands", false, "Show the commands of remedies, to be pasted into a shell.")
	f.near.addTo(cmd)
	cmd.Flags().StringVar(&f.since, "since", "", "Show how the answer changed since this `TIME` of a recording: 2h, 09:14 or as in RFC 3339.")
	f.output.AddTo(cmd)
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	cmd.ValidArgsFunction = cli.CompleteWith(f.reading, cli.ProposeTargets)
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

func (f *whyFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*whyOptions, error) {
	o := &whyOptions{files: f.files, kustomize: f.kustomize, near: f.near, since: f.since, args: args, allRemedies: f.allRemedies, streams: streams}
	var err error
	if err := f.near.validate(cmd, f.anything(args)); err != nil {
		return nil, err
	}
	if (f.allNamespaces || f.selector != "") && f.anything(args) {
		return nil, cli.Usagef(cli.HelpHint(cmd), "-A and -l choose among the waiting pods: they do not go with a target, -f or -k")
	}
	if len(f.files) > 0 && f.kustomize != "" {
		return nil, cli.Usagef("Leave one of them out.", "-f and -k: only one can be used")
	}
	if o.waiting, err = newWaitingPods(f.allNamespaces, f.selector); err != nil {
		return nil, err
	}
	if len(args) > 0 {
		if o.targets, err = cli.ParseTargets(args); err != nil {
			return nil, err
		}
	}
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	o.moments, o.reader.SaysSource = o.reader.Moments, o.since != ""
	if err := cli.OnceStdin(f.files, f.reading.Paths, f.reading.Previews); err != nil {
		return nil, err
	}
	if o.reader.Live() {
		if err := cli.CheckTargets(o.targets); err != nil {
			return nil, err
		}
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	o.printer.Text.Commands, o.printer.Text.AllRemedies = f.commands, f.allRemedies
	return o, nil
}

// anything reports whether the command line says what to explain.
func (f *whyFlags) anything(args []string) bool {
	return len(args)+len(f.files) > 0 || f.kustomize != ""
}

// scopeFlags limit a question to one node or one device.
type scopeFlags struct {
	node, device string
}

func (n *scopeFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.node, "node", "", "Explain only this `NODE`: all that is in the way there.")
	cmd.Flags().StringVar(&n.device, "device", "", "Explain only this `DEVICE`: DRIVER/POOL/DEVICE, or POOL/DEVICE or DEVICE if there is only one.")
}

func (n *scopeFlags) validate(cmd *cobra.Command, hasTarget bool) error {
	for _, name := range []string{"node", "device"} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		value := cmd.Flags().Lookup(name).Value.String()
		switch {
		case !hasTarget:
			return cli.Usagef(cli.HelpHint(cmd), "--%s needs a target or -f", name)
		case value == "":
			return cli.Usagef(cli.HelpHint(cmd), "--%s is empty", name)
		case name == "device" && slices.Contains(strings.Split(value, "/"), ""):
			return cli.Usagef("Write DRIVER/POOL/DEVICE, for example gpu.example.com/node-1/gpu-0.", "parse --device %q: a part of the name is empty", value)
		}
	}
	return nil
}

func (o *whyOptions) run(ctx context.Context) error {
	if o.since != "" {
		return cli.WithSuggestion(o.args, o.explainSince(ctx))
	}
	var manifests *snapshot.Snapshot
	if o.kustomize != "" {
		var err error
		if manifests, err = manifest.LoadKustomization(ctx, o.kustomize, o.reader.Options); err != nil {
			return err
		}
	}
	if len(o.files) > 0 {
		var err error
		if manifests, err = files.Manifests(ctx, o.files, o.reader.Options); err != nil {
			return err
		}
	}
	if len(o.targets) == 0 && manifests == nil {
		return o.explainWaiting(ctx)
	}
	a := &whyAnswers{}
	if err := o.explain(ctx, manifests, a); err != nil {
		return cli.WithSuggestion(o.args, err)
	}
	if len(a.skipped) > 0 {
		subject := fmt.Sprintf("%d documents are", len(a.skipped))
		if len(a.skipped) == 1 {
			subject = "1 document is"
		}
		if _, err := fmt.Fprintf(o.streams.ErrOut, "%s no target: %s\n", subject, render.Escape(english.Sample(a.skipped, 10))); err != nil {
			return err
		}
	}
	if len(a.explanations) > 0 {
		if err := o.printer.Print(a.explanations, len(a.explanations)+len(a.failures) > 1); err != nil {
			return err
		}
	}
	return cli.WithSuggestion(o.args, a.outcome(func(err error) { cli.PrintError(o.streams.ErrOut, cli.WithSuggestion(o.args, err)) }))
}

// explain explains each target. It only fails if no answer is possible; errors of one
// target are recorded with the answers.
func (o *whyOptions) explain(ctx context.Context, manifests *snapshot.Snapshot, a *whyAnswers) error {
	if len(o.targets) == 0 || !o.reader.Live() {
		from, err := o.reader.Read(ctx, cli.Scope{Manifests: manifests, ComputeDomains: true})
		if err != nil {
			return err
		}
		return o.explainIn(ctx, from, manifests, o.targets, a)
	}
	// A cluster is asked for more about a target (its events, its workload) than about the
	// rest, so each one is read on its own.
	for i := range o.targets {
		from, err := o.reader.Read(ctx, cli.Scope{Target: &o.targets[i], Manifests: manifests, ComputeDomains: true, Scaling: true})
		if err == nil {
			err = o.explainIn(ctx, from, manifests, o.targets[i:i+1], a)
		}
		if err != nil {
			if ctx.Err() != nil || len(o.targets) == 1 {
				return err
			}
			a.fail(err)
		}
	}
	return nil
}

// explainIn explains some targets, or all targets of the files if none are given.
func (o *whyOptions) explainIn(ctx context.Context, from *cli.Source, manifests *snapshot.Snapshot, refs []snapshot.Argument, a *whyAnswers) error {
	snap := from.Snap
	var given *manifest.Manifests
	if manifests != nil {
		given = manifest.Place(manifests, cmp.Or(from.Namespace, metav1.NamespaceDefault), o.files)
		snap = given.Over(snap)
	}
	c := cluster.New(snap)
	var targets []explain.Options
	if given != nil && len(refs) == 0 {
		var err error
		if targets, a.skipped, err = given.Targets(c.WantsDevices); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		target, err := o.resolve(from, snap, ref)
		if err != nil {
			a.fail(err)
			continue
		}
		targets = append(targets, target)
	}
	for i := range targets {
		targets[i].AllRemedies = o.allRemedies
		targets[i].Node, targets[i].Device = o.near.node, o.near.device
	}
	found, err := explain.ExplainEach(ctx, c, targets)
	if err != nil {
		return err
	}
	for _, answer := range found {
		if answer.Err == nil && given != nil {
			given.Settle(snap, answer.Explanation)
		}
		a.add(answer.Explanation, answer.Err)
	}
	return nil
}

// resolve finds the target in a snapshot. A bare name may be a pod; then it says so.
func (o *whyOptions) resolve(from *cli.Source, snap *snapshot.Snapshot, ref snapshot.Argument) (explain.Options, error) {
	bare := len(o.args) == 1 && !strings.Contains(o.args[0], "/")
	if bare && snap.Gap(snapshot.ResourceClaims) == nil && cli.BareKind(snap, from.Namespace, ref.Name) == api.KindPod {
		ref.Resource = "pods"
		if err := cli.PrintNotes(o.streams, cli.TookPod(ref.Name)); err != nil {
			return explain.Options{}, err
		}
	}
	return cli.ResolveTarget(from, snap, ref)
}

// whyAnswers collects the answers about several targets.
type whyAnswers struct {
	explanations []*api.Explanation
	failures     []error
	// skipped are the objects of the files that are no targets.
	skipped []string
}

func (a *whyAnswers) add(e *api.Explanation, err error) {
	if err != nil {
		a.fail(err)
		return
	}
	a.explanations = append(a.explanations, e)
}

func (a *whyAnswers) fail(err error) { a.failures = append(a.failures, err) }

// outcome returns the error with the worst exit code. All other failures are passed to
// report.
func (a *whyAnswers) outcome(report func(error)) error {
	if len(a.failures) == 1 && len(a.explanations) == 0 {
		return a.failures[0]
	}
	code := cli.ExitFits
	for _, err := range a.failures {
		report(err)
		code = cli.Worse(code, cli.ExitCode(err))
	}
	for _, e := range a.explanations {
		code = cli.Worse(code, cli.VerdictCode(e.Verdict))
	}
	if code == cli.ExitFits {
		return nil
	}
	return &cli.OutcomeError{Code: code}
}

// explainUse explains devices and nodes: who uses them, or why nobody does.
func (f *whyFlags) explainUse(cmd *cobra.Command, targets []api.ObjectRef, streams genericiooptions.IOStreams) error {
	for _, name := range otherQuestions() {
		if cmd.Flags().Changed(name) {
			return cli.Usagef(cli.HelpHint(cmd), "--%s does not go with devices and nodes as targets", name)
		}
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return err
	}
	printer, err := f.output.ToPrinter(streams)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	// The pods of all namespaces wait for one and the same device.
	from, err := reader.Read(ctx, cli.Scope{AllNamespaces: true})
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	var answers []*api.UseExplanation
	var failures []error
	for _, t := range targets {
		ask := explain.UseOfDevice
		if t.Kind == api.KindNode {
			ask = explain.UseOfNode
		}
		answer, err := ask(ctx, c, t.Name)
		switch {
		case err == nil:
			answers = append(answers, answer)
		case ctx.Err() != nil:
			return err
		default:
			failures = append(failures, err)
		}
	}
	if len(answers) > 0 {
		if err := printer.PrintUse(answers, len(targets) > 1); err != nil {
			return err
		}
	}
	return whyUseOutcome(answers, failures, func(err error) { cli.PrintError(streams.ErrOut, err) })
}

// otherQuestions returns the flags for pods and claims that do not go with devices and
// nodes.
func otherQuestions() []string {
	return []string{"filename", "kustomize", "all-namespaces", "selector", "all-remedies", "commands", "node", "device", "since"}
}

// whyUseOutcome returns the error with the worst exit code. All other failures are passed to
// report.
func whyUseOutcome(answers []*api.UseExplanation, failures []error, report func(error)) error {
	if len(failures) == 1 && len(answers) == 0 {
		return failures[0]
	}
	code := cli.ExitFits
	for _, err := range failures {
		report(err)
		code = cli.Worse(code, cli.ExitCode(err))
	}
	for _, answer := range answers {
		if answer.Undetermined != "" {
			code = cli.Worse(code, cli.ExitUndetermined)
		}
	}
	if code == cli.ExitFits {
		return nil
	}
	return &cli.OutcomeError{Code: code}
}
