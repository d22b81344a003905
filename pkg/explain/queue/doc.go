// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue knows the order in which the scheduler decides pods that wait, and
// what those that come first leave for the others. Equal pods share an answer.
//
// Whether a pod fits it asks through an [Explainer]. pkg/explain may import it.
package queue
