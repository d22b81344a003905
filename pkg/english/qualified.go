// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english

// NamedObject is one of the API.
type NamedObject interface {
	GetNamespace() string
	GetName() string
}

// QualifiedName returns "namespace/name", or the name of an object without a namespace.
func QualifiedName(o NamedObject) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
