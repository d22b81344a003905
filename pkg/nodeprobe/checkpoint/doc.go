// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package checkpoint knows what the kubelet and the DRA drivers of a node have
// written down about the claims that they prepared: the kubelet's
// dra_manager_state, and checkpoint.json in the form of the NVIDIA driver, which
// drivers made from dra-example-driver share. It verifies the checksums, and
// holds the files against each other, against the node and against the cluster.
//
// A file that is broken or of another version is something found out, and no
// failure. The package writes nothing and prints nothing. pkg/nodeprobe
// and pkg/commands/nodeprobe may import it.
package checkpoint
