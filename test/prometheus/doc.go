// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus tests with Prometheus what dra-controller serves to it: the alert rules
// and the dashboard of config, and the metrics. It is a module of its own, so that nothing
// else gets the dependencies of Prometheus.
package prometheus
