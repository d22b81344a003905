// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// caseSteps bounds the work on one case, mostPlain the copies of a case that is
	// compared.
	caseSteps = 40_000_000
	mostPlain = 24
)

// TestCountProperty holds how many copies of a pod fit in random clusters against a
// plain loop: for one copy after the other all facts are found from nothing, one node
// after the other is asked about, and what a copy gets is written into its claims. A
// number that is said to be exact is that of every order of the nodes. Bounds hold for
// every order. One more node never makes it fewer.
//
// CASES and SEED choose other cases.
func TestCountProperty(t *testing.T) {
	first, count := uint64(0), uint64(300)
	for name, value := range map[string]*uint64{"CASES": &count, "SEED": &first} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 63)
			if err != nil {
				t.Fatalf("%s=%s: %v", name, text, err)
			}
			*value = n
		}
	}
	if testing.Short() {
		count = min(count, 150)
	}
	found := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		what, err := "", error(nil)
		synctest.Test(t, func(t *testing.T) {
			ctx, budget := allocator.WithBudget(t.Context(), caseSteps)
			defer budget.End()
			if what, err = check(ctx, seed); budget.Spent() {
				what, err = "given up", nil
			}
		})
		if err != nil {
			t.Errorf("seed %d (CASES=1 SEED=%d): %v", seed, seed, err)
		}
		found[what]++
	}
	t.Logf("%v", found)
	if enough := int(count / 30); count >= 60 && (found["exact"] < enough || found["bounds"] < enough || found["none"] < enough) {
		t.Errorf("the cases prove little: %v of %d", found, count)
	}
}

// randomCase returns a cluster and a pod whose claims are mostly from templates.
func randomCase(seed uint64) (*snapshot.Snapshot, *corev1.Pod) {
	random := fleet.Random(seed)
	r := rand.New(rand.NewPCG(seed, 23))
	snap, waiting := random.Snapshot, random.Pod()
	snap.Pods = slices.DeleteFunc(snap.Pods, func(pod *corev1.Pod) bool { return pod == waiting })
	for i := range waiting.Spec.ResourceClaims {
		entry := &waiting.Spec.ResourceClaims[i]
		claim := snap.Claim(fleet.Namespace, *entry.ResourceClaimName)
		if claim == nil || claim.Status.Allocation != nil || claim.DeletionTimestamp != nil || r.IntN(8) == 0 {
			continue
		}
		template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: claim.Name}}
		template.Spec.Spec = claim.Spec
		snap.Templates = append(snap.Templates, template)
		entry.ResourceClaimName, entry.ResourceClaimTemplateName = nil, ptr.To(template.Name)
		snap.Claims = slices.DeleteFunc(snap.Claims, func(c *resourceapi.ResourceClaim) bool { return c == claim })
	}
	snapshot.SortByName(snap.Templates)
	return snap, copyOf(waiting)
}

// check compares, and says what kind of case it is.
func check(ctx context.Context, seed uint64) (string, error) {
	snap, pod := randomCase(seed)
	s := cluster.New(snap)
	f, err := CountShape(ctx, s, &Shape{Target: api.Ref(api.KindPod, "", pod.Name), Pod: pod}, 1)
	if err != nil {
		return "", err
	}
	if err := asWhySays(ctx, s, pod, f); err != nil {
		return "", err
	}
	if f.Verdict == api.Error || f.Verdict == api.Undetermined || f.Next != nil && f.Next.Code == api.QuotaExceeded {
		return string(f.Verdict), nil
	}
	if f.Now.AtLeast > mostPlain {
		return "many", nil
	}
	sum := 0
	for _, group := range f.Nodes {
		sum += group.Count * group.Now
	}
	if sum != f.Now.AtLeast && f.Verdict != api.DoesNotFit {
		return "", fmt.Errorf("%d copies on nodes, %d at least", sum, f.Now.AtLeast)
	}
	least, most := mostPlain+1, 0
	for order := range permutations(snap.Nodes) {
		fit, err := plainCopies(ctx, snap, pod, order)
		if errors.Is(err, errNoCount) {
			return "an error of the allocator", nil
		}
		if err != nil {
			return "", err
		}
		least, most = min(least, fit), max(most, fit)
	}
	if f.Now.AtLeast < least || f.Now.AtLeast > most || f.Now.AtMost != nil && most > *f.Now.AtMost {
		return "", fmt.Errorf("%s copies fit (%v), in the plain loop %d to %d: %s", english.Between(f.Now.AtLeast, f.Now.AtMost), f.Bounds, least, most, f.Summary)
	}
	if len(f.Bounds) == 0 && least != most {
		return "", fmt.Errorf("%d copies are said to fit whatever nodes are taken, in the plain loop %d to %d", f.Now.AtLeast, least, most)
	}
	if err := moreNodes(ctx, s, pod, f); err != nil {
		return "", err
	}
	switch {
	case len(f.Bounds) > 0:
		return "bounds", nil
	case f.Now.AtLeast == 0:
		return "none", nil
	case f.Now.AtMost != nil && *f.Now.AtMost != f.Now.AtLeast:
		return "", fmt.Errorf("%s copies fit, and nothing says why that is not one number", english.Between(f.Now.AtLeast, f.Now.AtMost))
	default:
		return "exact", nil
	}
}

