// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// droppedHints names fields that were applied and that the API server did not
// store.
func (h *finder) droppedHints() {
	seen := map[api.ObjectRef]bool{}
	tell := func(kind string, holder metav1.Object) {
		name := api.RefTo(kind, holder)
		if seen[name] {
			return
		}
		seen[name] = true
		// The specs of claims and templates cannot be changed.
		since := ""
		if kind == "DeviceClass" {
			since = ", unless it was removed since"
		}
		for _, field := range snapshot.DroppedFields(holder) {
			h.hint(
				fmt.Sprintf("%s %s lacks the field %s, which was applied: the API server drops it while its feature gate %s is off%s",
					kind, english.QualifiedName(holder), field.Path, field.Gate, since),
				api.Evidence{Object: name, Path: field.Path, Found: "not set", Required: "as in the annotation " + corev1.LastAppliedConfigAnnotation},
			)
		}
	}
	for i := range h.PodClaims {
		pc := &h.PodClaims[i]
		if pc.Claim == nil {
			continue
		}
		tell(api.KindClaim, pc.Claim)
		if template := h.Cluster.Snapshot.Template(pc.Claim.Namespace, pc.Template); template != nil {
			tell(api.KindTemplate, template)
		}
		for _, alternatives := range cluster.Requests(pc.Claim) {
			for _, r := range alternatives {
				if class := h.Cluster.Snapshot.Class(r.Class); class != nil {
					tell("DeviceClass", class)
				}
			}
		}
	}
}
