// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller tells the cluster itself why pods wait for devices: in metrics, and in events
// on the pods. It follows a cluster as the dashboard does, asks [cause.Find] at a bounded cost,
// and computes nothing of its own. It reads only, but for its events.
package controller
