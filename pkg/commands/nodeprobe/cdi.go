// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

// writeCDI draws the CDI directories of a node. With -o wide it shows all edits of a
// container.
func writeCDI(w io.Writer, f *cdi.Findings, opts render.Options) error {
	p := newPage(opts)
	if len(f.Resolved) > 0 {
		for i := range f.Resolved {
			p.blankBetween(i)
			p.resolution(&f.Resolved[i])
		}
	} else {
		p.cdiDirectories(f)
		p.cdiDevices(f)
	}
	p.nodeChecks(f.Checks)
	return p.write(w)
}

func (p *page) cdiDirectories(f *cdi.Findings) {
	p.Text(0, render.Strong, "CDI specs on "+onNode(f.Node))
	for _, d := range f.Directories {
		what := english.Count(d.Specs, "spec")
		switch {
		case d.NotRead:
			what = "not read"
		case d.Error != "":
			what = "cannot be read"
		case !d.Exists:
			what = "does not exist"
		}
		p.Text(2, render.Plain, d.Path+": "+what)
	}
}

func (p *page) cdiDevices(f *cdi.Findings) {
	claims := map[string]string{}
	for _, c := range f.Claims {
		claims[c.UID] = c.UID
		if c.Name != "" {
			claims[c.UID] = c.Namespace + "/" + c.Name
		}
	}
	lines := [][]string{{"DEVICE", "CLAIM", "NODES", "MOUNTS", "HOOKS", "ENV", "SPEC"}}
	for s := range f.Specs {
		spec := &f.Specs[s]
		for i := range spec.Devices {
			d := &spec.Devices[i]
			both := []*cdi.Edits{&spec.Edits, &d.Edits}
			lines = append(lines, []string{
				d.ID, claims[d.ClaimUID],
				tally(both, func(e *cdi.Edits) (n, bad int) {
					for _, x := range e.DeviceNodes {
						n, bad = n+1, bad+atFault(x.State)
					}
					return n, bad
				}),
				tally(both, func(e *cdi.Edits) (n, bad int) {
					for _, x := range e.Mounts {
						n, bad = n+1, bad+atFault(x.State)
					}
					return n, bad
				}),
				tally(both, func(e *cdi.Edits) (n, bad int) {
					for _, x := range e.Hooks {
						n, bad = n+1, bad+atFault(x.State)
					}
					return n, bad
				}),
				tally(both, func(e *cdi.Edits) (n, bad int) { return len(e.Env), 0 }),
				spec.Path,
			})
		}
	}
	if len(lines) > 1 {
		p.Blank()
		// The path of a spec is as long as a line.
		p.gridOf(0, len(lines[0])-1, lines)
	}
	if !p.Opts.Wide {
		return
	}
	for s := range f.Specs {
		spec := &f.Specs[s]
		if spec.Error != "" {
			continue
		}
		p.Blank()
		p.Text(0, render.Strong, spec.Path)
		p.edits(2, &spec.Edits)
		for i := range spec.Devices {
			p.Text(2, render.Plain, spec.Devices[i].ID)
			p.edits(4, &spec.Devices[i].Edits)
		}
	}
}

// atFault returns 1 for a faulty path, so that callers can count them.
func atFault(state cdi.Presence) int {
	if state == cdi.Absent || state == cdi.Different {
		return 1
	}
	return 0
}

// tally counts edits, and the faulty ones among them: "3, 1 not there".
func tally(edits []*cdi.Edits, of func(*cdi.Edits) (n, bad int)) string {
	all, faults := 0, 0
	for _, e := range edits {
		n, bad := of(e)
		all, faults = all+n, faults+bad
	}
	switch {
	case all == 0:
		return ""
	case faults == 0:
		return fmt.Sprint(all)
	default:
		return fmt.Sprintf("%d, %d wrong", all, faults)
	}
}

func (p *page) resolution(r *cdi.Resolution) {
	p.Text(0, render.Strong, r.ID)
	if r.Edits == nil {
		m := render.Bad
		if r.Unknown {
			m = render.Unsure
		}
		p.Text(2, m, r.Error)
		return
	}
	p.edits(2, r.Edits)
}

// edits lists the edits of a container.
func (p *page) edits(indent int, e *cdi.Edits) {
	line := func(state cdi.Presence, kind, text, found string) {
		sign := render.Cell{Text: "✓", Width: 1, Mark: render.Good}
		switch state {
		case cdi.Present:
		case cdi.NotNeeded:
			text += ", not on the node, and made by the runtime"
		case cdi.Absent:
			sign = render.Cell{Text: "✗", Width: 1, Mark: render.Bad}
			text += ", not on the node"
		case cdi.Different:
			sign = render.Cell{Text: "✗", Width: 1, Mark: render.Bad}
			text += ", the node has " + found
		case cdi.NotSeen:
			sign = render.Cell{Text: "?", Width: 1, Mark: render.Unsure}
			text += ", could not be looked at: " + found
		default:
			sign.Text = " "
		}
		p.Row(indent, sign, render.Cell{Text: kind, Width: len("device node")}, render.Cell{Text: text})
	}
	for _, d := range e.DeviceNodes {
		line(d.State, "device node", strings.Join(strings.Fields(route(d.HostPath, d.Path)+" "+d.Type+" "+d.Number), " "), d.Found)
	}
	for _, m := range e.Mounts {
		line(m.State, "mount", route(m.HostPath, m.ContainerPath)+parenthesis(strings.Join(m.Options, ",")), m.Found)
	}
	for _, h := range e.Hooks {
		line(h.State, "hook", h.Name+" "+h.CommandLine(), h.Found)
	}
	for _, v := range e.Env {
		line("", "env", v, "")
	}
	for _, d := range e.NetDevices {
		line("", "interface", route(d.HostInterface, d.Name), "")
	}
	for _, gid := range e.AdditionalGIDs {
		line("", "group", fmt.Sprint(gid), "")
	}
	if e.IntelRDT != "" {
		line("", "RDT class", e.IntelRDT, "")
	}
}

// route returns the paths on the node and in the container.
func route(from, to string) string {
	if from == to {
		return from
	}
	return from + " to " + to
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
