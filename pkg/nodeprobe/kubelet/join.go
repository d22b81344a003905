// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// join compares the kubelet's report with the cluster.
type join struct {
	*Findings

	cluster *node.Cluster
	// one is the requested pod, nil for all.
	one *v1.GetPodResourcesRequest
	// agree counts the claims on which both sides agree.
	agree    int
	unknowns node.Unknowns
}

func (j *join) run() {
	if j.cluster == nil {
		j.Checks = append(j.Checks, node.NotKnown(checkClaims, "", "no cluster was read, so claims could not be compared"))
		return
	}
	for i := range j.Pods {
		j.fromKubelet(&j.Pods[i])
	}
	if !j.silent() {
		for _, pod := range j.cluster.Pods {
			// The kubelet forgets a pod before the cluster does.
			if pod.DeletionTimestamp == nil && (j.one == nil || j.one.PodNamespace == pod.Namespace && j.one.PodName == pod.Name) {
				j.fromCluster(pod)
			}
		}
	}
	if j.cluster.Node == "" {
		j.Checks = append(j.Checks, node.NotKnown(checkPods, "", "which pods of the cluster are here is not known: %s", j.cluster.Unknown))
	}
	j.Checks = append(j.Checks, j.unknowns.Checks(checkClaims)...)
	if j.agree > 0 {
		j.Checks = append(j.Checks, node.Good(checkClaims, "", "the kubelet and the cluster agree on %s", english.Count(j.agree, "claim")))
	}
}

// silent reports whether the kubelet reports no claims at all.
func (j *join) silent() bool {
	for i := range j.Pods {
		for _, c := range j.Pods[i].Containers {
			if len(c.Claims) > 0 {
				return false
			}
		}
	}
	claims := 0
	for _, pod := range j.cluster.Pods {
		if pod.Status.Phase == corev1.PodRunning && len(reportedClaims(pod, j.cluster.ClaimsOf(pod))) > 0 {
			claims++
		}
	}
	if claims < 2 {
		return false
	}
	j.Checks = append(j.Checks, node.NotKnown(checkClaims, "",
		"the kubelet reports no claims for any of %s that run with them: its feature gate KubeletPodResourcesDynamicResources may be off, as it was by default before 1.34", english.Count(claims, "pod")))
	return true
}

func (j *join) bad(name, format string, args ...any) {
	j.Checks = append(j.Checks, node.Bad(name, "", format, args...))
}

// fromKubelet finds pods with claims or devices, and claims, that only the kubelet knows.
func (j *join) fromKubelet(pod *Pod) {
	held := map[[2]string][]Device{}
	var order [][2]string
	devices := 0
	for c := range pod.Containers {
		for _, r := range pod.Containers[c].Devices {
			devices += len(r.IDs)
		}
		for i := range pod.Containers[c].Claims {
			claim := &pod.Containers[c].Claims[i]
			key := [2]string{claim.Namespace, claim.Name}
			if known := j.cluster.ClaimNamed(claim.Namespace, claim.Name); known != nil {
				claim.UID = string(known.UID)
			}
			if _, ok := held[key]; !ok {
				order = append(order, key)
			}
			held[key] = append(held[key], claim.Devices...)
		}
	}
	var with []string
	if len(order) > 0 {
		with = append(with, english.Count(len(order), "claim"))
	}
	if devices > 0 {
		with = append(with, english.Count(devices, "device")+" of device plugins")
	}
	if len(with) == 0 {
		return
	}
	who := fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name)
	known := j.cluster.Pod(pod.Namespace, pod.Name)
	switch gap := j.cluster.Missing(snapshot.ResourcePods, pod.Namespace); {
	case known == nil && gap != "":
		j.unknowns.Add(who, gap)
		return
	case known == nil:
		j.bad(checkPods, "the kubelet has %s with %s, and the cluster has no such pod: it was deleted by force, or is a static one", who, english.JoinAnd(with))
		return
	case j.cluster.Node != "" && known.Spec.NodeName != j.cluster.Node:
		j.Checks = append(j.Checks, node.Check{
			Name: checkPods, State: node.Problem, Message: "the kubelet has " + who + ", which the cluster has bound to another node",
			Found: known.Spec.NodeName, Required: j.cluster.Node,
		})
		return
	}
	for _, key := range order {
		j.claim(known, key[0], key[1], held[key])
	}
}

