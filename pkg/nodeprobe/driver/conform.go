// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Conform tests a driver with claims that nobody uses, see [ConformOrder]. It changes the
// node, and unprepares whatever it had prepared, even if ctx ends in the middle of it. Each
// error of the driver is the result of the requirement that it breaks; requirements that
// depend on it are not tested then.
//
// It only fails if ctx ends; the results until then are in the answer, too.
func Conform(ctx context.Context, host *node.Host, driver string, opts ConformOptions) (*Conformance, error) {
	c := &conformer{
		host: host, opts: &opts, out: &Conformance{
			TypeMeta: typeMeta("DriverConformance"), Driver: driver, Software: softwareOf(host, &opts), Claims: []Claim{}, Results: []Conformity{},
		},
		driver: &testedDriver{host: host, name: driver, opts: &opts, open: map[Claim]bool{}},
	}
	for _, claim := range opts.Claims {
		c.out.Claims = append(c.out.Claims, claimOf(claim))
	}
	defer func() { c.out.Results = append(c.out.Results, c.driver.cleanUp(context.WithoutCancel(ctx))...) }()
	// A driver that is told to unprepare what it is about to prepare may keep it.
	calling, stop := outlasting(ctx, lastAnswer)
	defer stop()
	for _, r := range c.requirements() {
		c.driver.exchanges = nil
		v := r.try(calling)
		if err := ctx.Err(); err != nil {
			return c.out, err
		}
		c.out.Results = append(c.out.Results, Conformity{
			Name: r.name, State: v.state, Message: v.message, Source: r.source, Needs: v.needs, Exchanges: c.driver.exchanges,
		})
	}
	return c.out, nil
}

// softwareOf returns the versions of the cluster and the node, as far as the cluster knows
// them.
func softwareOf(host *node.Host, opts *ConformOptions) *Software {
	s := &Software{Program: opts.Program}
	if opts.Cluster == nil {
		return s
	}
	s.Kubernetes = opts.Cluster.ServerVersion
	if around := host.In(opts.Cluster); around.Node != "" {
		if object := opts.Cluster.Node(around.Node); object != nil {
			info := &object.Status.NodeInfo
			s.Kubelet, s.ContainerRuntime = info.KubeletVersion, info.ContainerRuntimeVersion
			if info.OperatingSystem != "" {
				s.OperatingSystem = info.OperatingSystem + "/" + info.Architecture
			}
		}
	}
	return s
}

// requirement is a rule for drivers.
type requirement struct {
	name, source string
	try          func(context.Context) verdict
}

// requirements returns all of them, each after its dependencies.
func (c *conformer) requirements() []requirement {
	return []requirement{
		{conformRegistration, kep + ", kubelet plugin registration", c.registration},
		{conformVersions, kep + ", and validateSupportedServices of the kubelet", c.versions},
		{conformGetInfo, protoInfo, c.getInfo},
		{conformSlices, kep + ", and " + resourceAPI, c.slices},
		{conformHealth, "KEP-4680, and k8s.io/kubelet/pkg/apis/dra-health/v1/api.proto", c.health},
		{conformPrepare, protoPrepare, c.prepare},
		{conformCDI, kep + ", CDI devices", c.cdi},
		{conformTwice, helper + "DRAPlugin.PrepareResourceClaims", c.prepareTwice},
		{conformReplaced, helper + "getResourceClaims", c.prepareReplaced},
		{conformUnallocated, helper + "getResourceClaims", c.prepareUnallocated},
		{conformForeign, helper + "DRAPlugin.PrepareResourceClaims", c.prepareForeign},
		{conformErrors, protoPrepare, c.errorsPerClaim},
		{conformRestart, helper + "DRAPlugin.UnprepareResourceClaims", c.restart},
		{conformUnprepare, protoRevert, c.unprepare},
		{conformGone, helper + "DRAPlugin.UnprepareResourceClaims", c.unprepareTwice},
		{conformUnknown, helper + "DRAPlugin.UnprepareResourceClaims", c.unprepareUnknown},
		{conformSeveral, protoPrepare, c.several},
		{conformGeneration, resourceAPI + ", ResourcePool.generation", c.generation},
		{conformStop, helper + "Helper.Stop", c.stop},
	}
}

