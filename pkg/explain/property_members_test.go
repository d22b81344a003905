// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestMembersProperty holds how many pods of a PodGroup fit, in random clusters, against
// a plain loop: for one pod after the other, all facts are found from nothing, one
// node after the other is asked about, and what a pod gets is written into its claims.
// Which node the scheduler takes of several that fit can matter for the later pods; so
// the count has to be that of the loop with some order of the nodes.
//
// CASES and SEED are those of [TestProperties].
func TestMembersProperty(t *testing.T) {
	first, count := uint64(0), uint64(400)
	if text := os.Getenv("CASES"); text != "" {
		first, count = rand.Uint64N(1<<40), number(t, text)
	}
	if text := os.Getenv("SEED"); text != "" {
		first = number(t, text)
	}
	if testing.Short() {
		count = min(count, 100)
	}
	t.Logf("seeds %d to %d; one alone: CASES=1 SEED=%d go test ./pkg/explain -run TestMembersProperty -v", first, first+count-1, first)
	found := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		what, err := "", error(nil)
		synctest.Test(t, func(t *testing.T) {
			ctx, budget := allocator.WithBudget(t.Context(), caseSteps)
			defer budget.End()
			if what, err = checkMembers(ctx, newMembersCase(seed)); budget.Spent() {
				what, err = "given up", nil
			}
		})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		found[what]++
	}
	t.Logf("%v", found)
	if enough := count / 20; uint64(found["some fit"]) < enough || uint64(found["all fit"]) < enough || uint64(found["none fits"]) < enough || uint64(found["given up"]) > count/50+1 {
		t.Errorf("the cases prove little: %v of %d", found, count)
	}
}

// membersCase is a cluster where the pods of a group wait.
type membersCase struct {
	snap *snapshot.Snapshot
	pods []*corev1.Pod
}

// newMembersCase turns the pod of a random cluster into the pods of a group. Each of
// its claims is one that they all use by name, one that is made for each, or one that is
// made for the group.
func newMembersCase(seed uint64) *membersCase {
	random := fleet.Random(seed)
	r := rand.New(rand.NewPCG(seed, 11))
	snap, waiting := random.Snapshot, random.Pod()
	snap.Pods = slices.DeleteFunc(snap.Pods, func(pod *corev1.Pod) bool { return pod == waiting })
	for _, gate := range []string{"GenericWorkload", "DRAWorkloadResourceClaims"} {
		snap.Gates[gate] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
	}
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "workers", UID: "uid-group"}}
	for i := range waiting.Spec.ResourceClaims {
		entry := &waiting.Spec.ResourceClaims[i]
		claim := snap.Claim(fleet.Namespace, *entry.ResourceClaimName)
		kind := r.IntN(4)
		if claim == nil || claim.Status.Allocation != nil || claim.DeletionTimestamp != nil || kind == 0 {
			continue
		}
		template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: claim.Name}}
		template.Spec.Spec = claim.Spec
		snap.Templates = append(snap.Templates, template)
		entry.ResourceClaimName, entry.ResourceClaimTemplateName = nil, ptr.To(template.Name)
		if kind == 1 {
			group.Spec.ResourceClaims = append(group.Spec.ResourceClaims, schedulingapi.PodGroupResourceClaim{Name: entry.Name, ResourceClaimTemplateName: entry.ResourceClaimTemplateName})
		}
		snap.Claims = slices.DeleteFunc(snap.Claims, func(c *resourceapi.ResourceClaim) bool { return c == claim })
	}
	snapshot.SortByName(snap.Templates)
	c := &membersCase{snap: snap}
	for i := range 2 + r.IntN(4) {
		pod := waiting.DeepCopy()
		pod.Name, pod.UID = fmt.Sprint("worker-", i), types.UID(fmt.Sprint("uid-", i))
		pod.CreationTimestamp.Time = pod.CreationTimestamp.Add(time.Duration(i) * time.Second)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
		c.pods = append(c.pods, pod)
	}
	if r.IntN(2) == 0 {
		group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: int32(len(c.pods))}
	} else {
		group.Spec.SchedulingPolicy.Basic = &schedulingapi.BasicSchedulingPolicy{}
	}
	snap.PodGroups = []*schedulingapi.PodGroup{group}
	snap.Pods = append(snap.Pods, c.pods...)
	snapshot.SortByName(snap.Pods)
	return c
}

