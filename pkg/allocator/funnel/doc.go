// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package funnel accounts for every device of the cluster for one request: it is
// eligible on some node, or there is a reason, with the code and the evidence,
// why it is not (pkg/eligibility). It knows what each part of a selector does to
// the devices, and how many devices of a node are eligible, in use or of no use.
//
// It looks at one device at a time and decides nothing about claims: that several
// requests compete for the same devices is for the packages above.
package funnel
