// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views knows which views the dashboard has, and which rows and columns each shows
// of a picture: nodes, pools, devices, claims, what waits, classes, taints, findings, teams.
//
// It keeps no state. Only pkg/tui and packages below it may import it.
package views
