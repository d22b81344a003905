// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount recognizes a comparison that requires an amount, which 0 and an empty text are
// not. A number that identifies a place, like a NUMA node, may be 0, so a number is an
// amount only if a larger one is enough, too.
func (p *Part) Amount() (Reading, bool) {
	c, ok := comparisonOf(p.expr)
	if !ok || c.read.Name == "" {
		return Reading{}, false
	}
	bound, ok := c.value()
	if !ok || isNothing(bound) {
		return Reading{}, false
	}
	switch c.relation {
	case atLeast, greater:
		return c.read, true
	case equals:
		_, isNumber := bound.(int64)
		_, isBool := bound.(bool)
		return c.read, !isNumber && !isBool
	default:
		return Reading{}, false
	}
}

// Nothing reports whether a device has 0 or an empty text there; ok is false if it has
// no value there.
func (r Reading) Nothing(driver string, device *resourceapi.Device) (nothing, ok bool) {
	value, _, ok := r.comparable(driver, device)
	return ok && isNothing(value), ok
}

func isNothing(value any) bool {
	switch value := value.(type) {
	case int64:
		return value == 0
	case string:
		return value == ""
	case resource.Quantity:
		return value.IsZero()
	case semver.Version:
		return value.Equals(semver.Version{})
	default:
		return false
	}
}
