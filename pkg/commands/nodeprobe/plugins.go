// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
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

// writePlugins draws the plugins of a node. With -o wide it shows sockets, and the services
// of each.
func writePlugins(w io.Writer, f *driver.Findings, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, "Plugins on "+onNode(f.Node))
	lines := [][]string{{"DRIVER", "TYPE", "REGISTERS", "SERVICES", "ANSWERS", "SOCKET"}}
	if opts.Wide {
		lines[0] = append(lines[0], "MODE", "REGISTRATION")
	}
	for i := range f.Plugins {
		plugin := &f.Plugins[i]
		line := []string{plugin.Name, plugin.Type, answerText(&plugin.Registration), strings.Join(plugin.Versions, ", "), "", cmp.Or(plugin.Endpoint, plugin.Registration.Path)}
		mode := plugin.Registration.Mode
		if s := plugin.Service; s != nil {
			line[3], line[4] = servicesText(s), answerText(s)
			mode = s.Mode
		}
		if opts.Wide {
			line = append(line, mode, plugin.Registration.Path)
		}
		lines = append(lines, line)
	}
	if len(lines) > 1 {
		p.Blank()
		p.grid(0, lines)
	}
	p.sockets("SOCKET WITHOUT REGISTRATION", f.Others)
	p.devicePlugins(f)
	p.nodeChecks(f.Checks)
	return p.write(w)
}

// sockets lists sockets without a registration.
func (p *page) sockets(title string, sockets []driver.Socket) {
	if len(sockets) == 0 {
		return
	}
	lines := [][]string{{title, "ANSWERS", "SERVICES"}}
	for i := range sockets {
		lines = append(lines, []string{sockets[i].Path, answerText(&sockets[i]), servicesText(&sockets[i])})
	}
	p.Blank()
	p.grid(0, lines)
}

// devicePlugins lists the device plugins and their resources. With -o wide it shows the
// devices that plugins sent.
func (p *page) devicePlugins(f *driver.Findings) {
	lines := [][]string{{"DEVICE PLUGIN", "ANSWERS", "RESOURCE", "DEVICES"}}
	if p.Opts.Wide {
		lines[0] = append(lines[0], "RESOURCE FOUND BY")
	}
	sent := [][]string{{"DEVICE", "HEALTH", "NUMA", "DEVICE PLUGIN"}}
	for i := range f.DevicePlugins {
		plugin := &f.DevicePlugins[i]
		devices := "not listed"
		if plugin.Devices != nil {
			devices = fmt.Sprint(len(plugin.Devices) + plugin.Omitted)
		}
		line := []string{plugin.Path, answerText(&plugin.Socket), cmp.Or(plugin.Resource, "not known"), devices}
		if p.Opts.Wide {
			line = append(line, string(plugin.FoundBy))
		}
		lines = append(lines, line)
		for _, d := range plugin.Devices {
			sent = append(sent, []string{d.ID, d.Health, integers(d.NUMANodes), plugin.Path})
		}
	}
	resources := [][]string{{"RESOURCE", "GIVEN OUT", "CHECKPOINT", "ALLOCATABLE", "CAPACITY"}}
	for i := range f.Resources {
		r := &f.Resources[i]
		resources = append(resources, []string{r.Name, numberText(r.GivenOut), numberText(r.Registered), numberText(r.Allocatable), numberText(r.Capacity)})
	}
	tables := [][][]string{lines, resources}
	if p.Opts.Wide {
		tables = append(tables, sent)
	}
	for _, table := range tables {
		if len(table) > 1 {
			p.Blank()
			p.grid(0, table)
		}
	}
}

// numberText returns a number, empty if it is not known.
func numberText[T int | int64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// answerText says how fast a socket answers, or why it does not.
func answerText(s *driver.Socket) string {
	if s.Answer == node.Answers {
		return millisText(s.AnswerMillis)
	}
	return string(s.Answer)
}

func millisText(millis float64) string {
	if millis < 1 {
		return "< 1 ms"
	}
	return fmt.Sprintf("%.0f ms", millis)
}

// servicesText lists services, with a remark if the driver and its server do not
// agree.
func servicesText(s *driver.Socket) string {
	names := make([]string, 0, len(s.Services))
	for _, service := range s.Services {
		name := service.Name
		switch {
		case service.Served == driver.ServedNo:
			name += " (not served)"
		case !service.Advertised:
			name += " (not advertised)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
