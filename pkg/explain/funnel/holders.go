// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

// holders sums up the claims of allocated devices; it is nil for any others, and
// if the claims are not known.
func (g *rejectionGroup) holders() *api.Holders {
	if len(g.claims) == 0 {
		return nil
	}
	h, namespaces := &api.Holders{Claims: len(g.claims)}, naming.Tally{}
	for claim, devices := range g.claims {
		namespaces[claim.Namespace] += devices
		if len(g.claims) == 1 {
			h.Claim = naming.Qualified(claim)
		}
	}
	for _, namespace := range namespaces.Sorted() {
		h.Namespaces = append(h.Namespaces, api.NamespaceCount{Namespace: namespace, Devices: namespaces[namespace]})
	}
	return h
}

// HoldersText says whose the devices are, after "allocated".
func HoldersText(h *api.Holders) string {
	switch {
	case h == nil:
		return ""
	case h.Claim != "":
		return "to claim " + h.Claim
	case len(h.Namespaces) == 1:
		return fmt.Sprintf("to %s in namespace %s", english.Count(h.Claims, "claim"), h.Namespaces[0].Namespace)
	case len(h.Namespaces) > 1:
		return fmt.Sprintf("to %s, %s in namespace %s", english.Count(h.Claims, "claim"), english.Count(h.Namespaces[0].Devices, "device"), h.Namespaces[0].Namespace)
	default:
		return ""
	}
}
