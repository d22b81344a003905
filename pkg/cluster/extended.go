// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// extendedClaimName is the scheduler's name for its claim for extended resources before it
// is written. It is invalid on purpose.
const extendedClaimName = "<extended-resources>"

// HasExtendedResources reports whether the pod requests an extended resource of a
// DeviceClass (KEP-5004).
func (c *Claims) HasExtendedResources(pod *corev1.Pod) bool {
	if c.classOf == nil {
		return false
	}
	for name, quantity := range extendedRequests(pod) {
		if quantity != 0 && c.classOf.GetDeviceClass(name) != nil {
			return true
		}
	}
	return false
}

// ClassOf returns the DeviceClass that the scheduler uses for an extended resource: the
// newest class that names it, or the class whose implicit name it is. It is nil if there is
// none, and while the feature is off.
func (c *Claims) ClassOf(name corev1.ResourceName) *resourceapi.DeviceClass {
	return c.classOf.GetDeviceClass(name)
}

// ExtendedResources lists the requested resources of a pod that only a device plugin or a
// DeviceClass can serve, sorted.
func ExtendedResources(pod *corev1.Pod) []corev1.ResourceName {
	requests := extendedRequests(pod)
	maps.DeleteFunc(requests, func(_ corev1.ResourceName, quantity int64) bool { return quantity == 0 })
	return slices.Sorted(maps.Keys(requests))
}

// extendedRequests returns how much of each extended resource a pod requests.
func extendedRequests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	requests := map[corev1.ResourceName]int64{}
	for name, quantity := range specRequests(defaultedPod(pod)) {
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
// The rules are from extendeddynamicresources.go of the scheduler's
// dynamicresources plugin.
func (c *Claims) ExtendedResourceClaim(pod *corev1.Pod, node *corev1.Node) (*resourceapi.ResourceClaim, error) {
	if !c.HasExtendedResources(pod) {
		return nil, nil
	}
	if stale := c.existingExtendedClaim(pod); stale != nil && stale.Spec.Devices.Requests != nil {
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
		class := c.classOf.GetDeviceClass(name)
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
	claim := &resourceapi.ResourceClaim{
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
	}
	Planned(claim, "")
	return claim, nil
}

// extendedDeviceRequests makes the device requests for the resources, given
// with the class for each. Containers that run as long as the pod have a
// request each. Init containers run one after the other and first use the
// devices of the containers that start later; the init container that needs the
// most beyond that has a request for the rest.
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
		// laterUse is the use of long-lived containers from here on. Going backwards, the
		// last init container with the greatest need is seen first, but upstream takes the
		// first one.
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

// extendedRequestName returns the name that the kubelet expects: the number of the
// container, init containers first, and the number of the resource among the sorted names.
func extendedRequestName(index int, container *corev1.Container, name corev1.ResourceName) string {
	names := slices.Sorted(maps.Keys(container.Resources.Requests))
	return fmt.Sprintf("container-%d-request-%d", index, slices.Index(names, name))
}

// ExtendedResourceMappings returns the containers and resources of the requests in the
// claim for extended resources, as the scheduler writes them into the pod's status.
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

// ExtendedResourceRequest returns the container and the resource of a request in a pod's
// claim for extended resources. It is false for any other claim, and if there is no pod.
func ExtendedResourceRequest(pod *corev1.Pod, claim *resourceapi.ResourceClaim, request string) (corev1.ContainerExtendedResourceRequest, bool) {
	if pod == nil || !isForExtendedResources(claim) {
		return corev1.ContainerExtendedResourceRequest{}, false
	}
	mappings := ExtendedResourceMappings(pod, claim)
	at := slices.IndexFunc(mappings, func(m corev1.ContainerExtendedResourceRequest) bool { return m.RequestName == request })
	if at < 0 {
		return corev1.ContainerExtendedResourceRequest{}, false
	}
	return mappings[at], true
}

func ownerReference(pod *corev1.Pod) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}
}

// SameHardware reports whether a driver and an extended resource have names of the same
// hardware: gpu.example.com is example.com/gpu, example.com/gpu.shared and
// gpu.example.com/anything. A vendor may have drivers for hardware without a device plugin.
func SameHardware(driver, resource string) bool {
	domain, name, _ := strings.Cut(resource, "/")
	kind, vendor, _ := strings.Cut(driver, ".")
	return domain == driver || domain == vendor && (name == kind || strings.HasPrefix(name, kind+".")) ||
		slices.ContainsFunc(otherNames()[driver], func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// otherNames returns, by driver, the prefixes of the resources of device plugins with names
// of another form.
func otherNames() map[string][]string {
	return map[string][]string{
		"gaudi.intel.com": {"habana.ai/gaudi"},
		"gpu.nvidia.com":  {"nvidia.com/mig-"},
		"neuron.aws.com":  {"aws.amazon.com/neuron"},
	}
}
