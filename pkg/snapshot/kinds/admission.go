// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Refusal is the reason why an object cannot be created.
type Refusal struct {
	// Object is the kind of the refusing object, Name its name.
	Object, Name string
	// Path is the decisive field, Found its value, Wanted the object's need.
	Path, Found, Wanted string
	// Reason is a clause.
	Reason string
	// Exceeded is the exceeded resource of a quota: Used counts existing objects, Hard is
	// the limit, and Need is the need of the new object. It is empty for other refusals.
	Exceeded         corev1.ResourceName
	Used, Hard, Need resource.Quantity
}

// QuotaOfClaims is the resource that counts claims, whatever their devices.
const QuotaOfClaims = corev1.ResourceName("count/resourceclaims.resource.k8s.io")

// QuotaClasses returns the extended resource of a DeviceClass, by the name of the class; empty
// for none. It is nil if DRAExtendedResource is off.
type QuotaClasses map[string]string

// ClaimQuotaUsage returns the usage of a claim (Usage in
// pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes v1.37.1): one claim, and for
// each class the devices that it can get at most. Admin access makes no difference. pod is
// the usage of its pod, if the scheduler makes the claim for the pod's extended resources,
// else nil.
func ClaimQuotaUsage(spec *resourceapi.ResourceClaimSpec, classes QuotaClasses, pod corev1.ResourceList) corev1.ResourceList {
	usage := corev1.ResourceList{QuotaOfClaims: *resource.NewQuantity(1, resource.DecimalSI)}
	devices := map[string]int64{}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			devices[r.Exactly.DeviceClassName] += deviceCount(r.Exactly.AllocationMode, r.Exactly.Count)
			continue
		}
		most := map[string]int64{}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			most[sub.DeviceClassName] = max(most[sub.DeviceClassName], deviceCount(sub.AllocationMode, sub.Count))
		}
		for class, count := range most {
			devices[class] += count
		}
	}
	extended := corev1.ResourceList{}
	for class, count := range devices {
		quantity := *resource.NewQuantity(count, resource.DecimalSI)
		usage[corev1.ResourceName(class+corev1.ResourceClaimsPerClass)] = quantity
		if classes == nil {
			continue
		}
		extended[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class)] = quantity
		if name := classes[class]; name != "" {
			extended[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+name)] = quantity
		}
	}
	for name, quantity := range extended {
		quantity.Sub(pod[name])
		if quantity.Sign() > 0 {
			usage[name] = quantity
		}
	}
	return usage
}

func deviceCount(mode resourceapi.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourceapi.DeviceAllocationModeAll:
		return resourceapi.AllocationResultsMaxSize
	case resourceapi.DeviceAllocationModeExactCount, "":
		return max(count, 1)
	default:
		return 0
	}
}

// claimMatches reports whether a quota of a resource counts claims
// (MatchingResources).
func claimMatches(name corev1.ResourceName, classes QuotaClasses) bool {
	if name == QuotaOfClaims || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) {
		return true
	}
	if class, implicit := strings.CutPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass); implicit {
		return classes[class] != ""
	}
	extended, requested := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return requested && slices.Contains(slices.Collect(maps.Values(classes)), extended)
}

// PodQuotaUsage returns the usage of a pod that does not exist yet (PodUsageFunc in
// pkg/quota/v1/evaluator/core/pods.go).
func PodQuotaUsage(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	usage := computeUsage(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
	usage[corev1.ResourcePods], usage["count/pods"] = one, one
	return usage
}

func computeUsage(requests, limits corev1.ResourceList) corev1.ResourceList {
	usage := corev1.ResourceList{}
	for name, quantity := range requests {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			usage[name] = quantity
			usage[corev1.DefaultResourceRequestsPrefix+name] = quantity
		case strings.Contains(string(name), "/"):
			usage[corev1.DefaultResourceRequestsPrefix+name] = quantity
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if quantity, found := limits[name]; found {
			usage["limits."+name] = quantity
		}
	}
	return usage
}

// ClaimQuotaRefusals returns the quotas that refuse claims with these usages, in the order in
// which they are created.
func ClaimQuotaRefusals(quotas []*corev1.ResourceQuota, classes QuotaClasses, usages ...corev1.ResourceList) []Refusal {
	total := corev1.ResourceList{}
	for _, usage := range usages {
		addResources(total, usage)
	}
	var refusals []Refusal
	for _, quota := range quotas {
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			// No scope matches a claim.
			continue
		}
		refusals = append(refusals, exceededQuota(quota, total, func(name corev1.ResourceName) bool { return claimMatches(name, classes) })...)
	}
	return refusals
}

// PodQuotaRefusals returns the quotas that refuse the pod.
func PodQuotaRefusals(quotas []*corev1.ResourceQuota, pod *corev1.Pod) []Refusal {
	usage := PodQuotaUsage(pod)
	var refusals []Refusal
	for _, quota := range quotas {
		if !inQuotaScope(quota, pod) {
			continue
		}
		refusals = append(refusals, unspecifiedInQuota(quota, pod)...)
		refusals = append(refusals, exceededQuota(quota, usage, func(corev1.ResourceName) bool { return true })...)
	}
	return refusals
}

