// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/list"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// impactFlags are the common flags of all changes.
type impactFlags struct {
	reading *cli.ReadingFlags
	output  *cli.OutputFlags
}

// impactOptions are the parsed flags.
type impactOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	// devices are the devices that a rule would taint; nil for other changes.
	devices *resourceapi.DeviceTaintSelector
	streams genericiooptions.IOStreams
}

func newImpact(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "impact",
		Short: "Show what a change of the cluster would do to pods",
		Long: `Show what a change would do, before it is made: which pods are evicted or lose
their devices and when, where their replacements fit or why they fit nowhere,
which waiting pods no longer fit or fit at last, which claims no longer match a
class, and in which order to make the change. Nothing is changed.

Replacements and waiting pods are decided one after another as the scheduler
does, by priority and age, and each gets its devices before the next one.
Replacements get new claims from templates. A claim that is not from a template
stays with its devices as long as another pod uses it.

The exit code is 1 if a pod that runs finds no other place or is not created
again, or if a driver leaves before pods that need it, else 2 if that is not
known for a pod, else 0.`,
		Example: `  # Where do the pods of a node go, and in which order to take it out?
  kubectl dra impact drain gpu-02

  # Which pods would a new taint evict?
  kubectl dra impact taint example.com/xid=79:NoExecute --pool gpu-02 \
    --device gpu-3

  # What if a driver is removed?
  kubectl dra impact remove driver/gpu.example.com

  # Which claims no longer match a changed class?
  kubectl dra impact apply -f class.yaml

  # Only the pods that find no place
  kubectl dra impact drain gpu-02 -o \
    jsonpath='{range .pods[?(@.outcome=="NoPlace")]}{.name}{"\n"}{end}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// Flags of subcommands come with a missing or misspelled subcommand.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	cmd.AddCommand(
		newImpactDrain(streams, config), newImpactCordon(streams, config), newImpactTaint(streams, config),
		newImpactRemove(streams, config), newImpactApply(streams, config), newImpactUpgrade(streams, config),
		newImpactUpgradeDriver(streams, config),
	)
	return cmd
}

// chooser is a change that may depend on the cluster.
type chooser func(*cli.Source) (forecast.Change, error)

// always returns a change that does not depend on the cluster.
func always(change forecast.Change) chooser {
	return func(*cli.Source) (forecast.Change, error) { return change, nil }
}

// change returns the command for one kind of change. toChange is called once the flags were
// parsed.
func (f *impactFlags) change(cmd *cobra.Command, streams genericiooptions.IOStreams, toChange func(ctx context.Context, o *impactOptions, args []string) (chooser, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := &impactOptions{streams: streams}
		var err error
		if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
			return err
		}
		if o.printer, err = f.output.ToPrinter(streams); err != nil {
			return err
		}
		if o.printer.Names {
			return cli.Usagef("Print the pods with -o jsonpath='{.pods[*].name}'.", "-o name: an impact has no name")
		}
		choose, err := toChange(cmd.Context(), o, args)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), choose)
	}
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

func newImpactFlags(config *genericclioptions.ConfigFlags) *impactFlags {
	return &impactFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(cli.FormatSVG)}
}

func newImpactDrain(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	return f.change(&cobra.Command{
		Use:   "drain NODE",
		Short: "Show where the pods of a node would go",
		Long: `Show what 'kubectl drain' would do with a node: pods of DaemonSets and static
pods stay, all others are evicted. Those of drivers are recognized: they have to
stay until the devices are unprepared. If 'kubectl drain' would evict one, as it
does with a driver of a Deployment, the steps evict it last.`,
		Example: `  # Where do the pods of this node go?
  kubectl dra impact drain gpu-02`,
		Args:              oneName("node"),
		ValidArgsFunction: cli.CompleteWith(f.reading, cli.Propose(snapshot.ResourceNodes)),
	}, streams, func(_ context.Context, _ *impactOptions, args []string) (chooser, error) {
		return always(forecast.Drain(nodeNamed(args[0]))), nil
	})
}

func newImpactCordon(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	return f.change(&cobra.Command{
		Use:   "cordon NODE",
		Short: "Show which waiting pods no longer fit without a node",
		Long: `Show what 'kubectl cordon' would do: pods that run on the node stay, and waiting
pods cannot go there.`,
		Example: `  # Which waiting pods depend on this node?
  kubectl dra impact cordon gpu-02`,
		Args:              oneName("node"),
		ValidArgsFunction: cli.CompleteWith(f.reading, cli.Propose(snapshot.ResourceNodes)),
	}, streams, func(_ context.Context, _ *impactOptions, args []string) (chooser, error) {
		return always(forecast.Cordon(nodeNamed(args[0]))), nil
	})
}

// nodeNamed accepts node/NAME as well as NAME.
func nodeNamed(arg string) string {
	for _, prefix := range []string{"node/", "nodes/", "no/"} {
		if name, ok := strings.CutPrefix(arg, prefix); ok {
			return name
		}
	}
	return arg
}

// oneName fails unless there is one argument.
func oneName(of string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && strings.TrimSpace(args[0]) != "" {
			return nil
		}
		return cli.Usagef(cli.HelpHint(cmd), "expected one %s, found %d", of, len(args))
	}
}

func newImpactTaint(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	devices, node := &list.RuleFlags{}, ""
	cmd := f.change(&cobra.Command{
		Use:   "taint KEY[=VALUE]:EFFECT",
		Short: "Show which pods a taint would evict, and where they would go",
		Long: `Show what a taint of devices would do, as 'kubectl dra taints add' makes it with
the same flags, or one of a node with --node. With effect NoExecute, pods are
evicted that do not tolerate it, some only after the time for which they do.`,
		Example: `  # Which pods have to leave this device?
  kubectl dra impact taint example.com/xid=79:NoExecute --pool gpu-02 \
    --device gpu-3

  # And this node?
  kubectl dra impact taint maintenance:NoExecute --node gpu-02`,
		Args:              list.OneTaint,
		ValidArgsFunction: cli.CompleteWith(f.reading, list.ProposeTaint),
	}, streams, func(_ context.Context, o *impactOptions, args []string) (chooser, error) {
		if node == "" {
			rule, err := devices.Rule(args[0])
			if err != nil {
				return nil, err
			}
			o.devices = devices.Selector()
			return always(forecast.Taint(rule)), nil
		}
		if devices.Selector() != nil || devices.All {
			return nil, cli.Usagef("Leave one of them out.", "--node and devices: a taint is of a node or of devices")
		}
		return nodeTaint(node, args[0])
	})
	flags := cmd.Flags()
	devices.AddTo(flags, "Taint")
	flags.BoolVar(&devices.All, "all-devices", false, "Taint all devices of the cluster.")
	flags.StringVar(&node, "node", "", "Taint this `NODE` instead of devices.")
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

func nodeTaint(node, text string) (chooser, error) {
	key, value, effect, err := list.ParseTaint(text)
	if err != nil {
		return nil, err
	}
	if effect == "" || effect == resourceapi.DeviceTaintEffectNone {
		return nil, cli.Usagef("Write KEY[=VALUE]:EFFECT, for example maintenance:NoExecute.", "read taint %q: a node needs the effect NoSchedule or NoExecute", text)
	}
	return always(forecast.TaintNode(node, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})), nil
}

func newImpactRemove(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	return f.change(&cobra.Command{
		Use:   "remove (node/NAME | driver/NAME | device/POOL/NAME)",
		Short: "Show what happens without a node, a driver or a device",
		Long: `Show what happens if a node, all devices of a driver, or one device is gone.
Nobody evicts pods whose devices are no longer published: they run until they
end, and cannot get the devices again. A device is written as device/POOL/NAME
or device/DRIVER/POOL/NAME.`,
		Example: `  # Without a node
  kubectl dra impact remove node/gpu-02

  # Without a driver
  kubectl dra impact remove driver/nic.example.com

  # Without one device
  kubectl dra impact remove device/gpu-02/gpu-3`,
		Args:              oneName("node/NAME, driver/NAME or device/POOL/NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, streams, func(_ context.Context, _ *impactOptions, args []string) (chooser, error) {
		kind, name, _ := strings.Cut(args[0], "/")
		switch {
		case name == "":
		case slices.Contains([]string{"node", "nodes", "no"}, kind):
			return always(forecast.RemoveNode(name)), nil
		case kind == "driver" || kind == "drivers":
			return always(forecast.RemoveDriver(name)), nil
		case kind == "device" || kind == "devices":
			return removedDevice(name), nil
		}
		return nil, cli.Usagef("Write node/NAME, driver/NAME or device/POOL/NAME.", "read %q: it is not what can be removed", args[0])
	})
}

// removedDevice removes a device by a name that may lack the driver.
func removedDevice(name string) chooser {
	return func(from *cli.Source) (forecast.Change, error) {
		var list []*cluster.Device
		all := cluster.New(from.Snap).Pools.Devices()
		for i := range all {
			list = append(list, &all[i])
		}
		full := cli.FullNames[*cluster.Device]{Of: func(d *cluster.Device) string { return d.ID.String() }, There: "as", Choose: "Write it as device/DRIVER/POOL/DEVICE."}
		device, err := cli.OnlyOne("device", name, full, devicesNamed(list, name))
		if err != nil {
			return forecast.Change{}, err
		}
		if device == nil {
			return forecast.Change{}, cli.Missing(from.Snap, "", "device", name)
		}
		return forecast.RemoveDevice((*device).ID), nil
	}
}

func (o *impactOptions) run(ctx context.Context, choose chooser) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true, Creates: true, Evicts: true, Starting: true})
	if err != nil {
		return err
	}
	if gaps := cli.GapsIn(from.Snap, []string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourcePods, snapshot.ResourceNodes}, "", true); len(gaps) > 0 {
		return &cli.GapError{Doing: "show the impact", Gaps: gaps, Live: o.reader.Live()}
	}
	if d := o.devices; d != nil {
		if absent := cli.AbsentDevices(from.Snap, ptr.Deref(d.Driver, ""), ptr.Deref(d.Pool, ""), ptr.Deref(d.Device, "")); len(absent) > 0 {
			return absent[0]
		}
	}
	change, err := choose(from)
	if err != nil {
		return err
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Deciding where pods go")
	found, err := forecast.Assess(ctx, from.Snap, change)
	bar.Done()
	var missing *forecast.NotFoundError
	if errors.As(err, &missing) {
		return cli.Missing(from.Snap, "", missing.Kind, missing.Name)
	}
	if err != nil {
		return err
	}
	if o.printer.Machine != nil {
		if err := o.printer.Machine.PrintObj(found, o.streams.Out); err != nil {
			return fmt.Errorf("print the impact: %w", err)
		}
	} else if err := render.Impact(o.streams.Out, found, from.Snap.Now(), o.printer.Text); err != nil {
		return err
	}
	if err := cli.PrintNotes(o.streams, cli.GapNotes(from.Snap, nil)...); err != nil {
		return err
	}
	return impactOutcome(found)
}

// impactOutcome returns the exit code.
func impactOutcome(found *api.Impact) error {
	counts := found.Counts
	lost := func(d api.ImpactDriver) bool {
		return d.Effect == api.DriverLeaves || d.Effect == api.DriverUnregistered
	}
	switch {
	case counts.NoPlace+counts.NotRecreated > 0, slices.ContainsFunc(found.Drivers, lost):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case counts.Undetermined > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}

func newImpactApply(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	var paths []string
	cmd := f.change(&cobra.Command{
		Use:   "apply -f FILE",
		Short: "Show what changed classes, rules, slices or templates do",
		Long: `Show what 'kubectl apply' would do with DeviceClasses, DeviceTaintRules,
ResourceSlices and ResourceClaimTemplates: which allocated claims a class no
longer matches, which pods rules evict or lose their devices, and which waiting
pods fit no longer or at last. Claims that are allocated keep their devices;
pods that run get what a template has only when they are created again.`,
		Example: `  # Which claims no longer match this class, and who waits for it?
  kubectl dra impact apply -f class.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, streams, func(ctx context.Context, o *impactOptions, _ []string) (chooser, error) {
		if len(paths) == 0 {
			return nil, cli.Usagef("Name a file with -f.", "read --filename: no file is given")
		}
		if err := cli.OnceStdin(paths, f.reading.Paths); err != nil {
			return nil, err
		}
		objects, err := files.Manifests(ctx, paths, o.reader.Options)
		if err != nil {
			return nil, err
		}
		return appliedObjects(paths, objects)
	})
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "Read objects from this `FILE`; - is standard input. Can be repeated.")
	return cmd
}

