// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// conformer tests one driver.
type conformer struct {
	host *node.Host
	opts *ConformOptions
	out  *Conformance
	// driver is the driver that is tested.
	driver *testedDriver
	// first is the result of the first preparation, nil if it failed.
	first *Call
	// unstable is true if each preparation has another result.
	unstable bool
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

// absent returns the verdict for requirements that need a driver, if there is none.
func (c *conformer) absent() (verdict, bool) {
	return untested(NeedDriver, "no instance of the driver could be chosen"), c.driver.plugin == nil
}

// untried returns the verdict for requirements that need a prepared claim, if there is
// none.
func (c *conformer) untried() (verdict, bool) {
	if v, none := c.absent(); none {
		return v, true
	}
	return untested(NeedPrepared, "the claim could not be prepared"), c.first == nil
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

// testedDriver calls the driver that is tested, and knows which claims it may have prepared.
type testedDriver struct {
	host *node.Host
	name string
	opts *ConformOptions
	// plugin is the instance that the kubelet would call, nil if there is none.
	plugin *Plugin
	// open are the claims that may be prepared.
	open map[Claim]bool
	// exchanges are the calls for the requirement that is tested.
	exchanges []Exchange
}

// caller returns a caller of the driver for the first claim, which collects checks.
func (d *testedDriver) caller() *caller {
	return &caller{
		order: ConformOrder(d.name, d.opts.Claims[0]), opts: d.opts.CallOptions, host: d.host, plugin: d.plugin,
		done: &Preparation{},
	}
}

// call makes one call for one claim. Only checks of the given names count: others belong to
// another requirement.
func (d *testedDriver) call(ctx context.Context, operation Operation, names ...string) (*Call, verdict) {
	calls := d.caller()
	d.open[calls.order.Claim] = true
	call := calls.call(ctx, operation, checkCall)
	if operation == UnprepareOperation && call.Error == "" {
		delete(d.open, calls.order.Claim)
	}
	d.exchanges = append(d.exchanges, Exchange{Service: call.Service, Method: call.Method, Claims: []ClaimReply{{
		Claim: calls.order.Claim, Replied: slices.Contains(call.Replied, calls.order.Claim.UID), Error: call.Error, Devices: call.DeepCopy().Devices,
	}}})
	return call, worstOf(calls.done.Checks, names...)
}

// send makes one call for several claims. Claims that it may prepare are unprepared in the
// end.
func (d *testedDriver) send(ctx context.Context, operation Operation, claims ...Claim) (replies map[string]reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.timeout())
	defer cancel()
	versions := d.plugin.draVersions()
	if len(versions) == 0 {
		return nil, errors.New("it advertises no version of the DRA service")
	}
	conn, err := dial(ctx, d.host, d.plugin.Endpoint, inside(d.host, d.plugin.Endpoint))
	if err != nil {
		return nil, err
	}
	defer conn.close()
	if operation == PrepareOperation {
		for _, claim := range claims {
			d.open[claim] = true
		}
	}
	defer func() { d.exchanges = append(d.exchanges, exchangeOf(versions[0], operation, claims, replies, err)) }()
	if replies, err = conn.draCall(ctx, versions[0], operation, claims...); err != nil {
		return nil, conn.failed(err)
	}
	if operation == UnprepareOperation {
		for _, claim := range claims {
			if own, replied := replies[claim.UID]; replied && own.err == "" {
				delete(d.open, claim)
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

// forget unprepares a claim that should not have been prepared. If it fails, that is tried
// once more in the end.
func (d *testedDriver) forget(ctx context.Context, claim Claim) {
	_, _ = d.send(ctx, UnprepareOperation, claim)
}

// broken reports whether the driver does not answer any more.
func (d *testedDriver) broken(ctx context.Context) bool {
	s := Socket{Path: d.plugin.Endpoint}
	s.ask(ctx, d.host, d.plugin.Versions, d.opts.Look)
	return s.Message != ""
}

// cleanUp unprepares the claims that may be prepared. The results name those for which that
// failed.
func (d *testedDriver) cleanUp(ctx context.Context) []Conformity {
	if d.plugin == nil {
		return nil
	}
	claims := make([]Claim, 0, len(d.open))
	for claim := range d.open {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Compare(a.UID, b.UID) })
	var failed []Conformity
	for _, claim := range claims {
		replies, err := d.send(ctx, UnprepareOperation, claim)
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
			failed = append(failed, Conformity{
				Name: conformCleanup, State: node.Unknown, Source: protoRevert,
				Message: fmt.Sprintf("claim %s/%s (UID %s) may still be prepared, unpreparing it failed: %s", claim.Namespace, claim.Name, claim.UID, why),
			})
		}
	}
	return failed
}

// images returns the images of the pod whose process listens at the endpoint; nil if it is
// in no pod, or if that is not known.
func (d *testedDriver) images(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Look.timeout())
	defer cancel()
	uid := d.host.PodOfServer(ctx, d.plugin.Endpoint, inside(d.host, d.plugin.Endpoint))
	if uid == "" {
		return nil
	}
	pod := d.host.In(d.opts.Cluster).PodByUID(uid)
	if pod == nil {
		return nil
	}
	var images []string
	for i := range pod.Spec.Containers {
		if image := pod.Spec.Containers[i].Image; !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	return images
}

// unknownClaim returns a claim that no cluster has.
func unknownClaim(namespace string) Claim {
	id := uuid.NewString()
	return Claim{Namespace: namespace, Name: "kubectl-dra-conform-" + id, UID: id}
}
