// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planning draws what would happen: how many more copies fit, what becomes of the
// pods that wait, what a change or a taint would do to pods.
//
// It computes nothing: what it prints is in the model. Only pkg/commands may import it.
package planning
