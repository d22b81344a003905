// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// PodClaim is a claim that a pod uses.
type PodClaim struct {
	// Entry is the name in the pod's spec.resourceClaims, empty for the claim
	// for extended resources.
	Entry string
	// Claim is nil if it does not exist and cannot be made up either.
	Claim *resourceapi.ResourceClaim
	// Generated is true if the claim does not exist yet: it was made up as the controller
	// (from the Template) or the scheduler (for extended resources) will make it.
	Generated bool
	// Template is the name of the ResourceClaimTemplate, if the entry has one.
	Template string
	// Group is the PodGroup whose pods share the claim (spec.resourceClaims of the
	// group): it is made and reserved for the group. It is empty for all others.
	Group string
	// ExtendedResources is true for the claim that the scheduler makes for the pod's
	// extended resources. If it is Generated, its requests are for a node without a device
	// plugin for any of them; see [Claims.ExtendedResourceClaim] for a certain node.
	ExtendedResources bool
	// Problem is why the scheduler does not try to schedule the pod.
	Problem error
}

// OfPod returns the claims of a pod in the order in which the scheduler allocates them: the
// claims of spec.resourceClaims, then the claim for extended resources. Entries for which
// the controller decided that no claim is needed are left out. For a pod without a UID,
// which is only a template, missing claims are no problem.
func (c *Claims) OfPod(pod *corev1.Pod) []PodClaim {
	claims := make([]PodClaim, 0, len(pod.Spec.ResourceClaims)+1)
	group, groupProblem := c.podGroup(pod)
	for i := range pod.Spec.ResourceClaims {
		claim, needed := c.podClaim(pod, &pod.Spec.ResourceClaims[i], group)
		if !needed {
			continue
		}
		if claim.Problem == nil {
			claim.Problem = groupProblem
		}
		claims = append(claims, claim)
	}
	if claim := c.extendedPodClaim(pod); claim != nil {
		claims = append(claims, *claim)
	}
	return claims
}

func (c *Claims) podClaim(pod *corev1.Pod, entry *corev1.PodResourceClaim, group *schedulingapi.PodGroup) (claim PodClaim, needed bool) {
	claim = PodClaim{Entry: entry.Name, Template: ptr.Deref(entry.ResourceClaimTemplateName, "")}
	shared := sharedClaim(pod, entry, group)
	if shared != nil {
		claim.Group = group.Name
	}
	name, mustCheckOwner, err := resourceclaim.Name(pod, entry)
	if errors.Is(err, ErrClaimNotCreated) {
		// A claim that the pod shares with its group may exist already.
		if groupName := groupClaimName(group, shared); groupName != nil {
			name, mustCheckOwner = groupName, true
		} else if made := c.madeFor(pod, entry); made != nil {
			claim.Claim = Defaulted(made)
		} else {
			claim.Claim, claim.Problem = c.generate(pod, entry, group, shared)
			claim.Generated = claim.Claim != nil
		}
		if claim.Problem == nil && pod.UID != "" {
			claim.Problem = fmt.Errorf("pod %s/%s, claim %s: %w", pod.Namespace, pod.Name, entry.Name, ErrClaimNotCreated)
		}
		if name == nil {
			return claim, true
		}
	} else if err != nil {
		claim.Problem = err
		return claim, true
	}
	if name == nil {
		return claim, false
	}
	existing := c.snap.Claim(pod.Namespace, *name)
	if existing == nil {
		reason, elsewhere := ErrClaimMissing, ""
		if at := slices.IndexFunc(c.snap.Claims, func(other *resourceapi.ResourceClaim) bool {
			return entry.ResourceClaimName != nil && other.Name == *name
		}); at >= 0 {
			elsewhere = fmt.Sprintf("; namespace %s has a claim of that name, and a pod can use claims of its own namespace only", c.snap.Claims[at].Namespace)
		}
		if gap := c.snap.Gap(snapshot.ResourceClaims); gap != nil && (gap.Namespace == "" || gap.Namespace != pod.Namespace) {
			reason = ErrClaimUnreadable
		}
		claim.Problem = fmt.Errorf("ResourceClaim %s/%s %w%s", pod.Namespace, *name, reason, elsewhere)
		return claim, true
	}
	claim.Claim = Defaulted(existing)
	switch {
	case claim.Problem != nil:
	case existing.DeletionTimestamp != nil:
		claim.Problem = fmt.Errorf("ResourceClaim %s/%s %w", pod.Namespace, *name, ErrClaimDeleting)
	case mustCheckOwner && pod.UID != "":
		if err := resourceclaim.IsForPod(pod, existing, c.gates.Enabled(GateWorkloadClaims)); err != nil {
			claim.Problem = fmt.Errorf("ResourceClaim %s/%s %w: %w", pod.Namespace, *name, ErrClaimNotOwned, err)
		}
	}
	return claim, true
}

