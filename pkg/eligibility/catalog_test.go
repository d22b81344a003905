// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestUnusualValue asks for a model that no device has.
func TestUnusualValue(t *testing.T) {
	for _, test := range []struct {
		wanted, want string
		models       []string
	}{
		{"H100", `no device has model "H100"`, []string{"A100"}},
		{"h100", `no device has model "h100"; did you mean "H100"?`, []string{"A100", "H100"}},
		{"L4", `no device has model "L4"`, []string{"L40", "T4"}},
		{"L40", `no device has model "L40"`, []string{"L4", "L40S"}},
		{"RTX A5000", `no device has model "RTX A5000"`, []string{"RTX A6000"}},
		{"H100-NVL", `no device has model "H100-NVL"`, []string{"H100-SXM"}},
		{"Telsa T4", `no device has model "Telsa T4"; did you mean "Tesla T4"?`, []string{"Tesla P4", "Tesla T4"}},
		{"A100 80GB", `no device has model "A100 80GB"; did you mean "A100-80GB"?`, []string{"A100-40GB", "A100-80GB"}},
		{"A10080GB", `no device has model "A10080GB"; did you mean "A100-80GB"?`, []string{"A100-40GB", "A100-80GB"}},
		{"B200", `no device has model "B200"; there are "L4", "L40", "a100", "h100"`, []string{"h100", "L40", "a100", "L4"}},
		{"B200", "", []string{"B200", "H100"}},
		{"B200", "", nil},
	} {
		t.Run(test.wanted, func(t *testing.T) {
			list := tc.Devices(len(test.models) + 1)
			for i, model := range test.models {
				list[i] = list[i].With("model=" + model)
			}
			facts := cluster.New(tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", list...)))
			if got := NewCatalog(facts, facts.Gates.Selectors()).Unusual(selector.Attribute("model", tc.Driver), test.wanted); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