// appliedObjects returns the change that applies the objects of files.
func appliedObjects(files []string, objects *snapshot.Snapshot) (chooser, error) {
	const kinds = "DeviceClass, DeviceTaintRule, ResourceSlice or ResourceClaimTemplate"
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{len(objects.Classes), "DeviceClass"}, {len(objects.TaintRules), "DeviceTaintRule"}, {len(objects.Slices), "ResourceSlice"}, {len(objects.Templates), api.KindTemplate}} {
		if part.n > 0 {
			parts = append(parts, english.Count(part.n, part.word))
		}
	}
	for _, other := range []struct {
		n    int
		word string
	}{
		{len(objects.Pods), "a Pod"},
		{len(objects.Workloads), "a workload"},
		{len(objects.Claims), "a ResourceClaim"},
		{len(objects.Nodes), "a Node"},
		{len(objects.Quotas), "a ResourceQuota"},
		{len(objects.LimitRanges), "a LimitRange"},
		{len(objects.Budgets), "a PodDisruptionBudget"},
		{len(objects.Namespaces), "a Namespace"},
	} {
		if other.n > 0 {
			return nil, cli.Usagef("Ask about pods, workloads and claims with: kubectl dra why -f FILE", "read %s: expected %s, found %s", strings.Join(files, ", "), kinds, other.word)
		}
	}
	if len(parts) == 0 {
		return nil, cli.Usagef("Write objects of kind "+kinds+".", "read %s: there is none in it", strings.Join(files, ", "))
	}
	command := "kubectl apply"
	for _, file := range files {
		command += " -f " + shell.Quote(file)
	}
	steps := []api.NextStep{{Actor: api.ActorAdmin, Text: "apply it", Commands: []string{command}}}
	if slices.Contains(files, "-") {
		steps = nil
	}
	return func(from *cli.Source) (forecast.Change, error) {
		placed := manifest.Place(objects, cmp.Or(from.Namespace, metav1.NamespaceDefault), nil).Objects
		return forecast.Apply("apply "+english.JoinAnd(parts), placed, steps), nil
	}, nil
}