// madeFor returns the claim that the controller has made for an entry and has not written
// to the pod's status yet: it does so once it has made all claims of the pod (syncPod in
// pkg/controller/resourceclaim).
func (c *Claims) madeFor(pod *corev1.Pod, entry *corev1.PodResourceClaim) *resourceapi.ResourceClaim {
	if pod.UID == "" {
		return nil
	}
	for _, claim := range c.made()[pod.UID] {
		if claim.Annotations[podClaimAnnotation] == entry.Name {
			return claim
		}
	}
	return nil
}

// podGroup returns the group that the pod may share claims with, if any.
func (c *Claims) podGroup(pod *corev1.Pod) (*schedulingapi.PodGroup, error) {
	if !c.gates.Enabled(GateWorkloadClaims) || pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil, nil
	}
	name := *pod.Spec.SchedulingGroup.PodGroupName
	group := c.snap.PodGroup(pod.Namespace, name)
	if group == nil && c.snap.Gap(snapshot.ResourcePodGroups) == nil {
		return nil, fmt.Errorf("PodGroup %s/%s %w", pod.Namespace, name, ErrPodGroupMissing)
	}
	return group, nil
}

// sharedClaim finds the claim of the pod's group for an entry of the pod, nil if the claim
// is the pod's own.
func sharedClaim(pod *corev1.Pod, entry *corev1.PodResourceClaim, group *schedulingapi.PodGroup) *schedulingapi.PodGroupResourceClaim {
	if group == nil {
		return nil
	}
	bindTo, err := resourceclaim.BindTo(pod, group, entry)
	if err != nil || bindTo.Resource != "podgroups" {
		return nil
	}
	at := slices.IndexFunc(group.Spec.ResourceClaims, func(c schedulingapi.PodGroupResourceClaim) bool { return c.Name == entry.Name })
	if at < 0 {
		return nil
	}
	return &group.Spec.ResourceClaims[at]
}

// groupClaimName returns the name of the claim that was made from a template
// for a group, nil if the claim is yet to be made.
func groupClaimName(group *schedulingapi.PodGroup, shared *schedulingapi.PodGroupResourceClaim) *string {
	if shared == nil {
		return nil
	}
	name, _, err := resourceclaim.NameFromPodGroup(group, shared)
	if err != nil {
		return nil
	}
	return name
}

// generate makes a claim from a template as the resourceclaim controller does
// (pkg/controller/resourceclaim/controller.go of Kubernetes): for the pod or, where its
// group shares the claim, for that.
func (c *Claims) generate(pod *corev1.Pod, entry *corev1.PodResourceClaim, group *schedulingapi.PodGroup, shared *schedulingapi.PodGroupResourceClaim) (*resourceapi.ResourceClaim, error) {
	template := c.snap.Template(pod.Namespace, *entry.ResourceClaimTemplateName)
	if template == nil {
		reason := ErrTemplateMissing
		if gap := c.snap.Gap(snapshot.ResourceTemplates); gap != nil && (gap.Namespace == "" || gap.Namespace != pod.Namespace) {
			reason = ErrClaimUnreadable
		}
		return nil, fmt.Errorf("ResourceClaimTemplate %s/%s %w", pod.Namespace, *entry.ResourceClaimTemplateName, reason)
	}
	prefix, owner := cmp.Or(pod.Name, pod.GenerateName), ownerReference(pod)
	if shared != nil {
		prefix, owner = group.Name, groupReference(group)
	}
	if prefix != "" && prefix[len(prefix)-1] != '-' {
		prefix += "-"
	}
	annotations := map[string]string{podClaimAnnotation: entry.Name}
	maps.Copy(annotations, template.Spec.Annotations)
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            prefix + entry.Name,
			GenerateName:    prefix + entry.Name + "-",
			Labels:          maps.Clone(template.Spec.Labels),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
	Planned(claim, template.Name)
	setClaimDefaults(&claim.Spec)
	return claim, nil
}

func groupReference(group *schedulingapi.PodGroup) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: schedulingapi.SchemeGroupVersion.String(), Kind: "PodGroup", Name: group.Name, UID: group.UID, Controller: ptr.To(true),
	}
}

func (c *Claims) extendedPodClaim(pod *corev1.Pod) *PodClaim {
	if !c.HasExtendedResources(pod) {
		return nil
	}
	existing := c.existingExtendedClaim(pod)
	if existing == nil {
		claim, err := c.ExtendedResourceClaim(pod, nil)
		return &PodClaim{Claim: claim, Generated: claim != nil, ExtendedResources: true, Problem: err}
	}
	claim := &PodClaim{Claim: existing, ExtendedResources: true}
	if pod.Spec.NodeName == "" && existing.Spec.Devices.Requests != nil {
		claim.Problem = fmt.Errorf("ResourceClaim %s/%s %w", existing.Namespace, existing.Name, ErrClaimStale)
	}
	return claim
}

// UnusedClaim is a claim, or a request, of a pod whose devices reach no container or not
// the container that asks for them.
type UnusedClaim struct {
	// Entry is the name in the pod's spec.resourceClaims.
	Entry string
	// Container names a claim or request that does not exist; empty if no container names
	// the claim.
	Container string
	// Request is named by the container and missing in the claim; empty if the entry does
	// not exist.
	Request string
	// Requests are the requests of the claim.
	Requests []string
	// Path is the field of the pod that proves it, Found its value.
	Path, Found string
}

