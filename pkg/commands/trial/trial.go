// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

const (
	// defaultTimeout is enough for a driver that downloads nothing, and a node that has to
	// pull a small image.
	defaultTimeout = 2 * time.Minute
	// mostTrials bounds --repeat and --parallel.
	mostTrials = 10000
)

type flags struct {
	reading     *cli.ReadingFlags
	output      *cli.OutputFlags
	classes     []string
	claims      []string
	driver      string
	node        string
	allNodes    bool
	repeat      int
	parallel    int
	image       string
	pullPolicy  string
	hostNetwork bool
	timeout     time.Duration
	yes         bool
	dryRun      string
	cleanup     bool
	probe       probeFlags
}

// probeFlags say how to look at nodes.
type probeFlags struct {
	look    bool
	binary  string
	kubelet string
	cdi     []string
}

// New returns the verb test.
func New(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &flags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	f.output.Reports = []string{cli.FormatJUnit}
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Try out whether claims get devices, and pods start with them",
		Long: `Try out whether Dynamic Resource Allocation works, from the claim to the
container and back. For each class, a claim and a small pod are created in a
namespace that is made for the test. Each stage is followed with its time:
generated, allocated, reserved, scheduled, prepared, injected, started; and
after the pod is deleted: unprepared, deallocated, cleaned. What 'why' predicted
has to happen, no other claim may have the devices, and afterwards they have to
be free again. A trial that fails ends with the explanation of 'why'.

With --node-probe, it also looks at the node, in a privileged pod as 'kubectl
dra node-probe --node' does: the container has to have the environment, devices
and mounts of the CDI specs of its claim, another container none of them, and
nothing of the claim may be left on the node. Without it, these checks are not
made, and the report says so.

Only what is free is used, and only with claims that 'why' says fit. A device
that is in use is not shared, and the last one of a class is not taken without
--yes. Nothing but the test's own objects is changed. They are deleted at the
end, also after Ctrl-C; what a test left that was killed, the next one deletes,
and --cleanup does nothing else. Nodes end the pods after a while anyway.

--dry-run=client shows what would be tried out, and with -o yaml or json the
objects that would be created; =server has the API server check them.

The exit code is 0 if all trials passed, 1 if one failed, 2 if something was not
tried out or is not known, 3 for wrong usage, 4 if the cluster failed.`,
		Example: `  # Does it work for every class?
  kubectl dra test

  # What would be created?
  kubectl dra test --dry-run=client
  kubectl dra test --class gpu.example.com --dry-run=client -o yaml

  # One class, on one node, with a look at the node
  kubectl dra test --class gpu.example.com --node gpu-03 --node-probe

  # After an upgrade of a driver: on every node with free devices
  kubectl dra test --driver gpu.example.com --all-nodes --parallel 4

  # How long does each stage take?
  kubectl dra test --class gpu.example.com --repeat 20

  # Does a claim of this file work? For a page of test results
  kubectl dra test --claim claim.yaml -o junit > test.xml

  # Delete what tests left that were killed
  kubectl dra test --cleanup`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f.addTo(cmd)
	return cmd
}

func (f *flags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.classes, "class", nil, "Try out this `CLASS`; can be repeated. Without it, all classes that select devices.")
	flags.StringArrayVar(&f.claims, "claim", nil, "Try out the ResourceClaims and ResourceClaimTemplates in this `FILE` instead of classes; - is standard input. Can be repeated.")
	flags.StringVar(&f.driver, "driver", "", "Try out only classes with devices of this `DRIVER`, and only such devices.")
	flags.StringVar(&f.node, "node", "", "Run the pods on this `NODE`.")
	flags.BoolVar(&f.allNodes, "all-nodes", false, "Make a trial on every node with free devices. Nodes without are listed.")
	flags.IntVar(&f.repeat, "repeat", 1, "Make `N` trials of each, and show percentiles of the times.")
	flags.IntVar(&f.parallel, "parallel", 1, "Make up to `N` trials of a class at the same time, as far as devices are free.")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "How long a pod may take to start, and again to be gone, as a `DURATION`.")
	flags.BoolVarP(&f.yes, "yes", "y", false, "Also take the last free device of a class.")
	flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "`MODE` client only shows what would be created, server lets the API server check it, too, none does it.")
	flags.BoolVar(&f.cleanup, "cleanup", false, "Only delete the namespaces of earlier tests, also of those that seem to be running.")
	flags.StringVar(&f.image, "image", nodeprobe.DefaultImage, "`IMAGE` of the pods. It needs sh, cat, ls and sleep. Without it, the busybox of the tests of Kubernetes (registry.k8s.io).")
	// The name is longer than a line of the help.
	flags.Lookup("image").DefValue = ""
	flags.StringVar(&f.pullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "`POLICY` of the pods: IfNotPresent, Always or Never.")
	flags.BoolVar(&f.hostNetwork, "host-network", false, "Let the pods use the network of the node, where pods get none of their own.")
	cli.AddFlags(flags, cli.GroupNode, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.probe.look, "node-probe", false, "Look at the node, too, in a privileged pod.")
		flags.StringVar(&f.probe.binary, "binary", "", "Run this `FILE` on the node, a kubectl-dra for Linux and its architecture. Without it, this program itself.")
		flags.StringVar(&f.probe.kubelet, "kubelet-root", "", "Root `DIRECTORY` of the kubelet, as the node names it.")
		flags.StringArrayVar(&f.probe.cdi, "cdi-dir", nil, "`DIRECTORY` with CDI specs, as the node names it. Can be repeated, the most important last.")
	})
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("image-pull-policy", cli.Fixed(pullPolicies()...))
	for _, name := range []string{"repeat", "parallel", "timeout", "image", "kubelet-root", "cdi-dir"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}

