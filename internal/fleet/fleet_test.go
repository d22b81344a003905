// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Pods that run are made again from their templates after they are evicted, so the
// templates exist and ask for what the claims of the pods have.
func TestPodsHaveTheirTemplates(t *testing.T) {
	for name, s := range map[string]*snapshot.Snapshot{"equal": Fleet(30, 2, 80), "mixed": Mixed(120)} {
		t.Run(name, func(t *testing.T) {
			if most := 4 * Namespaces; len(s.Templates) == 0 || len(s.Templates) > most {
				t.Errorf("%d templates, want at most %d", len(s.Templates), most)
			}
			for _, p := range s.Pods {
				template := s.Template(p.Namespace, *p.Spec.ResourceClaims[0].ResourceClaimTemplateName)
				if template == nil {
					t.Fatalf("no template %s/%s", p.Namespace, *p.Spec.ResourceClaims[0].ResourceClaimTemplateName)
				}
				claim := s.Claim(p.Namespace, *p.Status.ResourceClaimStatuses[0].ResourceClaimName)
				if !equality.Semantic.DeepEqual(claim.Spec, template.Spec.Spec) {
					t.Errorf("template %s/%s asks for %v, claim %s for %v", template.Namespace, template.Name, template.Spec.Spec, claim.Name, claim.Spec)
				}
			}
		})
	}
}
