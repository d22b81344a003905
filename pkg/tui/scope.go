// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
)

// scope narrows a list that was opened from something down to what belongs to
// it. The zero value is the whole list.
type scope struct {
	// of says what the list was opened from.
	of string
	// matcher makes the test for the items of one picture.
	matcher func(ctx context.Context, p *picture.Picture) (func(item any) bool, error)
}

// always is for a scope that does not depend on the picture.
func always(matches func(item any) bool) func(context.Context, *picture.Picture) (func(any) bool, error) {
	return func(context.Context, *picture.Picture) (func(any) bool, error) { return matches, nil }
}

// listOfAll is a view as it is opened from elsewhere.
func listOfAll(id viewID) func() screen {
	return func() screen { return newList(id, scope{}) }
}

// withoutPod has the pending claims that no pod uses.
func withoutPod(name string) scope {
	return scope{of: name, matcher: always(func(item any) bool {
		claim, ok := item.(*api.Claim)
		return ok && slices.ContainsFunc(claim.Flags, func(flag api.ClaimFlag) bool { return flag.Name == api.FlagWaitingForPod })
	})}
}

// ofNamespace has what teams have of one namespace.
func ofNamespace(name string) scope {
	return scope{of: "namespace " + name, matcher: always(func(item any) bool {
		t, ok := item.(*inventory.Team)
		return ok && t.Namespace == name
	})}
}

// ofOwner has the pods of an owner such as "job/train" that have no node, or do not run.
func ofOwner(namespace, owner string) scope {
	return scope{of: namespace + "/" + owner, matcher: always(func(item any) bool {
		pod, ok := item.(*inventory.Pod)
		return ok && pod.Namespace == namespace && ownerOf(pod.Pod) == owner && pod.Status.Phase == corev1.PodPending
	})}
}
