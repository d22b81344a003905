// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Trees shows what belongs to an object, and what that belongs to.
type Trees struct{ v *Inventory }

// Trees returns the trees of the objects that the inventory has.
func (v *Inventory) Trees() Trees { return Trees{v} }

// Pod shows the claims of a pod, and their devices.
func (t Trees) Pod(pod *corev1.Pod) api.Branch {
	root := podBranch(pod)
	for _, pc := range t.v.cluster.Claims.OfPod(pod) {
		if pc.Claim == nil {
			root.Branches = append(root.Branches, api.Branch{Of: "ResourceClaim", Namespace: pod.Namespace, Name: pc.Entry, Notes: []string{problemText(pc.Problem)}})
			continue
		}
		if pc.Generated {
			root.Branches = append(root.Branches, api.Branch{
				Of: "ResourceClaim", Namespace: pod.Namespace, Name: pc.Entry,
				Notes: []string{"not made yet"}, Branches: t.belowClaim(pc.Claim),
			})
			continue
		}
		root.Branches = append(root.Branches, t.claimDown(pc.Claim))
	}
	return root
}

func problemText(err error) string {
	if err == nil {
		return "not made yet"
	}
	return err.Error()
}

// Claim shows the devices of a claim, and the pods that use it.
func (t Trees) Claim(claim *resourceapi.ResourceClaim) api.Branch {
	root := t.claimDown(claim)
	root.Branches = append(root.Branches, claimPods(t.v.cluster, claim)...)
	return root
}

// Device shows where a device is from, and who has it.
func (t Trees) Device(d *cluster.Device) api.Branch {
	root := t.deviceBranch(d)
	root.Name = d.ID.String()
	root.Branches = append([]api.Branch{sliceBranch(d)}, holderBranches(t.v.eligible, d)...)
	return root
}

// Node shows the extended resources of a node, the pools that are for it
// alone, their devices, and who has them, and the pools for several nodes that
// it can reach. It fails only if ctx is done or the
// node selector of a slice cannot be parsed.
func (t Trees) Node(ctx context.Context, name string) (api.Branch, error) {
	root := nodeBranch(t.v.cluster, name)
	if node := t.v.cluster.Snapshot.Node(name); node != nil {
		var err error
		if root.Branches, err = t.resourceBranches(ctx, node, selections{}); err != nil {
			return root, err
		}
	}
	for _, pool := range t.v.cluster.Pools.All() {
		branch := t.Pool(pool, func(d *cluster.Device) bool { node, _ := deviceScope(d); return node == name })
		if len(branch.Branches) > 0 {
			root.Branches = append(root.Branches, branch)
		}
	}
	others, err := reachedBy(t.v.cluster, name)
	for _, pool := range others {
		root.Branches = append(root.Branches, reachedBranch(t.v.eligible, t.v.notRead, pool))
	}
	return root, err
}

// Pool shows the devices of a pool that are wanted, nil for all, and who
// has them.
func (t Trees) Pool(pool *cluster.Pool, wanted func(d *cluster.Device) bool) api.Branch {
	root := api.Branch{Of: "Pool", Name: pool.Driver + "/" + pool.Name}
	if state, reason := poolState(t.v.eligible, pool, 1); state != api.PoolStateUsable {
		root.Notes = append(root.Notes, string(state), reason)
	}
	for _, d := range devicesOf(pool) {
		if wanted != nil && !wanted(&d) {
			continue
		}
		branch := t.deviceBranch(&d)
		branch.Branches = holderBranches(t.v.eligible, &d)
		root.Branches = append(root.Branches, branch)
	}
	return root
}

// Class shows the extended resources that a class stands for, node by node,
// and the claims that ask for it, with their devices. It fails for the same
// reasons as [Trees.Node].
func (t Trees) Class(ctx context.Context, class *resourceapi.DeviceClass) (api.Branch, error) {
	root := api.Branch{Of: "DeviceClass", Name: class.Name}
	resources, err := resourceFinder{t.v.eligible, selections{}}.of(ctx, class)
	if err != nil {
		return root, err
	}
	for i := range resources {
		root.Branches = append(root.Branches, resourceBranch(&resources[i]))
	}
	for _, claim := range t.v.cluster.Snapshot.Claims {
		if asksFor(claim, class.Name) {
			root.Branches = append(root.Branches, t.Claim(claim))
		}
	}
	return root, nil
}

