// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
)

// NodeCDI draws what the CDI directories of a node have. With -o wide it shows
// all that is done to a container.
func NodeCDI(w io.Writer, f *cdi.Findings, opts Options) error {
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

// blankBetween separates what is drawn one after the other.
func (p *page) blankBetween(i int) {
	if i > 0 {
		p.blank()
	}
}

// write gives the page out.
func (p *page) write(w io.Writer) error {
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (p *page) cdiDirectories(f *cdi.Findings) {
	p.text(0, strong, "CDI specs on "+onNode(f.Node))
	for _, d := range f.Directories {
		what := english.Count(d.Specs, "spec")
		switch {
		case d.Unread:
			what = "not read"
		case d.Error != "":
			what = "cannot be read"
		case !d.Exists:
			what = "does not exist"
		}
		p.text(2, plain, d.Path+": "+what)
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
		p.blank()
		// The path of a spec is as long as a line.
		p.gridOf(0, len(lines[0])-1, lines)
	}
	if !p.opts.Wide {
		return
	}
	for s := range f.Specs {
		spec := &f.Specs[s]
		if spec.Error != "" {
			continue
		}
		p.blank()
		p.text(0, strong, spec.Path)
		p.edits(2, &spec.Edits)
		for i := range spec.Devices {
			p.text(2, plain, spec.Devices[i].ID)
			p.edits(4, &spec.Devices[i].Edits)
		}
	}
}

// atFault counts what is not as it should be.
func atFault(state cdi.Presence) int {
	if state == cdi.Absent || state == cdi.Different {
		return 1
	}
	return 0
}

// tally counts edits, and those of them that are at fault: "3, 1 not there".
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
	p.text(0, strong, r.ID)
	if r.Edits == nil {
		m := bad
		if r.Unknown {
			m = unsure
		}
		p.text(2, m, r.Error)
		return
	}
	p.edits(2, r.Edits)
}

// edits lists what is done to a container.
func (p *page) edits(indent int, e *cdi.Edits) {
	line := func(state cdi.Presence, kind, text, found string) {
		sign := cell{text: "✓", width: 1, mark: good}
		switch state {
		case cdi.Present:
		case cdi.NotNeeded:
			text += ", not on the node, and made by the runtime"
		case cdi.Absent:
			sign = cell{text: "✗", width: 1, mark: bad}
			text += ", not on the node"
		case cdi.Different:
			sign = cell{text: "✗", width: 1, mark: bad}
			text += ", the node has " + found
		case cdi.NotSeen:
			sign = cell{text: "?", width: 1, mark: unsure}
			text += ", could not be looked at: " + found
		default:
			sign.text = " "
		}
		p.row(indent, sign, cell{text: kind, width: len("device node")}, cell{text: text})
	}
	for _, d := range e.DeviceNodes {
		line(d.State, "device node", strings.Join(strings.Fields(route(d.HostPath, d.Path)+" "+d.Type+" "+d.Number), " "), d.Found)
	}
	for _, m := range e.Mounts {
		line(m.State, "mount", route(m.HostPath, m.ContainerPath)+parenthesis(strings.Join(m.Options, ",")), m.Found)
	}
	for _, h := range e.Hooks {
		line(h.State, "hook", strings.Join(append([]string{h.Name, h.Path}, h.Args[min(1, len(h.Args)):]...), " "), h.Found)
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

// route says where something is on the node and in the container.
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
