// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// Names asks a cluster for the names of all objects of a type, written as for
// [Clients.Resolve]. An empty namespace stands for all of them. It is for
// callers that offer a choice: no more than the names is read, and an error
// leaves nothing.
func (c Clients) Names(ctx context.Context, resource, namespace string) ([]string, error) {
	// Whatever finds out what a type stands for heeds no context, and logs that
	// a server is not there.
	if _, err := c.Discovery.ServerVersionWithContext(ctx); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("ask API server %s: %w", c.Address(), err)
	}
	mapping, err := c.Resolve(resource)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("set up connection to %s: %w", c.Address(), err)
	}
	var api metadata.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		api = client.Resource(mapping.Resource).Namespace(namespace)
	}
	var names []string
	var end endlessness
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		list, err := api.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names, nil
		}
		if err := end.check(list.Continue, len(names)); err != nil {
			return nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
	}
}
