// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

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

// images returns the images of the pod whose process listens at the endpoint; nil if it is
// in no pod, or if that is not known.
func (c *conformer) images(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Look.timeout())
	defer cancel()
	uid := c.host.PodOfServer(ctx, c.plugin.Endpoint, inside(c.host, c.plugin.Endpoint))
	if uid == "" {
		return nil
	}
	pod := c.host.In(c.opts.Cluster).PodByUID(uid)
	if pod == nil {
		return nil
	}
	var images []string
	for i := range pod.Spec.Containers {
		if image := pod.Spec.Containers[i].Image; !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	return images
}
