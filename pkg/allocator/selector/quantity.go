// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mebi is the unit from which a whole number of bytes is written with a binary
// suffix. Smaller numbers may count something else, such as cores.
const mebi = 1 << 20

// QuantityText writes a quantity for people: 85899345920 as 80Gi. It has the
// same value as the canonical form, which is what belongs into JSON.
func QuantityText(quantity resource.Quantity) string {
	if value, exact := quantity.AsInt64(); exact && quantity.Format != resource.BinarySI && value != 0 && value%mebi == 0 {
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return quantity.String()
}

// longExponent is an exponent that only a mistake or malice writes. Kubernetes
// takes very long to work with such numbers, so that nothing here does.
const longExponent = `[eE][+-]?0*[1-9][0-9]{2,}`

// parseQuantity reads the text of a quantity, unless it has a long exponent.
func parseQuantity(text string) (resource.Quantity, bool) {
	if long, err := regexp.MatchString(longExponent, text); err != nil || long {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}