// resourceBranches returns the extended resources of a node: the resources that device
// plugins serve, and the resources of classes with devices for the node.
func (t Trees) resourceBranches(ctx context.Context, node *corev1.Node, known selections) ([]api.Branch, error) {
	names := t.v.cluster.Nodes.ExtendedResourcesOf(node)
	for _, class := range t.v.cluster.Snapshot.Classes {
		if name := corev1.ResourceName(ptr.Deref(class.Spec.ExtendedResourceName, "")); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var branches []api.Branch
	for _, name := range names {
		on, err := resourceFinder{t.v.eligible, known}.on(ctx, node, name)
		if err != nil {
			return nil, err
		}
		if on.Devices == 0 && !concerned(t.v.cluster, node, name) {
			continue
		}
		var notes []string
		if class := t.v.cluster.Claims.ClassOf(name); class != nil {
			notes = ResourceNotes(&on, class.Name)
		} else if class = classNaming(t.v.cluster, name); class != nil {
			notes = append(ResourceNotes(&on, ""), fmt.Sprintf("DeviceClass %s names it: %s", class.Name, unserved(t.v.cluster, class, name)))
		} else {
			notes = append(ResourceNotes(&on, ""), "no DeviceClass serves it")
		}
		branches = append(branches, api.Branch{Of: "ExtendedResource", Name: string(name), Notes: notes, Resource: &on})
	}
	return branches, nil
}

// resourceBranch returns an extended resource with the nodes that have some.
func resourceBranch(resource *api.ExtendedResource) api.Branch {
	b := api.Branch{Of: "ExtendedResource", Name: resource.Name}
	serves := resource.Class
	if resource.Problem != "" {
		b.Notes, serves = []string{resource.Problem}, ""
	}
	for i := range resource.Nodes {
		on := &resource.Nodes[i]
		b.Branches = append(b.Branches, api.Branch{Of: "Node", Name: on.Node, Notes: ResourceNotes(on, serves), Resource: on})
	}
	return b
}

// asksFor reports whether a claim has a request for a class.
func asksFor(claim *resourceapi.ResourceClaim, class string) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.DeviceClassName == class ||
			slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return s.DeviceClassName == class })
	})
}

func podBranch(pod *corev1.Pod) api.Branch {
	b := api.Branch{Of: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	if pod.Status.Phase != "" {
		b.Notes = append(b.Notes, string(pod.Status.Phase))
	}
	if pod.Spec.NodeName != "" {
		b.Notes = append(b.Notes, "on "+pod.Spec.NodeName)
	}
	if pod.DeletionTimestamp != nil {
		b.Notes = append(b.Notes, "being deleted")
	}
	return b
}

func claimBranch(eligible *eligibility.Devices, claim *resourceapi.ResourceClaim) api.Branch {
	b := api.Branch{Of: "ResourceClaim", Namespace: claim.Namespace, Name: claim.Name, Notes: []string{string(claimState(claim))}}
	for _, flag := range claimFlags(eligible, claim) {
		// These are shown with the device.
		if flag.Name != api.FlagDeviceCondition && flag.Name != api.FlagDeviceUnhealthy {
			b.Notes = append(b.Notes, flag.Message)
		}
	}
	for _, a := range AlignmentOf(eligible.Facts, claim) {
		b.Notes = append(b.Notes, AlignmentText(&a))
	}
	return b
}

func (t Trees) claimDown(claim *resourceapi.ResourceClaim) api.Branch {
	b := claimBranch(t.v.eligible, claim)
	b.Branches = t.belowClaim(claim)
	return b
}

func (t Trees) belowClaim(claim *resourceapi.ResourceClaim) []api.Branch {
	return append(t.requestBranches(claim), domainBranches(t.v.cluster.Snapshot, claim)...)
}

// domainBranches returns the ComputeDomains that a claim names, with their nodes.
func domainBranches(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) []api.Branch {
	var branches []api.Branch
	for _, domain := range lifecycle.DescribeDomains(snap, claim) {
		b := api.Branch{Of: snapshot.KindComputeDomain, Namespace: domain.Namespace, Name: cmp.Or(domain.Name, domain.ID, "?"), Uncertain: domain.Name == "" && domain.Unknown != ""}
		if domain.Name != "" {
			b.Notes = append(b.Notes, cmp.Or(domain.Status, "no status"), lifecycle.DomainProgress(domain.JoinedNodes, domain.ReadyNodes, domain.NumNodes))
		}
		for _, note := range []string{domain.Problem, domain.Unknown} {
			if note != "" {
				b.Notes = append(b.Notes, note)
			}
		}
		for _, node := range domain.Nodes {
			below := api.Branch{Of: "Node", Name: node.Name, Notes: []string{cmp.Or(node.Status, "has not joined")}}
			if node.Clique != "" {
				below.Notes = append(below.Notes, "clique "+node.Clique)
			} else if node.Status != "" {
				below.Notes = append(below.Notes, "no clique")
			}
			if node.Daemon.Name != "" {
				below.Notes = append(below.Notes, "daemon "+node.Daemon.QualifiedName())
			}
			b.Branches = append(b.Branches, below)
		}
		branches = append(branches, b)
	}
	return branches
}

func claimPods(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) []api.Branch {
	var branches []api.Branch
	for _, pod := range facts.Claims.Users(claim.Namespace, claim.Name) {
		branches = append(branches, podBranch(pod))
	}
	return branches
}

func (t Trees) requestBranches(claim *resourceapi.ResourceClaim) []api.Branch {
	var branches []api.Branch
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		b := api.Branch{Of: "Request", Name: r.Name, Notes: []string{requestNote(r)}}
		if use, ok := extendedUse(t.v.cluster, claim, r.Name); ok {
			b.Notes = append(b.Notes, fmt.Sprintf("%s of container %s", use.ResourceName, use.ContainerName))
		}
		if allocation := claim.Status.Allocation; allocation != nil {
			for j := range allocation.Devices.Results {
				result := &allocation.Devices.Results[j]
				if resourceclaim.BaseRequestRef(result.Request) == r.Name {
					b.Branches = append(b.Branches, t.resultBranch(claim, result))
				}
			}
		}
		branches = append(branches, b)
	}
	return branches
}

