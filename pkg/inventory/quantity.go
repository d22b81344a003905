// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// newCapacity compares what is used with what there is.
func newCapacity(name string, total, used resource.Quantity) Capacity {
	left := total.DeepCopy()
	left.Sub(used)
	out := Capacity{Name: name, Total: total.String(), Used: used.String(), Left: left.String()}
	if whole := total.AsApproximateFloat64(); whole > 0 {
		out.UsedPercent = int(math.Round(100 * used.AsApproximateFloat64() / whole))
	}
	return out
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

// attributeText writes the value of an attribute as people would; the elements
// of a list are joined by commas.
func attributeText(a resourceapi.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	case a.VersionValue != nil:
		return *a.VersionValue
	case len(a.StringValues) > 0:
		return strings.Join(a.StringValues, ",")
	case len(a.VersionValues) > 0:
		return strings.Join(a.VersionValues, ",")
	case len(a.IntValues) > 0:
		return joined(a.IntValues)
	case len(a.BoolValues) > 0:
		return joined(a.BoolValues)
	default:
		return ""
	}
}

func joined[T any](values []T) string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, fmt.Sprint(value))
	}
	return strings.Join(texts, ",")
}
