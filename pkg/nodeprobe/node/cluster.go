// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Files that identify a node.
const (
	bootIDPath    = "/proc/sys/kernel/random/boot_id"
	machineIDPath = "/etc/machine-id"
	hostnamePath  = "/etc/hostname"
	// idLimit is larger than any of them.
	idLimit = 4096
)

// BootID returns the kernel's ID of the present boot.
func (h *Host) BootID() (string, error) { return h.readID(bootIDPath) }

func (h *Host) readID(path string) (string, error) {
	data, err := h.ReadFile(path, idLimit)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// Cluster has the objects of a cluster that concern one node. A nil one says nothing: there
// is no cluster.
type Cluster struct {
	// Node is the name of the node, empty if it is not known; Unknown then says why.
	Node, Unknown string
	// Pods are the pods bound to the node that have not ended, by namespace and name.
	Pods []*corev1.Pod
	// Claims are the allocated claims that these pods use, by namespace and name.
	Claims []*resourceapi.ResourceClaim

	snap  *snapshot.Snapshot
	byUID map[string]*resourceapi.ResourceClaim
}

// In finds the node in a snapshot, with its pods and claims. Without a snapshot it returns
// nil.
func (h *Host) In(snap *snapshot.Snapshot) *Cluster {
	if snap == nil {
		return nil
	}
	c := &Cluster{snap: snap, byUID: map[string]*resourceapi.ResourceClaim{}}
	for _, claim := range snap.Claims {
		c.byUID[string(claim.UID)] = claim
	}
	if c.Node, c.Unknown = h.nameIn(snap); c.Node == "" {
		return c
	}
	if gap := snap.Gap(snapshot.ResourcePods); gap != nil && len(snap.Pods) == 0 {
		return c
	}
	used := map[*resourceapi.ResourceClaim]bool{}
	for _, pod := range snap.Pods {
		if pod.Spec.NodeName != c.Node || snapshot.Finished(pod) {
			continue
		}
		c.Pods = append(c.Pods, pod)
		for _, claim := range c.ClaimsOf(pod) {
			used[claim] = true
		}
	}
	for _, claim := range snap.Claims {
		if used[claim] && claim.Status.Allocation != nil {
			c.Claims = append(c.Claims, claim)
		}
	}
	return c
}

// nameIn finds the name of this node in the cluster: the given name, else the node with the
// same boot ID, machine ID or host name.
func (h *Host) nameIn(snap *snapshot.Snapshot) (name, unknown string) {
	if h.Name != "" {
		if snap.Node(h.Name) == nil && snap.Gap(snapshot.ResourceNodes) == nil {
			return "", fmt.Sprintf("%s has no node %s", snap.Source, h.Name)
		}
		return h.Name, ""
	}
	if gap := snap.Gap(snapshot.ResourceNodes); gap != nil {
		return "", "the nodes of the cluster could not be read: " + gap.Reason
	}
	for _, by := range []struct {
		path string
		is   func(*corev1.Node, string) bool
	}{
		{bootIDPath, func(n *corev1.Node, id string) bool { return n.Status.NodeInfo.BootID == id }},
		{machineIDPath, func(n *corev1.Node, id string) bool { return n.Status.NodeInfo.MachineID == id }},
		{hostnamePath, func(n *corev1.Node, id string) bool {
			return n.Name == strings.ToLower(id) || n.Labels[corev1.LabelHostname] == id
		}},
	} {
		id, err := h.readID(by.path)
		if err != nil || id == "" {
			continue
		}
		var same []string
		for _, n := range snap.Nodes {
			if by.is(n, id) {
				same = append(same, n.Name)
			}
		}
		// Nodes that share a machine, as in kind, share the boot ID.
		if len(same) == 1 {
			return same[0], ""
		}
	}
	return "", fmt.Sprintf("%s has no single node with the boot ID, machine ID or host name of this one", snap.Source)
}

// ClaimsOf returns the claims that a pod uses, according to the pod and to the claims.
func (c *Cluster) ClaimsOf(pod *corev1.Pod) []*resourceapi.ResourceClaim {
	found := map[*resourceapi.ResourceClaim]bool{}
	add := func(name *string) {
		if name == nil {
			return
		}
		if claim := c.snap.Claim(pod.Namespace, *name); claim != nil {
			found[claim] = true
		}
	}
	for i := range pod.Spec.ResourceClaims {
		add(pod.Spec.ResourceClaims[i].ResourceClaimName)
	}
	for i := range pod.Status.ResourceClaimStatuses {
		add(pod.Status.ResourceClaimStatuses[i].ResourceClaimName)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		add(&extended.ResourceClaimName)
	}
	for _, claim := range c.snap.Claims {
		if claim.Namespace == pod.Namespace && ReservedFor(claim, pod) {
			found[claim] = true
		}
	}
	claims := make([]*resourceapi.ResourceClaim, 0, len(found))
	for claim := range found {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b *resourceapi.ResourceClaim) int { return cmp.Compare(a.Name, b.Name) })
	return claims
}

