// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package v1alpha1 has the types that -o json prints: explanations, and the
// items of every list. docs/json.md is generated from it.
//
// A reference to an object is an [ObjectRef]. A field that is named for one kind has the name
// alone where that is enough: objects of the kind have no namespace, or are in the namespace
// of the item or of the target.
//
// It is data alone. What computes it is in pkg/explain and pkg/inventory, what
// writes it for people in pkg/render. Every package may import it; it imports
// none of this module.
package v1alpha1

// APIVersion is the API version of everything that the program prints for machines. Within
// it, fields are only ever added.
const APIVersion = "dra.kubectl.dev/v1alpha1"