// checkMembers compares, and says what kind of case it is.
func checkMembers(ctx context.Context, c *membersCase) (string, error) {
	before := asJSON(c.snap)
	counts := map[int]bool{}
	for order := range permutations(c.snap.Nodes) {
		switch fit, err := plainMembers(ctx, c, order); {
		case errors.Is(err, errNoCount):
			// An error of the allocator ends the attempt for all nodes; which nodes are
			// tried before is left to chance.
			return "an error of the allocator", nil
		case err != nil:
			return "", err
		default:
			counts[fit] = true
		}
	}
	facts := cluster.New(c.snap)
	answers, err := ExplainEach(ctx, facts, []Options{{Object: api.Ref(api.KindPodGroup, fleet.Namespace, "workers")}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return "", err
	}
	if asJSON(c.snap) != before {
		return "", errors.New("the snapshot was changed")
	}
	e := answers[0].Explanation
	if e.Members == nil {
		return "", fmt.Errorf("no members: %s %s", e.Verdict, e.Summary)
	}
	if fit := e.Members.FitNow; !counts[fit] {
		return "", fmt.Errorf("%d of %d fit, in the plain loop it is %v: %s %s", fit, len(c.pods), counts, e.Verdict, e.Summary)
	}
	switch e.Members.FitNow {
	case 0:
		return "none fits", nil
	case len(c.pods):
		return "all fit", nil
	default:
		return "some fit", nil
	}
}

// permutations visits all orders of up to three nodes.
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

// plainMembers counts the pods that fit one after another.
func plainMembers(ctx context.Context, c *membersCase, nodes []*corev1.Node) (int, error) {
	w := &plainWorld{made: map[string]string{}}
	w.Snapshot = *c.snap
	fit := 0
	for _, pod := range c.pods {
		placed, err := w.place(ctx, pod.DeepCopy(), nodes)
		if err != nil {
			return 0, err
		}
		if placed {
			fit++
		}
	}
	return fit, nil
}

// plainWorld is a cluster that changes as the scheduler changes it.
type plainWorld struct {
	snapshot.Snapshot
	// made has the names of claims that were made for the group, by entry.
	made map[string]string
}

// place puts a pod on the first node where it fits.
func (w *plainWorld) place(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) (bool, error) {
	snap := w.Snapshot
	c := cluster.New(&snap)
	var claims, pending []*resourceapi.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		claim := w.claim(pod, &pod.Spec.ResourceClaims[i])
		if claim == nil || claim.DeletionTimestamp != nil {
			return false, nil
		}
		claims = append(claims, claim)
		if claim.Status.Allocation == nil {
			pending = append(pending, claim)
		}
	}
	if plain := (&fleet.Case{Snapshot: &snap}); w.refused(plain, c, pending) {
		return false, nil
	}
	for _, node := range nodes {
		if len(c.Nodes.Fit(pod, node)) > 0 || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
			available, _ := c.Claims.AvailableOn(claim, node)
			return !available
		}) {
			continue
		}
		asked := slices.Clone(pending)
		extended, err := c.Claims.ExtendedResourceClaim(pod, node)
		if err != nil {
			continue
		}
		if extended != nil {
			asked = append(asked, extended)
		}
		verdict := allocator.Of(c).Check(ctx, node, asked)
		switch verdict.Outcome {
		case allocator.Fits:
			w.bind(pod, node, claims, asked, verdict.Allocations)
			return true, nil
		case allocator.DoesNotFit, allocator.NodeError:
		default:
			return false, errNoCount
		}
	}
	return false, nil
}

// claim returns what an entry of the pod stands for, made from its template if need be.
func (w *plainWorld) claim(pod *corev1.Pod, entry *corev1.PodResourceClaim) *resourceapi.ResourceClaim {
	if entry.ResourceClaimName != nil {
		if claim := w.Claim(pod.Namespace, *entry.ResourceClaimName); claim != nil {
			return cluster.Defaulted(claim)
		}
		return nil
	}
	shared := slices.ContainsFunc(w.PodGroups[0].Spec.ResourceClaims, func(c schedulingapi.PodGroupResourceClaim) bool { return c.Name == entry.Name })
	if name, made := w.made[entry.Name]; shared && made {
		return w.Claim(pod.Namespace, name)
	}
	name := pod.Name + "-of-" + entry.Name
	if shared {
		w.made[entry.Name] = name
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, UID: types.UID(name)}}
	claim.Spec = *w.Template(pod.Namespace, *entry.ResourceClaimTemplateName).Spec.Spec.DeepCopy()
	claim = cluster.Defaulted(claim)
	w.put(claim)
	return claim
}

// refused reports whether a claim stops the pod before any node is looked at.
func (w *plainWorld) refused(c *fleet.Case, facts *cluster.Cluster, pending []*resourceapi.ResourceClaim) bool {
	for _, claim := range pending {
		for _, r := range claim.Spec.Devices.Requests {
			switch {
			case r.Exactly == nil && !facts.Gates.Enabled("DRAPrioritizedList"):
				return true
			case r.Exactly != nil && c.Snapshot.Class(r.Exactly.DeviceClassName) == nil:
				return true
			case r.Exactly != nil && r.Exactly.AdminAccess != nil && (claim.UID == "" || strings.Contains(claim.Name, "-of-")) && c.Snapshot.Namespaces[0].Labels == nil:
				// The API server does not take such a claim.
				return true
			}
			for _, alternative := range r.FirstAvailable {
				if c.Snapshot.Class(alternative.DeviceClassName) == nil {
					return true
				}
			}
		}
	}
	return false
}

// put adds a claim, or puts it in the place of the one of that name.
func (w *plainWorld) put(claim *resourceapi.ResourceClaim) {
	w.Claims = append(slices.DeleteFunc(slices.Clone(w.Claims), func(c *resourceapi.ResourceClaim) bool {
		return c.Namespace == claim.Namespace && c.Name == claim.Name
	}), claim)
	snapshot.SortByName(w.Claims)
}

// bind gives a pod its node and its devices.
func (w *plainWorld) bind(pod *corev1.Pod, node *corev1.Node, claims, asked []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) {
	for i, claim := range asked {
		allocated := claim.DeepCopy()
		allocated.Status.Allocation = &allocations[i]
		if !slices.Contains(claims, claim) {
			allocated.Name, allocated.UID = pod.Name+"-extended", types.UID(pod.Name+"-extended")
		}
		w.put(allocated)
	}
	pod.Spec.NodeName = node.Name
	w.Pods = append(slices.DeleteFunc(slices.Clone(w.Pods), func(p *corev1.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name }), pod)
	snapshot.SortByName(w.Pods)
}
