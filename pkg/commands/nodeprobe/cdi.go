// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newCDI(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "cdi [ID ...]",
		Short: "Check the CDI specs of this node",
		Long: `Check the CDI specs of this node, as a container runtime reads them: files that
cannot be read, devices that are in two of them, device nodes, mounts and hooks
that the node does not have.

The specs are held against what the kubelet hands to the runtime (its
dra_manager_state) and against the claims of the cluster: claims whose devices
have no spec, and specs left over from claims that are gone.

With an ID such as k8s.gpu.nvidia.com/claim=UID-gpu-0, it shows what the
runtime would do to a container for it. -o wide shows that for all of them.`,
		Example: `  # All specs of this node
  kubectl dra node-probe cdi

  # In a container that has the root of the node at /host
  kubectl dra node-probe cdi --node-root /host

  # What a container gets for one device
  kubectl dra node-probe cdi nvidia.com/gpu=0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.probe(cmd, streams, func(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error) {
				findings := cdi.Look(ctx, host, snap, checkpoint.Look(ctx, host, snap).Handed())
				if len(args) > 0 {
					findings.Ask(args)
				}
				return findings, findings.Checks, func(o render.Options) error { return writeCDI(streams.Out, findings, o) }
			})
		},
	}
}