// exceededQuota compares used and needed quantities with a quota (CheckRequest in
// k8s.io/apiserver/pkg/admission/plugin/resourcequota).
func exceededQuota(quota *corev1.ResourceQuota, needed corev1.ResourceList, counts func(corev1.ResourceName) bool) []Refusal {
	var refusals []Refusal
	for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
		need, found := needed[name]
		if !found || need.IsZero() || !counts(name) {
			continue
		}
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		sum := used.DeepCopy()
		sum.Add(need)
		if sum.Cmp(hard) <= 0 {
			continue
		}
		refusals = append(refusals, Refusal{
			Object: "ResourceQuota", Name: quota.Name, Path: fmt.Sprintf("status.used['%s']", name),
			Found:    fmt.Sprintf("%s of %s", used.String(), hard.String()),
			Wanted:   fmt.Sprintf("%s more", need.String()),
			Reason:   fmt.Sprintf("ResourceQuota %s allows %s of %s: %s used, %s more needed", quota.Name, hard.String(), name, used.String(), need.String()),
			Exceeded: name, Used: used, Hard: hard, Need: need,
		})
	}
	return refusals
}

// unspecifiedInQuota returns the refusal by a quota of CPU or memory of a pod with containers
// without requests (Constraints in pods.go).
func unspecifiedInQuota(quota *corev1.ResourceQuota, pod *corev1.Pod) []Refusal {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	} {
		hard, limited := quota.Status.Hard[name]
		for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			if _, said := computeUsage(container.Resources.Requests, container.Resources.Limits)[name]; limited && !said {
				return []Refusal{{
					Object: "ResourceQuota", Name: quota.Name, Path: fmt.Sprintf("status.hard['%s']", name), Found: hard.String(),
					Wanted: fmt.Sprintf("%s of container %s", name, container.Name),
					Reason: fmt.Sprintf("ResourceQuota %s has a limit of %s, and container %s does not say how much it needs", quota.Name, name, container.Name),
				}}
			}
		}
	}
	return nil
}

// inQuotaScope reports whether a quota counts the pod (podMatchesScopeFunc). An unknown scope
// matches nothing.
func inQuotaScope(quota *corev1.ResourceQuota, pod *corev1.Pod) bool {
	scopes := make([]corev1.ScopedResourceSelectorRequirement, 0, len(quota.Spec.Scopes))
	for _, scope := range quota.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if quota.Spec.ScopeSelector != nil {
		scopes = append(scopes, quota.Spec.ScopeSelector.MatchExpressions...)
	}
	return !slices.ContainsFunc(scopes, func(scope corev1.ScopedResourceSelectorRequirement) bool { return !quotaScopeMatches(scope, pod) })
}

func quotaScopeMatches(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	terminating := pod.Spec.ActiveDeadlineSeconds != nil
	bestEffort := isBestEffort(pod)
	class := pod.Spec.PriorityClassName
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		switch scope.Operator {
		case corev1.ScopeSelectorOpIn:
			return class != "" && slices.Contains(scope.Values, class)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(scope.Values, class)
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == ""
		default:
			return class != ""
		}
	default:
		return false
	}
}

func isBestEffort(pod *corev1.Pod) bool {
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if quantity, found := list[name]; found && !quantity.IsZero() {
					return false
				}
			}
		}
	}
	return !resourcehelper.IsPodLevelResourcesSet(pod)
}

func addResources(total, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}

// QuotaClass returns the DeviceClass whose devices a resource of a quota counts; false if
// it counts something else.
func QuotaClass(name corev1.ResourceName) (class string, ok bool) {
	return strings.CutSuffix(string(name), corev1.ResourceClaimsPerClass)
}

// MissingQuotaClassText says that a quota limits the devices of a missing class.
func MissingQuotaClassText(class string) string {
	return fmt.Sprintf("DeviceClass %s, which the quota limits, does not exist", class)
}

// QuotaLimit is the number of equal pods, with their claims, for which a resource of a
// quota is enough.
type QuotaLimit struct {
	Quota    string
	Resource corev1.ResourceName
	Copies   int
	// Refusal is the refusal of the first copy that exceeds the quota.
	Refusal Refusal
}

// QuotaLimits lists the limits of the number of equal pods, in the order of the quotas and
// resources. Pod is nil if only claims count; claims are the usages of each pod's claims.
func QuotaLimits(quotas []*corev1.ResourceQuota, classes QuotaClasses, pod *corev1.Pod, claims ...corev1.ResourceList) []QuotaLimit {
	var limits []QuotaLimit
	for _, quota := range quotas {
		needed := corev1.ResourceList{}
		if pod != nil && inQuotaScope(quota, pod) {
			addResources(needed, PodQuotaUsage(pod))
		}
		if len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil {
			for _, claim := range claims {
				counted := maps.Clone(claim)
				maps.DeleteFunc(counted, func(name corev1.ResourceName, _ resource.Quantity) bool { return !claimMatches(name, classes) })
				addResources(needed, counted)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			need, found := needed[name]
			if !found || need.Sign() <= 0 {
				continue
			}
			left := quota.Status.Hard[name]
			left = left.DeepCopy()
			left.Sub(quota.Status.Used[name])
			copies := timesIn(left, need)
			full := *quota
			full.Status.Used = maps.Clone(quota.Status.Used)
			if full.Status.Used == nil {
				full.Status.Used = corev1.ResourceList{}
			}
			used := full.Status.Used[name]
			used = used.DeepCopy()
			taken := need.DeepCopy()
			taken.Mul(int64(copies))
			used.Add(taken)
			full.Status.Used[name] = used
			limit := QuotaLimit{Quota: quota.Name, Resource: name, Copies: copies}
			if refusals := exceededQuota(&full, corev1.ResourceList{name: need}, func(corev1.ResourceName) bool { return true }); len(refusals) > 0 {
				limit.Refusal = refusals[0]
			}
			limits = append(limits, limit)
		}
	}
	return limits
}

// timesIn returns how often a quantity is contained in another one.
func timesIn(whole, part resource.Quantity) int {
	return max(0, sort.Search(math.MaxInt32, func(n int) bool {
		sum := part.DeepCopy()
		return !sum.Mul(int64(n)) || sum.Cmp(whole) > 0
	})-1)
}

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
