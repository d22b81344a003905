// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	resourceapi "k8s.io/api/resource/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Do carries out an order that nobody refused, or that is forced. It changes the node. With
// cleanup, prepared claims are unprepared when it returns, even if ctx ends in the middle
// of it or a call fails halfway.
//
// Errors of drivers are in the checks. It only fails if ctx ends; the calls until then are
// in the answer, too.
func Do(ctx context.Context, host *node.Host, order *Order, opts CallOptions) (done *Preparation, err error) {
	done = &Preparation{TypeMeta: typeMeta("NodePreparation"), Operation: order.Operation, Claim: order.Claim, Calls: []*Call{}, Checks: []node.Check{}}
	names := order.Drivers()
	if len(names) == 0 {
		done.bad(checkFind, "", "the claim has no devices and no driver was named: there is nobody to call")
		return done, nil
	}
	all := registeredDrivers(ctx, host, opts.Look)
	for _, name := range names {
		plugin := done.choose(host, name, all)
		if plugin == nil {
			continue
		}
		if order.DryRun {
			done.Calls = append(done.Calls, &Call{
				Driver: name, Endpoint: plugin.Endpoint, Service: slices.Concat(plugin.draVersions(), []string{""})[0],
				Method: method(order.Operation), Request: []Claim{order.Claim}, DryRun: true,
			})
			continue
		}
		c := &caller{order: order, opts: opts, host: host, plugin: plugin, done: done}
		if err := c.run(ctx); err != nil {
			return done, err
		}
	}
	return done, ctx.Err()
}

// CallOptions configure calls of drivers.
//
// +k8s:deepcopy-gen=false
type CallOptions struct {
	// Look says how sockets are found.
	Look Options
	// Timeout limits one call; 0 means DefaultCallTimeout.
	Timeout time.Duration
	// Resolve looks up CDI names; nil if nobody can.
	Resolve Resolver
}

func (o CallOptions) timeout() time.Duration { return cmp.Or(o.Timeout, DefaultCallTimeout) }

// registered are the registered drivers, by name.
type registered struct {
	drivers map[string][]*Plugin
	// uncertainty says why there may be more of them, empty if there are not.
	uncertainty string
}

// registeredDrivers asks all registration sockets for their drivers.
func registeredDrivers(ctx context.Context, host *node.Host, opts Options) registered {
	registry := findSockets(ctx, host, path.Join(host.Kubelet, registryDir), checkRegistry)
	f := Findings{Plugins: make([]Plugin, len(registry.paths))}
	inTurn(len(registry.paths), func(i int) { f.Plugins[i] = askPlugin(ctx, host, registry.paths[i], opts) })
	return registered{f.drivers(), f.uncertainty(registry.checks)}
}

// uncertainty returns why a registered driver may not have been found. checks are the
// checks of the search for sockets.
func (f *Findings) uncertainty(checks []node.Check) string {
	if len(checks) > 0 {
		return checks[0].Message
	}
	for i := range f.Plugins {
		switch r := &f.Plugins[i].Registration; r.Answer {
		case node.Silent, node.Broken, node.Denied, node.NotAsked:
			return r.Path + ": " + r.Message
		case node.Answers, node.Stale, node.NotSocket, node.LeadsOut, node.Missing:
		}
	}
	return ""
}

// choose returns the instance of a driver that the kubelet would call: the last to register
// of the instances that answer.
func (p *Preparation) choose(host *node.Host, name string, all registered) *Plugin {
	plugins, registry := all.drivers[name], path.Join(host.Kubelet, registryDir)
	switch {
	case len(plugins) == 0 && all.uncertainty != "":
		p.notKnown(checkFind, registry, "whether driver %s registers here is not known: %s", name, all.uncertainty)
		return nil
	case len(plugins) == 0:
		p.bad(checkFind, registry, "driver %s does not register here, so the kubelet cannot call it either", name)
		return nil
	}
	var chosen *Plugin
	var newest time.Time
	for _, plugin := range plugins {
		if plugin.Service.Answer != node.Answers {
			continue
		}
		info, err := host.Stat(plugin.Registration.Path)
		if err == nil && (chosen == nil || info.ModTime().After(newest)) {
			chosen, newest = plugin, info.ModTime()
		}
	}
	if chosen == nil {
		s := plugins[0].Service
		p.bad(checkFind, s.Path, "driver %s registers, but its endpoint does not answer: %s", name, s.Message)
	}
	return chosen
}