// registration finds the instance that the kubelet would call.
func (c *conformer) registration(ctx context.Context) verdict {
	all := registeredDrivers(ctx, c.host, c.opts.Look)
	var found Preparation
	plugin := found.choose(c.host, c.out.Driver, all)
	if plugin == nil {
		return verdict{state: found.Checks[0].State, message: found.Checks[0].Message}
	}
	c.driver.plugin, c.out.Endpoint = plugin, plugin.Endpoint
	c.out.Software.Services, c.out.Software.Images = plugin.Versions, c.driver.images(ctx)
	if problems := validation.IsDNS1123Subdomain(plugin.Name); len(plugin.Name) > maxName || len(problems) > 0 {
		return fails("registers as %q, which is not a valid driver name", plugin.Name)
	}
	if n := len(all.drivers[plugin.Name]); n > 1 {
		return open("it registers by %d sockets: right while it is updated, wrong if it stays so; %s is tried", n, plugin.Registration.Path)
	}
	return conforms("it registers at %s, and its endpoint %s answers", plugin.Registration.Path, plugin.Endpoint)
}

func (c *conformer) versions(context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	for _, service := range c.driver.plugin.Service.Services {
		if service.Advertised && service.Served == ServedNo {
			return fails("it advertises %s, and the server at its endpoint does not have it", service.Name)
		}
	}
	versions := c.driver.plugin.draVersions()
	switch {
	case len(versions) == 0:
		return fails("it advertises neither v1.DRAPlugin nor v1beta1.DRAPlugin, only %s", cmp.Or(strings.Join(c.driver.plugin.Versions, ", "), "nothing"))
	case versions[0] != drav1.DRAPluginService:
		return open("it advertises %s and not v1.DRAPlugin, which a driver may choose for kubelets that take it", strings.Join(versions, ", "))
	}
	return conforms("it advertises %s, and serves what it advertises", strings.Join(c.driver.plugin.Versions, ", "))
}

// getInfo asks once more: the kubelet does so whenever it sees the socket again.
func (c *conformer) getInfo(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	again := askPlugin(ctx, c.host, c.driver.plugin.Registration.Path, c.opts.Look)
	switch {
	case again.Registration.Answer != node.Answers:
		return fails("GetInfo fails when it is called again: %s", again.Registration.Message)
	case again.Type != c.driver.plugin.Type || again.Name != c.driver.plugin.Name || again.Endpoint != c.driver.plugin.Endpoint || !slices.Equal(again.Versions, c.driver.plugin.Versions):
		return fails("GetInfo says something else when it is called again")
	}
	return conforms("GetInfo says the same when it is called again")
}

func (c *conformer) prepare(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	call, v := c.driver.call(ctx, PrepareOperation, checkCall, checkReply, checkAllocated)
	if call.Error == "" {
		c.first = call
	}
	if v.state == node.OK {
		return conforms("the reply has the claim, and its %s", english.Count(len(call.Devices), "device"))
	}
	return v
}

func (c *conformer) cdi(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	calls := c.driver.caller()
	calls.resolve(ctx, c.first)
	if len(calls.done.Checks) == 0 {
		return open("the reply has no CDI names, which a driver may choose")
	}
	return worstOf(calls.done.Checks, checkCDI)
}

func (c *conformer) prepareTwice(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	second, _ := c.driver.call(ctx, PrepareOperation, checkCall)
	calls := c.driver.caller()
	calls.judgeTwice(c.first, second)
	v := worstOf(calls.done.Checks, checkIdempotent)
	c.unstable = v.state == node.Problem
	return v
}

// prepareReplaced prepares a claim with the UID of a deleted claim that had the same name.
func (c *conformer) prepareReplaced(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	claim := c.out.Claims[0]
	claim.UID = uuid.NewString()
	return c.refused(ctx, claim, "a claim that was replaced by another one of its name")
}

func (c *conformer) prepareUnallocated(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if c.opts.Unallocated == nil {
		return untested(NeedUnallocated, "that takes a claim that is not allocated")
	}
	return c.refused(ctx, claimOf(c.opts.Unallocated), "a claim that is not allocated")
}

// refused prepares a claim that must be refused, and unprepares it if it is not.
func (c *conformer) refused(ctx context.Context, claim Claim, what string) verdict {
	replies, err := c.driver.send(ctx, PrepareOperation, claim)
	own, replied := replies[claim.UID]
	c.driver.forget(ctx, claim)
	switch {
	case err != nil && c.driver.broken(ctx):
		return fails("preparing %s ends the driver: %s", what, reason(err))
	case err != nil:
		return conforms("preparing %s fails: %s", what, reason(err))
	case !replied:
		return fails("the reply for %s does not have it: the kubelet asks again and again", what)
	case own.err == "":
		return fails("it prepares %s", what)
	}
	return conforms("preparing %s fails: %s", what, clip(own.err))
}

