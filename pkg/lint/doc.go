// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint knows the checks of manifests: what can be wrong with objects of
// Dynamic Resource Allocation before they are applied. [Checks] is the list of all of
// them, each with a stable code, what it means and what to do about it.
//
// A check looks at decoded objects and says which field is wrong, and where it is
// possible how the text has to change; it never changes anything. Where it depends
// on what only a cluster has, it is silent without one. pkg/commands may import it.
package lint
