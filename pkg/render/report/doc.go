// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what verbs have checked and found: as text for people, and in the
// formats that other programs read (SARIF, JUnit, commands of GitHub Actions).
//
// It computes nothing and looks nothing up.
package report
