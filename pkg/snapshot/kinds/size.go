// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
)

// CheckSize fails for the text of an object that would take far more memory
// than an object of that size in a cluster.
func CheckSize(data []byte) error {
	if len(data) > MaxDocument {
		return TooLarge(len(data))
	}
	// Each value needs two characters.
	if len(data) <= 2*maxValues {
		return nil
	}
	if values := countValues(data); values > maxValues {
		return fmt.Errorf("expected at most %d values in an object, found %d", maxValues, values)
	}
	return nil
}

// countValues counts the values in a JSON text, and the empty lists and objects
// twice.
func countValues(data []byte) int {
	count := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := SkipString(data, i)
			if err != nil {
				return count
			}
			i = end - 1
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// maxValues limits how many values one object may have. That much does not fit into the 1.5
// MiB that etcd stores of an object.
const maxValues = 100_000

// MaxDocument is the size of the largest object, and of the largest YAML
// document that is parsed in one go. The API server stores no object of more
// than 1.5 MiB, in a form that is shorter than text.
const MaxDocument = 8 << 20

// TooLarge returns the error for a document, or an object in a List, of so many bytes.
func TooLarge(size int) error {
	const hint = "an object has at most %d MiB of text, found %.1f MiB; a List in YAML may have more as kubectl get -o yaml writes it, and any List in JSON"
	return fmt.Errorf(hint, MaxDocument>>20, float64(size)/(1<<20))
}