// asWhySays asserts that at least one copy fits exactly where an explanation of the pod says that it
// fits, or has its devices.
func asWhySays(ctx context.Context, s *cluster.Cluster, pod *corev1.Pod, f *api.Fit) error {
	with := *s.Snapshot
	with.Pods = append(slices.Clone(with.Pods), pod)
	why, err := explain.ExplainWith(ctx, s.Amended(&with), explain.Options{Object: api.RefTo(api.KindPod, pod)})
	var none *explain.TargetError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	if fits(why) != (f.Now.AtLeast > 0) {
		return fmt.Errorf("%s copies fit (%s), and the explanation of one says %s: %s", english.Between(f.Now.AtLeast, f.Now.AtMost), f.Verdict, why.Verdict, why.Summary)
	}
	return nil
}

// moreNodes asserts that one more node like each does not make copies fewer.
func moreNodes(ctx context.Context, s *cluster.Cluster, pod *corev1.Pod, before *api.Fit) error {
	if len(before.Bounds) > 0 {
		return nil
	}
	for _, node := range s.Snapshot.Nodes {
		more := s.Amended(whatif.AddNodes(s.Snapshot, node.Name, 1))
		f, err := CountShape(ctx, more, &Shape{Pod: pod}, 1)
		if err != nil {
			return err
		}
		if f.Verdict != api.Error && f.Verdict != api.Undetermined && len(f.Bounds) == 0 && f.Now.AtLeast < before.Now.AtLeast {
			return fmt.Errorf("with one more node like %s %d copies fit, without it %d", node.Name, f.Now.AtLeast, before.Now.AtLeast)
		}
	}
	return nil
}

func permutations(nodes []*corev1.Node) func(yield func([]*corev1.Node) bool) {
	return func(yield func([]*corev1.Node) bool) {
		if len(nodes) <= 1 {
			yield(nodes)
			return
		}
		for i := range nodes {
			rest := slices.Delete(slices.Clone(nodes), i, i+1)
			for order := range permutations(rest) {
				if !yield(append([]*corev1.Node{nodes[i]}, order...)) {
					return
				}
			}
		}
	}
}

// errNoCount is an error of the allocator.
var errNoCount = errors.New("the allocator fails")

// plainCopies counts copies that fit one after another, as long as one fits.
func plainCopies(ctx context.Context, snap *snapshot.Snapshot, pod *corev1.Pod, nodes []*corev1.Node) (int, error) {
	world := *snap
	for fit := 0; ; fit++ {
		placed, err := placePlainly(ctx, &world, pod, fit, nodes)
		if err != nil || !placed || fit > mostPlain {
			return fit, err
		}
	}
}

// placePlainly puts a copy on the first node where it fits.
func placePlainly(ctx context.Context, world *snapshot.Snapshot, pod *corev1.Pod, number int, nodes []*corev1.Node) (bool, error) {
	pod = pod.DeepCopy()
	pod.Name, pod.UID = fmt.Sprint("copy-", number), types.UID(fmt.Sprint("copy-", number))
	after := *world
	var claims, pending []*resourceapi.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		var claim *resourceapi.ResourceClaim
		if entry.ResourceClaimName != nil {
			if claim = after.Claim(pod.Namespace, *entry.ResourceClaimName); claim == nil || claim.DeletionTimestamp != nil {
				return false, nil
			}
			claim = cluster.Defaulted(claim)
		} else {
			name := pod.Name + "-of-" + entry.Name
			claim = &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, UID: types.UID(name)}}
			claim.Spec = *after.Template(pod.Namespace, *entry.ResourceClaimTemplateName).Spec.Spec.DeepCopy()
			claim = cluster.Defaulted(claim)
		}
		claims = append(claims, claim)
		if claim.Status.Allocation == nil {
			pending = append(pending, claim)
		}
	}
	facts := cluster.New(&after)
	for _, node := range nodes {
		if len(facts.Nodes.Fit(pod, node)) > 0 || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
			available, _ := facts.Claims.AvailableOn(claim, node)
			return !available
		}) {
			continue
		}
		asked := slices.Clone(pending)
		extended, err := facts.Claims.ExtendedResourceClaim(pod, node)
		if err != nil {
			continue
		}
		if extended != nil {
			asked = append(asked, extended)
		}
		switch verdict := allocator.Of(facts).Check(ctx, node, asked); verdict.Outcome {
		case allocator.Fits:
			for i, claim := range asked {
				allocated := claim.DeepCopy()
				allocated.Status.Allocation = &verdict.Allocations[i]
				if !slices.Contains(claims, claim) {
					allocated.Name, allocated.UID = pod.Name+"-extended", types.UID(pod.Name+"-extended")
				}
				after.Claims = append(slices.DeleteFunc(slices.Clone(after.Claims), func(c *resourceapi.ResourceClaim) bool {
					return c.Namespace == allocated.Namespace && c.Name == allocated.Name
				}), allocated)
				snapshot.SortByName(after.Claims)
			}
			pod.Spec.NodeName = node.Name
			after.Pods = append(slices.Clone(after.Pods), pod)
			snapshot.SortByName(after.Pods)
			*world = after
			return true, nil
		case allocator.DoesNotFit, allocator.NodeError:
		default:
			return false, errNoCount
		}
	}
	return false, nil
}
