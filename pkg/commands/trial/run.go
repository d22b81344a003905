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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

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
