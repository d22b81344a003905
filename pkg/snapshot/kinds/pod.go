// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/ptr"
)

func redactedPods() []Redaction {
	return []Redaction{
		redacted[corev1.Pod](`metadata  meta Pod`),
		redacted[corev1.PodTemplateSpec](`metadata  meta Pod`),
		redacted[corev1.PodSpec](`
			nodeName            name Node
			serviceAccountName  name ServiceAccount
			serviceAccount      name ServiceAccount
			hostname            drop
			subdomain           drop
			hostnameOverride    drop
			evictionResponders  drop
			priorityClassName   priorityClass
			runtimeClassName    name RuntimeClass
			schedulerName       scheduler
			nodeSelector        labels`),
		redacted[corev1.PodSchedulingGroup](`podGroupName  name PodGroup`),
		redacted[corev1.Toleration](`value  nodeTaint`),
		redacted[corev1.PodAffinityTerm](`namespaces  name Namespace`),
		redacted[corev1.PodResourceClaim](`
			name                       name PodClaim
			resourceClaimName          name ResourceClaim
			resourceClaimTemplateName  name ResourceClaimTemplate`),
		redacted[corev1.Container](`
			name   name Container
			image  name Image`),
		redacted[corev1.ContainerPort](`
			name    drop
			hostIP  drop`),
		redacted[corev1.ResourceClaim](`name  name PodClaim`),
		redacted[corev1.PodSchedulingGate](`name  qualified`),
		redacted[corev1.PodReadinessGate](`conditionType  qualified`),
		redacted[corev1.Volume](`name  name Volume`),
		redacted[corev1.VolumeSource](`ephemeral  empty`),
		redacted[corev1.PersistentVolumeClaimVolumeSource](`claimName  name PersistentVolumeClaim`),
		redacted[corev1.LocalObjectReference](`name  name ConfigMap`),
		redacted[corev1.SecretVolumeSource](`secretName  name Secret`),
		redacted[corev1.PodStatus](`
			message            text
			nominatedNodeName  name Node
			volumeHealth       drop
			hostIP             name IP
			podIP              name IP`),
		redacted[corev1.HostIP](`ip  name IP`),
		redacted[corev1.PodIP](`ip  name IP`),
		redacted[corev1.PodCondition](`
			type     qualified
			message  text`),
		redacted[corev1.PodResourceClaimStatus](`
			name               name PodClaim
			resourceClaimName  name ResourceClaim`),
		redacted[corev1.PodExtendedResourceClaimStatus](`resourceClaimName  name ResourceClaim`),
		redacted[corev1.ContainerExtendedResourceRequest](`containerName  name Container`),
		redacted[corev1.NodeAllocatableResourceClaimStatus](`
			resourceClaimName  name ResourceClaim
			containers         name Container`),
		redacted[corev1.ContainerStatus](`
			name   name Container
			image  name Image`),
		redacted[corev1.ContainerStateWaiting](`message  text`),
		redacted[corev1.ContainerStateTerminated](`
			message      text
			containerID  drop`),
		redacted[corev1.ResourceStatus](`name  claimOfPod`),
		redacted[corev1.ResourceHealth](`
			resourceID  deviceInPool
			message     text`),
	}
}

// neverReadOfPods lists fields that take room in a long list, and that [Strip] removes anyway.
func neverReadOfPods() []Field {
	fields := ReadFields("spec.ephemeralContainers", "status.ephemeralContainerStatuses")
	for _, list := range []string{"spec.containers.", "spec.initContainers."} {
		for _, name := range []string{
			"command", "args", "env", "envFrom", "volumeMounts", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "securityContext",
		} {
			fields = append(fields, Field{Path: list + name})
		}
	}
	return fields
}

func stripPodSpec(spec *corev1.PodSpec) {
	for i := range spec.InitContainers {
		stripContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		stripContainer(&spec.Containers[i])
	}
	spec.EphemeralContainers = nil
	spec.SecurityContext = nil
	spec.ImagePullSecrets = nil
	spec.HostAliases = nil
	spec.DNSConfig = nil
	for i := range spec.Volumes {
		stripVolume(&spec.Volumes[i])
	}
}

func stripContainer(c *corev1.Container) {
	*c = corev1.Container{
		Name:          c.Name,
		Image:         c.Image,
		Ports:         c.Ports,
		Resources:     c.Resources,
		RestartPolicy: c.RestartPolicy,
	}
}

// stripVolume keeps the name and kind of a volume, of a claim which one, and whether it is
// the directory of device plugins.
func stripVolume(v *corev1.Volume) {
	source := corev1.VolumeSource{
		HostPath:              empty(v.HostPath),
		EmptyDir:              empty(v.EmptyDir),
		NFS:                   empty(v.NFS),
		DownwardAPI:           empty(v.DownwardAPI),
		Projected:             empty(v.Projected),
		Image:                 empty(v.Image),
		PersistentVolumeClaim: v.PersistentVolumeClaim,
	}
	if v.HostPath != nil && path.Clean(v.HostPath.Path) == path.Clean(devicepluginv1beta1.DevicePluginPath) {
		source.HostPath.Path = v.HostPath.Path
	}
	if v.ConfigMap != nil {
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: v.ConfigMap.LocalObjectReference}
	}
	if v.Secret != nil {
		source.Secret = &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}
	}
	if v.CSI != nil {
		source.CSI = &corev1.CSIVolumeSource{Driver: v.CSI.Driver}
	}
	if v.Ephemeral != nil {
		source.Ephemeral = v.Ephemeral
	}
	*v = corev1.Volume{Name: v.Name, VolumeSource: source}
}

