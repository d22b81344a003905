// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/obstacle"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/preview"
)

// claimProblem is about claims that the scheduler does not even look at, nil if
// there are none.
func claimProblem(q *funnel.Question) *settlement {
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		if pc.Problem == nil && lifecycle.FullForPod(q.Cluster, q.Pod, pc.Claim) {
			return &settlement{verdict: api.Error, code: api.ClaimNotReady, message: fmt.Sprintf("claim %s has reached the limit of %d consumers (status.reservedFor)", pc.Claim.Name, resourceapi.ResourceClaimReservedForMaxSize)}
		}
		switch {
		case pc.Problem == nil, pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrClaimNotCreated), obstacle.PodGroupMissing(pc):
			// The answer is that for the claim as it will be made.
			continue
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			return &settlement{verdict: api.Undetermined, code: api.ClaimNotReady, message: pc.Problem.Error()}
		case errors.Is(pc.Problem, cluster.ErrClaimDeleting):
			return &settlement{verdict: api.Blocked, code: api.ClaimNotReady, message: pc.Problem.Error()}
		default:
			return &settlement{verdict: api.Error, code: api.ClaimNotReady, message: pc.Problem.Error() + nearClaim(q, pc)}
		}
	}
	return nil
}

// nearClaim suggests the claim or template that was probably meant.
func nearClaim(q *funnel.Question, pc *cluster.PodClaim) string {
	var names []string
	switch {
	case errors.Is(pc.Problem, cluster.ErrTemplateMissing) && pc.Template != "":
		for _, t := range q.Cluster.Snapshot.Templates {
			if t.Namespace == q.Pod.Namespace {
				names = append(names, t.Name)
			}
		}
		return naming.DidYouMean(pc.Template, names)
	case errors.Is(pc.Problem, cluster.ErrClaimMissing) && pc.Template == "":
		for _, c := range q.Cluster.Snapshot.Claims {
			if c.Namespace == q.Pod.Namespace {
				names = append(names, c.Name)
			}
		}
		for _, entry := range q.Pod.Spec.ResourceClaims {
			if entry.Name == pc.Entry && entry.ResourceClaimName != nil {
				return naming.DidYouMean(*entry.ResourceClaimName, names)
			}
		}
	}
	return ""
}

// refusal makes the checks that come before any node is tried: those of the
// API server for claims that do not exist yet, and those of the scheduler's
// PreFilter. It is nil if they pass.
func refusal(q *funnel.Question) *settlement {
	for _, c := range q.Claims {
		pc := &q.PodClaims[c.Index]
		if message := adminAccessDenied(q, c.Claim); message != "" && (pc.Generated || c.Claim.UID == "") {
			return &settlement{verdict: api.Error, code: api.AdminAccessDenied, message: message}
		}
		for i := range c.Claim.Spec.Devices.Requests {
			r := &c.Claim.Spec.Devices.Requests[i]
			switch {
			case len(r.FirstAvailable) > 0 && !q.Cluster.Gates.Enabled("DRAPrioritizedList"):
				return &settlement{verdict: api.Error, code: api.FeatureDisabled, message: fmt.Sprintf("request %s has alternatives (firstAvailable), which needs the feature gate DRAPrioritizedList", r.Name)}
			case r.Exactly == nil && len(r.FirstAvailable) == 0:
				return &settlement{verdict: api.Error, code: api.FeatureDisabled, message: fmt.Sprintf("request %s is of an unknown kind: it has neither exactly nor firstAvailable", r.Name)}
			}
		}
	}
	return classesMissing(q)
}