// caller makes the calls of one order to one driver.
type caller struct {
	order  *Order
	opts   CallOptions
	host   *node.Host
	plugin *Plugin
	done   *Preparation
	// unanswered is set if a driver may still work on a call that timed out.
	unanswered bool
}

// run makes the ordered call, and undoes it if Cleanup is set.
func (c *caller) run(ctx context.Context) error {
	calling := ctx
	if c.order.Operation == PrepareOperation && c.order.Cleanup {
		var stop func()
		calling, stop = outlasting(ctx, lastAnswer)
		defer stop()
		defer func() {
			// An interruption must not keep the claim prepared.
			c.call(context.WithoutCancel(ctx), UnprepareOperation, checkCleanup)
			if c.unanswered {
				c.done.notKnown(checkCleanup, c.plugin.Endpoint, "driver %s may still finish NodePrepareResources, which it has not answered: unprepare the claim again later", c.plugin.Name)
			}
		}()
	}
	first := c.call(calling, c.order.Operation, checkCall)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.resolve(ctx, first)
	if c.order.Twice && first.Error == "" {
		second := c.call(calling, c.order.Operation, checkCall)
		if err := ctx.Err(); err != nil {
			return err
		}
		c.resolve(ctx, second)
		c.judgeTwice(first, second)
	}
	return nil
}

// lastAnswer is how long a driver may go on with a call after an interruption: if it is
// told to unprepare a claim that it is about to prepare, the claim may stay prepared.
const lastAnswer = 5 * time.Second

// outlasting returns a context that ends some time after ctx does.
func outlasting(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(longer, cancel)
		context.AfterFunc(later, func() { timer.Stop() })
	})
	return later, func() {
		stop()
		cancel()
	}
}

// call makes one call, records it and compares its reply with the claim.
func (c *caller) call(ctx context.Context, operation Operation, check string) *Call {
	ctx, cancel := context.WithTimeout(ctx, c.opts.timeout())
	defer cancel()
	call := &Call{
		Driver: c.plugin.Name, Endpoint: c.plugin.Endpoint, Request: []Claim{c.order.Claim},
		Method: method(operation),
	}
	replies, err := c.send(ctx, operation, call)
	call.Replied = slices.Sorted(maps.Keys(replies))
	own, replied := replies[c.order.Claim.UID]
	switch {
	case err != nil:
		if failure := (*node.SocketError)(nil); operation == PrepareOperation {
			c.unanswered = c.unanswered || status.Code(err) == codes.Canceled || errors.As(err, &failure) && failure.Answer == node.Silent
		}
		call.Error = reason(err)
		c.done.bad(check, call.Endpoint, "driver %s: %s fails: %s", call.Driver, call.Method, call.Error)
	case !replied:
		call.Error = "the reply does not have the claim"
		c.done.bad(checkReply, call.Endpoint, "driver %s: the reply of %s does not have the claim: the kubelet asks again and again", call.Driver, call.Method)
	case own.err != "":
		call.Error = clip(own.err)
		c.done.bad(check, call.Endpoint, "driver %s: %s fails for the claim: %s", call.Driver, call.Method, call.Error)
	default:
		c.done.good(check, call.Endpoint, "driver %s: %s done in %.0f ms", call.Driver, call.Method, max(call.Millis, 1))
	}
	if others := slices.DeleteFunc(slices.Clone(call.Replied), func(uid string) bool { return uid == c.order.Claim.UID }); len(others) > 0 {
		c.done.bad(checkReply, call.Endpoint, "driver %s: the reply of %s has %s not asked for (%s): the kubelet fails because of it",
			call.Driver, call.Method, english.Count(len(others), "claim"), clip(node.Sample(others)))
	}
	if err == nil && own.err == "" && operation == PrepareOperation {
		if len(own.devices) > maxDevices {
			c.done.bad(checkAllocated, call.Endpoint, "driver %s: the reply has %s, and a claim at most %d: the others were not looked at",
				call.Driver, english.Count(len(own.devices), "device"), resourceapi.AllocationResultsMaxSize)
			own.devices = own.devices[:maxDevices]
		}
		call.Devices = devicesOf(own.devices)
		if replied {
			c.judgeDevices(call)
		}
	}
	c.done.Calls = append(c.done.Calls, call)
	return call
}

