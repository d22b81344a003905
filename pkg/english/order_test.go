// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english_test

import (
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// TestCollapseOrders covers devices in the order of an allocation.
func TestCollapseOrders(t *testing.T) {
	if got := strings.Join(english.Collapse([]string{"gpu-7", "gpu-10", "gpu-0", "gpu-3", "gpu-5", "gpu-4", "gpu-6"}), ", "); got != "gpu-0, gpu-3 … gpu-7, gpu-10" {
		t.Errorf("%s", got)
	}
}
