// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node knows the paths of a node and how to look at them without harm: files are
// read up to a size, links never lead out of the node's own tree, sockets answer in time or
// not at all. It knows nothing of devices.
//
// It also has [Check], the form in which everything below pkg/nodeprobe reports. Only
// packages below pkg/nodeprobe and pkg/nodeprobe itself may import it.
package node
