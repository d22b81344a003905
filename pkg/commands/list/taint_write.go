// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// Rules is the API for DeviceTaintRules in the version that a server has.
type Rules struct {
	client  dynamic.ResourceInterface
	version schema.GroupVersion
}

// RulesOf asks a server for the version.
func RulesOf(clients collect.Clients) (*Rules, error) {
	mapping, err := clients.Mapper.RESTMapping(schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceTaintRule"})
	if err != nil {
		return nil, fmt.Errorf("find DeviceTaintRules at %s: %w", clients.Address(), err)
	}
	return &Rules{clients.Dynamic.Resource(mapping.Resource), mapping.GroupVersionKind.GroupVersion()}, nil
}

// Create adds a rule; dryRun has the API's options.
func (r *Rules) Create(ctx context.Context, rule *resourceapi.DeviceTaintRule, dryRun ...string) (*unstructured.Unstructured, error) {
	object, err := objectOf(rule)
	if err != nil {
		return nil, err
	}
	object.SetAPIVersion(r.version.String())
	added, err := r.client.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun, FieldManager: cli.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("add DeviceTaintRule %s: %w", rule.Name, err)
	}
	added.SetManagedFields(nil)
	return added, nil
}

// Delete deletes a rule, if it is still the same one.
func (r *Rules) Delete(ctx context.Context, rule *resourceapi.DeviceTaintRule, dryRun ...string) error {
	options := metav1.DeleteOptions{DryRun: dryRun}
	if rule.UID != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(rule.UID))
	}
	if err := r.client.Delete(ctx, rule.Name, options); err != nil {
		return fmt.Errorf("remove DeviceTaintRule %s: %w", rule.Name, err)
	}
	return nil
}

// objectOf returns a rule in the form for the server.
func objectOf(rule *resourceapi.DeviceTaintRule) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rule)
	if err != nil {
		return nil, fmt.Errorf("write DeviceTaintRule %s: %w", rule.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}
