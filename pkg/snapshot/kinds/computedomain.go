// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func redactedDomains() []Redaction {
	return []Redaction{
		redacted[snapshot.ComputeDomain](`metadata  meta ComputeDomain`),
		redacted[snapshot.ComputeDomainTemplate](`name  name ResourceClaimTemplate`),
		redacted[snapshot.ComputeDomainNode](`
			name       name Node
			ipAddress  name IP
			cliqueID   label ` + snapshot.CliqueLabel),
		redacted[snapshot.ComputeDomainClique](`metadata  meta ComputeDomainClique`),
		redacted[snapshot.ComputeDomainDaemon](`
			nodeName   name Node
			ipAddress  name IP
			cliqueID   label ` + snapshot.CliqueLabel),
	}
}