func requestNote(r *resourceapi.DeviceRequest) string {
	exact := r.Exactly
	if exact == nil {
		names := make([]string, 0, len(r.FirstAvailable))
		for i := range r.FirstAvailable {
			names = append(names, r.FirstAvailable[i].Name)
		}
		return "first available of " + strings.Join(names, ", ")
	}
	note := fmt.Sprintf("%d of class %s", max(exact.Count, 1), exact.DeviceClassName)
	if exact.AllocationMode == resourceapi.DeviceAllocationModeAll {
		note = "all of class " + exact.DeviceClassName
	}
	if ptr.Deref(exact.AdminAccess, false) {
		note += ", admin access"
	}
	return note
}

// resultBranch returns an allocated device with its slice and node.
func (t Trees) resultBranch(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) api.Branch {
	id := deviceID(result)
	d := t.v.cluster.Pools.Device(id)
	if d == nil {
		b := api.Branch{Of: "Device", Name: id.String()}
		if t.v.cluster.Snapshot.Gap(snapshot.ResourceSlices) == nil {
			b.Notes = []string{"no ResourceSlice has it any more"}
		}
		return b
	}
	b := t.deviceBranch(d)
	b.Name = id.String()
	b.Notes = append(b.Notes, resultNotes(claim, result)...)
	b.Branches = []api.Branch{sliceBranch(d)}
	return b
}

// resultNotes tell what a claim has of a device, and what the driver says.
func resultNotes(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) []string {
	var notes []string
	if resourceclaim.IsSubRequestRef(result.Request) {
		notes = append(notes, "for "+result.Request)
	}
	if ptr.Deref(result.AdminAccess, false) {
		notes = append(notes, "admin access")
	}
	consumed := quantities(result.ConsumedCapacity)
	names := make([]string, 0, len(consumed))
	for name := range consumed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		notes = append(notes, name+"="+consumed[name])
	}
	status := StatusOf(claim, result)
	if status == nil {
		return notes
	}
	if status.Interface != "" {
		notes = append(notes, strings.TrimSpace("interface "+status.Interface+" "+strings.Join(status.IPs, " ")))
	}
	if status.HardwareAddress != "" {
		notes = append(notes, status.HardwareAddress)
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		note := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if slices.Contains(status.Odd, c.Type) {
			note = ConditionText(c)
		}
		notes = append(notes, note)
	}
	return notes
}

func (t Trees) deviceBranch(d *cluster.Device) api.Branch {
	b := api.Branch{Of: "Device", Name: d.ID.Device}
	state, reason := deviceState(t.v.eligible, d)
	b.Uncertain = t.v.notRead.uncertain(state)
	if b.Uncertain {
		b.Notes = append(b.Notes, string(state)+"?")
	} else {
		b.Notes = append(b.Notes, string(state))
	}
	if reason != "" {
		b.Notes = append(b.Notes, reason)
	}
	if health, message := healthOf(t.v.cluster, d); health != "" && health != string(corev1.ResourceHealthStatusHealthy) {
		b.Notes = append(b.Notes, health+after(": ", message))
	}
	if state == api.DeviceStateTainted {
		return b
	}
	for _, taint := range d.Taints {
		b.Notes = append(b.Notes, "taint "+taint.String())
	}
	return b
}