// send calls the newest version of the service that the driver advertises, and the other
// one if it does not have that.
func (c *caller) send(ctx context.Context, operation Operation, call *Call) (map[string]reply, error) {
	versions := c.plugin.draVersions()
	if len(versions) == 0 {
		return nil, fmt.Errorf("it advertises neither v1.DRAPlugin nor v1beta1.DRAPlugin, only %s", cmp.Or(strings.Join(c.plugin.Versions, ", "), "nothing"))
	}
	conn, err := dial(ctx, c.host, c.plugin.Endpoint, inside(c.host, c.plugin.Endpoint))
	if err != nil {
		return nil, err
	}
	defer conn.close()
	started := time.Now()
	defer func() { call.Millis = millis(time.Since(started)) }()
	for _, version := range versions {
		call.Service = version
		var replies map[string]reply
		if replies, err = conn.draCall(ctx, version, operation, c.order.Claim); err == nil {
			if version != versions[0] {
				// validateSupportedServices, pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go.
				c.done.bad(checkVersion, call.Endpoint, "driver %s advertises %s and does not serve it: the kubelet calls no other, and fails", call.Driver, versions[0])
			}
			return replies, nil
		}
		if status.Code(err) != codes.Unimplemented {
			break
		}
	}
	return nil, conn.failed(err)
}

// method returns the gRPC method of an operation.
func method(operation Operation) string { return "Node" + string(operation) + "Resources" }

// draVersions returns the advertised versions of the service, newest first.
func (p *Plugin) draVersions() []string {
	var versions []string
	for _, a := range draAPIs() {
		if slices.Contains(p.Versions, a.name) {
			versions = append(versions, a.name)
		}
	}
	return versions
}

// draCall makes the call in one version of the API, for one claim or several.
func (c *client) draCall(ctx context.Context, version string, operation Operation, asked ...Claim) (map[string]reply, error) {
	service := drav1.NewDRAPluginClient(c)
	if version == drav1beta1.DRAPluginService {
		service = drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(c)}
	}
	claims := make([]*drav1.Claim, 0, len(asked))
	for _, claim := range asked {
		claims = append(claims, &drav1.Claim{Namespace: claim.Namespace, Uid: claim.UID, Name: claim.Name})
	}
	replies := map[string]reply{}
	if operation == UnprepareOperation {
		response, err := service.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims})
		if err != nil {
			return nil, err
		}
		for uid, r := range response.GetClaims() {
			replies[uid] = reply{err: r.GetError()}
		}
		return replies, nil
	}
	response, err := service.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
	if err != nil {
		return nil, err
	}
	for uid, r := range response.GetClaims() {
		replies[uid] = reply{err: r.GetError(), devices: r.GetDevices()}
	}
	return replies, nil
}

// reply is the reply to a call, the same for both operations and versions.
type reply struct {
	devices []*drav1.Device
	err     string
}

// devicesOf copies the devices in a reply.
func devicesOf(devices []*drav1.Device) []PreparedDevice {
	prepared := make([]PreparedDevice, 0, len(devices))
	for _, d := range devices {
		one := PreparedDevice{Requests: d.GetRequestNames(), Pool: d.GetPoolName(), Device: d.GetDeviceName(), ShareID: d.GetShareId()}
		for _, id := range d.GetCdiDeviceIds() {
			one.CDI = append(one.CDI, CDIDevice{ID: id})
		}
		prepared = append(prepared, one)
	}
	return prepared
}

const (
	// maxDevices limits the devices in a reply, and maxNames their CDI names: far more than
	// a claim can have, and less than fits into a reply.
	maxDevices = 100
	maxNames   = 1000
)