func newImpactUpgrade(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	return f.change(&cobra.Command{
		Use:   "upgrade VERSION",
		Short: "Show what another release of Kubernetes does with waiting pods",
		Long: `Show what another release of Kubernetes does with the pods that wait: with its
defaults for feature gates, and with what its scheduler does otherwise. Gates
that differ from the default of the old release are taken to be set, and stay.
Pods that run stay; how nodes are upgraded, 'kubectl dra impact drain' shows.
Releases that this program does not know are Undetermined (exit code 2).`,
		Example: `  # Does the next release change anything?
  kubectl dra impact upgrade 1.37`,
		Args:              oneName("version"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, streams, func(_ context.Context, _ *impactOptions, args []string) (chooser, error) {
		version, err := snapshot.ParseVersion(args[0])
		if err != nil {
			return nil, cli.Usagef("Write a version such as 1.37.", "%w", err)
		}
		if err := snapshot.CheckKnown(version); err != nil {
			return nil, err
		}
		return always(forecast.Upgrade(version)), nil
	})
}

func newImpactUpgradeDriver(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := newImpactFlags(config)
	return f.change(&cobra.Command{
		Use:   "upgrade-driver DAEMONSET",
		Short: "Show which pods need a driver while its pods are replaced",
		Long: `Show what a change of a driver's DaemonSet does, by its updateStrategy: from
which nodes the driver is away for a while, and which pods there have devices of
it. Without the driver, pods that run go on, pods that end stay in Terminating,
and pods that start wait. With maxSurge, the new pod takes over before the old
one ends: kubelets can do that since Kubernetes 1.33, and the driver has to be
made for it. DAEMONSET is NAME, with -n or not, or NAMESPACE/NAME.

The exit code is 1 if nodes lose the driver although its new pod runs.`,
		Example: `  # Who needs the driver while it is upgraded, and in which order to do it?
  kubectl dra impact upgrade-driver gpu-driver/gpu-plugin

  # The pods that stay in Terminating if they end meanwhile
  kubectl dra impact upgrade-driver gpu-plugin -n gpu-driver -o \
    jsonpath='{.drivers[*].running}'`,
		Args:              oneName("DaemonSet"),
		ValidArgsFunction: cli.CompleteWith(f.reading, proposePlugins),
	}, streams, func(_ context.Context, o *impactOptions, args []string) (chooser, error) {
		return func(from *cli.Source) (forecast.Change, error) {
			return upgradedDriver(from, *f.reading.Config.Namespace, args[0], o.reader.Live())
		}, nil
	})
}

// upgradedDriver finds the DaemonSet of a driver, in all namespaces for an empty one.
func upgradedDriver(from *cli.Source, namespace, name string, live bool) (forecast.Change, error) {
	none := forecast.Change{}
	if gap := from.Snap.Gap(snapshot.ResourceDaemonSets); gap != nil {
		return none, &cli.GapError{Doing: "show the impact", Gaps: []snapshot.Gap{*gap}, Live: live}
	}
	for _, kind := range []string{"daemonset/", "daemonsets/", "ds/", "daemonset.apps/"} {
		name = strings.TrimPrefix(name, kind)
	}
	if in, rest, ok := strings.Cut(name, "/"); ok {
		if namespace, name = in, rest; strings.Contains(rest, "/") || in == "" || rest == "" {
			return none, cli.Usagef("Write NAME or NAMESPACE/NAME.", "read %q: it is not the name of a DaemonSet", in+"/"+rest)
		}
	}
	sets := slices.DeleteFunc(slices.Clone(from.Snap.Workloads), func(w *snapshot.Workload) bool {
		return w.Kind != snapshot.KindDaemonSet || namespace != "" && w.Namespace != namespace
	})
	set, err := cli.OnlyOneIn(sets, "DaemonSet", namespace, name)
	if err != nil {
		return none, err
	}
	plugins := pluginNames(from.Snap)
	advice := "There is no DaemonSet of a driver that has slices."
	if len(plugins) > 0 {
		advice = "DaemonSets of drivers are " + english.Sample(plugins, 5) + "."
	}
	if set == nil {
		return none, cli.Usagef(advice, "find DaemonSet %s: not found in %s%s", strings.TrimPrefix(namespace+"/"+name, "/"), from.Snap.Source, english.DidYouMean(name, english.Texts(sets, (*snapshot.Workload).GetName)))
	}
	drivers := forecast.DriversOf(from.Snap, set)
	if len(drivers) == 0 {
		return none, cli.Usagef(advice, "read DaemonSet %s: it is not known as the kubelet plugin of a driver that has slices", english.QualifiedName(set))
	}
	return forecast.UpgradeDriver(set, drivers), nil
}

// proposePlugins proposes the DaemonSets of drivers.
func proposePlugins(ctx context.Context, c *cli.Completion) ([]string, error) {
	from, err := c.Reader.Read(ctx, cli.Scope{Only: []string{snapshot.ResourceDaemonSets, snapshot.ResourceSlices}})
	if err != nil {
		return nil, err
	}
	return pluginNames(from.Snap), nil
}

// pluginNames lists the DaemonSets of drivers, as NAMESPACE/NAME.
func pluginNames(snap *snapshot.Snapshot) []string {
	var names []string
	for _, w := range snap.Workloads {
		if len(forecast.DriversOf(snap, w)) > 0 {
			names = append(names, english.QualifiedName(w))
		}
	}
	slices.SortFunc(names, english.CompareNames)
	return names
}
