// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

func nodeAPI(c Clients) endpoint[*corev1.Node] {
	return typedAPI(c, corev1.SchemeGroupVersion, "nodes", "", &corev1.Node{}, &corev1.NodeList{}, as[*corev1.Node])
}

func namespaceAPI(c Clients) endpoint[*corev1.Namespace] {
	return typedAPI(c, corev1.SchemeGroupVersion, "namespaces", "", &corev1.Namespace{}, &corev1.NamespaceList{}, as[*corev1.Namespace])
}

func podAPI(c Clients, namespace string) endpoint[*corev1.Pod] {
	return typedAPI(c, corev1.SchemeGroupVersion, "pods", namespace, &corev1.Pod{}, &corev1.PodList{}, as[*corev1.Pod])
}

func eventAPI(c Clients, namespace string) endpoint[*corev1.Event] {
	return typedAPI(c, corev1.SchemeGroupVersion, "events", namespace, &corev1.Event{}, &corev1.EventList{}, as[*corev1.Event])
}

func sliceAPI(c Clients, version string) endpoint[*resourceapi.ResourceSlice] {
	const resource = "resourceslices"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, "", &resourcev1beta1.ResourceSlice{}, &resourcev1beta1.ResourceSliceList{},
			from(convertv1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.ResourceSlice{}, &resourcev1beta2.ResourceSliceList{},
			from(convertv1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.ResourceSlice{}, &resourceapi.ResourceSliceList{}, as[*resourceapi.ResourceSlice])
	}
}

func classAPI(c Clients, version string) endpoint[*resourceapi.DeviceClass] {
	const resource = "deviceclasses"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, "", &resourcev1beta1.DeviceClass{}, &resourcev1beta1.DeviceClassList{},
			from(convertv1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.DeviceClass{}, &resourcev1beta2.DeviceClassList{},
			from(convertv1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.DeviceClass{}, &resourceapi.DeviceClassList{}, as[*resourceapi.DeviceClass])
	}
}

func claimAPI(c Clients, version, namespace string) endpoint[*resourceapi.ResourceClaim] {
	const resource = "resourceclaims"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, namespace, &resourcev1beta1.ResourceClaim{}, &resourcev1beta1.ResourceClaimList{},
			from(convertv1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, namespace, &resourcev1beta2.ResourceClaim{}, &resourcev1beta2.ResourceClaimList{},
			from(convertv1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, namespace, &resourceapi.ResourceClaim{}, &resourceapi.ResourceClaimList{}, as[*resourceapi.ResourceClaim])
	}
}

func templateAPI(c Clients, version, namespace string) endpoint[*resourceapi.ResourceClaimTemplate] {
	const resource = "resourceclaimtemplates"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, namespace, &resourcev1beta1.ResourceClaimTemplate{}, &resourcev1beta1.ResourceClaimTemplateList{},
			from(convertv1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, namespace, &resourcev1beta2.ResourceClaimTemplate{}, &resourcev1beta2.ResourceClaimTemplateList{},
			from(convertv1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, namespace, &resourceapi.ResourceClaimTemplate{}, &resourceapi.ResourceClaimTemplateList{}, as[*resourceapi.ResourceClaimTemplate])
	}
}

func taintRuleAPI(c Clients, version string) endpoint[*resourceapi.DeviceTaintRule] {
	const resource = "devicetaintrules"
	switch version {
	case oldTaintRules:
		return untypedAPI(c.oldTaintRuleAPI(), asOldTaintRule)
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.DeviceTaintRule{}, &resourcev1beta2.DeviceTaintRuleList{},
			from(convertv1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.DeviceTaintRule{}, &resourceapi.DeviceTaintRuleList{}, as[*resourceapi.DeviceTaintRule])
	}
}

func podGroupAPI(c Clients, version, namespace string) endpoint[*schedulingapi.PodGroup] {
	if version != schedulingapi.SchemeGroupVersion.Version {
		return untypedAPI(c.oldPodGroupAPI(version, namespace), asOldPodGroup(version))
	}
	return typedAPI(c, schedulingapi.SchemeGroupVersion, "podgroups", namespace, &schedulingapi.PodGroup{}, &schedulingapi.PodGroupList{}, as[*schedulingapi.PodGroup])
}

func compositePodGroupAPI(c Clients, namespace string) endpoint[*schedulingv1alpha3.CompositePodGroup] {
	return typedAPI(c, schedulingv1alpha3.SchemeGroupVersion, "compositepodgroups", namespace, &schedulingv1alpha3.CompositePodGroup{}, &schedulingv1alpha3.CompositePodGroupList{}, as[*schedulingv1alpha3.CompositePodGroup])
}