// UnusedClaims finds the claims of a pod that no container names, and names in containers
// that do not exist. A container gets the devices of those claims alone that its
// resources.claims name, and of those requests alone if it names one; the kubelet starts it
// without any if there is no such request (GetResources and cdiDevicesAsList of
// pkg/kubelet/cm/dra). The API server refuses a name that is not in spec.resourceClaims,
// and does not look at requests.
//
// Drivers that configure the pod as a whole, such as those for networks, do their work
// whether a container names the claim or not.
func UnusedClaims(pod *corev1.Pod, claims []PodClaim) []UnusedClaim {
	var found []UnusedClaim
	named := map[string]bool{}
	look := func(field string, containers []corev1.Container) {
		for i := range containers {
			for j, ref := range containers[i].Resources.Claims {
				path := fmt.Sprintf("spec.%s[name=%s].resources.claims[%d]", field, containers[i].Name, j)
				if !slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == ref.Name }) {
					found = append(found, UnusedClaim{Entry: ref.Name, Container: containers[i].Name, Path: path + ".name", Found: ref.Name})
					continue
				}
				named[ref.Name] = true
				at := slices.IndexFunc(claims, func(pc PodClaim) bool { return pc.Entry == ref.Name })
				if ref.Request == "" || at < 0 || claims[at].Claim == nil {
					continue
				}
				var requests []string
				for k := range claims[at].Claim.Spec.Devices.Requests {
					requests = append(requests, claims[at].Claim.Spec.Devices.Requests[k].Name)
				}
				if !slices.Contains(requests, ref.Request) {
					found = append(found, UnusedClaim{
						Entry: ref.Name, Container: containers[i].Name, Request: ref.Request, Requests: requests, Path: path + ".request", Found: ref.Request,
					})
				}
			}
		}
	}
	look("initContainers", pod.Spec.InitContainers)
	look("containers", pod.Spec.Containers)
	for i := range claims {
		if entry := claims[i].Entry; entry != "" && !named[entry] && len(pod.Spec.Containers) > 0 {
			found = append(found, UnusedClaim{Entry: entry, Path: "spec.containers[*].resources.claims", Found: "no " + entry})
		}
	}
	return found
}

// Text describes the problem, in a clause.
func (u *UnusedClaim) Text() string {
	switch {
	case u.Request != "":
		return fmt.Sprintf("container %s names request %s of claim %s, which does not exist", u.Container, u.Request, u.Entry)
	case u.Container != "":
		return fmt.Sprintf("container %s names claim %s, which is not in spec.resourceClaims", u.Container, u.Entry)
	default:
		return fmt.Sprintf("no container names claim %s in resources.claims", u.Entry)
	}
}

// Effect describes the consequence, in a clause.
func (u *UnusedClaim) Effect() string {
	switch {
	case u.Request != "":
		return "it runs without a device"
	case u.Container != "":
		return "the API server refuses the pod"
	default:
		return "all run without its devices, unless its driver configures the pod as a whole, as network drivers do"
	}
}

// Health is the kubelet's report about a device in the status of a pod (KEP-4680).
type Health struct {
	Pod     *corev1.Pod
	Status  corev1.ResourceHealthStatus
	Message string
}

// HealthOf returns the kubelet's reports about an allocated device in the status of the
// given pods, which use the claim. If a request has several devices, the kubelet names one
// only if the driver gives it no CDI name: then nothing is known.
func (c *Claims) HealthOf(holder Holder, pods []*corev1.Pod) []Health {
	results := holder.Claim.Status.Allocation.Devices.Results
	sameRequest := 0
	for i := range results {
		if results[i].Request == holder.Result.Request {
			sameRequest++
		}
	}
	id := DeviceID{Driver: holder.Result.Driver, Pool: holder.Result.Pool, Device: holder.Result.Device}.String()
	var found []Health
	for _, pod := range pods {
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		if !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return len(s.AllocatedResourcesStatus) > 0 }) {
			continue
		}
		// among counts the devices of each entry that has the device.
		among := map[corev1.ResourceName]int{}
		for _, entry := range c.OfPod(pod) {
			if entry.Claim != nil && entry.Claim.Name == holder.Claim.Name {
				among[corev1.ResourceName("claim:"+entry.Entry)] = len(results)
				among[corev1.ResourceName("claim:"+entry.Entry+"/"+resourceclaim.BaseRequestRef(holder.Result.Request))] = sameRequest
			}
		}
		for i := range statuses {
			for _, r := range statuses[i].AllocatedResourcesStatus {
				devices, ours := among[r.Name]
				for _, health := range r.Resources {
					if !ours || devices != 1 && string(health.ResourceID) != id {
						continue
					}
					h := Health{Pod: pod, Status: health.Health}
					if health.Message != nil {
						h.Message = *health.Message
					}
					if !slices.Contains(found, h) {
						found = append(found, h)
					}
				}
			}
		}
	}
	return found
}
