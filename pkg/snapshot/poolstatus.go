// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindPoolStatus is the kind of requests for the status of pools. The only
// version that has it is v1alpha3.
const KindPoolStatus = "ResourcePoolStatusRequest"

// AnsweredAt returns when the status of a request was worked out, zero if it does not tell.
func AnsweredAt(request *resourcev1alpha3.ResourcePoolStatusRequest) metav1.Time {
	if request.Status != nil {
		for _, c := range request.Status.Conditions {
			if c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete && c.Status == metav1.ConditionTrue {
				return c.LastTransitionTime
			}
		}
	}
	return metav1.Time{}
}
