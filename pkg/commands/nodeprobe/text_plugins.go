// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

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
