// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// New returns the command node-probe with its subcommands. The version is the program's.
func New(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	flags := &probeFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(), remote: &remoteFlags{}, version: version}
	gpus := &gpuFlags{}
	cmd := &cobra.Command{
		Use:   "node-probe",
		Short: "Look at what a node really has",
		Long: `Look at everything on a node that stands between an allocated claim and a
running container: GPUs, the sockets of drivers, the kubelet's and the drivers'
checkpoints, CDI specs, what the kubelet gave to which pod, and the health that
drivers report. Each is compared with the others and with the cluster, if it
can be read.

It runs on the node, as root, or in a container that has the node's root mounted
(--node-root). With --node it does so by itself: it starts a privileged pod on
that node, copies this program into it, runs it there, and deletes the pod. The
pod sees all files of the node, read-only. 'kubectl dra node-probe --node NODE
--dry-run=client' prints it. The commands below work in the same way.

Nothing is changed on the node, unless prepare or unprepare are asked to. Each
thing looked at is marked ✓ (in order), ✗ (a problem) or ? (not known, and
why). The exit code is 0 if all is in order, 1 for a problem, 2 if something is
not known, 3 for wrong usage and 4 if the node could not be reached.`,
		Example: `  # On the node
  sudo kubectl-dra node-probe

  # From a workstation
  kubectl dra node-probe --node node-17

  # In a namespace that allows privileged pods, with an image that the node has
  kubectl dra node-probe plugins --node node-17 --pod-namespace kube-system \
    --image registry.example.com/busybox:1.37`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.probe(cmd, streams, func(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error) {
				report := nodeprobe.Probe(ctx, host, snap, nodeprobe.Options{Library: gpus.library})
				return report, report.Checks(), func(o render.Options) error { return writeReport(streams.Out, report, o) }
			})
		},
	}
	gpus.addLibrary(cmd)
	flags.addTo(cmd)
	for _, add := range []func(genericiooptions.IOStreams, *genericclioptions.ConfigFlags, *probeFlags) *cobra.Command{
		newGPUs, newPreview, newPlugins, newPrepare, newUnprepare, newConform, newHealth, newCDI, newPods, newState,
	} {
		cmd.AddCommand(add(streams, config, flags))
	}
	flags.reach(cmd, streams)
	return cmd
}
