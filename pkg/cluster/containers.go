// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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
