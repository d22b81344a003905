// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
)

// Holders sums up the claims that the devices of a [Rejection] are allocated to.
type Holders struct {
	// Claims counts them, Claim is the only one as "namespace/name".
	Claims int    `json:"claims"`
	Claim  string `json:"claim,omitempty"`
	// Namespaces has those of the claims, the one with the most devices first.
	Namespaces []NamespaceCount `json:"namespaces,omitempty"`
}

// NamespaceCount is a number of devices by namespace.
type NamespaceCount struct {
	Namespace string `json:"namespace"`
	// Devices counts them.
	Devices int `json:"devices"`
}

// holders sums up the claims of allocated devices; it is nil for any others, and
// if the claims are not known.
func (g *rejectionGroup) holders() *Holders {
	if len(g.claims) == 0 {
		return nil
	}
	h, namespaces := &Holders{Claims: len(g.claims)}, tally{}
	for claim, devices := range g.claims {
		namespaces[claim.Namespace] += devices
		if len(g.claims) == 1 {
			h.Claim = qualifiedName(claim)
		}
	}
	for _, namespace := range namespaces.sorted() {
		h.Namespaces = append(h.Namespaces, NamespaceCount{Namespace: namespace, Devices: namespaces[namespace]})
	}
	return h
}

// HoldersText says whose the devices are, after "allocated".
func HoldersText(h *Holders) string {
	switch {
	case h == nil:
		return ""
	case h.Claim != "":
		return "to claim " + h.Claim
	case len(h.Namespaces) == 1:
		return fmt.Sprintf("to %s in namespace %s", plural(h.Claims, "claim"), h.Namespaces[0].Namespace)
	case len(h.Namespaces) > 1:
		return fmt.Sprintf("to %s, %s in namespace %s", plural(h.Claims, "claim"), plural(h.Namespaces[0].Devices, "device"), h.Namespaces[0].Namespace)
	default:
		return ""
	}
}