// empty keeps that something is set and drops what it is set to.
func empty[T any](pointer *T) *T {
	if pointer == nil {
		return nil
	}
	return new(T)
}

func stripPodStatus(status *corev1.PodStatus) {
	status.EphemeralContainerStatuses = nil
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			list[i].ImageID = ""
			list[i].ContainerID = ""
			list[i].VolumeMounts = nil
			list[i].User = nil
		}
	}
}

func (s *Sharer) pod(pod *corev1.Pod) {
	spec, status := &pod.Spec, &pod.Status
	s.each((*string)(&spec.RestartPolicy), (*string)(&spec.DNSPolicy), &spec.SchedulerName, &spec.ServiceAccountName,
		&spec.PriorityClassName, (*string)(&status.Phase), (*string)(&status.QOSClass))
	spec.NodeSelector = s.labels(spec.NodeSelector)
	for i := range spec.Containers {
		container := &spec.Containers[i]
		container.Resources.Requests = s.quantities(container.Resources.Requests)
		container.Resources.Limits = s.quantities(container.Resources.Limits)
	}
	if len(spec.Containers) > 0 {
		first := &spec.Containers[0]
		spec.Containers = s.containers.of(s.hash(first.Name, first.Image), spec.Containers, equal)
	}
	if len(spec.Tolerations) > 0 {
		first := &spec.Tolerations[0]
		spec.Tolerations = s.tolerated.of(s.hash(first.Key, first.Value), spec.Tolerations, equal)
	}
	if len(spec.ResourceClaims) > 0 {
		spec.ResourceClaims = s.podClaims.of(s.hash(spec.ResourceClaims[0].Name, ptr.Deref(spec.ResourceClaims[0].ResourceClaimTemplateName, "")), spec.ResourceClaims, equal)
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		s.each((*string)(&condition.Type), (*string)(&condition.Status), &condition.Reason)
	}
}

func checkPodClaims(spec *corev1.PodSpec, path string) error {
	names, listed := nameSet{}, make([]string, 0, len(spec.ResourceClaims))
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		at := fmt.Sprintf("%s.resourceClaims[%d]", path, i)
		if err := names.add(claim.Name, at); err != nil {
			return err
		}
		listed = append(listed, claim.Name)
		found := ""
		switch {
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			found = "none"
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			found = "both"
		}
		if found != "" {
			return AtField(at, fmt.Errorf("expected resourceClaimName or resourceClaimTemplateName, found %s", found))
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			for j, claim := range list.containers[i].Resources.Claims {
				if names[claim.Name] {
					continue
				}
				at := fmt.Sprintf("%s.%s[%d].resources.claims[%d].name", path, list.name, i, j)
				if len(listed) == 0 {
					return AtField(at, fmt.Errorf("there is no %s.resourceClaims with the name %q", path, claim.Name))
				}
				return AtField(at, fmt.Errorf("%q is none of %s.resourceClaims: %s", claim.Name, path, strings.Join(listed, ", ")))
			}
		}
	}
	return nil
}

func checkPodNames(spec *corev1.PodSpec, path string) error {
	if err := firstError(
		wantForm(subdomain(), spec.NodeName, "%s.nodeName", path),
		wantForm(subdomain(), spec.ServiceAccountName, "%s.serviceAccountName", path),
		wantForm(subdomain(), spec.PriorityClassName, "%s.priorityClassName", path),
	); err != nil {
		return err
	}
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		if err := firstError(
			wantForm(label(), claim.Name, "%s.resourceClaims[%d].name", path, i),
			wantPointer(subdomain(), claim.ResourceClaimName, "%s.resourceClaims[%d].resourceClaimName", path, i),
			wantPointer(subdomain(), claim.ResourceClaimTemplateName, "%s.resourceClaims[%d].resourceClaimTemplateName", path, i),
		); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		if err := wantForm(label(), spec.InitContainers[i].Name, "%s.initContainers[%d].name", path, i); err != nil {
			return err
		}
	}
	for i := range spec.Containers {
		if err := wantForm(label(), spec.Containers[i].Name, "%s.containers[%d].name", path, i); err != nil {
			return err
		}
	}
	return nil
}

func (r *rejections) pod(spec *corev1.PodSpec, path string) {
	var names []string
	for i := range spec.ResourceClaims {
		c := &spec.ResourceClaims[i]
		at := fmt.Sprintf("%s.resourceClaims[%d]", path, i)
		r.is(label(), c.Name, at+".name")
		if c.Name != "" && slices.Contains(names, c.Name) {
			r.add(at+".name", "%q is also the name of another before it; each needs its own", c.Name)
		}
		names = append(names, c.Name)
		if c.ResourceClaimName != nil {
			r.is(subdomain(), *c.ResourceClaimName, at+".resourceClaimName")
		}
		if c.ResourceClaimTemplateName != nil {
			r.is(subdomain(), *c.ResourceClaimTemplateName, at+".resourceClaimTemplateName")
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			r.containerClaims(list.containers[i].Resources.Claims, fmt.Sprintf("%s.%s[%d].resources.claims", path, list.name, i))
		}
	}
}

// containerClaims adds what a container names twice.
func (r *rejections) containerClaims(claims []corev1.ResourceClaim, path string) {
	for i, c := range claims {
		if c.Request != "" {
			r.is(label(), c.Request, fmt.Sprintf("%s[%d].request", path, i))
		}
		for _, before := range claims[:i] {
			if before.Name == c.Name && (before.Request == c.Request || before.Request == "" || c.Request == "") {
				r.add(fmt.Sprintf("%s[%d]", path, i), "%q is in the list twice", c.Name)
				break
			}
		}
	}
}
