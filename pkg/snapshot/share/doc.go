// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package share makes the objects of a list share what they have in common, so that a
// large cluster takes less memory: the devices of one model, the pods of one workload.
//
// It never changes what an object says. What decodes objects of an API server imports it;
// those of files share their parts while they are decoded.
package share
