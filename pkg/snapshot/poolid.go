// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import resourceapi "k8s.io/api/resource/v1"

// PoolID names a pool: drivers may give their pools the same names.
type PoolID struct{ Driver, Name string }

// PoolOf returns the pool that a slice belongs to.
func PoolOf(slice *resourceapi.ResourceSlice) PoolID {
	return PoolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}
