// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// reader reads from one server as one user. What this user may not read becomes a gap.
type reader struct {
	clients Clients
	server  string
	// only are the resources to be read, empty for all.
	only []string
	// namespace is read where the user may not read all of them, unless allNamespaces is set.
	namespace     string
	allNamespaces bool
	progress      *progress

	mu      sync.Mutex
	gaps    *[]snapshot.Gap
	anyRead bool
	denied  []string
}

// wants reports whether a resource is to be read.
func (r *reader) wants(resource string) bool {
	return len(r.only) == 0 || slices.Contains(r.only, resource)
}

// clusterList returns a task that lists something without a namespace. Where that is
// forbidden, it leaves a gap.
func (r *reader) clusterList(resource string, list func(context.Context, *listing) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		return r.concluded(l, "at the cluster scope", list(ctx, l))
	}
}

// namespacedList returns a task that lists something in all namespaces, or, where that is
// forbidden, in one, and leaves a gap.
func (r *reader) namespacedList(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		const everywhere = "at the cluster scope"
		err := list(ctx, l, metav1.NamespaceAll)
		if !apierrors.IsForbidden(err) || r.allNamespaces {
			return r.concluded(l, everywhere, err)
		}
		err = list(ctx, l, r.namespace)
		if err == nil {
			r.gap(snapshot.Gap{Resource: resource, Namespace: r.namespace, Reason: fmt.Sprintf(
				"this user may not list %s %s; only those in namespace %s could be read", resource, everywhere, r.namespace)})
		}
		return r.concluded(l, everywhere+", nor in namespace "+r.namespace, err)
	}
}

// inNamespace is like [reader.namespacedList], for one namespace.
func (r *reader) inNamespace(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		err := list(ctx, l, r.namespace)
		if apierrors.IsForbidden(err) {
			l.finished()
			r.gap(snapshot.Gap{Resource: resource, Reason: fmt.Sprintf("this user may not list %s in namespace %s", resource, r.namespace)})
			return nil
		}
		return r.concluded(l, "in namespace "+r.namespace, err)
	}
}

// concluded notes how a list ended. Only an error that makes the whole
// snapshot worthless comes back.
func (r *reader) concluded(l *listing, scope string, err error) error {
	l.finished()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		r.anyRead = true
		return nil
	case apierrors.IsForbidden(err):
		r.denied = append(r.denied, l.resource)
		*r.gaps = append(*r.gaps, snapshot.Gap{Resource: l.resource, Reason: fmt.Sprintf("this user may not list %s %s", l.resource, scope)})
		return nil
	default:
		return err
	}
}

func (r *reader) gap(gap snapshot.Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(*r.gaps, gap) {
		*r.gaps = append(*r.gaps, gap)
	}
}

// forbidden returns the error for a user who may read nothing.
func (r *reader) forbidden() error {
	slices.Sort(r.denied)
	err := &ForbiddenError{Server: r.server, Resources: r.denied}
	if !r.allNamespaces {
		err.Namespace = r.namespace
	}
	return err
}