// claim compares the devices of one claim of a pod that both sides know.
func (j *join) claim(pod *corev1.Pod, namespace, name string, devices []Device) {
	who := fmt.Sprintf("claim %s/%s of pod %s", namespace, name, pod.Name)
	claim := j.cluster.ClaimNamed(namespace, name)
	if claim == nil {
		if gap := j.cluster.Missing(snapshot.ResourceClaims, namespace); gap != "" {
			j.unknowns.Add(who, gap)
			return
		}
		j.bad(checkClaims, "%s: the kubelet has prepared it, and the cluster has no such claim", who)
		return
	}
	if claim.Status.Allocation == nil {
		j.bad(checkClaims, "%s: the kubelet has prepared it, and the cluster says that it is not allocated", who)
		return
	}
	if !node.ReservedFor(claim, pod) && reservedForPods(claim) {
		j.bad(checkClaims, "%s: the kubelet has prepared it, and the cluster has not reserved it for the pod", who)
		return
	}
	had, wanted, drivers := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range devices {
		had[deviceName(d.Driver, d.Pool, d.Device, d.ShareID)] = true
		drivers[d.Driver] = true
	}
	var lacking []string
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		share := ""
		if r.ShareID != nil {
			share = string(*r.ShareID)
		}
		id := deviceName(r.Driver, r.Pool, r.Device, share)
		wanted[id] = true
		// A driver may report none of its devices to the kubelet, but not half of them.
		if !had[id] && drivers[r.Driver] {
			lacking = append(lacking, id)
		}
	}
	var surplus []string
	for id := range had {
		if !wanted[id] {
			surplus = append(surplus, id)
		}
	}
	slices.Sort(surplus)
	switch {
	case len(surplus) > 0:
		j.bad(checkClaims, "%s: the kubelet has given it %s, which is not allocated to it", who, strings.Join(surplus, ", "))
	case len(lacking) > 0:
		j.bad(checkClaims, "%s: %s is allocated to it, and the kubelet does not know of it", who, strings.Join(lacking, ", "))
	default:
		j.agree++
	}
}

// reservedForPods reports whether a claim is reserved pod by pod, and not for
// groups of them.
func reservedForPods(claim *resourceapi.ResourceClaim) bool {
	return !slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.APIGroup != "" || c.Resource != "pods"
	})
}

func deviceName(driver, pool, device, share string) string {
	name := driver + "/" + pool + "/" + device
	if share != "" {
		name += " (share " + share + ")"
	}
	return name
}

// fromCluster finds claims that only the cluster knows.
func (j *join) fromCluster(pod *corev1.Pod) {
	var reported []string
	for i := range j.Pods {
		if p := &j.Pods[i]; p.Namespace == pod.Namespace && p.Name == pod.Name {
			for _, c := range p.Containers {
				for _, claim := range c.Claims {
					reported = append(reported, claim.Name)
				}
			}
		}
	}
	for _, claim := range reportedClaims(pod, j.cluster.ClaimsOf(pod)) {
		if slices.Contains(reported, claim.Name) {
			continue
		}
		if pod.Status.Phase != corev1.PodRunning {
			j.unknowns.Add(fmt.Sprintf("claim %s/%s of pod %s", claim.Namespace, claim.Name, pod.Name), "the kubelet does not report it, and its pod does not run yet")
			continue
		}
		j.bad(checkClaims, "claim %s/%s of pod %s: the pod runs, and the kubelet does not report the claim", claim.Namespace, claim.Name, pod.Name)
	}
}

// reportedClaims returns the claims of a pod that the kubelet reports once they are
// prepared: the claims of containers that stay.
func reportedClaims(pod *corev1.Pod, claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	containers := slices.Clone(pod.Spec.Containers)
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, pod.Spec.InitContainers[i])
		}
	}
	names := map[string]bool{}
	for i := range containers {
		for _, c := range containers[i].Resources.Claims {
			names[claimNameOf(pod, c.Name)] = true
		}
		if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
			for _, m := range extended.RequestMappings {
				if m.ContainerName == containers[i].Name {
					names[extended.ResourceClaimName] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c *resourceapi.ResourceClaim) bool {
		return !names[c.Name] || c.Status.Allocation == nil
	})
}

// claimNameOf returns the claim behind a name in the pod, empty if there is none.
func claimNameOf(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.ResourceClaims {
		if c := &pod.Spec.ResourceClaims[i]; c.Name == name && c.ResourceClaimName != nil {
			return *c.ResourceClaimName
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == name && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}
