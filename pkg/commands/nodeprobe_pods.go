// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newNodeProbePods(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, flags *nodeProbeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "pods [POD]",
		Short: "Ask the kubelet which devices its pods have",
		Long: `Ask the kubelet of this node, by its PodResources API, which claims and devices
it has given to which container, and hold that against the claims of the
cluster: what one side knows and the other does not.

With a POD it asks for that one only, in the namespace given with -n. -o wide
adds CPUs and memory that containers have for themselves, and the devices of
device plugins.`,
		Example: `  # All pods of this node
  kubectl dra node-probe pods

  # One of them
  kubectl dra node-probe pods train-0 -n ml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.probe(cmd, streams, func(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error) {
				var findings *kubelet.Findings
				if len(args) > 0 {
					findings = kubelet.LookPod(ctx, host, snap, cmp.Or(*config.Namespace, metav1.NamespaceDefault), args[0])
				} else {
					findings = kubelet.Look(ctx, host, snap)
				}
				return findings, findings.Checks, func(o render.Options) error { return render.NodePods(streams.Out, findings, o) }
			})
		},
	}
}
