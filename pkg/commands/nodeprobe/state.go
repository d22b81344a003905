// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newState(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Check what kubelet and drivers remember of claims and devices",
		Long: `Check what the kubelet (dra_manager_state) and the drivers
(plugins/*/checkpoint.json in the form of the NVIDIA driver) of this node have
written down about the claims that they prepared, and what the kubelet has
written down about the devices of device plugins
(device-plugins/kubelet_internal_checkpoint).

It verifies checksums, and finds preparations that never finished, claims that
do not exist any more, claims that only the kubelet or only the driver knows,
and drivers that have not started since the node was booted. Of device plugins,
it finds devices recorded for pods that are gone, and devices of containers that
are unhealthy or that no plugin has registered. Of the files with which drivers
tell containers about their devices (plugins/*/dra-device-metadata), it finds
those that are missing, left over, or about other devices than the claim has.
-o wide shows UIDs, CDI devices, paths and registered devices.

A checksum is computed from what is in the file. A driver computes it from what
it understands of that, so one of another version may refuse a file that is
intact.`,
		Example: `  # Both sides on this node
  kubectl dra node-probe state

  # For a program
  kubectl dra node-probe state -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.probe(cmd, streams, func(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error) {
				findings := checkpoint.Look(ctx, host, snap)
				return findings, findings.Checks, func(o render.Options) error { return writeState(streams.Out, findings, o) }
			})
		},
	}
}
