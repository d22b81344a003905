// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// computeDomains returns a task that reads the ComputeDomains. A server that does not have
// them leaves a gap: a claim names one all the same.
func computeDomains(r *reader, s *snapshot.Snapshot) func(context.Context) error {
	return r.namespacedList(snapshot.ResourceComputeDomains, func(ctx context.Context, l *listing, namespace string) error {
		err := fetch(ctx, l, computeDomainAPI(r.clients, namespace), &s.ComputeDomains)
		if apierrors.IsNotFound(err) {
			r.gap(snapshot.Gap{Resource: snapshot.ResourceComputeDomains, Reason: "the API server has no " + snapshot.ResourceComputeDomains + " of version " + snapshot.ComputeDomainVersion})
		}
		return err
	})
}

// cliques returns a task that reads what the daemons of ComputeDomains write in newer
// releases of the driver. Older ones have none.
func cliques(r *reader, s *snapshot.Snapshot) func(context.Context) error {
	return r.namespacedList(snapshot.ResourceCliques, func(ctx context.Context, l *listing, namespace string) error {
		return fetch(ctx, l, cliqueAPI(r.clients, namespace), &s.Cliques)
	})
}

func computeDomainAPI(c Clients, namespace string) endpoint[*snapshot.ComputeDomain] {
	return untypedAPI(c.nvidiaAPI("computedomains", namespace), decoded[snapshot.ComputeDomain])
}

func cliqueAPI(c Clients, namespace string) endpoint[*snapshot.ComputeDomainClique] {
	return untypedAPI(c.nvidiaAPI("computedomaincliques", namespace), decoded[snapshot.ComputeDomainClique])
}

func (c Clients) nvidiaAPI(resource, namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{
		Group: snapshot.ComputeDomainGroup, Version: snapshot.ComputeDomainVersion, Resource: resource,
	}).Namespace(namespace)
}

// decoded reads an object for whose API there are no types. One that no driver writes
// is left out.
func decoded[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object any) (P, error) {
	content, err := as[*unstructured.Unstructured](object)
	if err != nil {
		return nil, err
	}
	data, err := content.MarshalJSON()
	if err != nil {
		return nil, err
	}
	typed, err := kinds.DecodeAs[T](data)
	if err != nil {
		return nil, &leftOutError{content.GetKind(), nameOf(content), err}
	}
	kept := P(typed)
	kinds.Strip(kept)
	kept.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return kept, nil
}
