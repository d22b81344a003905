// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// settle explains what settled the matter before any node was tried. Nodes that are looked for have
// the same answer, all of them.
func (x *builder) settle(ctx context.Context) (reason, error) {
	s := x.Settled
	x.out.Code, x.out.Finished = s.Code, s.Finished
	said := reason{what: settledText(ctx, x.Verdict, x.out.Claims)}
	if nodes := x.Target.Nodes(x.Cluster); !s.Nodeless && len(nodes) > 0 {
		answers := map[advice.Answer][]string{}
		answer := advice.Answer{Verdict: s.Outcome, Code: s.Code, Message: said.what}
		for _, node := range nodes {
			answers[answer] = append(answers[answer], node.Name)
		}
		x.out.Nodes, x.out.NodeCount = advice.Group(answers), len(nodes)
	}
	if !s.Refused() || x.depth != withAdvice {
		return said, nil
	}
	if s.Cause == verdict.ClassMissing {
		for _, class := range s.Classes {
			if x.Catalog.MeantClass(ctx, class, x.Cluster.Snapshot.Classes) == "" {
				x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: x.Catalog.ClassMissing(class)})
			}
		}
	}
	if _, err := x.advise(ctx); err != nil || s.Cause != verdict.ClassMissing || len(x.out.Remedies) > 0 {
		return said, err
	}
	steps, err := corrected(ctx, x.Verdict)
	x.out.NextSteps = append(x.out.NextSteps, steps...)
	return said, err
}

// corrected looks ahead where classes that are missing are not all that keeps a pod from fitting: it
// says what else does, once the classes are named that were probably meant.
func corrected(ctx context.Context, v *verdict.Verdict) ([]api.NextStep, error) {
	if v.Pod == nil || v.Target.Hypothetical || v.Target.Only != nil {
		return nil, nil
	}
	var changes []string
	upper := &snapshot.Snapshot{}
	for i, name := range v.Settled.Classes {
		class := v.Cluster.Snapshot.Class(v.Catalog.MeantClass(ctx, name, v.Cluster.Snapshot.Classes))
		if class == nil {
			return nil, nil
		}
		renamed := *class
		renamed.Name = name
		upper.Classes = append(upper.Classes, &renamed)
		changes = append(changes, fmt.Sprintf("request class %s instead of %s in request %s", class.Name, name, v.Settled.Requests[i]))
	}
	after := v.Cluster.Amended(v.Cluster.Snapshot.With(upper))
	then, err := ExplainWith(ctx, after, target.Options{Object: api.Ref(api.KindPod, v.Pod.Namespace, v.Pod.Name)})
	if err != nil || then.Verdict != api.DoesNotFit {
		return nil, err
	}
	return []api.NextStep{{Actor: api.ActorUser, Text: english.JoinAnd(changes) + "; then, too, it does not fit. " + then.Summary}}, nil
}

// settledText says what settled the matter.
func settledText(ctx context.Context, v *verdict.Verdict, claims []api.ClaimExplanation) string {
	s := v.Settled
	switch s.Cause {
	case verdict.JobEnded:
		return endText(v.Target.End)
	case verdict.PodFinished:
		return fmt.Sprintf("the pod is finished (%s) and no longer needs devices", v.Pod.Status.Phase)
	case verdict.PodDeleting:
		return "the pod is being deleted and is no longer scheduled"
	case verdict.NotAllocated:
		return fmt.Sprintf("the pod is bound to node %s, but its claims are not allocated; the scheduler allocates claims only before it binds a pod", v.Pod.Spec.NodeName)
	case verdict.HasDevices:
		text := allocatedSummary(v.Pod, claims)
		for _, problem := range s.Problems {
			text += "; " + problem.Error()
		}
		return text
	case verdict.NoPods:
		return noPodsText(v.Target.Object.Kind, s)
	case verdict.ClaimFull:
		return fmt.Sprintf("claim %s has reached the limit of %d consumers (status.reservedFor)", s.Claim.Claim.Name, resourceapi.ResourceClaimReservedForMaxSize)
	case verdict.ClaimProblem:
		text := s.Problems[0].Error()
		if s.Outcome == api.Error && s.Claim != nil {
			text += nearClaim(v.Question, s.Claim)
		}
		return text
	case verdict.ClaimDeleting:
		return fmt.Sprintf("ResourceClaim %s %s", english.QualifiedName(v.PodClaims[0].Claim), cluster.ErrClaimDeleting)
	case verdict.Unserved:
		return unservedText(v.Question, s.Resource)
	case verdict.AdminAccessDenied:
		claim := s.Claim.Claim
		return fmt.Sprintf("request %s asks for admin access, which the API server allows only in a namespace with the label %s=true; namespace %s has %s",
			s.Requests[0], resourceapi.DRAAdminNamespaceLabelKey, claim.Namespace, labelText(v.Cluster.Snapshot.Namespace(claim.Namespace).Labels, resourceapi.DRAAdminNamespaceLabelKey))
	case verdict.AlternativesDisabled:
		return fmt.Sprintf("request %s has alternatives (firstAvailable), which needs the feature gate DRAPrioritizedList", s.Requests[0])
	case verdict.RequestUnknown:
		return fmt.Sprintf("request %s is of an unknown kind: it has neither exactly nor firstAvailable", s.Requests[0])
	case verdict.ClassUnread:
		return fmt.Sprintf("request %s needs DeviceClass %s, which could not be read: %s", s.Requests[0], s.Classes[0], s.Gap.Reason)
	default:
		text := fmt.Sprintf("request %s: DeviceClass %s does not exist", s.Requests[0], s.Classes[0])
		for i := range s.Classes[1:] {
			text += fmt.Sprintf(", request %s: nor does %s", s.Requests[i+1], s.Classes[i+1])
		}
		return text + classesHint(ctx, v.Question, s.Classes)
	}
}

