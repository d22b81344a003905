// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// newCapacity returns a capacity with its use.
func newCapacity(name string, total, used resource.Quantity) api.Capacity {
	left := total.DeepCopy()
	left.Sub(used)
	return api.Capacity{Name: name, Total: total.String(), Consumed: used.String(), Available: left.String(), ConsumedPercent: percent(used, total)}
}

// QuantityText writes a quantity of this package's types for people: 85899345920
// as 80Gi.
func QuantityText(canonical string) string {
	quantity, ok := selector.ParseQuantity(canonical)
	if !ok {
		return canonical
	}
	return selector.QuantityText(quantity)
}

// percent rounds to a whole number; of nothing, it is 0.
func percent(used, total resource.Quantity) int {
	whole := total.AsApproximateFloat64()
	if whole <= 0 {
		return 0
	}
	return int(math.Round(100 * used.AsApproximateFloat64() / whole))
}

func quantities(from map[resourceapi.QualifiedName]resource.Quantity) map[string]string {
	if len(from) == 0 {
		return nil
	}
	out := make(map[string]string, len(from))
	for name, quantity := range from {
		out[string(name)] = quantity.String()
	}
	return out
}
