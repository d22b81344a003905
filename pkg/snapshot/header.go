// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataPrefix is how the link begins that holds a snapshot in a page of HTML: gzipped JSON in base64.
const DataPrefix = "data:application/gzip;base64,"

// KindSnapshot is the kind of the header of a saved snapshot.
const KindSnapshot = "Snapshot"

// Header has the facts of a saved snapshot besides its objects.
type Header struct {
	metav1.TypeMeta `json:",inline"`
	TakenAt         *time.Time `json:"takenAt,omitempty"`
	ServerVersion   string     `json:"serverVersion,omitempty"`
	// Emulator is [Release.Emulator].
	Emulator string `json:"emulator,omitempty"`
	// Served is [Snapshot.Served].
	Served []string        `json:"served,omitempty"`
	Gates  map[string]Gate `json:"gates,omitempty"`
	Gaps   []Gap           `json:"gaps,omitempty"`
	// Listed is [Snapshot.Listed].
	Listed []string `json:"listed,omitempty"`
	// Objects is the number of the objects that were saved with the header. A file with
	// fewer is cut short. Nil where it is not known: in files that were written by hand.
	Objects *int `json:"objects,omitempty"`
}