// classesMissing is about requests for classes that do not exist, nil if all do.
func classesMissing(q *funnel.Question) *settlement {
	gap := q.Cluster.Snapshot.Gap(snapshot.ResourceClasses)
	var missing *settlement
	for _, c := range q.Claims {
		for _, r := range slices.Concat(cluster.Requests(c.Claim)...) {
			switch {
			case q.Cluster.Snapshot.Class(r.Class) != nil || missing != nil && slices.Contains(missing.classes, r.Class):
			case gap != nil:
				return &settlement{verdict: api.Undetermined, code: api.ClassNotFound, message: fmt.Sprintf("request %s needs DeviceClass %s, which could not be read: %s", r.Name, r.Class, gap.Reason)}
			case missing == nil:
				missing = &settlement{verdict: api.Error, code: api.ClassNotFound, classes: []string{r.Class}, message: fmt.Sprintf("request %s: DeviceClass %s does not exist", r.Name, r.Class)}
			default:
				missing.classes = append(missing.classes, r.Class)
				missing.message += fmt.Sprintf(", request %s: nor does %s", r.Name, r.Class)
			}
		}
	}
	return missing
}

// classesHint says which classes were meant by missing ones, or where these come from.
func classesHint(ctx context.Context, q *funnel.Question, missing []string) string {
	hint, unknown := "", false
	for _, class := range missing {
		said := classHint(ctx, q, class)
		unknown = unknown || said == "" || strings.HasPrefix(said, ",")
		hint += said
	}
	switch names := classNames(q.Cluster.Snapshot); {
	case !unknown:
	case len(names) == 0:
		hint += "; no DeviceClass exists"
	default:
		hint += "; existing classes: " + english.Sample(names, 10)
	}
	return hint
}

func classNames(snap *snapshot.Snapshot) []string {
	names := make([]string, 0, len(snap.Classes))
	for _, class := range snap.Classes {
		names = append(names, class.Name)
	}
	return names
}

// classHint is the class that was meant by a missing one, or where that comes from.
func classHint(ctx context.Context, q *funnel.Question, class string) string {
	if driver := preview.InstalledWith(q.Cluster.Snapshot, class); driver != "" {
		return fmt.Sprintf("; it is installed with the driver %s, and no part of its preview: lay it over the cluster too, with -f", driver)
	}
	if meant := q.Catalog.MeantClass(ctx, class, q.Cluster.Snapshot.Classes); meant != "" {
		return naming.Suggestion(meant)
	}
	if driver := q.Catalog.DriverOfClass(class); driver != "" {
		return fmt.Sprintf(", which the installation of driver %s creates", driver)
	}
	return ""
}

// adminAccessDenied repeats the API server's check (KEP-5018) that a claim
// with admin access is in a namespace for that.
func adminAccessDenied(q *funnel.Question, claim *resourceapi.ResourceClaim) string {
	namespace := q.Cluster.Snapshot.Namespace(claim.Namespace)
	if namespace == nil || namespace.Labels[resourceapi.DRAAdminNamespaceLabelKey] == "true" {
		return ""
	}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			return fmt.Sprintf("request %s asks for admin access, which the API server allows only in a namespace with the label %s=true; namespace %s has %s",
				r.Name, resourceapi.DRAAdminNamespaceLabelKey, claim.Namespace, labelText(namespace.Labels, resourceapi.DRAAdminNamespaceLabelKey))
		}
	}
	return ""
}

func labelText(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return fmt.Sprintf("%s=%s", key, value)
	}
	return "no such label"
}

// survey sorts nodes into those where the allocator is asked and those that the
// pod cannot use, as the scheduler's earlier filters do. What could not be
// determined is an assumption.
func survey(q *funnel.Question, nodes []*corev1.Node) (assumptions []string) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	q.Reach.Pools = make(map[string][]*cluster.NodePool, len(nodes))
	q.Reach.Misfits = map[string][]eligibility.UnsuitableNode{}
	for _, node := range nodes {
		pools, err := q.Cluster.Pools.For(node)
		if err != nil {
			assumptions = append(assumptions, fmt.Sprintf("the pools of node %s could not be determined: %v", node.Name, err))
		} else {
			q.Reach.Pools[node.Name] = pools
		}
		if misfits := funnel.Misfits(q, node); len(misfits) > 0 {
			q.Reach.Unsuitable = append(q.Reach.Unsuitable, funnel.Unsuitable(misfits))
			q.Reach.Misfits[node.Name] = misfits
			continue
		}
		q.Reach.Candidates = append(q.Reach.Candidates, node)
	}
	return assumptions
}
