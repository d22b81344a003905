// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package etcd pins the etcd that the tests run.
package etcd

import _ "go.etcd.io/etcd/server/v3"
