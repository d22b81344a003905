// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// notFound says that a target does not exist, and what does.
func notFound[T metav1.Object](snap *snapshot.Snapshot, t api.ObjectRef, resource string, list []T) error {
	err := absent(snap, t)
	var here, elsewhere []string
	for _, o := range list {
		switch {
		case o.GetNamespace() == t.Namespace:
			here = append(here, o.GetName())
		case o.GetName() == t.Name:
			elsewhere = append(elsewhere, o.GetNamespace())
		}
	}
	gap := snap.Gap(resource)
	// Names of pods and claims begin with the name of what they were made from.
	near := english.DidYouMean(t.Name, here)
	switch {
	case gap != nil && (gap.Namespace == "" || gap.Namespace != t.Namespace):
		err.Hint = fmt.Sprintf("it may exist all the same: %s", gap.Reason)
	case len(elsewhere) > 0:
		err.Hint = fmt.Sprintf("one of that name exists in namespace %s: use -n %s", english.JoinAnd(elsewhere), elsewhere[0])
	case snap.Node(t.Name) != nil:
		err.Hint = "there is a node of that name: " + "kubectl dra why node/" + t.Name
	case near != "":
		err.Message += near
	case len(here) > 0:
		slices.SortFunc(here, english.CompareNames)
		err.Hint = fmt.Sprintf("namespace %s has: %s", t.Namespace, english.Sample(here, 10))
	case len(list) > 0:
		namespaces := english.Tally{}
		for _, o := range list {
			namespaces[o.GetNamespace()]++
		}
		err.Hint = fmt.Sprintf("namespace %s has none; these have: %s", t.Namespace, english.Sample(namespaces.Sorted(), 10))
	default:
		err.Hint = fmt.Sprintf("no %s exists", t.Kind)
	}
	return err
}

// absent returns the error for an object that does not exist.
func absent(snap *snapshot.Snapshot, object api.ObjectRef) *Error {
	return &Error{Target: object, Message: fmt.Sprintf("find %s: not found in %s", object.Title(), snap.Source)}
}
