// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// ExtendedPlace is the container that asks for an extended resource.
type ExtendedPlace struct {
	Container *corev1.Container
	Resource  corev1.ResourceName
	// Path and pointer lead to the container's resources in the pod.
	Path, Pointer string
}

// ExtendedRequestOf finds what a request of the claim for extended resources stands
// for. It is false for a request of any other claim.
func ExtendedRequestOf(q *Question, claim *resourceapi.ResourceClaim, request string) (ExtendedPlace, bool) {
	use, ok := cluster.ExtendedResourceRequest(q.Pod, claim, request)
	if !ok {
		return ExtendedPlace{}, false
	}
	spec := &q.Pod.Spec
	list, field := spec.Containers, "containers"
	named := func(c corev1.Container) bool { return c.Name == use.ContainerName }
	if slices.ContainsFunc(spec.InitContainers, named) {
		list, field = spec.InitContainers, "initContainers"
	}
	i := slices.IndexFunc(list, named)
	return ExtendedPlace{
		Container: &list[i], Resource: corev1.ResourceName(use.ResourceName),
		Path:    fmt.Sprintf("spec.%s[%d].resources", field, i),
		Pointer: fmt.Sprintf("/%s/%d/resources", field, i),
	}, true
}

// RequestTitle names a request of a waiting claim: "request gpus", with the
// claim if there are several, or the container and the resource that a request
// for extended resources stands for.
func RequestTitle(q *Question, claim int, name string) string {
	of := q.Claims[claim].Claim
	if place, ok := ExtendedRequestOf(q, of, name); ok {
		return cluster.RequestTitle(name, place.Container.Name, string(place.Resource))
	}
	if len(q.Claims) > 1 && of.Name != "" {
		name = cluster.ClaimTitle(of) + "." + name
	}
	return "request " + name
}

// TitleOf is like [builder.requestTitle], for a request that has a funnel.
func TitleOf(q *Question, r *cluster.Request) string {
	claim := slices.IndexFunc(q.Claims, func(c Claim) bool { return c.Claim == r.Claim })
	return RequestTitle(q, claim, r.Name)
}

// WithoutPlannedClaims leaves claims out of an error that are yet to be created, so that nobody
// looks for them: it names the selector itself. Upstream has no error types, only texts, which
// begin with namespace and name of the claim, and these have to be different for each claim;
// only what upstream puts there itself is cut, and a text that begins otherwise stays as it is.
func WithoutPlannedClaims(q *Question, text string) string {
	for i := range q.Claims {
		claim := q.Claims[i].Claim
		after, found := strings.CutPrefix(text, fmt.Sprintf("claim %s", klog.KObj(claim)))
		if _, planned := cluster.IsPlanned(claim); !found || !planned {
			continue
		}
		rest, found := strings.CutPrefix(after, ": ")
		if !found {
			if rest, found = strings.CutPrefix(after, ", "); !found {
				continue
			}
		}
		requests := claim.Spec.Devices.Requests
		if len(requests) != 1 || requests[0].Exactly == nil {
			return rest
		}
		for at, s := range requests[0].Exactly.Selectors {
			if on, found := strings.CutPrefix(rest, fmt.Sprintf("selector #%d on ", at)); found && s.CEL != nil {
				return fmt.Sprintf("selector %s on %s", strings.Join(strings.Fields(s.CEL.Expression), " "), on)
			}
		}
		return rest
	}
	return text
}
