// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads snapshots and manifests from files, and writes snapshots that read back
// to equal ones.
//
// [Load] finds the texts in what the user named, cuts them into objects, and decodes these on
// all processors, within bounds of time and memory. [Save] writes a file that is there
// completely or not at all, and leaves nothing out.
//
// It never asks a server. Every error about the input is an [*InputError] that says where it
// is. Whatever reads or writes files imports it.
package files
