// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// ProgressOf returns the progress of a node that the pod cannot use. Among nodes with
// devices, a node that the pod does not select is the farthest; of the others, the later a
// filter of the scheduler rejects it, the closer is the node.
func ProgressOf(q *eligibility.Question, u eligibility.UnsuitableNode) int {
	progress := progressUnsuitable
	if len(q.Reach.Pools[u.Node.Name]) > 0 {
		progress = progressHasDevice
	}
	if claimsAvailable(q, u.Node) {
		progress += 50
	}
	return progress + 1 + slices.Index([]cluster.Filter{
		cluster.FilterNodeSelector, cluster.FilterNodeAffinity, cluster.FilterUnschedulable, cluster.FilterTaint, cluster.FilterPods, cluster.FilterResources,
	}, u.Misfit.Filter)
}

// claimsAvailable reports whether a node can use what the pod's claims hold
// already.
func claimsAvailable(q *eligibility.Question, node *corev1.Node) bool {
	holds := false
	for i := range q.PodClaims {
		claim := q.PodClaims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		holds = true
		if ok, _ := q.Cluster.Claims.AvailableOn(claim, node); !ok {
			return false
		}
	}
	return holds
}

// maxProbed is the number of different nodes where it is found out why requests
// compete.
const maxProbed = 32

// Reasons tell why claims do not fit on nodes.
type Reasons struct {
	*eligibility.Question
	confirmer  *verdict.Confirmer
	signatures *verdict.NodeSignatures
	// probed has the answers for nodes where single requests do not explain
	// it, by what the nodes offer.
	probed map[string]Answer
}

// NewReasons finds the reasons for a question. The confirmer says what a node of a
// what-if cluster could serve. The signatures belong to the nodes of the question, nil for
// new ones.
func NewReasons(q *eligibility.Question, signatures *verdict.NodeSignatures, confirmer *verdict.Confirmer) *Reasons {
	if signatures == nil {
		signatures = verdict.NewNodeSignatures(q)
	}
	return &Reasons{Question: q, confirmer: confirmer, signatures: signatures, probed: map[string]Answer{}}
}

// WhyNot tells why the claims do not fit on a node where the allocator found
// nothing. If requests cannot even be served alone, it names the request that lacks most;
// if there is none, the requests or devices stand in each other's way.
func (r *Reasons) WhyNot(ctx context.Context, node *corev1.Node) Answer {
	if len(r.Reach.Misfits[node.Name]) > 0 {
		// The funnels count the devices of candidates alone.
		if one, err := r.onNode(ctx, node); err == nil {
			return NewReasons(one, nil, &verdict.Confirmer{}).WhyNot(ctx, node)
		}
	}
	var worst *Answer
	for i := range r.Claims {
		claim := &r.Claims[i]
		for _, alternatives := range claim.Funnels {
			if len(alternatives) > 0 && !eligibility.NeededOn(r.Question, claim, alternatives[0].Request.Base, node) {
				continue
			}
			answer, short := shortOf(ctx, r.Question, alternatives, node)
			if short && (worst == nil || answer.Nearer(*worst) > 0) {
				worst = &answer
			}
		}
	}
	if worst != nil {
		return *worst
	}
	offer := r.signatures.Available(ctx, node)
	answer, known := r.probed[offer]
	if !known {
		answer = Answer{Verdict: api.DoesNotFit, Code: api.CountUnsatisfiable, Message: notForAll + " (not evaluated further)", Progress: progressUnproved}
		if len(r.probed) < maxProbed {
			answer = whyNotAll(ctx, r.Question, r.confirmer, node)
		}
		r.probed[offer] = answer
	}
	return answer
}

// onNode returns the question about one node, whether it is a candidate or not.
func (r *Reasons) onNode(ctx context.Context, node *corev1.Node) (*eligibility.Question, error) {
	claims, err := r.ClaimsFor(node)
	if err != nil {
		return nil, err
	}
	return verdict.QuestionOnNode(ctx, r.Question, r.Cluster, node, claims)
}

