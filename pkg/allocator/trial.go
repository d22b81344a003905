// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// trial evaluates what upstream must not evaluate before it is known to end.
type trial struct {
	// bounded remembers of expressions whether they need no trial.
	bounded sync.Map
	// mutex is for the evaluator, which is made when it is needed.
	mutex     sync.Mutex
	evaluator *selector.Evaluator
}

func (t *trial) isBounded(expression string) bool {
	if known, ok := t.bounded.Load(expression); ok {
		return known == true
	}
	bounded := selector.Bounded(expression)
	t.bounded.Store(expression, bounded)
	return bounded
}

func (t *trial) areBounded(of asked) bool {
	for i := range of.selectors {
		if cel := of.selectors[i].CEL; cel != nil && !t.isBounded(cel.Expression) {
			return false
		}
	}
	for i := range of.derived {
		if !t.isBounded(of.derived[i].Expression) {
			return false
		}
	}
	return true
}

// asked has the requirements of a request, or an alternative, on a device.
type asked struct {
	selectors []resourceapi.DeviceSelector
	derived   []resourceapi.DeviceDerivedAttribute
}

// device evaluates the selectors up to the first decisive one and, where all hold, the
// derived attributes.
func (t *trial) device(ctx context.Context, d *cluster.Device, class, own asked) error {
	var unending *selector.UnendingError
	for _, selectors := range [][]resourceapi.DeviceSelector{class.selectors, own.selectors} {
		for i := range selectors {
			if selectors[i].CEL == nil {
				continue
			}
			result := t.evaluator.Evaluate(ctx, t.evaluator.Compile(selectors[i].CEL.Expression), d.ID.Driver, d.Device)
			if errors.As(result.Err, &unending) {
				return unending
			}
			if !result.Matches {
				return nil
			}
		}
	}
	for i := range own.derived {
		if _, err := t.evaluator.DerivedAttribute(ctx, &own.derived[i], d.ID.Driver, d.Device); errors.As(err, &unending) {
			return unending
		}
	}
	return nil
}
