// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// compare compares the drivers of the node with the slices of the cluster. blind is as in
// [Findings.judge].
func (f *Findings) compare(snap *snapshot.Snapshot, around *node.Cluster, blind bool) {
	f.compareUsers(around, blind)
	switch {
	case snap == nil:
		f.notKnown(checkSlices, "", "no cluster and no snapshot was read: which drivers should be here is not known")
		return
	case f.Node == "":
		f.notKnown(checkSlices, "", "the slices of the node could not be found: %s", around.Unknown)
		return
	}
	if gap := snap.Gap(snapshot.ResourceSlices); gap != nil {
		f.notKnown(checkSlices, "", "which drivers should be here is not known: %s", gap.Reason)
		return
	}
	target := snap.Node(f.Node)
	if target == nil {
		f.notKnown(checkSlices, "", "node %s could not be read, so neither could its slices be found", f.Node)
		return
	}
	own, reached := map[string]int{}, map[string]int{}
	for _, slice := range snap.Slices {
		if owns(slice, target) {
			own[slice.Spec.Driver]++
		}
		if reaches(slice, target) {
			reached[slice.Spec.Driver]++
		}
	}
	f.compareDrivers(own, reached, blind)
}

// compareDrivers finds drivers that only one side knows. own counts slices for the node
// alone, reached all that it can use.
func (f *Findings) compareDrivers(own, reached map[string]int, blind bool) {
	drivers := f.drivers()
	for _, name := range sorted(own) {
		if len(drivers[name]) > 0 {
			continue
		}
		if unsure := f.unsure(name, blind); unsure != "" {
			f.notKnown(checkSlices, "", "driver %s has %s for this node, and %s", name, english.Count(own[name], "slice"), unsure)
			continue
		}
		f.bad(checkSlices, "", "driver %s has %s for this node, but no socket: the kubelet says that it is not registered, and pods with its devices do not start", name, english.Count(own[name], "slice"))
	}
	for _, name := range sorted(drivers) {
		switch {
		case own[name] > 0:
			f.good(checkSlices, "", "driver %s has %s for this node", name, english.Count(own[name], "slice"))
		case reached[name] > 0:
			f.good(checkSlices, "", "driver %s has no slice for this node alone, but %s that it can use", name, english.Count(reached[name], "slice"))
		default:
			f.bad(checkSlices, drivers[name][0].Registration.Path, "driver %s runs, but there is no slice of it for this node: it found no devices, or failed to publish them", name)
		}
	}
}

// compareUsers finds drivers that do not register here although pods of the node use, or
// are about to use, their devices: the kubelet can neither prepare nor unprepare the claims
// of such a pod.
func (f *Findings) compareUsers(around *node.Cluster, blind bool) {
	if around == nil {
		return
	}
	drivers := f.drivers()
	users := map[string][]string{}
	for _, pod := range around.Pods {
		name := pod.Namespace + "/" + pod.Name
		for _, claim := range around.ClaimsOf(pod) {
			if claim.Status.Allocation == nil || !node.ReservedFor(claim, pod) {
				continue
			}
			for _, result := range claim.Status.Allocation.Devices.Results {
				if len(drivers[result.Driver]) == 0 && !slices.Contains(users[result.Driver], name) && !skipsBoth(&result) {
					users[result.Driver] = append(users[result.Driver], name)
				}
			}
		}
	}
	for _, name := range sorted(users) {
		uses := fmt.Sprintf("%s of this node %s devices of driver %s (%s)", english.Count(len(users[name]), "pod"),
			map[bool]string{true: "uses", false: "use"}[len(users[name]) == 1], name, node.Sample(users[name]))
		if unsure := f.unsure(name, blind); unsure != "" {
			f.notKnown(checkUsers, "", "%s; %s", uses, unsure)
			continue
		}
		f.bad(checkUsers, "", "%s, and no socket registers it: the kubelet can neither prepare nor unprepare their claims", uses)
	}
}

// skipsBoth reports whether the kubelet calls nobody for a device (KEP-5945).
func skipsBoth(result *resourceapi.DeviceRequestAllocationResult) bool {
	skips := func(operation resourceapi.SkipNodeOperation) bool {
		return slices.Contains(result.SkipNodeOperations, operation)
	}
	return skips(resourceapi.SkipNodeOperationAll) ||
		skips(resourceapi.SkipNodeOperationNodePrepareResources) && skips(resourceapi.SkipNodeOperationNodeUnprepareResources)
}

// unsure says why a driver that no socket names may be registered all the same; empty if it
// is not.
func (f *Findings) unsure(name string, blind bool) string {
	mute := slices.ContainsFunc(f.Plugins, func(p Plugin) bool { return p.Registration.Answer != node.Answers })
	switch {
	case blind:
		return "whether it registers is not known"
	case mute && f.mayBe(name):
		return "no socket that answers is its own; one that does not answer may be"
	default:
		return ""
	}
}

// mayBe reports whether a socket that did not give its name could belong to the driver.
func (f *Findings) mayBe(driver string) bool {
	return slices.ContainsFunc(f.Plugins, func(p Plugin) bool {
		return p.Registration.Answer != node.Answers && p.Registration.Answer != node.Stale && p.Registration.Answer != node.Missing &&
			(strings.Contains(p.Registration.Path, driver) || p.Registration.Answer == node.Denied)
	})
}

// owns reports whether a slice is for this node and no other.
func owns(slice *resourceapi.ResourceSlice, target *corev1.Node) bool {
	name := slice.Spec.NodeName
	return name != nil && *name == target.Name
}

// reaches reports whether the node can use devices of a slice. An invalid selector selects
// nothing.
func reaches(slice *resourceapi.ResourceSlice, target *corev1.Node) bool {
	reach := func(name *string, all *bool, selector *corev1.NodeSelector) bool {
		if name != nil && *name == target.Name || all != nil && *all {
			return true
		}
		return selects(selector, target)
	}
	return reach(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector) ||
		slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return reach(d.NodeName, d.AllNodes, d.NodeSelector) })
}

// selects reports whether a selector matches a node; none matches no node.
func selects(selector *corev1.NodeSelector, target *corev1.Node) bool {
	if selector == nil {
		return false
	}
	parsed, err := nodeaffinity.NewNodeSelector(selector)
	return err == nil && parsed.Match(target)
}
