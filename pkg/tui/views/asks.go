// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// AsksText returns "8 gpu, 1 nic".
func AsksText(asks []api.Ask, names map[string]string) string {
	var classes []string
	counts := map[string]int64{}
	for _, ask := range asks {
		of := make([]string, 0, len(ask.Classes))
		for _, class := range ask.Classes {
			of = append(of, cmp.Or(names[class], class))
		}
		class := strings.Join(slices.Compact(of), " or ")
		if !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
		if ask.Count == 0 || counts[class] < 0 {
			counts[class] = -1
			continue
		}
		counts[class] += ask.Count
	}
	parts := make([]string, 0, len(classes))
	for _, class := range classes {
		if counts[class] < 0 {
			parts = append(parts, "all "+class)
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", counts[class], class))
	}
	return strings.Join(parts, ", ")
}

// ShortClassNames cuts names of classes at the first dot, where they still differ then.
func ShortClassNames(classes []*resourceapi.DeviceClass) map[string]string {
	count := map[string]int{}
	short := func(name string) string {
		before, _, _ := strings.Cut(name, ".")
		return before
	}
	for i := range classes {
		count[short(classes[i].Name)]++
	}
	names := map[string]string{}
	for i := range classes {
		if name := classes[i].Name; count[short(name)] == 1 {
			names[name] = short(name)
		}
	}
	return names
}
