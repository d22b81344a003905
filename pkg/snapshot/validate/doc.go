// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validate refuses objects that no API server has ever stored, and, of
// manifests, what the API server would refuse: names, numbers, lengths, fields.
// The rest of the program relies on them.
//
// It never changes an object. The packages load and strip import it.
package validate