// shortOf reports whether none of the alternatives of a request has enough
// devices on a node, and what the devices there lack.
func shortOf(ctx context.Context, q *eligibility.Question, alternatives []*eligibility.Funnel, node *corev1.Node) (Answer, bool) {
	var nearest Answer
	var messages, has []string
	for i, f := range alternatives {
		answer, short := ShortOfOne(ctx, q, f, node)
		if !short {
			return Answer{}, false
		}
		if i == 0 || answer.Nearer(nearest) < 0 {
			nearest = answer
		}
		if !slices.Contains(messages, answer.Message) {
			messages, has = append(messages, answer.Message), append(has, answer.Has())
		}
	}
	nearest.Message, nearest.has = strings.Join(messages, "; "), strings.Join(has, "; ")
	return nearest, len(alternatives) > 0
}

// requestPrefix names a request at the start of a message, unless there is no
// other.
func requestPrefix(q *eligibility.Question, f *eligibility.Funnel) string {
	requests := 0
	for i := range q.Claims {
		requests += len(q.Claims[i].Funnels)
	}
	if requests <= 1 && f.Request.Name == f.Request.Base {
		return ""
	}
	return eligibility.TitleOf(q, f.Request) + ": "
}

// ShortOfOne reports whether a node has too few devices for a request or one of its
// alternatives, looked at alone, and what the devices there lack.
func ShortOfOne(ctx context.Context, q *eligibility.Question, f *eligibility.Funnel, node *corev1.Node) (Answer, bool) {
	c := f.Count(ctx, q.Reach.Pools[node.Name], node)
	eligible := f.Eligible[node.Name]
	prefix := requestPrefix(q, f)
	answer := Answer{Verdict: api.DoesNotFit, Code: api.CountUnsatisfiable, Progress: progressShort + int(c.Furthest)}
	if f.Request.All() {
		answer.Missing = max(1, c.Matching-eligible)
	} else {
		answer.Missing = int(min(f.Request.Count, math.MaxInt32)) - eligible
	}
	var lacks []string
	there := eligible
	for _, text := range c.Lacks.Sorted() {
		there += c.Lacks[text]
		lacks = append(lacks, fmt.Sprintf("%d %s", c.Lacks[text], text))
	}
	if len(c.Codes) == 1 {
		for code := range c.Codes {
			answer.Code = code
		}
	}
	switch {
	case f.Request.All() && c.Matching > 0:
		if eligible == c.Matching {
			return Answer{}, false
		}
		answer.Message = fmt.Sprintf("%s%d of %d matching devices available, and all of them are required (%s)", prefix, eligible, c.Matching, strings.Join(lacks, ", "))
	case f.Request.All() && len(lacks) > 0:
		answer.Message = fmt.Sprintf("%sno device that matches (%s)", prefix, strings.Join(lacks, ", "))
	case !f.Request.All() && int64(eligible) >= f.Request.Count:
		return Answer{}, false
	case eligible == 0 && len(lacks) == 0:
		answer.Progress = progressNoDevice
		answer.Code, answer.Message = f.NoneMatch(c.Reachable, c.OtherClass)
	default:
		answer.shortage = deviceShortage{
			request: prefix, needs: int(min(f.Request.Count, math.MaxInt32)), available: eligible, others: english.JoinOr(slices.Sorted(maps.Keys(c.Lacks))),
		}
		more := ""
		if most := c.Usable + eligible; most > 0 && int64(most) < f.Request.Count {
			// Even if all of them were available there would be too few.
			answer.Code = api.CountUnsatisfiable
			if most > eligible {
				answer.shortage.most = most
				more += fmt.Sprintf(", at most %d match", most)
			}
		}
		if eligible > 0 {
			answer.Code = api.CountUnsatisfiable
		}
		if len(lacks) > 0 {
			more += " (" + strings.Join(lacks, ", ") + ")"
		}
		answer.Message = prefix + availableText(eligible, answer.shortage.needs, there) + more
		if there != answer.shortage.needs {
			answer.has = fmt.Sprintf("%s%d available%s", prefix, eligible, more)
		}
	}
	return answer, true
}

// availableText says how many devices are available and needed: "3 of 8" where the node has
// as many devices as are needed, so that nobody takes one number for the other.
func availableText(available, needs, there int) string {
	if there == needs {
		return fmt.Sprintf("%d of %d available", available, needs)
	}
	return fmt.Sprintf("%d available, %d needed", available, needs)
}
