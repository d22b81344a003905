// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

// nodeAnswer is the answer for one node; nodes with equal answers are grouped.
type nodeAnswer struct {
	verdict api.Verdict
	code    api.Code
	message string
	score   int64
	// shortage is set if one request has too few devices.
	shortage deviceShortage
	// missing is how many devices more the request would need that lacks most.
	missing int
	// progress is how close the node comes to fitting, for the order of the
	// groups.
	progress int
}

// deviceShortage is that a request has too few devices on a node. Nodes with the same
// request and others are short of devices for the same reasons.
type deviceShortage struct {
	// request is the prefix of the message that names the request.
	request string
	// needs is how many devices it needs, available how many of them the node has.
	needs, available int
	// most is how many would be available if none were in use or tainted, if that
	// is more than available and still too few.
	most int
	// others says what is the matter with the other devices.
	others string
}

// cause is the shortage without the count, zero if counts do not matter.
func (s deviceShortage) cause() deviceShortage {
	if s.needs == 0 {
		return deviceShortage{}
	}
	s.available = 0
	return s
}

// The progress of a node: what stands in the way, from far to near, in steps of
// progressStep. What devices lack counts progressShort and the rank of the
// check that the best of them fails.
const (
	progressStep       = 100
	progressUnsuitable = 0
	progressNoDevice   = 1 * progressStep
	progressHasDevice  = 2 * progressStep
	progressShort      = 3 * progressStep
	progressUnproved   = 4 * progressStep
	progressTogether   = 5 * progressStep
)

// nearer orders answers: the one where less is in the way comes first. Within
// a step it is the one where fewer devices are missing, and then the one whose
// best device gets further.
func (a nodeAnswer) nearer(b nodeAnswer) int {
	return cmp.Or(
		cmp.Compare(verdictOrder(a.verdict), verdictOrder(b.verdict)),
		cmp.Compare(b.score, a.score),
		cmp.Compare(b.progress/progressStep, a.progress/progressStep),
		cmp.Compare(a.missing, b.missing),
		cmp.Compare(b.progress, a.progress),
	)
}

// groupNodes puts nodes with the same answer together, the best first. How
// near single nodes come is no reason to tell them apart.
func groupNodes(answers map[nodeAnswer][]string) []api.NodeGroup {
	nearest, names := map[nodeAnswer]nodeAnswer{}, map[nodeAnswer][]string{}
	for answer, nodes := range answers {
		said := answer
		said.missing, said.progress = 0, 0
		if best, known := nearest[said]; !known || answer.nearer(best) < 0 {
			nearest[said] = answer
		}
		names[said] = append(names[said], nodes...)
	}
	sorted := slices.SortedFunc(maps.Keys(nearest), func(a, b nodeAnswer) int {
		return cmp.Or(
			nearest[a].nearer(nearest[b]),
			cmp.Compare(len(names[b]), len(names[a])),
			cmp.Compare(a.message, b.message),
		)
	})
	groups := make([]api.NodeGroup, 0, len(sorted))
	byCause, at := map[deviceShortage][]nodeAnswer{}, map[deviceShortage]int{}
	for _, said := range sorted {
		slices.SortFunc(names[said], naming.Compare)
		group := api.NodeGroup{
			Count: len(names[said]), Names: names[said], Verdict: said.verdict,
			Code: said.code, Message: said.message, Missing: nearest[said].missing, Score: said.score,
		}
		cause := said.shortage.cause()
		first, known := at[cause]
		if cause == (deviceShortage{}) || !known {
			at[cause] = len(groups)
			groups = append(groups, group)
		} else {
			mergeGroup(&groups[first], group)
		}
		byCause[cause] = append(byCause[cause], said)
	}
	for cause, i := range at {
		if cause != (deviceShortage{}) && len(byCause[cause]) > 1 {
			groups[i].Message = rangeText(byCause[cause])
		}
	}
	return groups
}

// mergeGroup adds nodes with the same cause and another count.
func mergeGroup(g *api.NodeGroup, other api.NodeGroup) {
	if len(g.Parts) == 0 {
		g.Parts = []api.NodeGroup{*g}
	}
	g.Parts = append(g.Parts, other)
	g.Count += other.Count
	g.Names = slices.Concat(g.Names, other.Names)
	slices.SortFunc(g.Names, naming.Compare)
	if g.Code != other.Code {
		g.Code = api.CountUnsatisfiable
	}
}

// rangeText is the message of nodes with the same cause and different counts.
func rangeText(answers []nodeAnswer) string {
	least, most := answers[0].shortage.available, answers[0].shortage.available
	for _, a := range answers {
		least, most = min(least, a.shortage.available), max(most, a.shortage.available)
	}
	s := answers[0].shortage
	match := ""
	if s.most > 0 {
		match = fmt.Sprintf(", at most %d match", s.most)
	}
	if least == most {
		return fmt.Sprintf("%s%d of %d available%s, the others %s", s.request, least, s.needs, match, s.others)
	}
	return fmt.Sprintf("%s%d to %d of %d available%s, the others %s", s.request, least, most, s.needs, match, s.others)
}

func verdictOrder(v api.Verdict) int {
	return slices.Index([]api.Verdict{api.Fits, api.Allocated, api.Error, api.Undetermined, api.DoesNotFit}, v)
}

// progressOf is that of a node that the pod cannot use. Among those that have
// devices, the later a filter of the scheduler says no, the closer is the node.
func progressOf(q *funnel.Question, u eligibility.UnsuitableNode) int {
	progress := progressUnsuitable
	if len(q.Cluster.Pools[u.Node.Name]) > 0 {
		progress = progressHasDevice
	}
	if claimsAvailable(q, u.Node) {
		progress += 50
	}
	return progress + 1 + slices.Index([]cluster.Filter{
		cluster.FilterTaint, cluster.FilterNodeSelector, cluster.FilterNodeAffinity, cluster.FilterPods, cluster.FilterResources,
	}, u.Misfit.Filter)
}

