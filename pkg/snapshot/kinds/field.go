// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

// Field is a field of an API object that somebody does not look at.
type Field struct {
	// Path is the path in the newest API version, through lists and all:
	// "spec.devices.attributes". It ends before a map, or behind it.
	Path string
	// Unless names a field of the object with which it is looked at after all;
	// empty if there is none.
	Unless string
}

// ReadFields makes a list of fields without exceptions.
func ReadFields(paths ...string) []Field {
	list := make([]Field, 0, len(paths))
	for _, path := range paths {
		list = append(list, Field{Path: path})
	}
	return list
}