func pullPolicies() []string {
	return []string{string(corev1.PullIfNotPresent), string(corev1.PullAlways), string(corev1.PullNever)}
}

func (f *flags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*options, error) {
	if err := f.check(cmd); err != nil {
		return nil, err
	}
	o := &options{flags: *f, streams: streams}
	var err error
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if !o.reader.Live() && f.dryRun != cli.DryRunClient {
		return nil, cli.Usagef("Add --dry-run=client to see what would be tried out.", "nothing can be created in a snapshot file")
	}
	if err := cli.OnceStdin(f.claims, f.reading.Paths); err != nil {
		return nil, err
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print the trials with -o jsonpath='{.trials[*].name}'.", "-o name: what a test makes is gone at its end")
	}
	return o, nil
}

// check refuses invalid values and flags that do not go together.
func (f *flags) check(cmd *cobra.Command) error {
	switch {
	case !slices.Contains(cli.DryRuns(), f.dryRun):
		return cli.NotAllowed("dry-run", f.dryRun, cli.DryRuns())
	case !slices.Contains(pullPolicies(), f.pullPolicy):
		return cli.NotAllowed("image-pull-policy", f.pullPolicy, pullPolicies())
	case len(f.claims) > 0 && (len(f.classes) > 0 || f.driver != ""):
		return cli.Usagef("Leave one of them out.", "--claim does not go with --class or --driver: a file says what its claims ask for")
	case f.node != "" && f.allNodes:
		return cli.Usagef("Leave one of them out.", "--node and --all-nodes: only one can be used")
	case f.node != "" && len(validation.IsDNS1123Subdomain(f.node)) > 0:
		return cli.Usagef("List them: kubectl get nodes", "read --node: %q is not a valid node name", f.node)
	case f.repeat < 1 || f.repeat > mostTrials:
		return cli.Usagef(cli.HelpHint(cmd), "read --repeat: expected a number from 1 to %d, found %d", mostTrials, f.repeat)
	case f.parallel < 1 || f.parallel > mostTrials:
		return cli.Usagef(cli.HelpHint(cmd), "read --parallel: expected a number from 1 to %d, found %d", mostTrials, f.parallel)
	case f.timeout < time.Second:
		return cli.Usagef("A pod takes seconds to start; give a time such as 2m.", "read --timeout: %s is too short", f.timeout)
	case f.image == "":
		return cli.Usagef("Leave it out for "+nodeprobe.DefaultImage+".", "read --image: it is empty")
	}
	if f.cleanup {
		for _, name := range []string{"class", "claim", "driver", "node", "all-nodes", "repeat", "parallel", "node-probe", "snapshot"} {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("Leave one of them out.", "--cleanup and --%s: --cleanup tries out nothing", name)
			}
		}
	}
	if !f.probe.look {
		for _, name := range []string{"binary", "kubelet-root", "cdi-dir"} {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("Add --node-probe.", "--%s is for looking at nodes", name)
			}
		}
	}
	return nil
}

// slack is added to the longest time of a test, for everything besides waiting.
const slack = 10 * time.Minute

