// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// redactedQueues returns the tables for Kueue. The type of an outline stays: owners have it in
// their references, too.
func redactedQueues() []Redaction {
	return []Redaction{
		redacted[snapshot.QueuedWorkload](`metadata  meta Workload`),
		redacted[snapshot.QueuedWorkloadSpec](`queueName  name LocalQueue`),
		redacted[snapshot.QueuedAdmission](`clusterQueue  name ClusterQueue`),
		redacted[snapshot.AdmissionCheck](`
			name     name AdmissionCheck
			message  text`),
		redacted[snapshot.OutlineSpec](`clusterQueue  name ClusterQueue`),
	}
}