// claimsAvailable reports whether a node can use what the pod's claims hold
// already.
func claimsAvailable(q *funnel.Question, node *corev1.Node) bool {
	holds := false
	for i := range q.PodClaims {
		claim := q.PodClaims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		holds = true
		if ok, _ := q.Cluster.Alloc.Facts.Claims.AvailableOn(claim, node); !ok {
			return false
		}
	}
	return holds
}

// whyNot tells why the claims do not fit on a node where the allocator found
// nothing. If requests cannot even be served alone, it is the one that lacks
// most; if there is none, the requests or devices stand in each other's way.
func (x *inquiry) whyNot(ctx context.Context, node *corev1.Node) nodeAnswer {
	var worst *nodeAnswer
	for i := range x.Claims {
		claim := &x.Claims[i]
		for _, alternatives := range claim.Funnels {
			if len(alternatives) > 0 && !funnel.NeededOn(x.Question, claim, alternatives[0].Request.Base, node) {
				continue
			}
			answer, short := shortOf(ctx, x.Question, alternatives, node)
			if short && (worst == nil || answer.nearer(*worst) > 0) {
				worst = &answer
			}
		}
	}
	if worst != nil {
		return *worst
	}
	offer := x.signatures.Offer(ctx, node)
	answer, known := x.probed[offer]
	if !known {
		answer = nodeAnswer{verdict: api.DoesNotFit, code: api.CountUnsatisfiable, message: notTogether + " (not looked at more closely)", progress: progressUnproved}
		if len(x.probed) < maxProbed {
			answer = x.together(ctx, node)
		}
		x.probed[offer] = answer
	}
	return answer
}

// notTogether is what can be said without a closer look.
const notTogether = "enough devices for each request alone, but not for all requests together"

// shortOf reports whether none of the alternatives of a request has enough
// devices on a node, and what the devices there lack.
func shortOf(ctx context.Context, q *funnel.Question, alternatives []*funnel.Funnel, node *corev1.Node) (nodeAnswer, bool) {
	var nearest nodeAnswer
	var messages []string
	for i, f := range alternatives {
		answer, short := shortOfOne(ctx, q, f, node)
		if !short {
			return nodeAnswer{}, false
		}
		if i == 0 || answer.nearer(nearest) < 0 {
			nearest = answer
		}
		if !slices.Contains(messages, answer.message) {
			messages = append(messages, answer.message)
		}
	}
	nearest.message = strings.Join(messages, "; ")
	return nearest, len(alternatives) > 0
}

// requestPrefix names a request at the start of a message, unless there is no
// other.
func requestPrefix(q *funnel.Question, f *funnel.Funnel) string {
	requests := 0
	for i := range q.Claims {
		requests += len(q.Claims[i].Funnels)
	}
	if requests <= 1 && f.Request.Name == f.Request.Base {
		return ""
	}
	return funnel.TitleOf(q, f.Request) + ": "
}

func shortOfOne(ctx context.Context, q *funnel.Question, f *funnel.Funnel, node *corev1.Node) (nodeAnswer, bool) {
	c := f.Count(ctx, q.Cluster.Pools[node.Name], node)
	eligible := f.Eligible[node.Name]
	prefix := requestPrefix(q, f)
	answer := nodeAnswer{verdict: api.DoesNotFit, code: api.CountUnsatisfiable, progress: progressShort + int(c.Furthest)}
	if f.Request.All() {
		answer.missing = max(1, c.Matching-eligible)
	} else {
		answer.missing = int(min(f.Request.Count, math.MaxInt32)) - eligible
	}
	var lacks []string
	for _, text := range c.Lacks.Sorted() {
		lacks = append(lacks, fmt.Sprintf("%d %s", c.Lacks[text], text))
	}
	if len(c.Codes) == 1 {
		for code := range c.Codes {
			answer.code = code
		}
	}
	switch {
	case f.Request.All() && c.Matching > 0:
		if eligible == c.Matching {
			return nodeAnswer{}, false
		}
		answer.message = fmt.Sprintf("%s%d of %d matching devices available, and all of them are required (%s)", prefix, eligible, c.Matching, strings.Join(lacks, ", "))
	case f.Request.All() && len(lacks) > 0:
		answer.message = fmt.Sprintf("%sno device that matches (%s)", prefix, strings.Join(lacks, ", "))
	case !f.Request.All() && int64(eligible) >= f.Request.Count:
		return nodeAnswer{}, false
	case eligible == 0 && len(lacks) == 0:
		answer.progress = progressNoDevice
		answer.code, answer.message = f.NoneMatch(c.Reachable, c.OtherClass)
	default:
		answer.shortage = deviceShortage{
			request: prefix, needs: int(min(f.Request.Count, math.MaxInt32)), available: eligible, others: english.JoinOr(slices.Sorted(maps.Keys(c.Lacks))),
		}
		answer.message = fmt.Sprintf("%s%d of %d available", prefix, eligible, f.Request.Count)
		if most := c.Usable + eligible; most > 0 && int64(most) < f.Request.Count {
			// Even if all of them were available there would be too few.
			answer.code = api.CountUnsatisfiable
			if most > eligible {
				answer.shortage.most = most
				answer.message += fmt.Sprintf(", at most %d match", most)
			}
		}
		if eligible > 0 {
			answer.code = api.CountUnsatisfiable
		}
		if len(lacks) > 0 {
			answer.message += " (" + strings.Join(lacks, ", ") + ")"
		}
	}
	return answer, true
}
