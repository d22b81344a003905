// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// NodePreparation draws what drivers did with a claim.
func NodePreparation(w io.Writer, done *driver.Preparation, opts Options) error {
	p := newPage(opts)
	p.text(0, strong, fmt.Sprintf("%s ResourceClaim %s/%s (UID %s)", done.Operation, done.Claim.Namespace, done.Claim.Name, done.Claim.UID))
	for _, r := range done.Refusals {
		p.text(2, unsure, "forced: "+r.Reason+"; "+r.Consequence)
	}
	for _, call := range done.Calls {
		p.blank()
		p.call(call)
	}
	p.nodeChecks(done.Checks)
	return p.write(w)
}

// call draws a request and its reply.
func (p *page) call(call *driver.Call) {
	p.text(0, plain, fmt.Sprintf("%s of driver %s at %s", call.Method, call.Driver, call.Endpoint))
	service := call.Service
	if service == "" {
		service = "nothing"
	}
	for _, c := range call.Request {
		p.text(2, plain, fmt.Sprintf("-> %s: namespace %s, name %s, uid %s", service, c.Namespace, c.Name, c.UID))
	}
	switch {
	case call.DryRun:
		p.text(2, plain, "not sent (dry run)")
		return
	case call.Error != "":
		p.text(2, bad, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), call.Error))
		return
	case len(call.Devices) == 0:
		p.text(2, plain, fmt.Sprintf("<- after %s: no error", millisText(call.Millis)))
		return
	}
	p.text(2, plain, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), english.Count(len(call.Devices), "device")))
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
	p.text(4, plain, text)
	for _, cdi := range d.CDI {
		p.text(6, plain, "CDI "+cdi.ID)
		if cdi.Error != "" {
			p.text(8, bad, cdi.Error)
		}
		if cdi.Edits != nil {
			p.preparedEdits(8, cdi.Edits)
		}
	}
}

func (p *page) preparedEdits(indent int, e *driver.Edits) {
	line := func(sign cell, kind, text string) {
		p.row(indent, sign, cell{text: kind, width: len("device file")}, cell{text: text})
	}
	none := cell{width: 1}
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
