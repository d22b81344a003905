// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

// Counts counts the devices that a node can reach for one request.
type Counts struct {
	Reachable, OtherClass, Matching int
	// Usable counts devices that would be available if others were released or
	// a taint were removed.
	Usable   int
	Codes    map[api.Code]int
	Lacks    naming.Tally
	Furthest eligibility.Check
}

func newCounts() *Counts { return &Counts{Codes: map[api.Code]int{}, Lacks: naming.Tally{}} }

func (c *Counts) record(r *eligibility.Reason) {
	if r.Code == api.ClassSelectorFalse {
		c.OtherClass++
		return
	}
	switch r.Code {
	case api.DeviceAllocated, api.CountersExhausted, api.CompatibilityGroupConflict, api.DeviceTainted:
		c.Usable++
	case api.CapacityInsufficient:
		if r.Check == eligibility.CapacityLeft {
			c.Usable++
		}
	default:
	}
	c.Codes[r.Code]++
	c.Lacks[lack(r)]++
	c.Furthest = max(c.Furthest, r.Check)
}

func (c *Counts) add(other *Counts) {
	c.Reachable += other.Reachable
	c.OtherClass += other.OtherClass
	c.Matching += other.Matching
	c.Usable += other.Usable
	for code, count := range other.Codes {
		c.Codes[code] += count
	}
	for lack, count := range other.Lacks {
		c.Lacks[lack] += count
	}
	c.Furthest = max(c.Furthest, other.Furthest)
}

// Count counts the devices that a node can reach.
func (f *Funnel) Count(ctx context.Context, pools []*cluster.NodePool, node *corev1.Node) *Counts {
	c := newCounts()
	for _, pool := range pools {
		if pool.Local {
			f.countPool(ctx, c, pool, node)
			continue
		}
		seen := OnNode(pool, node)
		shared, known := f.counts[seen]
		if !known {
			shared = newCounts()
			f.countPool(ctx, shared, pool, node)
			f.counts[seen] = shared
		}
		c.add(shared)
	}
	return c
}

func (f *Funnel) countPool(ctx context.Context, c *Counts, pool *cluster.NodePool, node *corev1.Node) {
	eligibility.EachDevice(pool, func(d *cluster.Device, kept *eligibility.Reason) {
		c.Reachable++
		if kept != nil {
			if f.OtherClass(d.Device) {
				c.OtherClass++
			} else {
				c.record(kept)
			}
			return
		}
		r := f.Checks.Device(ctx, d, node)
		if r.Matches() {
			c.Matching++
		}
		if r != nil && (!f.Request.All() || r.Matches()) {
			c.record(r)
		}
	})
}

// lack says after a number what is the matter with devices.
func lack(r *eligibility.Reason) string {
	if r.Lack != "" {
		return r.Lack
	}
	switch r.Code {
	case api.DeviceAllocated:
		return "allocated"
	case api.DeviceTainted:
		return "tainted"
	case api.RequestSelectorFalse:
		return "not matching " + SelectorNoun(r.Label)
	case api.SelectorError:
		return "for which the selector fails"
	case api.CountersExhausted:
		return "without enough counters available"
	case api.CompatibilityGroupConflict:
		return "of an incompatible group"
	case api.PoolIncomplete:
		return "in an incomplete pool"
	case api.PoolInvalid:
		return "in an invalid pool"
	case api.PoolObsolete:
		return "of an older generation of the pool"
	case api.FeatureDisabled, api.BindingConditionsUnsupported:
		return "needing a feature that is off"
	case api.NodeOperationUnsupported:
		return "that the node is too old for"
	default:
		return r.Label
	}
}

// SelectorNoun names a selector in a sentence by its label.
func SelectorNoun(label string) string {
	if label == "selector" {
		return "the selector"
	}
	return label
}

// NoneMatch is the answer for a node that has nothing of the kind.
func (f *Funnel) NoneMatch(reachable, otherClass int) (api.Code, string) {
	switch {
	case reachable == 0:
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable && f.ClassHasDevices():
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable:
		return api.ClassSelectorFalse, "no devices of class " + f.Request.Class
	default:
		return api.RequestSelectorFalse, fmt.Sprintf("no device matches request %s", f.Request.Name)
	}
}