// judgeDevices compares the devices of a reply with the allocation.
func (c *caller) judgeDevices(call *Call) {
	results := c.order.results(call.Driver)
	seen := map[string]bool{}
	wrong := false
	bad := func(format string, args ...any) {
		wrong = true
		c.done.bad(checkAllocated, call.Endpoint, "driver %s: %s", call.Driver, fmt.Sprintf(format, args...))
	}
	prepared := map[string]bool{}
	for i := range call.Devices {
		d := &call.Devices[i]
		if d.Pool == "" || d.Device == "" {
			bad("the reply has a device without %s", map[bool]string{true: "a pool", false: "a name"}[d.Pool == ""])
			continue
		}
		id := d.key()
		if seen[id] {
			bad("the reply has the device %s twice", d.name())
		}
		seen[id] = true
		allocated := false
		for _, result := range results {
			if result.Pool == d.Pool && result.Device == d.Device && (d.ShareID == "" || string(ptr.Deref(result.ShareID, "")) == d.ShareID) {
				allocated = true
				prepared[result.Pool+"/"+result.Device] = true
			}
		}
		if !allocated && c.order.Object != nil {
			bad("the reply has the device %s, which the claim does not have", d.name())
		}
	}
	var left []string
	for _, result := range results {
		if name := result.Pool + "/" + result.Device; !prepared[name] && !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	switch {
	case len(left) > 0:
		c.done.notKnown(checkAllocated, call.Endpoint, "driver %s: the reply does not have %s: nothing of it gets into a container, which a driver may want", call.Driver, strings.Join(left, ", "))
	case !wrong && c.order.Object != nil:
		c.done.good(checkAllocated, call.Endpoint, "driver %s: the reply has the %s that the claim has", call.Driver, english.Count(len(call.Devices), "device"))
	}
}

// name returns the device's name in messages.
func (d *PreparedDevice) name() string { return clip(d.Pool + "/" + d.Device) }

// key returns a key that identifies an entry of a reply.
func (d *PreparedDevice) key() string {
	requests := slices.Sorted(slices.Values(d.Requests))
	return strings.Join(append([]string{d.Pool, d.Device, d.ShareID}, requests...), "\x00")
}

// judgeTwice compares the replies to the same call: the kubelet may repeat it at any time,
// so nothing may change.
func (c *caller) judgeTwice(first, second *Call) {
	method, driver := second.Method, second.Driver
	switch {
	case second.Error != "":
		c.done.bad(checkIdempotent, second.Endpoint, "driver %s: %s is not idempotent: the second call fails", driver, method)
	case !slices.Equal(outcomes(first), outcomes(second)):
		c.done.bad(checkIdempotent, second.Endpoint, "driver %s: %s is not idempotent: the second call brings other devices or CDI names", driver, method)
	default:
		c.done.good(checkIdempotent, second.Endpoint, "driver %s: %s a second time brings the same", driver, method)
	}
}

// outcomes returns the devices of a call with their CDI names, in an order independent of
// the reply.
func outcomes(call *Call) []string {
	var all []string
	for i := range call.Devices {
		d := &call.Devices[i]
		text := d.key()
		for _, cdi := range d.CDI {
			text += "\x00" + cdi.ID
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// resolve looks up the CDI names of a call.
func (c *caller) resolve(ctx context.Context, call *Call) {
	var names []*CDIDevice
	for i := range call.Devices {
		for j := range call.Devices[i].CDI {
			names = append(names, &call.Devices[i].CDI[j])
		}
	}
	switch {
	case len(names) == 0:
		return
	case c.opts.Resolve == nil:
		c.done.notKnown(checkCDI, "", "driver %s: what the %s mean was not looked up", call.Driver, english.Count(len(names), "CDI name"))
		return
	case len(names) > maxNames:
		c.done.notKnown(checkCDI, "", "driver %s: the reply has %s, of which %s were looked up", call.Driver, english.Count(len(names), "CDI name"), english.Thousands(maxNames))
		names = names[:maxNames]
	}
	find := c.opts.Resolve(ctx)
	for _, device := range names {
		c.resolveOne(call, device, find)
	}
}

func (c *caller) resolveOne(call *Call, device *CDIDevice, find func(string) (*Edits, error)) {
	edits, err := find(device.ID)
	switch {
	case errors.Is(err, node.ErrNotRead):
		device.Error = clip(err.Error())
		c.done.notKnown(checkCDI, "", "driver %s: whether the CDI name %s resolves is not known: %s", call.Driver, clip(device.ID), device.Error)
		return
	case err != nil:
		device.Error = clip(err.Error())
		c.done.bad(checkCDI, "", "driver %s: the CDI name %s does not resolve, so the container does not start: %s", call.Driver, clip(device.ID), device.Error)
		return
	}
	device.Edits = edits
	amiss := 0
	for _, n := range edits.DeviceNodes {
		switch n.State {
		case node.OK:
		case node.Unknown:
			amiss++
			c.done.notKnown(checkCDI, n.HostPath, "driver %s: the device file of %s, named in %s, could not be seen: %s", call.Driver, device.ID, edits.Spec, n.Message)
		case node.Problem:
			amiss++
			c.done.bad(checkCDI, n.HostPath, "driver %s: the device file of %s, named in %s: %s", call.Driver, device.ID, edits.Spec, n.Message)
		}
	}
	if amiss == 0 {
		c.done.good(checkCDI, edits.Spec, "driver %s: the CDI name %s resolves, with %s", call.Driver, device.ID, english.Count(len(edits.DeviceNodes), "device file"))
	}
}
