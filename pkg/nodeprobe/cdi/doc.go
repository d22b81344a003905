// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package cdi knows what a container runtime finds in the CDI directories of a node: which
// devices have a spec, which edits they make to a container, whether the node has the files
// that these name, and for which claim the device was made.
//
// Files are read by pkg/nodeprobe/node, up to a size, and only then parsed by the library
// that the runtimes use. The package writes nothing and prints nothing. pkg/nodeprobe and
// pkg/commands/nodeprobe may import it.
package cdi
