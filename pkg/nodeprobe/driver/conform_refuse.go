// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"

	"github.com/google/uuid"
	resourceapi "k8s.io/api/resource/v1"
)

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

// RefuseConform returns reasons not to test a driver with claims in a place. Nothing makes
// it touch the claims of pods.
func RefuseConform(driver string, opts *ConformOptions, here Place) []Refusal {
	var refusals []Refusal
	add := func(claim *resourceapi.ResourceClaim, list ...Refusal) {
		for _, r := range list {
			r.Reason = "claim " + claim.Namespace + "/" + claim.Name + ": " + r.Reason
			if !slices.Contains(refusals, r) {
				refusals = append(refusals, r)
			}
		}
	}
	for _, claim := range opts.Claims {
		add(claim, ConformOrder(driver, claim).Refuse(opts.Cluster, here)...)
	}
	if claim := opts.Unallocated; claim != nil && (claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0) {
		add(claim, Refusal{"it is allocated", "the driver is to refuse a claim that is not, and may take devices from a pod"})
	}
	if claim := opts.Foreign; claim != nil && len(claim.Status.ReservedFor) > 0 {
		add(claim, Refusal{"it is in use", "what a driver does with a claim of others is not known"})
	}
	if claim := opts.Foreign; claim != nil && len((&Order{Object: claim}).results(driver)) > 0 {
		add(claim, Refusal{"it has devices of driver " + driver, "the driver is to give nothing for a claim of others, and may take devices from a pod"})
	}
	return refusals
}
