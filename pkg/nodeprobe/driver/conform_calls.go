// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

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
