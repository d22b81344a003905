// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"math"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mebi is the unit from which a whole number of bytes is written with a binary
// suffix. Smaller numbers may count something else, such as cores.
const mebi = 1 << 20

// QuantityText writes a quantity for people: 85899345920 as 80Gi. It has the same value as
// the canonical form, which belongs into JSON.
func QuantityText(quantity resource.Quantity) string {
	if value, exact := quantity.AsInt64(); exact && quantity.Format != resource.BinarySI && value != 0 && value%mebi == 0 {
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return quantity.String()
}

// SizeText is like [QuantityText], but writes a number of bytes of 1Gi and more that is no
// whole number of Mi, as kubelets report their memory, in Gi, rounded down to two decimals.
func SizeText(quantity resource.Quantity) string {
	const gibi = 1 << 30
	value, exact := quantity.AsInt64()
	if !exact || quantity.Format != resource.BinarySI || value < gibi || value%mebi == 0 {
		return QuantityText(quantity)
	}
	return fmt.Sprintf("%.2fGi", math.Floor(float64(value)/gibi*100)/100)
}

// longExponent matches an exponent of three digits or more, which no real quantity has.
// resource.Quantity rounds up to 1e-9, has suffixes up to 1e18, and keeps numbers beyond 64
// bits only to compare them; two digits leave room for numbers with many zeros. The time of
// a computation, and of parsing a negative exponent, grows with the exponent.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}`)

// hasLongExponent reports whether the text of a quantity has one.
func hasLongExponent(text string) bool { return longExponent.MatchString(text) }

// ParseQuantity reads the text of a quantity, unless it has a long exponent.
func ParseQuantity(text string) (resource.Quantity, bool) {
	if hasLongExponent(text) {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}
