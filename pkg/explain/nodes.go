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
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// nodeAnswer is the answer for one node; nodes with equal answers are grouped.
type nodeAnswer struct {
	verdict Verdict
	code    Code
	message string
	score   int64
	// missing is how many devices more the request would need that lacks most.
	missing int
	// progress is how close the node comes to fitting, for the order of the
	// groups.
	progress int
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
func groupNodes(answers map[nodeAnswer][]string) []NodeGroup {
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
	groups := make([]NodeGroup, 0, len(sorted))
	for _, said := range sorted {
		slices.SortFunc(names[said], naturalCompare)
		groups = append(groups, NodeGroup{
			Count: len(names[said]), Names: names[said], Verdict: said.verdict,
			Code: said.code, Message: said.message, Missing: nearest[said].missing, Score: said.score,
		})
	}
	return groups
}

func verdictOrder(v Verdict) int {
	return slices.Index([]Verdict{Fits, Allocated, Error, Undetermined, DoesNotFit}, v)
}

// progress is that of a node that the pod cannot use. Among those that have
// devices, the later a filter of the scheduler says no, the closer is the node.
func (x *inquiry) progress(u unsuitableNode) int {
	progress := progressUnsuitable
	if len(x.site.pools[u.node.Name]) > 0 {
		progress = progressHasDevice
	}
	if x.claimsAvailable(u.node) {
		progress += 50
	}
	for i, path := range []string{"spec.nodeName", "spec.taints", "spec.nodeSelector", "metadata.labels", "status.allocatable"} {
		if strings.HasPrefix(u.misfit.Path, path) {
			progress += 1 + i
		}
	}
	return progress
}

// claimsAvailable says whether a node can use what the pod's claims hold
// already.
func (x *inquiry) claimsAvailable(node *corev1.Node) bool {
	holds := false
	for i := range x.subject.claims {
		claim := x.subject.claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		holds = true
		if ok, _ := x.site.alloc.AvailableOn(claim, node); !ok {
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
	for i := range x.claims {
		claim := &x.claims[i]
		for _, alternatives := range claim.funnels {
			if len(alternatives) > 0 && !x.wantedOn(claim, alternatives[0].request.base, node) {
				continue
			}
			answer, short := x.shortOf(ctx, alternatives, node)
			if short && (worst == nil || answer.nearer(*worst) > 0) {
				worst = &answer
			}
		}
	}
	if worst != nil {
		return *worst
	}
	offer := x.offer(ctx, node)
	answer, known := x.probed[offer]
	if !known {
		answer = nodeAnswer{verdict: DoesNotFit, code: CountUnsatisfiable, message: notTogether + " (not looked at more closely)", progress: progressUnproved}
		if len(x.probed) < maxProbed {
			answer = x.together(ctx, node)
		}
		x.probed[offer] = answer
	}
	return answer
}

// wantedOn says whether a request has to be served by DRA on a node. For
// extended resources a device plugin may do it.
func (x *inquiry) wantedOn(c *claimInquiry, name string, node *corev1.Node) bool {
	if !x.subject.claims[c.index].ExtendedResources {
		return true
	}
	claim, err := x.site.alloc.ExtendedResourceClaim(x.subject.pod, node)
	return err == nil && claim != nil && slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return r.Name == name })
}

// notTogether is what can be said without a closer look.
const notTogether = "each request alone has enough devices, but there is no way to serve all of them together"

// shortOf tells whether none of the alternatives of a request has enough
// devices on a node, and what the devices there lack.
func (x *inquiry) shortOf(ctx context.Context, alternatives []*funnel, node *corev1.Node) (nodeAnswer, bool) {
	var nearest nodeAnswer
	var messages []string
	for i, f := range alternatives {
		answer, short := x.shortOfOne(ctx, f, node)
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

// census counts the devices that a node can reach for one request.
type census struct {
	reachable, otherClass, matching int
	// usable counts devices that could be had if others gave something back or
	// a taint went.
	usable   int
	codes    map[Code]int
	lacks    tally
	furthest int
}

func newCensus() *census { return &census{codes: map[Code]int{}, lacks: tally{}} }

func (c *census) note(r *reason) {
	if r.code == ClassSelectorFalse {
		c.otherClass++
		return
	}
	switch r.code {
	case DeviceAllocated, CountersExhausted, CompatibilityGroupConflict, DeviceTainted:
		c.usable++
	case CapacityInsufficient:
		if r.rank == rankCapacityLeft {
			c.usable++
		}
	default:
	}
	c.codes[r.code]++
	c.lacks[lack(r)]++
	c.furthest = max(c.furthest, progressShort+r.rank)
}

func (c *census) add(other *census) {
	c.reachable += other.reachable
	c.otherClass += other.otherClass
	c.matching += other.matching
	c.usable += other.usable
	for code, count := range other.codes {
		c.codes[code] += count
	}
	for lack, count := range other.lacks {
		c.lacks[lack] += count
	}
	c.furthest = max(c.furthest, other.furthest)
}

// census counts the devices that a node can reach.
func (f *funnel) census(ctx context.Context, pools []*allocator.NodePool, node *corev1.Node) *census {
	c := newCensus()
	for _, pool := range pools {
		if pool.Local {
			f.countPool(ctx, c, pool, node)
			continue
		}
		seen := viewOf(pool, node)
		shared, known := f.censuses[seen]
		if !known {
			shared = newCensus()
			f.countPool(ctx, shared, pool, node)
			f.censuses[seen] = shared
		}
		c.add(shared)
	}
	return c
}

func (f *funnel) countPool(ctx context.Context, c *census, pool *allocator.NodePool, node *corev1.Node) {
	eachDevice(pool, func(d *allocator.Device, kept *reason) {
		c.reachable++
		if kept != nil {
			if f.otherClass(d.Device) {
				c.otherClass++
			} else {
				c.note(kept)
			}
			return
		}
		r := f.checks.device(ctx, d, node)
		if r.matches() {
			c.matching++
		}
		if r != nil && (!f.request.all() || r.matches()) {
			c.note(r)
		}
	})
}

func (x *inquiry) shortOfOne(ctx context.Context, f *funnel, node *corev1.Node) (nodeAnswer, bool) {
	c := f.census(ctx, x.site.pools[node.Name], node)
	eligible := f.eligible[node.Name]
	prefix := "request " + f.request.name
	answer := nodeAnswer{verdict: DoesNotFit, code: CountUnsatisfiable, progress: max(progressShort, c.furthest)}
	if f.request.all() {
		answer.missing = max(1, c.matching-eligible)
	} else {
		answer.missing = int(min(f.request.count, math.MaxInt32)) - eligible
	}
	var lacks []string
	for _, text := range c.lacks.sorted() {
		lacks = append(lacks, fmt.Sprintf("%d %s", c.lacks[text], text))
	}
	if len(c.codes) == 1 {
		for code := range c.codes {
			answer.code = code
		}
	}
	switch {
	case f.request.all() && c.matching > 0:
		if eligible == c.matching {
			return nodeAnswer{}, false
		}
		answer.message = fmt.Sprintf("%s wants all %d matching devices: %s", prefix, c.matching, joinAnd(lacks))
	case f.request.all() && len(lacks) > 0:
		answer.message = fmt.Sprintf("%s wants all devices, and none matches: %s", prefix, joinAnd(lacks))
	case !f.request.all() && int64(eligible) >= f.request.count:
		return nodeAnswer{}, false
	case eligible == 0 && len(lacks) == 0:
		answer.progress = progressNoDevice
		answer.code, answer.message = f.noneMatch(c.reachable, c.otherClass)
	case c.usable+eligible > 0 && !f.request.all() && int64(c.usable+eligible) < f.request.count:
		// Even if everything were free there would be too few.
		answer.code = CountUnsatisfiable
		answer.message = fmt.Sprintf("%s needs %d, and only %d there match", prefix, f.request.count, c.usable+eligible)
		if len(lacks) > 0 {
			answer.message += ": " + joinAnd(lacks)
		}
	case eligible > 0:
		answer.code = CountUnsatisfiable
		answer.message = fmt.Sprintf("%s needs %d and can have %d", prefix, f.request.count, eligible)
		if len(lacks) > 0 {
			answer.message += ": " + joinAnd(lacks)
		}
	default:
		answer.message = fmt.Sprintf("%s needs %d and can have none: %s", prefix, f.request.count, joinAnd(lacks))
	}
	return answer, true
}

// lack says after a number what is the matter with devices.
func lack(r *reason) string {
	if r.lack != "" {
		return r.lack
	}
	switch r.code {
	case DeviceAllocated:
		return "allocated"
	case DeviceTainted:
		return "tainted"
	case RequestSelectorFalse:
		return "not matching " + theSelector(r.label)
	case SelectorError:
		return "for which the selector fails"
	case CountersExhausted:
		return "without enough counters left"
	case CompatibilityGroupConflict:
		return "of an incompatible group"
	case AttributeMissing:
		return "without the attribute of a constraint"
	case PoolIncomplete:
		return "in an incomplete pool"
	case PoolInvalid:
		return "in an invalid pool"
	case PoolObsolete:
		return "of an older generation of the pool"
	case FeatureDisabled, BindingConditionsUnsupported:
		return "needing a feature that is off"
	case NodeOperationUnsupported:
		return "that the node is too old for"
	default:
		return r.label
	}
}

func theSelector(label string) string {
	if label == "selector" {
		return "the selector"
	}
	return label
}

// noneMatch is the answer for a node that has nothing of the kind.
func (f *funnel) noneMatch(reachable, otherClass int) (Code, string) {
	switch {
	case reachable == 0:
		return NodeNotReachable, "no device there"
	case otherClass == reachable && f.classHasDevices():
		return NodeNotReachable, "no device of class " + f.request.class + " there"
	case otherClass == reachable:
		return ClassSelectorFalse, "no device of class " + f.request.class + " there"
	default:
		return RequestSelectorFalse, fmt.Sprintf("request %s: no device there matches", f.request.name)
	}
}