func quotaAPI(c Clients, namespace string) endpoint[*corev1.ResourceQuota] {
	return typedAPI(c, corev1.SchemeGroupVersion, "resourcequotas", namespace, &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{}, as[*corev1.ResourceQuota])
}

func limitRangeAPI(c Clients, namespace string) endpoint[*corev1.LimitRange] {
	return typedAPI(c, corev1.SchemeGroupVersion, "limitranges", namespace, &corev1.LimitRange{}, &corev1.LimitRangeList{}, as[*corev1.LimitRange])
}

func budgetAPI(c Clients, namespace string) endpoint[*policyapi.PodDisruptionBudget] {
	return typedAPI(c, policyapi.SchemeGroupVersion, "poddisruptionbudgets", namespace, &policyapi.PodDisruptionBudget{}, &policyapi.PodDisruptionBudgetList{}, as[*policyapi.PodDisruptionBudget])
}

func volumeClaimAPI(c Clients, namespace string) endpoint[*corev1.PersistentVolumeClaim] {
	return typedAPI(c, corev1.SchemeGroupVersion, "persistentvolumeclaims", namespace, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, as[*corev1.PersistentVolumeClaim])
}

func volumeAPI(c Clients) endpoint[*corev1.PersistentVolume] {
	return typedAPI(c, corev1.SchemeGroupVersion, "persistentvolumes", "", &corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, as[*corev1.PersistentVolume])
}

func storageClassAPI(c Clients) endpoint[*storageapi.StorageClass] {
	return typedAPI(c, storageapi.SchemeGroupVersion, "storageclasses", "", &storageapi.StorageClass{}, &storageapi.StorageClassList{}, as[*storageapi.StorageClass])
}

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

// endpoint is where the objects of one resource come from, in the version of the
// API that the server has.
type endpoint[P metav1.Object] struct {
	list  listFunc
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is of the type that the server's objects get, nil for any.
	example any
	// convert makes the object of a snapshot. The error is errNotKept for an object that is
	// not for a snapshot, and another one for an object that cannot be converted.
	convert func(object any) (P, error)
}

// typedAPI reads objects of one of [typedVersions] in a namespace; none is all
// of them. An empty object and an empty list tell of which types these are. The
// client has interfaces in their place: one for each type would be as many
// times in the program.
func typedAPI[P metav1.Object](
	c Clients, version schema.GroupVersion, resource, namespace string, object apiObject, list runtime.Object, convert func(object any) (P, error),
) endpoint[P] {
	client := gentype.NewClientWithList(resource, c.typed[version], scheme.ParameterCodec, namespace,
		func() apiObject { return object }, list.DeepCopyObject, gentype.PrefersProtobuf[apiObject]())
	return endpoint[P]{list: client.List, watch: client.Watch, example: object, convert: sharing(bounded(convert))}
}

// sharing makes the objects of a list share what they have in common.
func sharing[P metav1.Object](convert func(object any) (P, error)) func(object any) (P, error) {
	sharer := kinds.NewSharer()
	return func(object any) (P, error) {
		converted, err := convert(object)
		if err == nil {
			sharer.Object(converted)
		}
		return converted, err
	}
}

// untypedAPI reads objects of a version that there are no types for.
func untypedAPI[P metav1.Object](client dynamic.ResourceInterface, convert func(object any) (P, error)) endpoint[P] {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}
	return endpoint[P]{list: list, watch: client.Watch, convert: convert}
}

// as keeps an object as it is, without the dead weight.
func as[P metav1.Object](object any) (P, error) {
	kept, ok := object.(P)
	if !ok {
		return kept, otherType(object)
	}
	kinds.Strip(kept)
	return kept, nil
}

// from converts an object of an older version with a function of
// k8s.io/dynamic-resource-allocation/api.
func from[Old, New any, P interface {
	*New
	metav1.Object
}](convert func(*Old, *New, conversion.Scope) error) func(object any) (P, error) {
	return func(object any) (P, error) {
		old, ok := object.(*Old)
		if !ok {
			return nil, otherType(object)
		}
		converted := P(new(New))
		if err := convert(old, converted, nil); err != nil {
			return nil, fmt.Errorf("convert to the newest version: %w", err)
		}
		kinds.Strip(converted)
		return converted, nil
	}
}

func otherType(object any) error {
	return fmt.Errorf("read the answer of the server: %T is not expected", object)
}

// listFunc asks for a list, or a chunk of it.
type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)
