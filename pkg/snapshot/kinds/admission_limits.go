// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// limitRangerAnnotation is the annotation in which the API server records the values from
// LimitRanges in the containers of a pod: "LimitRanger plugin set: cpu, memory request for
// container c; cpu limit for container c" (plugin/pkg/admission/limitranger/admission.go).
const (
	limitRangerAnnotation = "kubernetes.io/limit-ranger"
	limitRangerPrefix     = "LimitRanger plugin set: "
)

// WithLimitDefaults returns the pod with the requests and limits that the API server
// and the LimitRanges give to its containers.
func WithLimitDefaults(ranges []*corev1.LimitRange, pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	SetLimitDefaults(ranges, &pod.ObjectMeta, &pod.Spec)
	return pod
}

// SetLimitDefaults sets the requests and limits of containers as the API server and the
// LimitRanges of their namespace do (mergeContainerResources in
// plugin/pkg/admission/limitranger/admission.go), and records the values from LimitRanges
// in the same way.
func SetLimitDefaults(ranges []*corev1.LimitRange, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	var notes []string
	for kind, containers := range map[string][]corev1.Container{initContainer: spec.InitContainers, container: spec.Containers} {
		for i := range containers {
			own := &containers[i].Resources
			// The default request is the limit.
			completeList(&own.Requests, own.Limits)
			var requests, limited []string
			for _, limits := range ranges {
				for j := range limits.Spec.Limits {
					if item := &limits.Spec.Limits[j]; item.Type == corev1.LimitTypeContainer {
						// Stored objects are complete, objects in a file are not
						// (SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go).
						for _, list := range []corev1.ResourceList{item.Default, item.Max} {
							limited = append(limited, completeList(&own.Limits, list)...)
						}
						for _, list := range []corev1.ResourceList{item.DefaultRequest, item.Default, item.Max, item.Min} {
							requests = append(requests, completeList(&own.Requests, list)...)
						}
					}
				}
			}
			if len(requests) > 0 {
				notes = append(notes, strings.Join(requests, ", ")+requestFor+kind+" "+containers[i].Name)
			}
			if len(limited) > 0 {
				notes = append(notes, strings.Join(limited, ", ")+" limit for "+kind+" "+containers[i].Name)
			}
		}
	}
	if len(notes) > 0 {
		slices.Sort(notes)
		metav1.SetMetaDataAnnotation(meta, limitRangerAnnotation, limitRangerPrefix+strings.Join(notes, "; "))
	}
}

// container and initContainer are the kinds of containers, requestFor stands between the
// names of resources and them.
const (
	container     = "container"
	initContainer = "init container"
	requestFor    = " request for "
)

// HasDefaultRequest reports whether a container, "container c" or "init container c", has its
// request for a resource from a LimitRange.
func HasDefaultRequest(pod *corev1.Pod, of string, name corev1.ResourceName) bool {
	noted, found := strings.CutPrefix(pod.Annotations[limitRangerAnnotation], limitRangerPrefix)
	return found && slices.ContainsFunc(strings.Split(noted, "; "), func(note string) bool {
		names, whose, is := strings.Cut(note, requestFor)
		return is && whose == of && slices.Contains(strings.Split(names, ", "), string(name))
	})
}

// completeList adds missing defaults to a list, and returns their names in order.
func completeList(list *corev1.ResourceList, defaults corev1.ResourceList) (added []string) {
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, found := (*list)[name]; found {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = defaults[name]
		added = append(added, string(name))
	}
	return added
}

// LimitRefusals returns the LimitRanges that refuse a pod with its defaults
// (PodValidateLimitFunc).
func LimitRefusals(ranges []*corev1.LimitRange, pod *corev1.Pod) []Refusal {
	var refusals []Refusal
	for _, limits := range ranges {
		for i := range limits.Spec.Limits {
			item := &limits.Spec.Limits[i]
			check := func(who string, requests, limited corev1.ResourceList) {
				for _, v := range limitViolations(item, requests, limited) {
					v.Object, v.Name = "LimitRange", limits.Name
					v.Path = fmt.Sprintf("spec.limits[%d].%s", i, v.Path)
					v.Reason = fmt.Sprintf("LimitRange %s allows %s, and %s has %s", limits.Name, v.Found, who, v.Wanted)
					refusals = append(refusals, v)
				}
			}
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
					check("container "+container.Name, container.Resources.Requests, container.Resources.Limits)
				}
			case corev1.LimitTypePod:
				check("the pod", resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
			case corev1.LimitTypePersistentVolumeClaim:
			}
		}
	}
	return refusals
}

// limitViolations compares requests and limits with one item (minConstraint,
// maxConstraint and limitRequestRatioConstraint).
func limitViolations(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []Refusal {
	var found []Refusal
	note := func(path string, name corev1.ResourceName, allowed, has string) {
		found = append(found, Refusal{Path: fmt.Sprintf("%s['%s']", path, name), Found: allowed, Wanted: has})
	}
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		allowed := fmt.Sprintf("no less than %s of %s", least.String(), name)
		switch request, limit := quantityOf(requests, name), quantityOf(limits, name); {
		case request == nil:
			note("min", name, allowed, "no request")
		case request.Cmp(least) < 0:
			note("min", name, allowed, "a request of "+request.String())
		case limit != nil && limit.Cmp(least) < 0:
			note("min", name, allowed, "a limit of "+limit.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		allowed := fmt.Sprintf("no more than %s of %s", most.String(), name)
		switch request, limit := quantityOf(requests, name), quantityOf(limits, name); {
		case limit == nil:
			note("max", name, allowed, "no limit")
		case limit.Cmp(most) > 0:
			note("max", name, allowed, "a limit of "+limit.String())
		case request != nil && request.Cmp(most) > 0:
			note("max", name, allowed, "a request of "+request.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		ratio := item.MaxLimitRequestRatio[name]
		allowed := fmt.Sprintf("limits of at most %s times the request of %s", ratio.String(), name)
		switch request, limit := quantityOf(requests, name), quantityOf(limits, name); {
		case request == nil || request.IsZero():
			note("maxLimitRequestRatio", name, allowed, "no request")
		case limit == nil || limit.IsZero():
			note("maxLimitRequestRatio", name, allowed, "no limit")
		case limit.AsApproximateFloat64() > request.AsApproximateFloat64()*ratio.AsApproximateFloat64():
			note("maxLimitRequestRatio", name, allowed, fmt.Sprintf("a request of %s and a limit of %s", request.String(), limit.String()))
		}
	}
	return found
}

func quantityOf(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if quantity, found := list[name]; found {
		return &quantity
	}
	return nil
}
