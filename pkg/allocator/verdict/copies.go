// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// QuotaLimits returns how many copies of a question's pod ResourceQuotas allow, with their
// claims. Without withPod, only the claims count.
func QuotaLimits(q *eligibility.Question, withPod bool) []kinds.QuotaLimit {
	quotas := inNamespace(q.Cluster.Snapshot.Quotas, q.Pod.Namespace)
	created, _ := toBeCreated(q)
	pod := kinds.WithLimitDefaults(inNamespace(q.Cluster.Snapshot.LimitRanges, q.Pod.Namespace), q.Pod)
	if !withPod {
		pod = nil
	}
	return kinds.QuotaLimits(quotas, extendedNames(q), pod, created...)
}
