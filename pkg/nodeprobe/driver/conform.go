// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
		host: host, opts: opts, out: &Conformance{
			TypeMeta: typeMeta("DriverConformance"), Driver: driver, Software: softwareOf(host, &opts), Claims: []Claim{}, Results: []Conformity{},
		},
		open: map[Claim]bool{},
	}
	for _, claim := range opts.Claims {
		c.out.Claims = append(c.out.Claims, claimOf(claim))
	}
	defer c.cleanUp(context.WithoutCancel(ctx))
	// A driver that is told to unprepare what it is about to prepare may keep it.
	calling, stop := outlasting(ctx, lastAnswer)
	defer stop()
	for _, r := range c.requirements() {
		c.exchanges = nil
		v := r.try(calling)
		if err := ctx.Err(); err != nil {
			return c.out, err
		}
		c.out.Results = append(c.out.Results, Conformity{
			Name: r.name, State: v.state, Message: v.message, Source: r.source, Needs: v.needs, Exchanges: c.exchanges,
		})
	}
	return c.out, nil
}

// conformer tests one driver.
type conformer struct {
	host *node.Host
	opts ConformOptions
	out  *Conformance
	// plugin is the instance that the kubelet would call, nil if there is none.
	plugin *Plugin
	// first is the result of the first preparation, nil if it failed.
	first *Call
	// unstable is true if each preparation has another result.
	unstable bool
	// open are the claims that may be prepared.
	open map[Claim]bool
	// exchanges are the calls for the requirement that is tested.
	exchanges []Exchange
}

// requirement is a rule for drivers.
type requirement struct {
	name, source string
	try          func(context.Context) verdict
}

// verdict is the outcome of one requirement.
type verdict struct {
	state   node.State
	message string
	// needs is set if the requirement was not tested.
	needs Need
}

func conforms(format string, args ...any) verdict {
	return verdict{state: node.OK, message: fmt.Sprintf(format, args...)}
}

func fails(format string, args ...any) verdict {
	return verdict{state: node.Problem, message: fmt.Sprintf(format, args...)}
}

func open(format string, args ...any) verdict {
	return verdict{state: node.Unknown, message: fmt.Sprintf(format, args...)}
}

func untested(needs Need, format string, args ...any) verdict {
	return verdict{state: node.Unknown, message: "not tried: " + fmt.Sprintf(format, args...), needs: needs}
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
	c.plugin, c.out.Endpoint = plugin, plugin.Endpoint
	c.out.Software.Services, c.out.Software.Images = plugin.Versions, c.images(ctx)
	if problems := validation.IsDNS1123Subdomain(plugin.Name); len(plugin.Name) > maxName || len(problems) > 0 {
		return fails("registers as %q, which is not a valid driver name", plugin.Name)
	}
	if n := len(all.drivers[plugin.Name]); n > 1 {
		return open("it registers by %d sockets: right while it is updated, wrong if it stays so; %s is tried", n, plugin.Registration.Path)
	}
	return conforms("it registers at %s, and its endpoint %s answers", plugin.Registration.Path, plugin.Endpoint)
}

// absent returns the verdict for requirements that need a driver, if there is none.
func (c *conformer) absent() (verdict, bool) {
	return untested(NeedDriver, "no instance of the driver could be chosen"), c.plugin == nil
}

func (c *conformer) versions(context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	for _, service := range c.plugin.Service.Services {
		if service.Advertised && service.Served == ServedNo {
			return fails("it advertises %s, and the server at its endpoint does not have it", service.Name)
		}
	}
	versions := c.plugin.draVersions()
	switch {
	case len(versions) == 0:
		return fails("it advertises neither v1.DRAPlugin nor v1beta1.DRAPlugin, only %s", cmp.Or(strings.Join(c.plugin.Versions, ", "), "nothing"))
	case versions[0] != drav1.DRAPluginService:
		return open("it advertises %s and not v1.DRAPlugin, which a driver may choose for kubelets that take it", strings.Join(versions, ", "))
	}
	return conforms("it advertises %s, and serves what it advertises", strings.Join(c.plugin.Versions, ", "))
}

// getInfo asks once more: the kubelet does so whenever it sees the socket again.
func (c *conformer) getInfo(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	again := askPlugin(ctx, c.host, c.plugin.Registration.Path, c.opts.Look)
	switch {
	case again.Registration.Answer != node.Answers:
		return fails("GetInfo fails when it is called again: %s", again.Registration.Message)
	case again.Type != c.plugin.Type || again.Name != c.plugin.Name || again.Endpoint != c.plugin.Endpoint || !slices.Equal(again.Versions, c.plugin.Versions):
		return fails("GetInfo says something else when it is called again")
	}
	return conforms("GetInfo says the same when it is called again")
}

// caller returns a caller of the driver for the first claim, which collects checks.
func (c *conformer) caller() *caller {
	return &caller{
		order: ConformOrder(c.out.Driver, c.opts.Claims[0]), opts: c.opts.CallOptions, host: c.host, plugin: c.plugin,
		done: &Preparation{},
	}
}

// call makes one call for one claim. Only checks of the given names count: others belong to
// another requirement.
func (c *conformer) call(ctx context.Context, operation Operation, names ...string) (*Call, verdict) {
	calls := c.caller()
	c.open[calls.order.Claim] = true
	call := calls.call(ctx, operation, checkCall)
	if operation == UnprepareOperation && call.Error == "" {
		delete(c.open, calls.order.Claim)
	}
	c.exchanges = append(c.exchanges, Exchange{Service: call.Service, Method: call.Method, Claims: []ClaimReply{{
		Claim: calls.order.Claim, Replied: slices.Contains(call.Replied, calls.order.Claim.UID), Error: call.Error, Devices: call.DeepCopy().Devices,
	}}})
	return call, worstOf(calls.done.Checks, names...)
}

