// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Inventory answers what there is in one snapshot. It is safe for concurrent
// use.
type Inventory struct {
	cluster *cluster.Cluster

	eligible *eligibility.Devices
	notRead  notRead
	counter  *deviceCounter
}

// uses reports whether a pod may use an allocated claim: the claim is reserved
// for it. A pod that only names the claim waits for that. Where objects have
// no UID, as in a file written by hand, the name has to do.
func uses(facts *cluster.Cluster, pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	return facts.Claims.Reserved(claim, pod) || pod.UID == "" && slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return consumer.APIGroup == "" && consumer.Resource == "pods" && consumer.Name == pod.Name
	})
}

// typeMeta returns the type of an object of a kind such as "Device".
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: api.APIVersion, Kind: kind}
}

func age(facts *cluster.Cluster, created metav1.Time) (since *metav1.Time, seconds int64) {
	if created.IsZero() {
		return nil, 0
	}
	return &created, max(0, int64(facts.Snapshot.Now().Sub(created.Time).Seconds()))
}

// scopeOf says in words which nodes something is for, and the node if it is
// for one by name.
func scopeOf(name *string, all *bool, selector *corev1.NodeSelector) (node, scope string) {
	switch {
	case name != nil && *name != "":
		return *name, *name
	case all != nil && *all:
		return "", "all nodes"
	case selector != nil:
		return "", selectorText(selector)
	default:
		return "", "by device"
	}
}

// requirementText returns what a node selector wants. A label that only has to exist would
// read like the name of a node.
func requirementText(r corev1.NodeSelectorRequirement) string {
	if r.Operator == corev1.NodeSelectorOpExists {
		return "with " + r.Key
	}
	return cluster.RequirementText(r)
}

// selectorText writes a node selector as kubectl writes label selectors; terms
// are joined by "or".
func selectorText(selector *corev1.NodeSelector) string {
	terms := make([]string, 0, len(selector.NodeSelectorTerms))
	for _, term := range selector.NodeSelectorTerms {
		var parts []string
		for _, r := range term.MatchFields {
			parts = append(parts, requirementText(r))
		}
		for _, r := range term.MatchExpressions {
			parts = append(parts, requirementText(r))
		}
		terms = append(terms, strings.Join(parts, ","))
	}
	return strings.Join(terms, " or ")
}
