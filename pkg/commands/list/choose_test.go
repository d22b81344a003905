// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

func TestSortBy(t *testing.T) {
	device := func(name, memory, claim string) api.Device {
		d := api.Device{Name: name, Shareable: claim != ""}
		if memory != "" {
			d.Capacity = []api.Capacity{{Name: "memory", Total: memory}}
		}
		if claim != "" {
			d.Holders = []api.Holder{{Claim: claim}}
		}
		return d
	}
	devices := []api.Device{
		device("a", "80Gi", "x/2"),
		device("b", "9Gi", ""),
		device("c", "", "x/1"),
		device("d", "100Mi", ""),
	}
	for field, want := range map[string]string{
		".name":              "abcd",
		"name":               "abcd",
		".capacity[0].total": "cdba", // quantities, and those without come first
		".holders[0].claim":  "bdca", // lists can be empty
		".shareable":         "bdac", // the others stay as they were
	} {
		sorted, err := sortBy(pointers(slices.Clone(devices)), field)
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		got := ""
		for _, item := range sorted {
			got += item.Name
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
	for field, want := range map[string]string{
		".nope":     "none of the items has a field .nope",
		".capacity": ".capacity is not a single value",
		".name[":    "read --sort-by",
		"{.name":    "read --sort-by",
	} {
		if _, err := sortBy(pointers(slices.Clone(devices)), field); err == nil || cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", field, err, want)
		}
	}
}
