// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"

// softwareOf returns the versions of the cluster and the node, as far as the cluster knows
// them.
func softwareOf(host *node.Host, opts *ConformOptions) *Software {
	s := &Software{Program: opts.Program}
	if opts.Cluster == nil {
		return s
	}
	s.Kubernetes = opts.Cluster.ServerVersion
	if around := host.In(opts.Cluster); around.Node != "" {
		if object := opts.Cluster.Node(around.Node); object != nil {
			info := &object.Status.NodeInfo
			s.Kubelet, s.ContainerRuntime = info.KubeletVersion, info.ContainerRuntimeVersion
			if info.OperatingSystem != "" {
				s.OperatingSystem = info.OperatingSystem + "/" + info.Architecture
			}
		}
	}
	return s
}
