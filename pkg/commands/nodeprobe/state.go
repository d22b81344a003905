// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// writeState draws the checkpoints of a node. With -o wide it shows UIDs and CDI
// devices.
func writeState(w io.Writer, f *checkpoint.Findings, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, "Checkpoints on "+onNode(f.Node))
	if f.BootID != "" {
		p.Text(2, render.Plain, "boot ID "+f.BootID)
	}
	if f.Kubelet != nil {
		p.checkpoint("kubelet", f.Kubelet)
	}
	for i := range f.Drivers {
		p.checkpoint("driver "+f.Drivers[i].Driver, &f.Drivers[i])
	}
	p.metadata(f.Metadata)
	if f.Devices != nil {
		p.deviceCheckpoint(f.Devices)
	}
	p.nodeChecks(f.Checks)
	return p.write(w)
}

// metadata draws the metadata of devices that containers get. With -o wide it shows UIDs and
// paths.
func (p *page) metadata(files []checkpoint.Metadata) {
	if len(files) == 0 {
		return
	}
	p.Heading("metadata of devices, for containers")
	lines := [][]string{{"DRIVER", "CLAIM", "REQUEST", "DEVICES", "VERSION"}}
	if p.Opts.Wide {
		lines[0] = append(lines[0], "UID", "PATH")
	}
	for i := range files {
		m := &files[i]
		var devices []string
		for _, d := range m.Devices {
			devices = append(devices, d.Pool+"/"+d.Device)
		}
		line := []string{m.Driver, render.Qualified(m.Namespace, m.Name), m.Request, strings.Join(devices, ", "), m.Version}
		if p.Opts.Wide {
			line = append(line, m.UID, m.Path)
		}
		lines = append(lines, line)
	}
	p.grid(2, lines)
}

// deviceCheckpoint draws the containers that have devices of device plugins. With -o wide it
// shows the registered devices.
func (p *page) deviceCheckpoint(c *checkpoint.DeviceCheckpoint) {
	p.checkpointTitle("kubelet, device plugins", []string{c.Path}, c.Modified)
	lines := [][]string{{"POD", "CONTAINER", "RESOURCE", "NUMA", "DEVICES"}}
	for i := range c.Containers {
		entry := &c.Containers[i]
		name := entry.PodUID
		if entry.Pod != "" {
			name = entry.Namespace + "/" + entry.Pod
		}
		var ids []string
		var numa []int64
		for _, d := range entry.Devices {
			if !slices.Contains(ids, d.ID) {
				ids = append(ids, d.ID)
			}
			if d.NUMANode != nil && !slices.Contains(numa, *d.NUMANode) {
				numa = append(numa, *d.NUMANode)
			}
		}
		lines = append(lines, []string{name, entry.Container, entry.Resource, integers(numa), strings.Join(ids, ", ")})
	}
	p.grid(2, lines)
	if !p.Opts.Wide {
		return
	}
	lines = [][]string{{"RESOURCE", "REGISTERED DEVICES"}}
	for _, r := range c.Resources {
		lines = append(lines, []string{r.Name, strings.Join(r.IDs, ", ")})
	}
	p.Blank()
	p.grid(2, lines)
}

// checkpointTitle draws whose file it is, and facts of the file.
func (p *page) checkpointTitle(owner string, facts []string, modified *metav1.Time) {
	if modified != nil {
		facts = append(facts, "written "+modified.UTC().Format(time.RFC3339))
	}
	p.Blank()
	p.Text(0, render.Strong, owner+": "+strings.Join(facts, ", "))
}

func (p *page) checkpoint(owner string, c *checkpoint.Checkpoint) {
	facts := []string{c.Path}
	if c.OwnForm {
		facts = append(facts, "in a form of the driver's own")
	}
	if len(c.Versions) > 0 {
		facts = append(facts, strings.Join(c.Versions, " and "))
	}
	p.checkpointTitle(owner, facts, c.Modified)
	lines := [][]string{{"CLAIM", "STATE", "DEVICES"}}
	if p.Opts.Wide {
		lines = [][]string{{"CLAIM", "UID", "STATE", "DEVICES", "CDI", "PODS"}}
	}
	for i := range c.Claims {
		claim := &c.Claims[i]
		var devices, ids []string
		for _, d := range claim.Devices {
			devices = append(devices, d.Driver+"/"+d.Pool+"/"+d.Device)
			ids = append(ids, d.CDIDevices...)
		}
		name := claim.UID
		if claim.Name != "" {
			name = claim.Namespace + "/" + claim.Name
		}
		line := []string{name, string(claim.State), strings.Join(devices, ", ")}
		if p.Opts.Wide {
			line = []string{name, claim.UID, string(claim.State), strings.Join(devices, ", "), strings.Join(ids, ", "), strings.Join(claim.PodUIDs, ", ")}
		}
		lines = append(lines, line)
	}
	p.grid(2, lines)
}
