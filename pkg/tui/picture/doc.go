// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture has what the dashboard knows of a cluster: a [Picture] is a [Source] at
// one moment, [Reasons] are why pods and claims wait, and a [Diagnosis] is what doctor
// found.
//
// Everything is safe for concurrent use: pictures are taken, and asked, in the background.
// Only pkg/tui and pkg/commands/top may import it.
package picture
