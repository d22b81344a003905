// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeanswer knows why claims do not fit on a node, in one code and one
// sentence, and groups the nodes whose answers are equal.
//
// It does not decide whether they fit, and it says nothing of the pod besides its
// claims. pkg/explain imports it.
package nodeanswer
