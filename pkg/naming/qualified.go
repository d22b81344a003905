// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package naming

// Object is one of the API.
type Object interface {
	GetNamespace() string
	GetName() string
}

// Qualified returns "namespace/name", or the name of an object without a namespace.
func Qualified(o Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
