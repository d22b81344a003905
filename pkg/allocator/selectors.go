// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
)

// Selectors makes an evaluator that sees devices as the allocator does. Unlike
// the allocator it is not safe for concurrent use.
func (a *Allocator) Selectors() *selector.Evaluator {
	// The stable implementation does not tell selectors that a device can be
	// shared.
	return selector.New(a.celFeatures(), a.channel != channelStable)
}

// celFeatures are those of expressions.
func (a *Allocator) celFeatures() cel.Features {
	return cel.Features{
		EnableConsumableCapacity: a.features.ConsumableCapacity,
		EnableListTypeAttributes: a.features.ListTypeAttributes,
	}
}
