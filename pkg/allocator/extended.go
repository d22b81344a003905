// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// extendedClaimName is what the scheduler calls its claim for extended
// resources before it is written. It is no valid name on purpose.
const extendedClaimName = "<extended-resources>"

// HasExtendedResources reports whether the pod asks for an extended resource
// that a DeviceClass stands for (KEP-5004).
func (a *Allocator) HasExtendedResources(pod *corev1.Pod) bool {
	if a.classOf == nil {
		return false
	}
	for name, quantity := range extendedRequests(pod) {
		if quantity != 0 && a.classOf.GetDeviceClass(name) != nil {
			return true
		}
	}
	return false
}

// ClassOf finds the DeviceClass that the scheduler takes for an extended
// resource: the one that names it, of several the newest, or the one whose
// implicit name it is. It is nil if there is none, and while the feature is
// off.
func (a *Allocator) ClassOf(name corev1.ResourceName) *resourceapi.DeviceClass {
	return a.classOf.GetDeviceClass(name)
}

// ExtendedResourcesOf lists the extended resources that a node's device plugins
// offer or have offered, and those that pods on it ask for, sorted.
func (a *Allocator) ExtendedResourcesOf(node *corev1.Node) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	add := func(name corev1.ResourceName) {
		if isDRAExtendedResource(name) {
			names[name] = true
		}
	}
	for name := range node.Status.Capacity {
		add(name)
	}
	for name := range node.Status.Allocatable {
		add(name)
	}
	if usage := a.usage()[node.Name]; usage != nil {
		for name, quantity := range usage.scalar {
			if quantity > 0 {
				add(name)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// RequestedOn is how much of an extended resource the pods on a node ask for, as
// the scheduler adds it up: for it, it does not matter there who serves them.
// The second number is the part of it that they have from DRA, as their status
// says.
func (a *Allocator) RequestedOn(node string, name corev1.ResourceName) (requested, ofDRA int64) {
	usage := a.usage()[node]
	if usage == nil {
		return 0, 0
	}
	return usage.scalar[name], usage.ofDRA[name]
}

// extendedFromDRA lists the extended resources that the scheduler has given a pod
// from devices. Where it does so for one container, it does so for all.
func extendedFromDRA(pod *corev1.Pod) []corev1.ResourceName {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	var names []corev1.ResourceName
	for _, mapping := range pod.Status.ExtendedResourceClaimStatus.RequestMappings {
		if name := corev1.ResourceName(mapping.ResourceName); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ExtendedResources lists the resources that a pod asks for and that only a
// device plugin or a DeviceClass can serve, sorted.
func ExtendedResources(pod *corev1.Pod) []corev1.ResourceName {
	requests := extendedRequests(pod)
	maps.DeleteFunc(requests, func(_ corev1.ResourceName, quantity int64) bool { return quantity == 0 })
	return slices.Sorted(maps.Keys(requests))
}

// extendedRequests returns how much of each extended resource a pod asks for.
func extendedRequests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	requests := map[corev1.ResourceName]int64{}
	for name, quantity := range resourcehelper.PodRequests(defaultedPod(pod), resourcehelper.PodResourcesOptions{}) {
		if isDRAExtendedResource(name) {
			requests[name] = quantity.Value()
		}
	}
	return requests
}

// ExtendedResourceClaim returns the claim that the scheduler makes for the
// pod's extended resources on a node, or nil if none is needed there: the pod
// asks for nothing that a DeviceClass stands for, or the node has it from a
// device plugin. Without a node, it is that for a node without device plugins.
// It fails if the pod cannot get a resource on the node in either way, or if
// the scheduler has to clean up first ([ErrClaimStale]).
//
// The rules are those of extendeddynamicresources.go of the scheduler's
// dynamicresources plugin.
func (a *Allocator) ExtendedResourceClaim(pod *corev1.Pod, node *corev1.Node) (*resourceapi.ResourceClaim, error) {
	if !a.HasExtendedResources(pod) {
		return nil, nil
	}
	if stale := a.existingExtendedClaim(pod); stale != nil && stale.Spec.Devices.Requests != nil {
		return nil, fmt.Errorf("ResourceClaim %s/%s %w", stale.Namespace, stale.Name, ErrClaimStale)
	}
	var allocatable corev1.ResourceList
	if node != nil {
		allocatable = node.Status.Allocatable
	}
	classes := map[corev1.ResourceName]string{}
	requests := extendedRequests(pod)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if requests[name] == 0 {
			continue
		}
		quantity, offered := allocatable[name]
		class := a.classOf.GetDeviceClass(name)
		switch {
		case class != nil && quantity.Value() == 0:
			classes[name] = class.Name
		case !offered && node != nil:
			return nil, fmt.Errorf("extended resource %s is offered neither by the node nor by a DeviceClass", name)
		}
	}
	if len(classes) == 0 {
		return nil, nil
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            extendedClaimName,
			GenerateName:    pod.Name + "-extended-resources-",
			OwnerReferences: []metav1.OwnerReference{ownerReference(pod)},
			Annotations:     map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
		},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: extendedDeviceRequests(defaultedPod(pod), classes),
		}},
	}, nil
}

