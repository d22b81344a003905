// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check has the verbs that find faults: doctor in a cluster, and lint in manifests.
// It reads what they look at, and prints or writes what they find.
//
// The checks are in pkg/doctor and pkg/lint. Only pkg/commands imports it.
package check
