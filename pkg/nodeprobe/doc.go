// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package nodeprobe looks at one node: at everything between an allocated claim and a
// running container. Each link of that chain has a package below this one, which also works
// alone; [Probe] asks all of them and puts their findings in one [Report].
//
// It changes nothing, and needs no cluster: facts that need one are reported as unknown. It
// prints nothing; pkg/commands/nodeprobe draws reports, and pkg/commands finds the node and
// the way to it.
package nodeprobe
