// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Verdict is the outcome for a target in a cluster, as codes and facts. pkg/explain puts it
// into words.
type Verdict struct {
	*funnel.Question
	Target *target.Target

	// Outcome is the verdict after all steps. Code says why, empty where the nodes do.
	Outcome api.Verdict
	Code    api.Code
	// Allocator is the verdict of the allocator alone. Devices is that verdict as far as the
	// cluster's release and what could not be read leave it.
	Allocator, Devices api.Verdict

	// Settled settles the matter before any node is tried, nil if nothing does.
	Settled *Settlement
	// Unread has the nodes whose pools could not be determined.
	Unread []UnreadNode
	// Checked has the verdict of the allocator for each candidate. Equivalent has the index
	// of the first candidate that looks the same to the claims, and TooFew reports
	// candidates that lack devices for some request; nobody asks the allocator about these.
	Checked    []allocator.Verdict
	Equivalent []int
	TooFew     []bool
	Signatures *NodeSignatures
	// Ended is the index of the candidate at which the attempt ended, -1 if none did.
	Ended int
	// SlowNode is a node that was decided by counting because the allocator takes too long.
	SlowNode string
	// Placement is the allocator's choice, nil unless the claims fit.
	Placement *Placement
	// Release has the differences of the cluster's release, nil if there are none.
	Release *Release
	// Gap could turn the allocator's verdict around. NoNode is set if no node is known, and
	// the devices do not name theirs.
	Gap    *snapshot.Gap
	NoNode bool

	// Obstacles keep the pod from being placed, whatever devices there are. Unevaluated may.
	Obstacles   []Obstacle
	Unevaluated []Unevaluated

	// Life is the stage of the target, and LifeOf the pod at that stage: nil for a pod that
	// does not exist. Creation is the stage of its controller, PodStages has the stages of
	// the first users of the target.
	Life, Creation lifecycle.Life
	LifeOf         *corev1.Pod
	PodStages      []api.Stage

	// fits names the nodes where the claims fit, the best first.
	fits []string
}

// UnreadNode is a node whose pools could not be determined.
type UnreadNode struct {
	Node string
	Err  error
}

// Placement is the allocator's choice on the best node.
type Placement struct {
	Node        *corev1.Node
	Score       int64
	Claims      []*resourceapi.ResourceClaim
	Allocations []resourceapi.AllocationResult
}

// Decide decides what becomes of a target. The selectors may know answers to other questions
// about the cluster; with nil, new ones are made. The error is that of ctx, or what keeps the
// allocator from an answer.
func Decide(ctx context.Context, c *cluster.Cluster, t *target.Target, selectors *selector.Evaluator) (*Verdict, error) {
	v := &Verdict{Question: funnel.NewQuestion(c, t.Pod, t.Claims), Target: t, Ended: -1}
	if selectors != nil {
		v.Evaluate(selectors)
	}
	funnel.ListWaiting(v.Question)
	t.Claims = v.PodClaims
	if err := v.decideDevices(ctx); err != nil {
		return nil, err
	}
	v.Outcome = v.Devices
	if err := v.meetObstacles(ctx); err != nil {
		return nil, err
	}
	v.findLife()
	return v, nil
}

// Blocked reports whether an obstacle keeps the pod from devices that it could have.
func (v *Verdict) Blocked() bool {
	return len(v.Obstacles) > 0 && (v.Devices == api.Fits || v.Devices == api.Allocated)
}

// decideDevices finds the verdict about devices.
func (v *Verdict) decideDevices(ctx context.Context) error {
	if v.Settled = v.settlement(); v.Settled == nil {
		v.Settled = refusal(v.Question)
	}
	if v.Settled != nil {
		v.Allocator, v.Devices, v.Code = v.Settled.Outcome, v.Settled.Outcome, v.Settled.Code
		return nil
	}
	// Both look at all of the cluster, and neither needs the other.
	var begun sync.WaitGroup
	if v.Target.Only == nil {
		begun.Go(func() {
			for i := range v.Claims {
				v.BeginFunnels(ctx, &v.Claims[i])
			}
		})
	}
	v.Unread = Survey(v.Question, v.Target.Nodes(v.Cluster))
	begun.Wait()
	for i := range v.Claims {
		var err error
		if only := v.Target.Only; only != nil {
			err = v.AddFunnels(ctx, &v.Claims[i], only)
		} else {
			err = v.FinishFunnels(ctx, &v.Claims[i])
		}
		if err != nil {
			return err
		}
	}
	if err := v.check(ctx); err != nil {
		return err
	}
	return v.conclude(ctx)
}

