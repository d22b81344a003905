// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package checkpoint reads the files in which the kubelet and the DRA drivers of a node
// record prepared claims: the kubelet's dra_manager_state, and checkpoint.json in the
// format of the NVIDIA driver, which drivers made from dra-example-driver share. It
// verifies the checksums, and compares the files with each other, with the node and with
// the cluster.
//
// A file that is broken or of another version is a finding, and no failure. The package
// writes nothing and prints nothing. pkg/nodeprobe and pkg/commands/nodeprobe may import
// it.
package checkpoint
