// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func newPlugins(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	var opts driver.Options
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Ask the drivers of this node whether they answer",
		Long: `Ask every socket in plugins_registry and plugins of the kubelet who it is, as
the kubelet does: the name and the versions that a driver registers with, which
of them its endpoint really serves, and how fast it answers.

It finds sockets that nobody listens on, that do not answer or that everybody
may connect to, drivers that register twice, and, held against the slices of
the cluster, drivers that should run here and do not, and drivers without
slices.

Device plugins are held against what the kubelet gives out (PodResources), its
checkpoint, the status of the node and the slices of drivers: resources that no
plugin registers any more, unhealthy devices, and hardware that a driver
publishes, too. --list-devices also asks each plugin for its devices (the first
answer to ListAndWatch), and by them finds the resource of the plugin, and
plugins that are not registered. A plugin that gives each event to one listener
only, such as NVIDIA's, may then not report the next unhealthy device to the
kubelet, so this is off by default.

Nothing else changes: no driver is told that it is registered, and a method that
does not exist is called to learn which services there are. Servers on grpc-go
tell; for others it is not known, and SERVICES has what the driver advertises.`,
		Example: `  # All drivers of this node
  kubectl dra node-probe plugins

  # In a container that has the root of the node at /host
  kubectl dra node-probe plugins --node-root /host

  # What does each device plugin have, and which resource is it?
  kubectl dra node-probe plugins --list-devices

  # Which sockets are stale?
  kubectl dra node-probe plugins -o \
    jsonpath='{.plugins[?(@.registration.answer=="Stale")].registration.path}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTimeout(opts.Timeout); err != nil {
				return err
			}
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			snap, err := flags.cluster(cmd, streams)
			if err != nil {
				return err
			}
			host := flags.host()
			opts.Kubelet = nodeprobe.DeviceRecords(kubelet.Look(cmd.Context(), host, nil), checkpoint.Look(cmd.Context(), host, nil))
			findings, err := driver.Look(cmd.Context(), host, snap, opts)
			if err != nil {
				return err
			}
			return flags.print(streams, findings, findings.Checks, func(o render.Options) error { return writePlugins(streams.Out, findings, o) })
		},
	}
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", driver.DefaultTimeout, "How long a socket may take to answer.")
	cmd.Flags().BoolVar(&opts.ListDevices, "list-devices", false, "Ask device plugins for their devices; the kubelet may then miss an event of a plugin.")
	return cmd
}
