// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func newPlugins(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Ask the drivers of this node whether they answer",
		Long: `Ask every socket in plugins_registry and plugins of the kubelet who it is, as
the kubelet does: the name and the versions that a driver registers with, which
of them its endpoint really serves, and how fast it answers.

It finds sockets that nobody listens on, that do not answer or that everybody
may connect to, drivers that register twice, and, held against the slices of
the cluster, drivers that should run here and do not, and drivers without
slices. The device plugins of the older kind are listed, too.

Nothing changes: no driver is told that it is registered, and a method that
does not exist is called to learn which services there are. Servers on grpc-go
tell; for others it is not known, and SERVICES has what the driver advertises.`,
		Example: `  # All drivers of this node
  kubectl dra node-probe plugins

  # In a container that has the root of the node at /host
  kubectl dra node-probe plugins --node-root /host

  # Which sockets are stale?
  kubectl dra node-probe plugins -o \
    jsonpath='{.plugins[?(@.registration.answer=="Stale")].registration.path}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTimeout(timeout); err != nil {
				return err
			}
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			snap, err := flags.cluster(cmd, streams)
			if err != nil {
				return err
			}
			findings, err := driver.Look(cmd.Context(), flags.host(), snap, driver.Options{Timeout: timeout})
			if err != nil {
				return err
			}
			return flags.print(streams, findings, findings.Checks, func(o render.Options) error { return writePlugins(streams.Out, findings, o) })
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", driver.DefaultTimeout, "How long a socket may take to answer.")
	return cmd
}