// extendedDeviceRequests makes the device requests for the resources, given
// with the class for each. Containers that run as long as the pod have a
// request each. Init containers run one after the other and first use the
// devices of the containers that start later; the one that needs the most
// beyond that has a request for the rest.
func extendedDeviceRequests(pod *corev1.Pod, classes map[corev1.ResourceName]string) []resourceapi.DeviceRequest {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	shortLived := func(i int) bool {
		policy := containers[i].RestartPolicy
		return i < len(pod.Spec.InitContainers) && (policy == nil || *policy != corev1.ContainerRestartPolicyAlways)
	}
	var requests []resourceapi.DeviceRequest
	for name, class := range classes {
		add := func(container int, count int64) {
			requests = append(requests, resourceapi.DeviceRequest{
				Name: extendedRequestName(container, &containers[container], name),
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: class,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           count,
				},
			})
		}
		// laterUse is what long-lived containers from here on have. Going
		// backwards, the last init container with the greatest need is seen
		// first, but upstream takes the first one.
		var laterUse, greatest int64
		greatestAt := -1
		for i := range slices.Backward(containers) {
			quantity := containers[i].Resources.Requests[name]
			count, ok := quantity.AsInt64()
			if !ok || count == 0 {
				continue
			}
			if !shortLived(i) {
				laterUse += count
				add(i, count)
			} else if rest := count - laterUse; rest > 0 && rest >= greatest {
				greatest, greatestAt = rest, i
			}
		}
		if greatestAt >= 0 {
			add(greatestAt, greatest)
		}
	}
	slices.SortFunc(requests, func(a, b resourceapi.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	return requests
}

// extendedRequestName is what the kubelet expects: the number of the container,
// init containers first, and that of the resource among the sorted names.
func extendedRequestName(index int, container *corev1.Container, name corev1.ResourceName) string {
	names := slices.Sorted(maps.Keys(container.Resources.Requests))
	return fmt.Sprintf("container-%d-request-%d", index, slices.Index(names, name))
}

// ExtendedResourceMappings tells which request of the claim for extended
// resources is for which container and resource, as the scheduler writes it into
// the pod's status.
func ExtendedResourceMappings(pod *corev1.Pod, claim *resourceapi.ResourceClaim) []corev1.ContainerExtendedResourceRequest {
	var mappings []corev1.ContainerExtendedResourceRequest
	pod = defaultedPod(pod)
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range containers {
		for _, resource := range slices.Sorted(maps.Keys(containers[i].Resources.Requests)) {
			name := extendedRequestName(i, &containers[i], resource)
			if slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return r.Name == name }) {
				mappings = append(mappings, corev1.ContainerExtendedResourceRequest{
					ContainerName: containers[i].Name, ResourceName: string(resource), RequestName: name,
				})
			}
		}
	}
	return mappings
}

// ExtendedResourceRequest finds the container and the resource that a request
// of a pod's claim for extended resources stands for. It is false for any other
// claim, and where there is no pod.
func ExtendedResourceRequest(pod *corev1.Pod, claim *resourceapi.ResourceClaim, request string) (corev1.ContainerExtendedResourceRequest, bool) {
	if pod == nil || claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return corev1.ContainerExtendedResourceRequest{}, false
	}
	mappings := ExtendedResourceMappings(pod, claim)
	at := slices.IndexFunc(mappings, func(m corev1.ContainerExtendedResourceRequest) bool { return m.RequestName == request })
	if at < 0 {
		return corev1.ContainerExtendedResourceRequest{}, false
	}
	return mappings[at], true
}

// isDRAExtendedResource reports whether the name of a resource can stand for a
// DeviceClass: an extended resource, or the implicit name of a class.
func isDRAExtendedResource(name corev1.ResourceName) bool {
	return isExtendedResource(name) || strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

// isExtendedResource is IsExtendedResourceName of pkg/apis/core/v1/helper of
// Kubernetes.
func isExtendedResource(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

// isScalarResource reports whether the scheduler counts a resource as a whole
// number besides cpu, memory and ephemeral storage.
func isScalarResource(name corev1.ResourceName) bool {
	text := string(name)
	return isExtendedResource(name) ||
		strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) ||
		strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.ResourceAttachableVolumesPrefix)
}
