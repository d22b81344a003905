// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// capacities are amounts by name.
type capacities map[resourceapi.QualifiedName]resource.Quantity

// with adds amounts. The result is not nil.
func (c capacities) with(amounts map[resourceapi.QualifiedName]resource.Quantity) capacities {
	sum := capacities{}
	maps.Copy(sum, c)
	for name, amount := range amounts {
		total := sum[name].DeepCopy()
		total.Add(amount)
		sum[name] = total
	}
	return sum
}

// without takes amounts away. The result is nil if nothing is left.
func (c capacities) without(amounts map[resourceapi.QualifiedName]resource.Quantity) capacities {
	rest, empty := capacities{}, true
	for name, total := range c {
		left := total.DeepCopy()
		left.Sub(amounts[name])
		rest[name] = left
		empty = empty && left.IsZero()
	}
	if empty {
		return nil
	}
	return rest
}

// device is a device of the node, and what the search has reserved of it.
type device struct {
	*cluster.Device
	pool *cluster.NodePool
	// shared devices can have several claims.
	shared bool
	// claims has a bit for each claim that has the device.
	claims uint64
	// shares is the capacity that the shares of the search take, nil if there are none.
	shares capacities
}
