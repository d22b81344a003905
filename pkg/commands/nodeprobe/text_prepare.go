// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writePreparation draws the calls of drivers for a claim.
func writePreparation(w io.Writer, done *driver.Preparation, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, fmt.Sprintf("%s ResourceClaim %s/%s (UID %s)", done.Operation, done.Claim.Namespace, done.Claim.Name, done.Claim.UID))
	for _, r := range done.Refusals {
		p.Text(2, render.Unsure, "forced: "+r.Reason+"; "+r.Consequence)
	}
	for _, call := range done.Calls {
		p.Blank()
		p.call(call)
	}
	p.nodeChecks(done.Checks)
	return p.write(w)
}

// call draws a request and its reply.
func (p *page) call(call *driver.Call) {
	p.Text(0, render.Plain, fmt.Sprintf("%s of driver %s at %s", call.Method, call.Driver, call.Endpoint))
	service := call.Service
	if service == "" {
		service = "nothing"
	}
	for _, c := range call.Request {
		p.Text(2, render.Plain, fmt.Sprintf("-> %s: namespace %s, name %s, uid %s", service, c.Namespace, c.Name, c.UID))
	}
	switch {
	case call.DryRun:
		p.Text(2, render.Plain, "not sent (dry run)")
		return
	case call.Error != "":
		p.Text(2, render.Bad, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), call.Error))
		return
	case len(call.Devices) == 0:
		p.Text(2, render.Plain, fmt.Sprintf("<- after %s: no error", millisText(call.Millis)))
		return
	}
	p.Text(2, render.Plain, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), english.Count(len(call.Devices), "device")))
	for i := range call.Devices {
		p.preparedDevice(&call.Devices[i])
	}
}

func (p *page) preparedDevice(d *driver.PreparedDevice) {
	requests := strings.Join(d.Requests, ",")
	if requests == "" {
		requests = "all requests"
	}
	text := fmt.Sprintf("%s/%s for %s", d.Pool, d.Device, requests)
	if d.ShareID != "" {
		text += ", share " + d.ShareID
	}
	p.Text(4, render.Plain, text)
	for _, cdi := range d.CDI {
		p.Text(6, render.Plain, "CDI "+cdi.ID)
		if cdi.Error != "" {
			p.Text(8, render.Bad, cdi.Error)
		}
		if cdi.Edits != nil {
			p.preparedEdits(8, cdi.Edits)
		}
	}
}

func (p *page) preparedEdits(indent int, e *driver.Edits) {
	line := func(sign render.Cell, kind, text string) {
		p.Row(indent, sign, render.Cell{Text: kind, Width: len("device file")}, render.Cell{Text: text})
	}
	none := render.Cell{Width: 1}
	for _, n := range e.DeviceNodes {
		text := n.HostPath
		if n.Path != n.HostPath {
			text += " as " + n.Path
		}
		if n.State != node.OK {
			text += ": " + n.Message
		}
		line(nodeSign(n.State), "device file", text)
	}
	for _, list := range []struct {
		kind  string
		items []string
	}{{"mount", e.Mounts}, {"env", e.Env}, {"hook", e.Hooks}} {
		for _, item := range list.items {
			line(none, list.kind, item)
		}
	}
}
