// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Verdict is the outcome for a target in a cluster, as codes and facts. pkg/explain puts it
// into words.
type Verdict struct {
	*eligibility.Question
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
	Checked    []allocator.NodeVerdict
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

// Blocked reports whether an obstacle keeps the pod from devices that it could have.
func (v *Verdict) Blocked() bool {
	return len(v.Obstacles) > 0 && (v.Devices == api.Fits || v.Devices == api.Allocated)
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

// Placement is the allocator's choice on the best node.
type Placement struct {
	Node        *corev1.Node
	Score       int64
	Claims      []*resourceapi.ResourceClaim
	Allocations []resourceapi.AllocationResult
}

// UnreadNode is a node whose pools could not be determined.
type UnreadNode struct {
	Node string
	Err  error
}

// Release has the decisions in which schedulers of the cluster's release differ from the
// library, apart from differences that the allocator has heeded for each node.
type Release struct {
	Behavior cluster.Behavior
	// Outcome is the verdict of such schedulers; Undetermined if the release is not known, and
	// empty if that is only an assumption.
	Outcome api.Verdict
	// Err is an error of the library that other releases do not have, and Node a node that other
	// releases find then.
	Err  error
	Node string
}

// Obstacle is something other than devices that keeps a pod from being placed,
// whatever the node.
type Obstacle struct {
	Code api.Code
	// Stage is the stage at which it keeps the pod, empty if the pod cannot even be
	// created.
	Stage api.Stage
	lifecycle.Finding
}

// Unevaluated is something that may be in the way of a pod, and that is not known.
type Unevaluated struct {
	What, Why string
	// Always is set if it is told whatever the verdict, and not only of what fits.
	Always bool
	// Quiet is set if it is no part of the summary.
	Quiet bool
}

func (u Unevaluated) String() string { return fmt.Sprintf("%s (%s)", u.What, u.Why) }

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

// IsCompileError reports whether the allocator gave up because of an expression that does not
// compile.
func IsCompileError(err error) bool { return strings.Contains(err.Error(), selectorCompileError) }

// selectorCompileError is upstream's error for an expression that does not compile
// (structured/internal/*/allocator_*.go, selectorsMatch).
const selectorCompileError = "CEL compile error"
