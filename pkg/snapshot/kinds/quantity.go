// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxExponent is the largest exponent of a quantity, in digits, that is read.
// No real quantity has a larger one: resource.Quantity rounds up to 1e-9, has
// suffixes up to 1e18, and keeps what does not fit into 64 bits only to compare
// it; two digits leave room for numbers with many zeros. The time for each
// computation grows with the exponent, and so does what it takes to decode a
// negative one. Package selector has the same bound.
const maxExponent = 99

// longExponent is an exponent beyond that.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}`)

// exponentError is a quantity with an exponent beyond that.
type exponentError struct{ quantity string }

func (e *exponentError) Error() string {
	return fmt.Sprintf("expected a quantity with an exponent between -%d and %d, found %s", maxExponent, maxExponent, Shortened(e.quantity))
}

// decodeQuantity decodes a quantity unless that, or working with it, takes forever.
func decodeQuantity(decoder *jsontext.Decoder, quantity *resource.Quantity) error {
	text, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if err := CheckExponent(string(text)); err != nil {
		return err
	}
	return quantity.UnmarshalJSON(text)
}

// CheckExponent fails for the text of a quantity with a long exponent.
func CheckExponent(text string) error {
	if !strings.ContainsAny(text, "eE") || !longExponent.MatchString(text) {
		return nil
	}
	return &exponentError{strings.Trim(text, `"`)}
}