// prepareForeign prepares a claim that has devices, but none of the driver. The kubelet
// never makes this call: the driver may refuse it, and must not give devices.
func (c *conformer) prepareForeign(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if c.opts.Foreign == nil {
		return untested(NeedForeign, "that takes a claim with devices of another driver")
	}
	claim := claimOf(c.opts.Foreign)
	replies, err := c.driver.send(ctx, PrepareOperation, claim)
	own := replies[claim.UID]
	c.driver.forget(ctx, claim)
	switch {
	case err != nil && c.driver.broken(ctx):
		return fails("preparing a claim of another driver ends the driver: %s", reason(err))
	case err != nil:
		return conforms("preparing a claim of another driver fails: %s", reason(err))
	case own.err != "":
		return conforms("preparing a claim of another driver fails: %s", clip(own.err))
	case len(own.devices) > 0:
		return fails("it gives %s/%s for a claim that has only devices of other drivers", clip(own.devices[0].GetPoolName()), clip(own.devices[0].GetDeviceName()))
	}
	return conforms("it gives no devices for a claim of another driver")
}

// errorsPerClaim prepares a claim together with a claim that does not exist.
func (c *conformer) errorsPerClaim(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	known, unknown := c.out.Claims[0], unknownClaim(c.opts.Claims[0].Namespace)
	replies, err := c.driver.send(ctx, PrepareOperation, known, unknown)
	c.driver.forget(ctx, unknown)
	good, replied := replies[known.UID]
	bad, told := replies[unknown.UID]
	switch {
	case err != nil && c.driver.broken(ctx):
		return fails("preparing a claim that does not exist ends the driver: %s", reason(err))
	case err != nil:
		return open("one claim that does not exist makes the call fail for all, which a driver may choose, as the upstream helper does: %s", reason(err))
	case !replied:
		return fails("beside a claim that does not exist, the other one is missing in the reply")
	case good.err != "":
		return fails("beside a claim that does not exist, the other one fails: %s", clip(good.err))
	case told && bad.err == "":
		return fails("it prepares a claim that does not exist")
	}
	return conforms("a claim that does not exist fails, and the other one of the call is prepared")
}

func (c *conformer) unprepare(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	_, v := c.driver.call(ctx, UnprepareOperation, checkCall, checkReply)
	if v.state == node.OK {
		return conforms("the claim is unprepared")
	}
	return v
}

func (c *conformer) unprepareTwice(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if c.driver.open[claimOf(c.opts.Claims[0])] {
		return untested(NeedUnprepared, "the claim could not be unprepared the first time")
	}
	second, v := c.driver.call(ctx, UnprepareOperation, checkCall, checkReply)
	if second.Error != "" {
		return fails("unpreparing a claim a second time fails: %s", second.Error)
	}
	if v.state == node.OK {
		return conforms("unpreparing the claim a second time succeeds")
	}
	return v
}

// unprepareUnknown unprepares a claim that never was prepared: its UID and name are made
// up.
func (c *conformer) unprepareUnknown(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	unknown := unknownClaim(c.opts.Claims[0].Namespace)
	replies, err := c.driver.send(ctx, UnprepareOperation, unknown)
	own, replied := replies[unknown.UID]
	switch {
	case err != nil:
		return fails("unpreparing a claim that the driver does not know fails: %s", reason(err))
	case !replied:
		return fails("the reply does not have the claim that the driver does not know: the kubelet asks again and again")
	case own.err != "":
		return fails("unpreparing a claim that the driver does not know fails: %s", clip(own.err))
	}
	return conforms("unpreparing a claim that the driver does not know succeeds")
}

// several prepares and unprepares all claims by one call each.
func (c *conformer) several(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if len(c.opts.Claims) < 2 {
		return untested(NeedSecond, "that takes a second claim")
	}
	for _, operation := range []Operation{PrepareOperation, UnprepareOperation} {
		replies, err := c.driver.send(ctx, operation, c.out.Claims...)
		if err != nil {
			return fails("%s of %s in one call fails: %s", method(operation), english.Count(len(c.out.Claims), "claim"), reason(err))
		}
		for _, claim := range c.out.Claims {
			own, replied := replies[claim.UID]
			switch {
			case !replied:
				return fails("the reply of %s does not have claim %s of %s that it was called with", method(operation), claim.Name, english.Count(len(c.out.Claims), "claim"))
			case own.err != "":
				return fails("%s of %s in one call fails for claim %s: %s", method(operation), english.Count(len(c.out.Claims), "claim"), claim.Name, clip(own.err))
			}
		}
		if len(replies) > len(c.out.Claims) {
			return fails("the reply of %s has claims that were not asked for: the kubelet fails because of it", method(operation))
		}
	}
	return conforms("%s are prepared by one call, and unprepared by another one", english.Count(len(c.out.Claims), "claim"))
}
