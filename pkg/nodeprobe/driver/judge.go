// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// judge turns the answers of sockets into checks. It is blind if not all registrations were
// looked at.
func (f *Findings) judge(host *node.Host, blind bool) {
	for i := range f.Plugins {
		f.judgePlugin(&f.Plugins[i])
	}
	f.judgeDuplicates()
	for i := range f.Others {
		f.judgeOther(&f.Others[i], blind)
	}
	for i := range f.DevicePlugins {
		f.DevicePlugins[i].judge(f)
	}
	f.judgeAccess(host)
}

// judge adds the checks of a device plugin.
func (p *DevicePlugin) judge(f *Findings) {
	if p.Answer != node.Answers {
		f.silent(checkDevices, &p.Socket, "the kubelet removes it when it restarts")
		return
	}
	f.good(checkDevices, p.Path, "a device plugin %s", speed(&p.Socket))
	var unhealthy, twice []string
	for i := range p.Devices {
		d := &p.Devices[i]
		if !d.healthy() {
			unhealthy = append(unhealthy, d.ID)
		}
		if i > 0 && p.Devices[i-1].ID == d.ID {
			twice = append(twice, d.ID)
		}
	}
	if len(twice) > 0 {
		f.bad(checkDevices, p.Path, "the device plugin reports more than once: %s", node.Sample(twice))
	}
	switch {
	case len(unhealthy) > 0:
		f.bad(checkHealthy, p.Path, "the device plugin reports as unhealthy: %s", node.Sample(unhealthy))
	case p.Devices != nil:
		f.good(checkHealthy, p.Path, "the device plugin reports %s, all healthy", english.Count(len(p.Devices)+p.Omitted, "device"))
	}
	if p.Omitted > 0 {
		f.notKnown(checkDevices, p.Path, "not shown: %s; the device plugin reports more than %d, or IDs of more than %d bytes", english.Count(p.Omitted, "device"), maxPluginDevices, maxID)
	}
}

func (f *Findings) good(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.Good(name, path, format, args...))
}

func (f *Findings) bad(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.Bad(name, path, format, args...))
}

func (f *Findings) notKnown(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.NotKnown(name, path, format, args...))
}

// silent adds the check of a socket that did not answer, and the consequence if nobody
// listens on it.
func (f *Findings) silent(name string, s *Socket, stale string) {
	if s.Answer == node.Stale {
		f.bad(name, s.Path, "stale: %s; %s", s.Message, stale)
		return
	}
	f.Checks = append(f.Checks, node.Check{Name: name, State: s.Answer.State(), Path: s.Path, Message: s.Message})
}

func (f *Findings) judgePlugin(p *Plugin) {
	r := &p.Registration
	if r.Answer != node.Answers {
		f.silent(checkRegistered, r, "its process ended without removing it, and the kubelet tries it again and again")
		return
	}
	if !p.IsDRA() {
		f.good(checkRegistered, r.Path, "%s %s %s", p.Type, p.Name, speed(r))
		return
	}
	if problems := validation.IsDNS1123Subdomain(p.Name); len(p.Name) > maxName || len(problems) > 0 {
		f.bad(checkRegistered, r.Path, "registers as %q, which is not a valid driver name", p.Name)
	} else {
		f.good(checkRegistered, r.Path, "driver %s registers, %s", p.Name, speed(r))
	}
	s := p.Service
	if s.Answer != node.Answers {
		f.silent(checkEndpoint, s, fmt.Sprintf("driver %s registered it as its endpoint", p.Name))
	} else {
		f.good(checkEndpoint, s.Path, "driver %s %s%s", p.Name, speed(s), servesText(s))
	}
	f.judgeVersions(p)
}

