// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// probeRights returns the rights to run on a node. docs/rbac.md has them as a Role.
func probeRights(namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "nodes"},
		{Verb: "create", Resource: "pods", Namespace: namespace},
		{Verb: "get", Resource: "pods", Namespace: namespace},
		{Verb: "delete", Resource: "pods", Namespace: namespace},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: namespace},
	}
}

// missingRightsError names all missing rights to run on a node.
type missingRightsError struct{ missing []string }

func (e *missingRightsError) Error() string {
	return "run on a node: not permitted to " + strings.Join(e.missing, ", ") + "\nAsk an admin for these rights; 'kubectl dra node-probe' also runs on the node itself."
}

// checkProbeRights asks the server about all rights before anything is made.
func checkProbeRights(ctx context.Context, clients collect.Clients, namespace string) error {
	missing, err := cli.MissingRights(ctx, clients, probeRights(namespace), "run pods on a node")
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &missingRightsError{missing}
	}
	return nil
}