// Survey sorts nodes into those where the allocator is asked and those that the pod cannot use,
// as the scheduler's earlier filters do.
func Survey(q *funnel.Question, nodes []*corev1.Node) (unread []UnreadNode) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	q.Reach.Pools = make(map[string][]*cluster.NodePool, len(nodes))
	q.Reach.Misfits = map[string][]eligibility.UnsuitableNode{}
	for _, node := range nodes {
		pools, err := q.Cluster.Pools.For(node)
		if err != nil {
			unread = append(unread, UnreadNode{node.Name, err})
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
	return unread
}

// NodeVerdict returns the verdict about one candidate.
func (v *Verdict) NodeVerdict(candidate int) api.Verdict {
	switch checked := &v.Checked[candidate]; checked.Outcome {
	case allocator.Fits:
		if v.Cluster.MapsNodeResources(checked.Allocations) {
			return api.Undetermined
		}
		return api.Fits
	case allocator.DoesNotFit, allocator.NodeError:
		return api.DoesNotFit
	case allocator.TimedOut:
		return api.Undetermined
	default:
		return api.Error
	}
}

// Score returns the score of a candidate where the claims fit, by the alternatives of their
// requests.
func (v *Verdict) Score(candidate int) int64 {
	if !v.Cluster.Gates.Enabled("DRAPrioritizedList") {
		return 0
	}
	claims := make([]*resourceapi.ResourceClaim, 0, len(v.PodClaims))
	for i := range v.PodClaims {
		claims = append(claims, v.PodClaims[i].Claim)
	}
	return allocator.Score(claims, v.Checked[candidate].Allocations)
}

// conclude draws the verdict about devices from the nodes.
func (v *Verdict) conclude(ctx context.Context) error {
	v.Allocator = v.ofNodes()
	v.Devices = v.Allocator
	var err error
	if v.Release, err = v.heedRelease(ctx); err != nil {
		return err
	}
	if v.Release != nil && v.Release.Outcome != "" {
		v.Devices, v.Placement = v.Release.Outcome, nil
		return nil
	}
	v.heedGaps()
	return nil
}

// ofNodes returns the verdict of the allocator, with the placement if the claims fit.
func (v *Verdict) ofNodes() api.Verdict {
	best, undetermined := v.best(), false
	for i := range v.Checked {
		undetermined = undetermined || v.NodeVerdict(i) == api.Undetermined
		switch v.Checked[i].Outcome {
		case allocator.Failed:
			v.Ended = i
			return api.Error
		case allocator.TimedOut:
			if best >= 0 && !v.Checked[i].EndsAttempt {
				// The scheduler goes on to other nodes, in releases before 1.36.
				continue
			}
			v.Ended = i
			return api.Undetermined
		default:
		}
	}
	switch {
	case best < 0 && undetermined:
		return api.Undetermined
	case best < 0:
		return api.DoesNotFit
	case len(v.Claims) == 0:
		return api.Allocated
	}
	v.Placement = &Placement{Node: v.Reach.Candidates[best], Score: v.Score(best), Allocations: v.Checked[best].Allocations}
	if claims, err := v.ClaimsFor(v.Placement.Node); err == nil {
		v.Placement.Claims = claims
	}
	return api.Fits
}

// best returns the index of the first candidate with the highest score, -1 if the claims
// fit nowhere. It notes where they fit.
func (v *Verdict) best() int {
	type node struct {
		name  string
		score int64
	}
	best, highest := -1, int64(0)
	var nodes []node
	scores := map[int]int64{}
	for i, candidate := range v.Reach.Candidates {
		if v.NodeVerdict(i) != api.Fits {
			continue
		}
		first := v.Equivalent[i]
		score, known := scores[first]
		if !known {
			score = v.Score(i)
			scores[first] = score
		}
		if best < 0 || score > highest {
			best, highest = i, score
		}
		nodes = append(nodes, node{candidate.Name, score})
	}
	slices.SortFunc(nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(b.score, a.score), english.CompareNames(a.name, b.name))
	})
	v.fits = make([]string, 0, len(nodes))
	for _, n := range nodes {
		v.fits = append(v.fits, n.name)
	}
	return best
}

