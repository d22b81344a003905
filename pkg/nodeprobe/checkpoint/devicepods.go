// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// devices checks the containers with devices of device plugins: whether their pods exist,
// and whether the devices are still registered and healthy.
func (c *comparison) devices() {
	if c.Devices == nil || c.Devices.Error != "" {
		return
	}
	var unknowns node.Unknowns
	registered := c.Registered()
	good := 0
	for i := range c.Devices.Containers {
		entry := &c.Devices.Containers[i]
		pod := c.cluster.PodByUID(entry.PodUID)
		switch gap := c.cluster.Missing(snapshot.ResourcePods, ""); {
		case pod == nil && gap != "":
			unknowns.Add("pod "+entry.PodUID, gap)
		case pod == nil, snapshot.Finished(pod):
			// UpdateAllocatedDevices, pkg/kubelet/cm/devicemanager/manager.go.
			c.Checks = append(c.Checks, node.Good(checkHolders, c.Devices.Path, "%s of %s recorded for pod %s, which %s; released when the kubelet next gives out devices",
				english.Count(len(entry.ids()), "device"), entry.Resource, entry.PodUID, map[bool]string{true: "does not exist any more", false: "has ended"}[pod == nil]))
			continue
		case c.cluster.Node != "" && pod.Spec.NodeName != c.cluster.Node:
			check := node.Bad(checkHolders, c.Devices.Path, "%s has devices of %s, and is bound to another node", entry.words(), entry.Resource)
			check.Found, check.Required = pod.Spec.NodeName, c.cluster.Node
			c.Checks = append(c.Checks, check)
			continue
		default:
			entry.Namespace, entry.Pod = pod.Namespace, pod.Name
		}
		lost := slices.DeleteFunc(entry.ids(), func(id string) bool {
			_, healthy := slices.BinarySearch(registered[entry.Resource], id)
			return healthy
		})
		switch {
		case len(lost) == 0:
			good++
		case len(registered[entry.Resource]) == 0:
			c.Checks = append(c.Checks, node.Bad(checkHolders, c.Devices.Path, "%s has %s of %s, and the kubelet has no healthy device of it: the plugin has not registered again, or all its devices are unhealthy",
				entry.words(), english.Count(len(lost), "device"), entry.Resource))
		default:
			c.Checks = append(c.Checks, node.Bad(checkHolders, c.Devices.Path, "%s has %s of %s, unhealthy or no longer reported by the plugin",
				entry.words(), node.Sample(lost), entry.Resource))
		}
	}
	c.Checks = append(c.Checks, unknowns.Checks(checkHolders)...)
	if good > 0 {
		c.Checks = append(c.Checks, node.Good(checkHolders, c.Devices.Path, "registered and healthy: the devices of %s", english.Count(good, "entry")))
	}
}

// words returns the container's name in messages.
func (c *DeviceContainer) words() string {
	if c.Pod == "" {
		return "container " + c.Container + " of pod " + c.PodUID
	}
	return "container " + c.Container + " of pod " + c.Namespace + "/" + c.Pod
}

// comparison compares checkpoints with the cluster.
type comparison struct {
	*Findings

	cluster  *node.Cluster
	exist    int
	unknowns node.Unknowns
}
