// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Counts counts the devices that a node can reach for one request.
type Counts struct {
	Reachable, OtherClass, Matching int
	// Usable counts devices that would be available if others were released or
	// a taint were removed.
	Usable   int
	Codes    map[api.Code]int
	Lacks    english.Tally
	Furthest Check
}

func (c *Counts) record(r *Reason) {
	if r.Code == api.ClassSelectorFalse {
		c.OtherClass++
		return
	}
	switch r.Code {
	case api.DeviceAllocated, api.CountersExhausted, api.CompatibilityGroupConflict, api.DeviceTainted:
		c.Usable++
	case api.CapacityInsufficient:
		if r.Check == CapacityLeft {
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

// lack describes, after a number, the shortcoming of devices.
func lack(r *Reason) string {
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

func newCounts() *Counts { return &Counts{Codes: map[api.Code]int{}, Lacks: english.Tally{}} }

// SelectorNoun names a selector in a sentence by its label.
func SelectorNoun(label string) string {
	if label == "selector" {
		return "the selector"
	}
	return label
}
