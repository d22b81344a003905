// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
