// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func columnNames(table *metav1.Table) []string {
	names := make([]string, 0, len(table.ColumnDefinitions))
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	return names
}

// TestGoneDevicesHaveAColumn lists pools and classes with and without devices that are gone.
func TestGoneDevicesHaveAColumn(t *testing.T) {
	lost := api.DeviceCounts{Gone: 2}
	for name, test := range map[string]struct {
		columns []string
		want    bool
	}{
		"classes without": {columns: columnNames(Classes([]*api.Class{{}}))},
		"classes with":    {columns: columnNames(Classes([]*api.Class{{}, {DeviceCounts: lost}})), want: true},
		"pools without":   {columns: columnNames(Pools([]*api.Pool{{}}))},
		"pools with":      {columns: columnNames(Pools([]*api.Pool{{}, {Devices: lost}})), want: true},
	} {
		if got := slices.Contains(test.columns, "Gone"); got != test.want {
			t.Errorf("%s: columns %v", name, test.columns)
		}
	}
	if rows := Classes([]*api.Class{{}, {DeviceCounts: lost}}).Rows; rows[1].Cells[3] != "2" {
		t.Errorf("cells %v", rows[1].Cells)
	}
}
