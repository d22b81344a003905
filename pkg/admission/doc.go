// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission knows the API server's answer to a pod or a claim that is about to be
// created: the admission plugins LimitRanger and ResourceQuota. It asks no server and knows
// nothing of devices. pkg/explain imports it.
package admission
