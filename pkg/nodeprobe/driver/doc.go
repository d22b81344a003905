// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package driver talks to the drivers of a node as the kubelet does: it asks who registers,
// whether they answer, how healthy their devices are, and, only if told to, prepares or
// unprepares a claim.
//
// [Look] changes nothing: it connects, asks for names and versions, and calls methods that
// do not exist to learn which services do. [Do] and [Conform] change the node. A driver is
// not trusted: calls end in time, replies have a limit in size, and every promise of a reply
// is checked.
//
// It knows nothing of CDI files; the caller passes a [Resolver]. Only pkg/nodeprobe and
// pkg/commands/nodeprobe may import it.
package driver