// brief returns what the queue has to know of a verdict. The devices of the question would
// take much memory.
func (v *Verdict) brief() *Verdict {
	return &Verdict{Target: v.Target, Outcome: v.Outcome, Code: v.Code, Placement: v.Placement, Life: lifecycle.Life{Stage: v.Life.Stage}, fits: v.fits}
}

// ErrorCode finds the code for an error of the allocator. Upstream has no error types, only texts
// (structured/internal/*/allocator_*.go).
func ErrorCode(err error) api.Code {
	var panicked *allocator.PanicError
	if errors.As(err, &panicked) {
		return api.AllocatorPanic
	}
	if allocator.Panics(err) {
		return api.SchedulerBug
	}
	text := err.Error()
	for _, known := range []struct {
		part string
		code api.Code
	}{
		{"could not retrieve device class", api.ClassNotFound},
		{"feature is disabled", api.FeatureDisabled},
		{selectorCompileError, api.SelectorError},
		{"CEL runtime error", api.SelectorError},
		{"derived attribute", api.SelectorError},
		{"is currently being updated", api.PoolIncomplete},
		{"is currently invalid", api.PoolInvalid},
		{"exceeds the claim limit", api.ClaimLimitExceeded},
		{"constraint would not be satisfied", api.ConstraintUnsatisfiable},
		{"checking capacity for device", api.CapacityInsufficient},
	} {
		if strings.Contains(text, known.part) {
			return known.code
		}
	}
	return api.AllocatorError
}

// selectorCompileError is upstream's error for an expression that does not compile
// (structured/internal/*/allocator_*.go, selectorsMatch).
const selectorCompileError = "CEL compile error"

// IsCompileError reports whether the allocator gave up because of an expression that does not
// compile.
func IsCompileError(err error) bool { return strings.Contains(err.Error(), selectorCompileError) }

// WhatIf is a change that a question is asked about.
type WhatIf struct {
	// Cluster has the change; it is nil where none but the claims of the question change.
	Cluster *cluster.Cluster
	// FindAgain is set if the target itself may be changed, Features if a feature
	// gate is.
	FindAgain, Features bool
	// Claims are edits of the specs of claims, by their indices in
	// [funnel.Question.PodClaims].
	Claims map[int][]api.Edit
}

// Again asks the question with a change made, up to the point where the allocator is asked. It
// is nil if something else is in the way already.
func (v *Verdict) Again(w WhatIf) (*funnel.Question, error) {
	c, t := cmp.Or(w.Cluster, v.Cluster), v.Target
	if w.FindAgain {
		var err error
		if t, err = target.Find(c, v.Target.Options); err != nil {
			return nil, err
		}
		if pod := v.Pod; pod != nil && !v.Target.Hypothetical {
			t.UsePod(c, c.Snapshot.Pod(pod.Namespace, pod.Name))
		}
	}
	q := funnel.NewQuestion(c, t.Pod, slices.Clone(t.Claims))
	if !w.Features {
		// No change is about what devices publish, so that results and names hold.
		q.Selectors, q.Catalog = v.Selectors, v.Catalog
	}
	for i, edits := range w.Claims {
		pc := &q.PodClaims[i]
		spec, err := whatif.Edited(&pc.Claim.Spec, edits, "")
		if err != nil {
			return nil, err
		}
		claim := *pc.Claim
		claim.Spec = *spec
		pc.Claim = cluster.Defaulted(&claim)
	}
	funnel.ListWaiting(q)
	if claimProblem(q) != nil || refusal(q) != nil {
		return nil, nil
	}
	if w.Cluster == nil && v.Reach.Pools != nil {
		q.Reach = v.Reach
		return q, nil
	}
	Survey(q, t.Nodes(c))
	return q, nil
}