// noPodsText says that an object has no pods. What keeps it from creating them is a finding.
func noPodsText(kind string, s *verdict.Settlement) string {
	switch {
	case s.Outcome == api.Blocked:
		return ""
	case s.Gap != nil:
		return fmt.Sprintf("the %s exists, and which pods belong to it is not known: %s", kind, s.Gap.Reason)
	default:
		return fmt.Sprintf("the %s exists and has no pods, and nothing that is known keeps it from creating them: see its status and events", kind)
	}
}

// endText says how a Job ended.
func endText(end *snapshot.JobEnd) string {
	switch {
	case !end.Failed():
		return "the Job is complete and creates no more pods"
	case end.Reason != "":
		return "the Job has failed (" + end.Reason + ") and creates no more pods"
	default:
		return "the Job has failed and creates no more pods"
	}
}

// nearClaim suggests the claim or template that was probably meant.
func nearClaim(q *eligibility.Question, pc *cluster.PodClaim) string {
	var names []string
	switch {
	case errors.Is(pc.Problem, cluster.ErrTemplateMissing) && pc.Template != "":
		for _, t := range q.Cluster.Snapshot.Templates {
			if t.Namespace == q.Pod.Namespace {
				names = append(names, t.Name)
			}
		}
		return english.DidYouMean(pc.Template, names)
	case errors.Is(pc.Problem, cluster.ErrClaimMissing) && pc.Template == "":
		for _, c := range q.Cluster.Snapshot.Claims {
			if c.Namespace == q.Pod.Namespace {
				names = append(names, c.Name)
			}
		}
		for _, entry := range q.Pod.Spec.ResourceClaims {
			if entry.Name == pc.Entry && entry.ResourceClaimName != nil {
				return english.DidYouMean(*entry.ResourceClaimName, names)
			}
		}
	}
	return ""
}

// classesHint says which classes were meant by missing ones, or where these come from.
func classesHint(ctx context.Context, q *eligibility.Question, missing []string) string {
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

// classHint returns the class that was meant by a missing one, or where that comes from.
func classHint(ctx context.Context, q *eligibility.Question, class string) string {
	if driver := snapshot.PreviewedClassDriver(q.Cluster.Snapshot, class); driver != "" {
		return fmt.Sprintf("; it is installed with the driver %s, and no part of its preview: lay it over the cluster too, with -f", driver)
	}
	if meant := q.Catalog.MeantClass(ctx, class, q.Cluster.Snapshot.Classes); meant != "" {
		return english.Suggestion(meant)
	}
	if driver := q.Catalog.DriverOfClass(class); driver != "" {
		return fmt.Sprintf(", which the installation of driver %s creates", driver)
	}
	return ""
}

func labelText(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return fmt.Sprintf("%s=%s", key, value)
	}
	return "no such label"
}

// unservedText says that nothing serves an extended resource.
func unservedText(q *eligibility.Question, name corev1.ResourceName) string {
	text := fmt.Sprintf("no node offers the extended resource %s, and no DeviceClass maps it%s", name, cmp.Or(english.DidYouMean(string(name), servedResources(q)), target.Mappable(q.Cluster.Snapshot, name)))
	for _, class := range q.Cluster.Snapshot.Classes {
		if class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(name) {
			text = fmt.Sprintf("no node offers the extended resource %s; DeviceClass %s maps it, but the feature gate DRAExtendedResource is off", name, class.Name)
		}
	}
	return text
}

// servedResources lists the extended resources that nodes have and that classes
// stand for.
func servedResources(q *eligibility.Question) []string {
	found := map[string]bool{}
	for _, node := range q.Cluster.Snapshot.Nodes {
		for _, name := range q.Cluster.Nodes.ExtendedResourcesOf(node) {
			if _, offered := node.Status.Allocatable[name]; offered {
				found[string(name)] = true
			}
		}
	}
	if q.Cluster.Gates.Enabled("DRAExtendedResource") {
		for _, class := range q.Cluster.Snapshot.Classes {
			found[resourceapi.ResourceDeviceClassPrefix+class.Name] = true
			if class.Spec.ExtendedResourceName != nil {
				found[*class.Spec.ExtendedResourceName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
