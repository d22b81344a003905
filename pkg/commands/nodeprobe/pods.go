// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newPods(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "pods [POD]",
		Short: "Ask the kubelet which devices its pods have",
		Long: `Ask the kubelet of this node, by its PodResources API, which claims and devices
it has given to which container, and hold that against the claims of the
cluster: what one side knows and the other does not.

For each container with exclusive CPUs or memory it compares the NUMA nodes of
these with those of its claims' devices, which the kubelet's Topology Manager
does not look at.

With a POD it asks for that one only, in the namespace of -n or of the context.
-o wide adds CPUs and memory that containers have for themselves, and the
devices of device plugins.`,
		Example: `  # All pods of this node
  kubectl dra node-probe pods

  # One of them
  kubectl dra node-probe pods train-0 -n ml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			namespace := ""
			if len(args) > 0 {
				var err error
				if namespace, err = flags.namespace(config); err != nil {
					return err
				}
			}
			snap, err := flags.cluster(cmd, streams)
			if err != nil {
				return err
			}
			var findings *kubelet.Findings
			if len(args) > 0 {
				if namespace == "" {
					if namespace, err = namespaceOfPod(snap, args[0]); err != nil {
						return err
					}
				}
				findings = kubelet.LookPod(cmd.Context(), flags.host(), snap, namespace, args[0])
			} else {
				findings = kubelet.Look(cmd.Context(), flags.host(), snap)
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			return flags.print(streams, findings, findings.Checks, func(o render.Options) error { return writePods(streams.Out, findings, o) })
		},
	}
}

// namespaceOfPod returns the namespace of the only pod with a name in a file; the default
// one if the file has none.
func namespaceOfPod(snap *snapshot.Snapshot, name string) (string, error) {
	if snap == nil {
		return metav1.NamespaceDefault, nil
	}
	pod, err := cli.OnlyOneIn(snap.Pods, "pod", "", name)
	if err != nil || pod == nil {
		return metav1.NamespaceDefault, err
	}
	return cmp.Or(pod.Namespace, metav1.NamespaceDefault), nil
}
