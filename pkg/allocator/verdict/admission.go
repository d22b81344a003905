// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// finder collects the obstacles of one pod, and the possible ones.
type finder struct {
	*Verdict
	unevaluated []Unevaluated
}

// refusals returns the ResourceQuotas and LimitRanges that refuse objects not yet created:
// the claims of a pod, and with -f the pod or the claim itself. Quota is enforced at
// creation only: existing objects are not affected.
func (f *finder) refusals() []Obstacle {
	namespace := f.Target.Object.Namespace
	created, stage := toBeCreated(f.Question)
	pod := f.Pod
	newPod := pod != nil && f.Target.Hypothetical
	if len(created) == 0 && !newPod {
		return nil
	}
	var obstacles []Obstacle
	note := func(code api.Code, stage api.Stage, refusals []kinds.Refusal) {
		for _, r := range refusals {
			o := Obstacle{Code: code, Stage: stage}
			o.Reason = r.Reason
			o.AddEvidence(api.Ref(r.Object, namespace, r.Name), r.Path, r.Found, r.Wanted)
			switch {
			case r.Exceeded != "":
				o.Steps = append(o.Steps, lifecycle.NewQuotaRaise(namespace, r.Name, r.Exceeded, r.Used, r.Hard, r.Need).Steps()...)
			case code == api.QuotaExceeded:
				o.Step(api.ActorUser, "give each container the requests and limits that ResourceQuota %s counts", r.Name)
			default:
				o.Step(api.ActorUser, "change the requests and limits of the pod so that %s %s allows them", r.Object, r.Name)
			}
			obstacles = append(obstacles, o)
		}
	}
	if newPod {
		ranges := inNamespace(f.Cluster.Snapshot.LimitRanges, namespace)
		pod = kinds.WithLimitDefaults(ranges, pod)
		f.unknownAdmission(snapshot.ResourceLimitRanges, "LimitRanges", namespace)
		note(api.LimitRangeViolated, "", kinds.LimitRefusals(ranges, pod))
	}
	f.unknownAdmission(snapshot.ResourceQuotas, "ResourceQuotas", namespace)
	quotas := inNamespace(f.Cluster.Snapshot.Quotas, namespace)
	if newPod {
		note(api.QuotaExceeded, "", kinds.PodQuotaRefusals(quotas, pod))
	}
	if len(created) > 0 {
		note(api.QuotaExceeded, stage, kinds.ClaimQuotaRefusals(quotas, extendedNames(f.Question), created...))
	}
	return obstacles
}

// unknownAdmission notes that something may refuse the object that was not read.
func (f *finder) unknownAdmission(resource, what, namespace string) {
	if why := f.Cluster.Snapshot.Unknown(resource, namespace); why != "" {
		gap := f.Cluster.Snapshot.Gap(resource) != nil
		f.unevaluated = append(f.unevaluated, Unevaluated{What: what, Why: why, Always: gap, Quiet: !gap})
	}
}

// toBeCreated returns what the claims count for that do not exist yet, and the stage in
// which they are created.
func toBeCreated(q *eligibility.Question) ([]corev1.ResourceList, api.Stage) {
	var usages []corev1.ResourceList
	stage := api.StageClaimGeneration
	pod := q.Pod
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		switch {
		case pc.Claim == nil || pc.Claim.UID != "" || pc.Problem != nil && !errors.Is(pc.Problem, cluster.ErrClaimNotCreated):
		case pc.ExtendedResources && pod != nil && snapshot.Waits(pod):
			if len(usages) == 0 {
				// The scheduler creates it.
				stage = api.StageAllocation
			}
			usages = append(usages, kinds.ClaimQuotaUsage(&pc.Claim.Spec, extendedNames(q), kinds.PodQuotaUsage(pod)))
		case pc.ExtendedResources, !pc.Generated && (!pc.Claim.CreationTimestamp.IsZero() || q.Cluster.Snapshot.Claim(pc.Claim.Namespace, pc.Claim.Name) == nil):
		case pc.Generated && pod == nil:
			// A template alone creates nothing.
		default:
			usages = append(usages, kinds.ClaimQuotaUsage(&pc.Claim.Spec, extendedNames(q), nil))
		}
	}
	return usages, stage
}

// extendedNames says which extended resource each class stands for, nil where the
// cluster has no extended resources by DRA.
func extendedNames(q *eligibility.Question) kinds.QuotaClasses {
	if !q.Cluster.Gates.Enabled("DRAExtendedResource") {
		return nil
	}
	classes := kinds.QuotaClasses{}
	for _, class := range q.Cluster.Snapshot.Classes {
		if class.Spec.ExtendedResourceName != nil {
			classes[class.Name] = *class.Spec.ExtendedResourceName
		}
	}
	return classes
}

// inNamespace returns the objects of a namespace.
func inNamespace[T interface{ GetNamespace() string }](list []T, namespace string) []T {
	var own []T
	for _, o := range list {
		if o.GetNamespace() == namespace {
			own = append(own, o)
		}
	}
	return own
}