// sliceBranch returns the slice of a device, with its node.
func sliceBranch(d *cluster.Device) api.Branch {
	b := api.Branch{Of: "ResourceSlice", Name: d.Slice.Name}
	node, scope := deviceScope(d)
	if node != "" {
		b.Branches = []api.Branch{{Of: "Node", Name: node}}
	} else {
		b.Notes = []string{"for " + scope}
	}
	return b
}

// holderBranches returns the claims that have a device, with their pods.
func holderBranches(eligible *eligibility.Devices, d *cluster.Device) []api.Branch {
	var branches []api.Branch
	for _, holder := range eligible.Facts.Usage.Holders(d.ID) {
		b := claimBranch(eligible, holder.Claim)
		b.Notes = append(b.Notes, resultNotes(holder.Claim, holder.Result)...)
		b.Branches = claimPods(eligible.Facts, holder.Claim)
		branches = append(branches, b)
	}
	return branches
}

func nodeBranch(facts *cluster.Cluster, name string) api.Branch {
	b := api.Branch{Of: "Node", Name: name}
	switch node := facts.Snapshot.Node(name); {
	case node == nil && nodeGone(facts, name):
		b.Notes = []string{"does not exist"}
	case notReady(node):
		b.Notes = []string{"not ready"}
	}
	return b
}

// UncertainTree reports whether something in a tree is not certain.
func UncertainTree(tree api.Branch) bool {
	return tree.Uncertain || slices.ContainsFunc(tree.Branches, UncertainTree)
}

// reached are the devices of a pool that a node can reach, and others, too.
type reached struct {
	pool    *cluster.Pool
	devices []cluster.Device
}

// reachedBy lists by pool the devices for several nodes that a node can reach.
// It lists none for a node that is not known. It fails if the node selector of a
// slice cannot be parsed.
func reachedBy(facts *cluster.Cluster, name string) ([]reached, error) {
	node := facts.Snapshot.Node(name)
	if node == nil {
		return nil, nil
	}
	pools, err := facts.Pools.For(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools that node %s can reach: %w", name, err)
	}
	var list []reached
	for _, pool := range pools {
		var devices []cluster.Device
		for i := range pool.Devices {
			if alone, _ := deviceScope(&pool.Devices[i]); alone == "" {
				devices = append(devices, pool.Devices[i])
			}
		}
		if len(devices) > 0 {
			list = append(list, reached{pool.Pool, devices})
		}
	}
	return list, nil
}

// Reached counts the devices for several nodes that a node can reach. It fails
// if the node selector of a slice cannot be parsed.
func (v *Inventory) Reached(node string) (devices int, err error) {
	pools, err := reachedBy(v.cluster, node)
	for _, pool := range pools {
		devices += len(pool.devices)
	}
	return devices, err
}

// reachedBranch returns a pool for several nodes, without its devices.
func reachedBranch(eligible *eligibility.Devices, notRead notRead, pool reached) api.Branch {
	_, scope := deviceScope(&pool.devices[0])
	free, uncertain := 0, false
	for i := range pool.devices {
		if _, other := deviceScope(&pool.devices[i]); other != scope {
			scope = "several nodes"
		}
		if state, _ := deviceState(eligible, &pool.devices[i]); state == api.DeviceStateFree {
			free++
			uncertain = uncertain || notRead.uncertain(state)
		}
	}
	mark := ""
	if uncertain {
		mark = "≤"
	}
	return api.Branch{
		Of: "Pool", Name: pool.pool.Driver + "/" + pool.pool.Name, Uncertain: uncertain,
		Notes: []string{"for " + scope, fmt.Sprintf("%d devices, %s%d free", len(pool.devices), mark, free)},
	}
}

// NodeNames returns the names of all nodes, and of nodes that only slices name.
func (v *Inventory) NodeNames() []string {
	known := map[string]bool{}
	var names []string
	add := func(name string) {
		if name != "" && !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, node := range v.cluster.Snapshot.Nodes {
		add(node.Name)
	}
	for _, d := range v.cluster.Pools.Devices() {
		name, _ := deviceScope(&d)
		add(name)
	}
	return names
}
