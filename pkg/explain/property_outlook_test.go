// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const checkOutlook = "outlook: "

// outlookHolds asks the allocator plainly about the cluster under each condition of
// the outlook. What fits under one condition fits under those that include it.
func (p *property) outlookHolds(table *coverage) error {
	o := p.out.Outlook
	if o == nil {
		if p.out.Verdict == api.DoesNotFit && p.Reach.Pools != nil {
			return fmt.Errorf("no outlook: %s", p.out.Summary)
		}
		return nil
	}
	table.checked(checkOutlook + string(o.Fits))
	lower := o.LowerPrioritiesGone.Verdict
	if lower == api.Fits && o.ClaimsReleased.Verdict == api.DoesNotFit || o.ClaimsReleased.Verdict == api.Fits && o.HardwareAlone.Verdict != api.Fits {
		return fmt.Errorf("outlook is not monotone: %s, %s, %s", lower, o.ClaimsReleased.Verdict, o.HardwareAlone.Verdict)
	}
	for _, condition := range []struct {
		name   api.Condition
		answer api.Prospect
		apply  func(*fleet.Case)
	}{
		{api.ClaimsReleased, o.ClaimsReleased, releaseAll},
		{api.HardwareAlone, o.HardwareAlone, func(c *fleet.Case) { releaseAll(c); bareHardware(c) }},
	} {
		after := p.Without("")
		condition.apply(after)
		want := askPlainly(p.ctx, p.t, after)
		if want.random {
			continue
		}
		switch answer := condition.answer; {
		case answer.Verdict == api.Fits && want.verdict == api.Error && answer == o.ClaimsReleased && condition.name == api.HardwareAlone:
			// It fits without nodes where the allocator fails.
		case answer.Verdict == api.Fits:
			if want.verdict != api.Fits || want.outcomes[answer.Node] != allocator.Fits {
				return fmt.Errorf("outlook %s: fits on %s, the allocator says %s %v", condition.name, answer.Node, want.verdict, want.outcomes)
			}
		case answer.Verdict == api.DoesNotFit:
			if want.verdict == api.Fits {
				return fmt.Errorf("outlook %s: does not fit (%s), the allocator says %v", condition.name, answer.Message, want.outcomes)
			}
		default:
			table.checked(checkOutlook + string(condition.name) + " undetermined")
		}
	}
	return nil
}

// releaseAll releases all claims and removes the pods that use them.
func releaseAll(c *fleet.Case) {
	users := map[string]bool{}
	for _, claim := range c.Snapshot.Claims {
		for _, consumer := range claim.Status.ReservedFor {
			users[claim.Namespace+"/"+consumer.Name] = claim.Namespace+"/"+consumer.Name != fleet.Namespace+"/"+fleet.Waiting
		}
		claim.Status = resourceapi.ResourceClaimStatus{}
	}
	c.Snapshot.Pods = slices.DeleteFunc(c.Snapshot.Pods, func(pod *corev1.Pod) bool { return users[pod.Namespace+"/"+pod.Name] })
}

// bareHardware removes taints, and lets the other pods need nothing.
func bareHardware(c *fleet.Case) {
	c.Snapshot.TaintRules = nil
	for _, node := range c.Snapshot.Nodes {
		node.Spec.Unschedulable, node.Spec.Taints = false, nil
	}
	for _, slice := range c.Snapshot.Slices {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Taints = nil
		}
	}
	for _, pod := range c.Snapshot.Pods {
		if pod.Name == fleet.Waiting {
			continue
		}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources, pod.Spec.Containers[i].Ports = corev1.ResourceRequirements{}, nil
		}
	}
}

// TestOutlookOfHardInstances asks for one device more than there is, where the
// allocator's search does not end in time.
func TestOutlookOfHardInstances(t *testing.T) {
	t.Parallel()
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(24)...), tc.Claim("c", tc.GPUs("r", 25)), tc.Pod("p", tc.Using("c")))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
	if err != nil {
		t.Fatal(err)
	}
	if e.Outlook == nil || e.Outlook.Fits != api.Never {
		t.Errorf("got %+v: %s", e.Outlook, e.Summary)
	}
}
