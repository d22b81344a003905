// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

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
