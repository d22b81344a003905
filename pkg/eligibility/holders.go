// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// HoldersText says whose the devices are, after "allocated".
func HoldersText(h *api.Holders) string {
	switch {
	case h == nil:
		return ""
	case h.Claim.Name != "":
		return "to claim " + h.Claim.QualifiedName()
	case len(h.Namespaces) == 1:
		return fmt.Sprintf("to %s in namespace %s", english.Count(h.Claims, "claim"), h.Namespaces[0].Namespace)
	case len(h.Namespaces) > 1:
		return fmt.Sprintf("to %s, %s in namespace %s", english.Count(h.Claims, "claim"), english.Count(h.Namespaces[0].Devices, "device"), h.Namespaces[0].Namespace)
	default:
		return ""
	}
}