// Needed reports whether a pod of the node uses the claim and is not being deleted: a pod
// that is being deleted may have released it.
func (c *Cluster) Needed(claim *resourceapi.ResourceClaim) bool {
	return c != nil && slices.ContainsFunc(c.Pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && pod.Namespace == claim.Namespace && slices.Contains(c.ClaimsOf(pod), claim)
	})
}

// ReservedFor reports whether a claim is reserved for this very pod.
func ReservedFor(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return consumer.APIGroup == "" && consumer.Resource == "pods" && consumer.UID == pod.UID
	})
}

// Claim finds a claim by its UID; nil if there is none, or if there is no
// cluster.
func (c *Cluster) Claim(uid string) *resourceapi.ResourceClaim {
	if c == nil {
		return nil
	}
	return c.byUID[uid]
}

// ClaimNamed finds a claim by its name.
func (c *Cluster) ClaimNamed(namespace, name string) *resourceapi.ResourceClaim {
	if c == nil {
		return nil
	}
	return c.snap.Claim(namespace, name)
}

// Pod finds a pod of the whole cluster by its name.
func (c *Cluster) Pod(namespace, name string) *corev1.Pod {
	if c == nil {
		return nil
	}
	return c.snap.Pod(namespace, name)
}

// PodByUID finds a pod of the whole cluster by its UID.
func (c *Cluster) PodByUID(uid string) *corev1.Pod {
	if c == nil {
		return nil
	}
	for _, pod := range c.snap.Pods {
		if string(pod.UID) == uid {
			return pod
		}
	}
	return nil
}

// Missing says why a claim or pod of that namespace may exist although it was not found;
// empty if it does not exist. An empty namespace stands for all of them.
func (c *Cluster) Missing(resource, namespace string) string {
	if c == nil {
		return "no cluster was read"
	}
	gap := c.snap.Gap(resource)
	if gap == nil || gap.Namespace != "" && gap.Namespace == namespace {
		return ""
	}
	return resource + " could not all be read: " + gap.Reason
}

// MissingHere is like Missing, for objects bound to the node.
func (c *Cluster) MissingHere(resource, namespace string) string {
	if c != nil && c.Node == "" {
		return c.Unknown
	}
	return c.Missing(resource, namespace)
}

// maxProcFile is far more than the size of a file about the control groups of a process.
const maxProcFile = 64 << 10

// PodOf returns the UID of the pod that a process of the node is in; empty if it is in none,
// has ended, or is only in another PID namespace.
func (h *Host) PodOf(pid int) string {
	groups, err := h.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid), maxProcFile)
	if err != nil {
		return ""
	}
	pod := regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:[./]|$)`)
	for line := range strings.Lines(string(groups)) {
		// The systemd driver writes the UID with underscores.
		if found := pod.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			return strings.ReplaceAll(found[1], "_", "-")
		}
	}
	return ""
}

// PodOfServer returns the UID of the pod whose process listens at a socket; empty if it is
// in none, or if that is not known. inside is as for [Host.Dial].
func (h *Host) PodOfServer(ctx context.Context, path, inside string) string {
	conn, err := h.connect(ctx, path, inside)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	pid := peer(conn)
	if pid == 0 {
		return ""
	}
	return h.PodOf(pid)
}
