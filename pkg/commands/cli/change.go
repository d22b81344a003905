// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// FieldManager is the name of this program as the author of changes.
const FieldManager = "kubectl-dra"

// Values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// DryRuns returns the values of --dry-run.
func DryRuns() []string { return []string{DryRunNone, DryRunClient, DryRunServer} }

// MissingRights asks the server about all rights that a verb needs before it creates
// anything, and names the missing ones. to says in the error why they are needed, such as
// "run pods on a node".
func MissingRights(ctx context.Context, clients collect.Clients, rights []authorizationv1.ResourceAttributes, to string) ([]string, error) {
	var missing []string
	for _, right := range rights {
		review, err := clients.AccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask %s whether you may %s: %w", clients.Address(), to, err)
		}
		if review.Status.Allowed {
			continue
		}
		text := right.Verb + " " + right.Resource
		if right.Subresource != "" {
			text += "/" + right.Subresource
		}
		if right.Group != "" {
			text += "." + right.Group
		}
		if right.Namespace != "" {
			text += " in namespace " + right.Namespace
		}
		missing = append(missing, text)
	}
	return missing, nil
}
