// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller publishes why pods wait for devices, in metrics and in events on the pods. It
// follows a cluster as the dashboard does, calls [cause.Find] at a bounded cost, and computes nothing
// of its own. It writes nothing but events and, to elect a leader, a Lease.
package controller