// worstOf returns the first of the worst checks; OK if there is none.
func worstOf(checks []node.Check, names ...string) verdict {
	worst := verdict{state: node.OK}
	for i := range checks {
		check := &checks[i]
		if !slices.Contains(names, check.Name) {
			continue
		}
		if worst.message == "" || check.State == node.Problem && worst.state != node.Problem || check.State == node.Unknown && worst.state == node.OK {
			worst = verdict{state: check.State, message: check.Message}
		}
	}
	return worst
}

// untried returns the verdict for requirements that need a prepared claim, if there is
// none.
func (c *conformer) untried() (verdict, bool) {
	if v, none := c.absent(); none {
		return v, true
	}
	return untested(NeedPrepared, "the claim could not be prepared"), c.first == nil
}

func (c *conformer) prepare(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	call, v := c.call(ctx, PrepareOperation, checkCall, checkReply, checkAllocated)
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
	calls := c.caller()
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
	second, _ := c.call(ctx, PrepareOperation, checkCall)
	calls := c.caller()
	calls.judgeTwice(c.first, second)
	v := worstOf(calls.done.Checks, checkIdempotent)
	c.unstable = v.state == node.Problem
	return v
}

func (c *conformer) unprepare(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	_, v := c.call(ctx, UnprepareOperation, checkCall, checkReply)
	if v.state == node.OK {
		return conforms("the claim is unprepared")
	}
	return v
}

func (c *conformer) unprepareTwice(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if c.open[claimOf(c.opts.Claims[0])] {
		return untested(NeedUnprepared, "the claim could not be unprepared the first time")
	}
	second, v := c.call(ctx, UnprepareOperation, checkCall, checkReply)
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
	unknown := c.unknownClaim()
	replies, err := c.send(ctx, UnprepareOperation, unknown)
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

// unknownClaim returns a claim that no cluster has.
func (c *conformer) unknownClaim() Claim {
	id := uuid.NewString()
	return Claim{Namespace: c.opts.Claims[0].Namespace, Name: "kubectl-dra-conform-" + id, UID: id}
}

// send makes one call for several claims. Claims that it may prepare are unprepared in the
// end.
func (c *conformer) send(ctx context.Context, operation Operation, claims ...Claim) (replies map[string]reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.timeout())
	defer cancel()
	versions := c.plugin.draVersions()
	if len(versions) == 0 {
		return nil, errors.New("it advertises no version of the DRA service")
	}
	conn, err := dial(ctx, c.host, c.plugin.Endpoint, inside(c.host, c.plugin.Endpoint))
	if err != nil {
		return nil, err
	}
	defer conn.close()
	if operation == PrepareOperation {
		for _, claim := range claims {
			c.open[claim] = true
		}
	}
	defer func() { c.exchanges = append(c.exchanges, exchangeOf(versions[0], operation, claims, replies, err)) }()
	if replies, err = conn.draCall(ctx, versions[0], operation, claims...); err != nil {
		return nil, conn.failed(err)
	}
	if operation == UnprepareOperation {
		for _, claim := range claims {
			if own, replied := replies[claim.UID]; replied && own.err == "" {
				delete(c.open, claim)
			}
		}
	}
	return replies, nil
}

// exchangeOf records a call and its outcome.
func exchangeOf(service string, operation Operation, claims []Claim, replies map[string]reply, err error) Exchange {
	e := Exchange{Service: service, Method: method(operation), Claims: make([]ClaimReply, 0, len(claims))}
	if err != nil {
		e.Error = reason(err)
	}
	for _, claim := range claims {
		own, replied := replies[claim.UID]
		devices := own.devices[:min(len(own.devices), maxDevices)]
		e.Claims = append(e.Claims, ClaimReply{Claim: claim, Replied: replied, Error: clip(own.err), Devices: devicesOf(devices)})
	}
	return e
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
		replies, err := c.send(ctx, operation, c.out.Claims...)
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

// cleanUp unprepares the claims that may be prepared.
func (c *conformer) cleanUp(ctx context.Context) {
	if c.plugin == nil {
		return
	}
	claims := make([]Claim, 0, len(c.open))
	for claim := range c.open {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Compare(a.UID, b.UID) })
	for _, claim := range claims {
		replies, err := c.send(ctx, UnprepareOperation, claim)
		why := ""
		switch own, replied := replies[claim.UID]; {
		case err != nil:
			why = reason(err)
		case !replied:
			why = "the reply does not have it"
		case own.err != "":
			why = clip(own.err)
		}
		if why != "" {
			c.out.Results = append(c.out.Results, Conformity{
				Name: conformCleanup, State: node.Unknown, Source: protoRevert,
				Message: fmt.Sprintf("claim %s/%s (UID %s) may still be prepared, unpreparing it failed: %s", claim.Namespace, claim.Name, claim.UID, why),
			})
		}
	}
}

// settle reports whether a condition becomes true within the time for settling.
func (c *conformer) settle(ctx context.Context, is func() bool) bool {
	const pause = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.opts.Settle, defaultSettle))
	defer cancel()
	for {
		if is() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// defaultSettle is how long a driver may take to start.
const defaultSettle = time.Minute
