// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fetchOldTaintRules lists DeviceTaintRules of servers that have none but
// v1alpha3. Rules that no later version can express are left out, with a gap:
// without what selects their devices they would seem to taint all of them.
func (c *collector) fetchOldTaintRules(ctx context.Context, l *listing) error {
	const version = "v1alpha3"
	var objects []*unstructured.Unstructured
	resource := schema.GroupVersionResource{Group: draGroup, Version: version, Resource: "devicetaintrules"}
	if err := fetch(ctx, l, c.clients.Dynamic.Resource(resource).List, unstructuredItems, &objects); err != nil {
		return err
	}
	var rules []*resourceapi.DeviceTaintRule
	var dropped []string
	for _, object := range objects {
		rule, err := decodeUnstructured(object, version, decodeTaintRule)
		switch {
		case errors.Is(err, errDroppedSelector):
			dropped = append(dropped, object.GetName())
		case err != nil:
			return fmt.Errorf("read DeviceTaintRule %s: %w", object.GetName(), err)
		default:
			rule.TypeMeta.Reset()
			rules = append(rules, rule)
		}
	}
	if len(dropped) > 0 {
		slices.Sort(dropped)
		c.gap(Gap{Resource: ResourceTaintRules, Reason: fmt.Sprintf("left out DeviceTaintRule %s: %v", strings.Join(dropped, ", "), errDroppedSelector)})
	}
	c.snapshot.TaintRules = rules
	return nil
}

// fetchOldPodGroups lists PodGroups of servers that have no v1beta1.
func (c *collector) fetchOldPodGroups(ctx context.Context, l *listing, version, namespace string) error {
	var objects []*unstructured.Unstructured
	resource := schema.GroupVersionResource{Group: schedulingGroup, Version: version, Resource: "podgroups"}
	err := fetch(ctx, l, c.clients.Dynamic.Resource(resource).Namespace(namespace).List, unstructuredItems, &objects)
	if err != nil {
		return err
	}
	var groups []*schedulingapi.PodGroup
	for _, object := range objects {
		group, err := decodeUnstructured(object, version, decodePodGroup)
		if err != nil {
			return fmt.Errorf("read PodGroup %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
		group.TypeMeta.Reset()
		groups = append(groups, group)
	}
	c.snapshot.PodGroups = groups
	return nil
}

// decodeUnstructured converts what the dynamic client got in the same way as
// the same object in a file.
func decodeUnstructured[T any](object *unstructured.Unstructured, version string, decode func([]byte, string) (*T, error)) (*T, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return decode(data, version)
}

func unstructuredItems(list *unstructured.UnstructuredList) []unstructured.Unstructured {
	return list.Items
}
