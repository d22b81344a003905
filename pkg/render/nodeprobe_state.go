// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"strings"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
)

// NodeState draws the checkpoints of a node. With -o wide it shows UIDs and CDI
// devices.
func NodeState(w io.Writer, f *checkpoint.Findings, opts Options) error {
	p := newPage(opts)
	p.text(0, strong, "Checkpoints on "+onNode(f.Node))
	if f.BootID != "" {
		p.text(2, plain, "boot ID "+f.BootID)
	}
	if f.Kubelet != nil {
		p.checkpoint("kubelet", f.Kubelet)
	}
	for i := range f.Drivers {
		p.checkpoint("driver "+f.Drivers[i].Driver, &f.Drivers[i])
	}
	p.nodeChecks(f.Checks)
	return p.write(w)
}

func (p *page) checkpoint(owner string, c *checkpoint.Checkpoint) {
	p.blank()
	about := []string{c.Path}
	if len(c.Versions) > 0 {
		about = append(about, strings.Join(c.Versions, " and "))
	}
	if c.Modified != nil {
		about = append(about, "written "+c.Modified.UTC().Format(time.RFC3339))
	}
	p.text(0, strong, owner+": "+strings.Join(about, ", "))
	lines := [][]string{{"CLAIM", "STATE", "DEVICES"}}
	if p.opts.Wide {
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
		if p.opts.Wide {
			line = []string{name, claim.UID, string(claim.State), strings.Join(devices, ", "), strings.Join(ids, ", "), strings.Join(claim.PodUIDs, ", ")}
		}
		lines = append(lines, line)
	}
	p.grid(2, lines)
}
