// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// oldTaintRules is the version of DeviceTaintRules that has no typed client.
const oldTaintRules = "v1alpha3"

// oldTaintRuleAPI returns the API for DeviceTaintRules of servers that only have v1alpha3.
func (c Clients) oldTaintRuleAPI() dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{Group: draGroup, Version: oldTaintRules, Resource: "devicetaintrules"})
}

// readOldTaintRule converts a rule. The error wraps errDroppedSelector for one
// that no later version can express: without what selects its devices it would
// seem to taint all of them.
func readOldTaintRule(object *unstructured.Unstructured) (*resourceapi.DeviceTaintRule, error) {
	rule, err := decodeUnstructured(object, oldTaintRules, kinds.DecodeTaintRule)
	if errors.Is(err, kinds.ErrDroppedSelector) {
		return nil, &leftOutError{"DeviceTaintRule", nameOf(object), err}
	}
	if err != nil {
		return nil, fmt.Errorf("read DeviceTaintRule %s: %w", object.GetName(), err)
	}
	rule.TypeMeta.Reset()
	return rule, nil
}

// oldPodGroupAPI returns the API for PodGroups of servers without v1beta1.
func (c Clients) oldPodGroupAPI(version, namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{Group: schedulingGroup, Version: version, Resource: "podgroups"}).Namespace(namespace)
}

// readOldPodGroup converts a PodGroup.
func readOldPodGroup(object *unstructured.Unstructured, version string) (*schedulingapi.PodGroup, error) {
	group, err := decodeUnstructured(object, version, kinds.DecodePodGroup)
	if err != nil {
		return nil, fmt.Errorf("read PodGroup %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	group.TypeMeta.Reset()
	return group, nil
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

func asOldTaintRule(object any) (*resourceapi.DeviceTaintRule, error) {
	content, err := as[*unstructured.Unstructured](object)
	if err != nil {
		return nil, err
	}
	return readOldTaintRule(content)
}

func asOldPodGroup(version string) func(object any) (*schedulingapi.PodGroup, error) {
	return func(object any) (*schedulingapi.PodGroup, error) {
		content, err := as[*unstructured.Unstructured](object)
		if err != nil {
			return nil, err
		}
		return readOldPodGroup(content, version)
	}
}
