// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprobe has the verbs that look at one node, node-probe and its subcommands: on
// the node where the program runs, or through a pod on another one.
//
// What they find out is known to the packages below pkg/nodeprobe. The text for people is
// here, in the files text*.go, on pages of pkg/render. Besides, this package starts the
// pod, copies the program into it, and passes on what that prints. Only pkg/commands
// imports it.
package nodeprobe
