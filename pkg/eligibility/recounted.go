// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Recounted returns the other question with the funnels of this one, which hold where its
// claims ask for other numbers of the same devices. It is nil if anything else differs.
func (q *Question) Recounted(other *Question) *Question {
	if other.Cluster != q.Cluster || len(other.Claims) != len(q.Claims) {
		return nil
	}
	recounted := *other
	recounted.Claims = slices.Clone(other.Claims)
	for i := range recounted.Claims {
		c, accounted := &recounted.Claims[i], q.Claims[i]
		if !equality.Semantic.DeepEqual(withoutCounts(c.Claim), withoutCounts(accounted.Claim)) {
			return nil
		}
		c.Funnels = nil
		for r, alternatives := range cluster.Requests(c.Claim) {
			var funnels []*Funnel
			for a, request := range alternatives {
				f := *accounted.Funnels[r][a]
				f.Request = request
				funnels = append(funnels, &f)
			}
			c.Funnels = append(c.Funnels, funnels)
		}
	}
	return &recounted
}

// withoutCounts returns what a claim asks for, whatever the number.
func withoutCounts(claim *resourceapi.ResourceClaim) *resourceapi.DeviceClaim {
	devices := claim.Spec.Devices.DeepCopy()
	for i := range devices.Requests {
		r := &devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.Count = 0
		}
		for j := range r.FirstAvailable {
			r.FirstAvailable[j].Count = 0
		}
	}
	return devices
}
