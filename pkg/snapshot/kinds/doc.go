// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds knows the kinds of objects that a snapshot has: how they are decoded from
// JSON and from older versions, what the API server rejects, which fields nothing reads, and
// which fields a redacted snapshot has in another form. [DomainConfigs] reads what a claim says
// of ComputeDomains. [PodQuotaRefusals], [ClaimQuotaRefusals] and [LimitRefusals] predict whether
// the admission plugins ResourceQuota and LimitRanger refuse a new pod or claim. The package asks
// no server and knows objects alone.
//
// Everything about a kind stands in the files of the kind (pod.go, claim.go and claim_values.go,
// slice.go and so on): [Decoder.Decode], [CheckStored], [CheckValues], [Rejected], [Strip],
// [Sharer] and [Redactions] lead there.
package kinds
