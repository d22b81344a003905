// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// sortBy sorts items by a field of their JSON form, as kubectl get does: items without the
// field first, quantities as such, the others in their order. kubectl's own sorter ends the
// program when a list is empty or a field is no single value.
func sortBy[T runtime.Object](items []T, field string) ([]T, error) {
	const form = "It is a JSONPath expression over the fields of -o json, such as .name."
	expression, err := get.RelaxedJSONPathExpression(field)
	if err != nil {
		return nil, cli.Usagef(form, "read --sort-by: %w", err)
	}
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, cli.Usagef(form, "read --sort-by: %w", err)
	}
	type keyed struct {
		item T
		key  any
	}
	list := make([]keyed, 0, len(items))
	known := false
	for _, item := range items {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", item.GetObjectKind().GroupVersionKind().Kind, err)
		}
		key := firstValue(path, object)
		switch key.(type) {
		case map[string]any, []any:
			return nil, cli.Usagef(form, "read --sort-by: %s is not a single value", field)
		}
		known = known || key != nil
		list = append(list, keyed{item, key})
	}
	if !known && len(items) > 0 {
		return nil, cli.Usagef(form, "read --sort-by: none of the items has a field %s", field)
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return compareValues(a.key, b.key) })
	sorted := make([]T, 0, len(list))
	for _, k := range list {
		sorted = append(sorted, k.item)
	}
	return sorted, nil
}

// firstValue returns the value at a path in an object, nil if there is none.
func firstValue(path *jsonpath.JSONPath, object map[string]any) any {
	// Its errors are about missing fields on the path.
	found, err := path.FindResults(object)
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() || !found[0][0].CanInterface() {
		return nil
	}
	return found[0][0].Interface()
}

// compareValues orders values of JSON, including values of different types.
func compareValues(a, b any) int {
	rank := func(value any) int {
		switch value.(type) {
		case nil:
			return 0
		case bool:
			return 1
		case int64, float64:
			return 2
		default:
			return 3
		}
	}
	if rank(a) != rank(b) {
		return cmp.Compare(rank(a), rank(b))
	}
	switch rank(a) {
	case 0:
		return 0
	case 1:
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	case 2:
		return cmp.Compare(number(a), number(b))
	}
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	p, isP := selector.ParseQuantity(x)
	q, isQ := selector.ParseQuantity(y)
	switch {
	case isP && isQ:
		return p.Cmp(q)
	case isP:
		return -1
	case isQ:
		return 1
	default:
		return cmp.Compare(x, y)
	}
}

func number(value any) float64 {
	switch n := value.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	default:
		return 0
	}
}