// servesText lists the known services of a socket.
func servesText(s *Socket) string {
	var names []string
	for _, service := range s.Services {
		if service.Served == ServedYes {
			names = append(names, service.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " and serves " + strings.Join(names, ", ")
}

// judgeVersions compares the versions that a driver advertises with the kubelet's and the
// server's.
func (f *Findings) judgeVersions(p *Plugin) {
	if !slices.ContainsFunc(draAPIs(), func(a draAPI) bool { return slices.Contains(p.Versions, a.name) }) {
		f.Checks = append(f.Checks, node.Check{
			Name: checkVersions, State: node.Problem, Path: p.Registration.Path,
			Message: fmt.Sprintf("driver %s advertises no version of the DRA service that a kubelet since 1.34 takes", p.Name),
			Found:   strings.Join(p.Versions, ", "), Required: "v1.DRAPlugin or v1beta1.DRAPlugin",
		})
	}
	for _, service := range p.Service.Services {
		if service.Advertised && service.Served == ServedNo {
			f.bad(checkVersions, p.Endpoint, "driver %s advertises %s, but the server at its endpoint does not have it", p.Name, service.Name)
		}
	}
}

// judgeDuplicates finds drivers that register more than once.
func (f *Findings) judgeDuplicates() {
	byName := f.drivers()
	for _, name := range sorted(byName) {
		plugins := byName[name]
		if len(plugins) == 1 {
			continue
		}
		sockets := make([]string, 0, len(plugins))
		endpoints := map[string]bool{}
		for _, p := range plugins {
			sockets = append(sockets, p.Registration.Path)
			endpoints[p.Endpoint] = true
		}
		if len(endpoints) < len(plugins) {
			f.bad(checkDuplicates, plugins[0].Registration.Path, "driver %s registers the same endpoint by %d sockets, and the kubelet takes only one: %s",
				name, len(plugins), strings.Join(sockets, ", "))
			continue
		}
		f.notKnown(checkDuplicates, plugins[0].Registration.Path, "driver %s registers by %d sockets: right while it is updated, wrong if it stays so: %s",
			name, len(plugins), strings.Join(sockets, ", "))
	}
}

// judgeOther checks a socket that no registration names.
func (f *Findings) judgeOther(s *Socket, blind bool) {
	isDriver := slices.ContainsFunc(s.Services, func(service Service) bool { return service.Served == ServedYes })
	// A registration that this user may not ask can name any endpoint.
	hidden := blind || slices.ContainsFunc(f.Plugins, func(p Plugin) bool {
		return p.Registration.Answer == node.Denied || p.Registration.Answer == node.NotAsked
	})
	switch {
	case s.Answer == node.Answers && isDriver && hidden:
		f.notKnown(checkOthers, s.Path, "a DRA driver %s, and whether it registers is not known: not every registration could be asked", speed(s))
	case s.Answer == node.Answers && isDriver:
		f.bad(checkOthers, s.Path, "a DRA driver %s, but no registration names it: the kubelet does not know it", speed(s))
	case s.Answer == node.Answers:
		f.good(checkOthers, s.Path, "something that is no DRA driver, or does not say so, %s", speed(s))
	case s.Answer == node.Missing:
		// The socket is gone.
	case s.Answer == node.Silent || s.Answer == node.Broken:
		f.notKnown(checkOthers, s.Path, "no registration names it, and it %s", s.Message)
	default:
		f.silent(checkOthers, s, "no registration names it")
	}
}

// judgeAccess finds sockets that everybody on the node can use.
func (f *Findings) judgeAccess(host *node.Host) {
	check := func(s *Socket, whose string) {
		if s.looked(host) {
			f.Checks = append(f.Checks, node.Check{
				Name: checkAccess, State: node.Problem, Path: s.Path,
				Message: "everybody on the node may connect to " + whose, Found: s.Mode, Required: "no w for others",
			})
		}
	}
	for i := range f.Plugins {
		p := &f.Plugins[i]
		if p.Service != nil && p.Service.Answer != node.LeadsOut {
			check(p.Service, "the driver "+p.Name)
		}
	}
}