// options are the parsed flags.
type options struct {
	flags

	reader  *cli.Reader
	printer *cli.Printer
	streams genericiooptions.IOStreams
}

func (o *options) run(ctx context.Context) error {
	if o.cleanup {
		return o.onlyCleanUp(ctx)
	}
	if !o.reader.Live() {
		from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true})
		if err != nil {
			return err
		}
		plan, err := o.plan(ctx, from.Snap)
		if err != nil {
			return err
		}
		return o.showPlan(from.Snap, plan)
	}
	return o.runLive(ctx)
}

func (o *options) runLive(ctx context.Context) error {
	clients, err := collect.NewClients(o.reader.Config)
	if err != nil {
		return cli.Usagef("Check --kubeconfig, --context and the other flags.", "%w", err)
	}
	if o.dryRun == cli.DryRunNone {
		if err := o.checkRights(ctx, clients); err != nil {
			return err
		}
		if err := o.deleteLeftovers(ctx, clients, false); err != nil {
			return err
		}
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watcher, err := o.watch(ctx, following, clients)
	if err != nil {
		return err
	}
	snap := watcher.Snapshot()
	if o.dryRun != cli.DryRunClient {
		if err := checkServed(snap); err != nil {
			return err
		}
	}
	plan, err := o.plan(ctx, snap)
	if err != nil {
		return err
	}
	if err := cli.PrintNotes(o.streams, cli.GapNotes(snap, nil)...); err != nil {
		return err
	}
	switch o.dryRun {
	case cli.DryRunClient:
		return o.showPlan(snap, plan)
	case cli.DryRunServer:
		if err := o.sendDry(ctx, clients, plan); err != nil {
			return err
		}
		return o.showPlan(snap, plan)
	}
	report := o.newReport(snap, plan)
	if len(plan.Groups) > 0 {
		t := newTest(o, clients, watcher, plan)
		if err := t.run(ctx, following, report); err != nil {
			return err
		}
	}
	return o.finish(ctx, report)
}

// checkServed fails if the API server lacks the API version of the test's objects. The
// versions of some servers are not known.
func checkServed(snap *snapshot.Snapshot) error {
	if len(snap.Served) == 0 || slices.Contains(snap.Served, snapshot.ResourceTemplatesV1) {
		return nil
	}
	return fmt.Errorf("make trials: %s (%s) does not serve resource.k8s.io/v1, in which claims are created for them\nKubernetes has it since 1.34: upgrade the cluster; --dry-run=client shows what would be tried out", snap.Source, snap.ServerVersion)
}

// watch reads the cluster, and follows it until the second context ends, which has to last
// until everything is deleted.
func (o *options) watch(ctx, following context.Context, clients collect.Clients) (*collect.Watcher, error) {
	bar := cli.NewProgress(o.streams.ErrOut, "Asking API server "+clients.Address())
	defer bar.Done()
	reading, cancel := context.WithCancel(following)
	stop := context.AfterFunc(ctx, cancel)
	watcher, err := collect.Watch(reading, clients, collect.Options{
		Gates: o.reader.Options.Gates, KubernetesVersion: o.reader.Options.KubernetesVersion,
		Namespace: clients.Namespace, AllNamespaces: true, Progress: bar.Report,
	})
	if !stop() || err != nil {
		cancel()
		return nil, errors.Join(err, ctx.Err())
	}
	return watcher, nil
}

// plan decides which trials to make.
func (o *options) plan(ctx context.Context, snap *snapshot.Snapshot) (*Plan, error) {
	// Without these, devices in use could be taken.
	for _, resource := range []string{snapshot.ResourceClasses, snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourceNodes} {
		if gap := snap.Gap(resource); gap != nil {
			return nil, &cli.GapError{Doing: "plan the test", Gaps: []snapshot.Gap{*gap}, Live: o.reader.Live()}
		}
	}
	if err := cli.AbsentNode(snap, o.node); err != nil {
		return nil, err
	}
	s := cluster.New(snap)
	cases, skipped, err := o.cases(ctx, s)
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Asking what fits")
	defer bar.Done()
	rounds := len(cases) * o.repeat
	if o.allNodes {
		rounds *= max(len(snap.Nodes), 1)
	}
	until := time.Now().Add(slack + time.Duration(rounds)*2*o.timeout)
	plan, err := NewPlan(ctx, s, cases, &Options{
		Namespace: Namespace(NamespacePrefix+rand.String(6), owner(), until, o.probe.look || o.hostNetwork),
		Node:      o.node, AllNodes: o.allNodes, Repeat: o.repeat, Parallel: o.parallel, TakeLast: o.yes,
		Pod: PodOptions{
			Image: o.image, PullPolicy: corev1.PullPolicy(o.pullPolicy), HostNetwork: o.hostNetwork,
			// Two probes of the node take a while, too.
			Lifetime: 3*o.timeout + slack, Tolerations: TolerationsFor(snap),
		},
	})
	if err != nil {
		return nil, err
	}
	plan.Skipped = append(skipped, plan.Skipped...)
	return plan, nil
}

// cases returns the claims of the trials.
func (o *options) cases(ctx context.Context, s *cluster.Cluster) ([]Case, []api.SkippedTrial, error) {
	if len(o.claims) > 0 {
		cases, err := o.casesOfFiles(ctx)
		return cases, nil, err
	}
	for _, name := range o.classes {
		if err := cli.AbsentClass(s.Snapshot, name); err != nil {
			return nil, nil, err
		}
	}
	if absent := cli.AbsentDevices(s.Snapshot, o.driver, "", ""); len(absent) > 0 {
		return nil, nil, absent[0]
	}
	return OfClasses(ctx, s, o.classes, o.driver)
}

func (o *options) casesOfFiles(ctx context.Context) ([]Case, error) {
	var cases []Case
	for _, file := range o.claims {
		objects, err := files.Manifests(ctx, []string{file}, o.reader.Options)
		if err != nil {
			return nil, err
		}
		of, err := OfManifests(objects, file)
		if err != nil {
			return nil, cli.Usagef("Leave such claims out.", "%w", err)
		}
		if len(of) == 0 {
			return nil, cli.Usagef("Write objects of kind ResourceClaim or ResourceClaimTemplate.", "read %s: there is none in it", file)
		}
		cases = append(cases, of...)
	}
	return cases, nil
}

// showPlan prints the plan of a dry run.
func (o *options) showPlan(snap *snapshot.Snapshot, plan *Plan) error {
	if o.printer.Machine != nil {
		return o.printObjects(plan.Objects())
	}
	report := o.newReport(snap, plan)
	for i := range plan.Groups {
		for j := range plan.Groups[i].Trials {
			report.Trials = append(report.Trials, plan.Groups[i].Trials[j].Dry())
		}
	}
	Summarize(report, o.named())
	if err := o.printer.PrintTest(report); err != nil {
		return err
	}
	return outcome(report.Result)
}

// printObjects prints the objects to create for kubectl: documents in YAML, else a list.
func (o *options) printObjects(objects []runtime.Object) error {
	if o.output.Output != "yaml" && o.output.Output != "kyaml" {
		list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
		for _, object := range objects {
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
		objects = []runtime.Object{list}
	}
	for _, object := range objects {
		if err := o.printer.Machine.PrintObj(object, o.streams.Out); err != nil {
			return fmt.Errorf("print what would be created: %w", err)
		}
	}
	return nil
}

func (o *options) named() bool { return len(o.classes)+len(o.claims) > 0 }

func (o *options) newReport(snap *snapshot.Snapshot, plan *Plan) *api.TestReport {
	return &api.TestReport{
		TypeMeta: cli.TypeMeta(Kind), Source: snap.Source, KubernetesVersion: snap.ServerVersion,
		Namespace: plan.Namespace.Name, Trials: append([]api.Trial{}, plan.Failed...), Skipped: plan.Skipped,
	}
}

// finish prints the report and turns it into the exit code.
func (o *options) finish(ctx context.Context, report *api.TestReport) error {
	report.Interrupted = ctx.Err() != nil
	Summarize(report, o.named())
	if err := o.printer.PrintTest(report); err != nil {
		return err
	}
	if len(report.Left) > 0 {
		left := english.JoinAnd(english.Texts(report.Left, api.ObjectRef.String))
		note := fmt.Sprintf("%s of the test is being deleted, and still there; namespace %s goes with it", left, report.Namespace)
		if err := cli.PrintNotes(o.streams, note); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return outcome(report.Result)
}

func outcome(result api.TestResult) error {
	switch result {
	case api.TestFailed:
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case api.TestUnknown:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	case api.TestPassed, api.TestPlanned:
		return nil
	default:
		return nil
	}
}

// owner returns this process, as HOST/PID.
func owner() string { return hostname() + "/" + strconv.Itoa(os.Getpid()) }

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return strings.ReplaceAll(name, "/", "-")
}
