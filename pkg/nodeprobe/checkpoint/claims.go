// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// comparison compares checkpoints with the cluster.
type comparison struct {
	*Findings

	cluster  *node.Cluster
	exist    int
	unknowns node.Unknowns
}

func (c *comparison) run() {
	c.devices()
	claims := 0
	for _, file := range c.all() {
		claims += len(file.Claims)
	}
	if c.cluster == nil {
		if claims > 0 {
			c.Checks = append(c.Checks, node.NotKnown(checkClaims, "", "no cluster was read, so whether %s still exist is not known", english.Count(claims, "claim")))
		}
		return
	}
	for _, file := range c.all() {
		for i := range file.Claims {
			c.claim(file, &file.Claims[i])
		}
	}
	c.lost()
	c.Checks = append(c.Checks, c.unknowns.Checks(checkClaims)...)
	if c.exist > 0 {
		c.Checks = append(c.Checks, node.Good(checkClaims, "", "the cluster has the claims that checkpoints are about: %s checked", english.Count(c.exist, "entry")))
	}
}

// claim checks that a claim of a checkpoint still exists.
func (c *comparison) claim(file *Checkpoint, claim *Claim) {
	keeper := "the kubelet"
	if file.Driver != "" {
		keeper = "driver " + file.Driver
	}
	known := c.cluster.Claim(claim.UID)
	switch gap := c.cluster.Missing(snapshot.ResourceClaims, claim.Namespace); {
	case known == nil && gap != "":
		c.unknowns.Add(claim.words(), gap)
		return
	case known == nil:
		check := node.Bad(checkClaims, file.Path, "%s keeps %s, which does not exist any more", keeper, claim.words())
		if other := c.cluster.ClaimNamed(claim.Namespace, claim.Name); claim.Name != "" && other != nil {
			check.Message = keeper + " keeps " + claim.words() + " of old, and there is another one of that name: it is not prepared before the old one is gone"
			check.Found, check.Required = claim.UID, string(other.UID)
		}
		c.Checks = append(c.Checks, check)
		return
	}
	claim.Namespace, claim.Name = known.Namespace, known.Name
	if known.Status.Allocation == nil {
		c.Checks = append(c.Checks, node.Bad(checkClaims, file.Path, "%s keeps %s, which is not allocated any more", keeper, claim.words()))
		return
	}
	c.exist++
	for _, uid := range claim.PodUIDs {
		c.pod(file, claim, uid)
	}
}

// pod checks that a pod for which the kubelet keeps a claim still exists.
func (c *comparison) pod(file *Checkpoint, claim *Claim, uid string) {
	pod := c.cluster.PodByUID(uid)
	switch gap := c.cluster.Missing(snapshot.ResourcePods, claim.Namespace); {
	case pod == nil && gap != "":
		c.unknowns.Add("a pod of "+claim.words(), gap)
	case pod == nil:
		check := node.Bad(checkPods, file.Path, "the kubelet keeps %s for a pod that does not exist any more", claim.words())
		check.Found = uid
		c.Checks = append(c.Checks, check)
	case c.cluster.Node != "" && pod.Spec.NodeName != c.cluster.Node:
		check := node.Bad(checkPods, file.Path, "the kubelet keeps %s for pod %s, which is bound to another node", claim.words(), pod.Name)
		check.Found, check.Required = pod.Spec.NodeName, c.cluster.Node
		c.Checks = append(c.Checks, check)
	case snapshot.Finished(pod):
		c.Checks = append(c.Checks, node.NotKnown(checkPods, file.Path, "the kubelet keeps %s for pod %s, which has ended: it is about to let go of it, or fails to", claim.words(), pod.Name))
	}
}

// lost finds claims of running pods that are missing in the kubelet's checkpoint.
func (c *comparison) lost() {
	if c.Kubelet == nil || c.Kubelet.Error != "" {
		return
	}
	kept := map[string]bool{}
	for i := range c.Kubelet.Claims {
		kept[c.Kubelet.Claims[i].UID] = true
	}
	for _, pod := range c.cluster.Pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, claim := range c.cluster.ClaimsOf(pod) {
			if kept[string(claim.UID)] || claim.Status.Allocation == nil || pod.Status.Phase != corev1.PodRunning || !node.ReservedFor(claim, pod) {
				continue
			}
			c.Checks = append(c.Checks, node.Bad(checkClaims, c.Kubelet.Path, "pod %s/%s runs with claim %s, of which the kubelet has nothing", pod.Namespace, pod.Name, claim.Name))
		}
	}
}

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
