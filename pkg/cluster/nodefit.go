// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Fit runs the scheduler's filters that only need the pod, the node and the pods on it:
// nodeunschedulable, nodename, tainttoleration, nodeaffinity, nodeports and noderesources.
// It returns all misfits, nil if there are none, beginning with the pod's own selection of
// nodes: if that fails, nothing else about the node matters. If pods could not be read, the
// misfits are certain, but there may be more. For the rest see [Nodes.NotModelled]. Of
// nodes that were made up (see [Nodes.All] and [snapshot.NodeMissing]) only the name is
// compared.
func (n *Nodes) Fit(pod *corev1.Pod, node *corev1.Node) []Misfit {
	original := pod
	pod = defaultedPod(pod)
	var misfits []Misfit
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		misfits = append(misfits, Misfit{
			Filter: FilterNodeName, Reason: "the pod requires another node by name",
			Path: "metadata.name", Found: node.Name, Wanted: pod.Spec.NodeName,
		})
	}
	if n.madeUp() || snapshot.NodeMissing(node) {
		return misfits
	}
	misfits = append(misfits, affinityMisfits(pod, node)...)
	misfits = append(misfits, n.taintMisfits(pod, node)...)
	usage := n.usageOf(pod, node)
	misfits = append(misfits, portMisfits(pod, usage)...)
	misfits = append(misfits, n.resourceMisfits(pod, node, usage)...)
	misfits = append(misfits, volumeMisfits(n.snap, pod, node)...)
	near := n.neighborsOf(original)
	misfits = append(misfits, spreadMisfits(near.spread, node)...)
	return append(misfits, near.podAffinityMisfits(node)...)
}

func (n *Nodes) taintMisfits(pod *corev1.Pod, node *corev1.Node) []Misfit {
	var misfits []Misfit
	tolerated := func(taint corev1.Taint) bool {
		return schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, &taint, n.gates.tolerationOperators)
	}
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if cordoned := Cordoned(node); cordoned != nil && !tolerated(unschedulable) {
		misfits = append(misfits, Misfit{
			Filter: FilterUnschedulable, Reason: cordoned.Reason, Condition: cordoned,
			Path: "spec.unschedulable", Found: "true", Wanted: "false",
		})
	}
	for i, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		// Cordoning a node sets both the field and this taint.
		if tolerated(taint) || node.Spec.Unschedulable && taint.MatchTaint(&unschedulable) {
			continue
		}
		misfit := Misfit{
			Filter: FilterTaint, Taint: taint, Reason: "node taint " + taint.ToString(),
			Path: fmt.Sprintf("spec.taints[%d]", i), Found: taint.ToString(), Wanted: "a toleration in the pod",
		}
		if condition := conditionOf(node, &taint); condition != nil {
			misfit.Reason, misfit.Condition = condition.Reason, condition
			// One condition sets several taints.
			if slices.ContainsFunc(misfits, func(m Misfit) bool { return m.Reason == misfit.Reason }) {
				continue
			}
		}
		misfits = append(misfits, misfit)
	}
	return misfits
}

func affinityMisfits(pod *corev1.Pod, node *corev1.Node) []Misfit {
	var misfits []Misfit
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		wanted := pod.Spec.NodeSelector[key]
		found, exists := node.Labels[key]
		if exists && found == wanted {
			continue
		}
		misfits = append(misfits, Misfit{
			Filter: FilterNodeSelector, Label: key, Reason: fmt.Sprintf("no label %s=%s, which spec.nodeSelector requires", key, wanted),
			Path: fmt.Sprintf("metadata.labels['%s']", key), Found: found, Wanted: wanted,
		})
	}
	// As in the scheduler, an invalid selector does not match.
	if match, err := nodeaffinity.NewRequiredNodeAffinity(nil, pod.Spec.Affinity).Match(node); err != nil || !match {
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		reason := "the pod's required node affinity does not match"
		if only := snapshot.OnlyNode(terms); only != "" {
			reason = "the pod is only for node " + only
		}
		misfits = append(misfits, Misfit{
			Filter: FilterNodeAffinity, Reason: reason,
			Path: "metadata.labels", Found: labelsFor(terms, node), Wanted: describeTerms(terms),
		})
	}
	return misfits
}

// SelectsByName reports whether a pod selects a node by its name or hostname, and so no
// equivalent node.
func SelectsByName(pod *corev1.Pod, node *corev1.Node) bool {
	if len(pod.Spec.NodeSelector) == 0 && (pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil) {
		return false
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-other", Labels: maps.Clone(node.Labels)}}
	if _, labeled := other.Labels[corev1.LabelHostname]; labeled {
		other.Labels[corev1.LabelHostname] = other.Name
	}
	return len(affinityMisfits(pod, node)) == 0 && len(affinityMisfits(pod, other)) > 0
}

func portMisfits(pod *corev1.Pod, usage *nodeUsage) []Misfit {
	var misfits []Misfit
	for _, wanted := range hostPorts(pod) {
		for _, taken := range usage.ports {
			if !wanted.conflicts(taken) {
				continue
			}
			misfits = append(misfits, Misfit{
				Filter: FilterPorts, User: taken.pod,
				Reason: fmt.Sprintf("host port %d/%s is in use", wanted.port, wanted.protocol),
				Found:  "used by pod " + taken.pod,
				Wanted: "a free host port " + wanted.String(),
			})
			break
		}
	}
	return misfits
}

func (n *Nodes) resourceMisfits(pod *corev1.Pod, node *corev1.Node, usage *nodeUsage) []Misfit {
	var misfits []Misfit
	n.eachResource(pod, node, usage, func(r *resourceNeed) {
		switch {
		case r.want <= r.capacity-r.used:
		case r.name == corev1.ResourcePods:
			misfits = append(misfits, Misfit{
				Filter: FilterPods, Reason: r.reason(),
				Path:        "status.allocatable.pods",
				Found:       fmt.Sprintf("%d pods on the node, allocatable %d", r.used, r.capacity),
				Wanted:      "room for 1 more pod",
				Resource:    corev1.ResourcePods,
				Required:    r.quantity(1),
				Available:   r.quantity(max(0, r.capacity-r.used)),
				Allocatable: r.quantity(r.capacity),
			})
		default:
			required, available, allocatable := r.quantity(r.want), r.quantity(max(0, r.capacity-r.used)), r.quantity(r.capacity)
			misfits = append(misfits, Misfit{
				Filter: FilterResources, Reason: r.reason(),
				Path:     fmt.Sprintf("status.allocatable['%s']", r.name),
				Found:    fmt.Sprintf("%s available of %s", selector.SizeText(available), selector.SizeText(allocatable)),
				Wanted:   required.String(),
				Resource: r.name, Required: required, Available: available, Allocatable: allocatable,
			})
		}
	})
	return misfits
}

// resourceNeed is the amount of a resource that a pod needs, that pods on the node use, and
// that the node has.
type resourceNeed struct {
	name                 corev1.ResourceName
	want, used, capacity int64
	quantity             func(int64) resource.Quantity
}

// reason returns the reason why there is too little of the resource for a pod.
func (r *resourceNeed) reason() string {
	if r.name == corev1.ResourcePods {
		return "no room for another pod"
	}
	return fmt.Sprintf("not enough %s", r.name)
}

// eachResource visits the resources that a pod requests, in a fixed order.
func (n *Nodes) eachResource(pod *corev1.Pod, node *corev1.Node, usage *nodeUsage, visit func(*resourceNeed)) {
	quantity := func(format resource.Format) func(int64) resource.Quantity {
		return func(value int64) resource.Quantity { return *resource.NewQuantity(value, format) }
	}
	allocatable := sumOf(node.Status.Allocatable)
	visit(&resourceNeed{corev1.ResourcePods, 1, usage.pods, allocatable.pods, quantity(resource.DecimalSI)})
	wanted := sumOf(n.gates.podRequests(pod, false))
	compare := func(name corev1.ResourceName, want, used, capacity int64, quantity func(int64) resource.Quantity) {
		if want > 0 {
			visit(&resourceNeed{name, want, used, capacity, quantity})
		}
	}
	compare(corev1.ResourceCPU, wanted.milliCPU, usage.milliCPU, allocatable.milliCPU, func(value int64) resource.Quantity {
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	})
	compare(corev1.ResourceMemory, wanted.memory, usage.memory, allocatable.memory, quantity(resource.BinarySI))
	compare(corev1.ResourceEphemeralStorage, wanted.storage, usage.storage, allocatable.storage, quantity(resource.BinarySI))
	for _, name := range slices.Sorted(maps.Keys(wanted.scalar)) {
		// The claim for extended resources covers resources of a DeviceClass that no device
		// plugin offers.
		if allocatable.scalar[name] == 0 && n.claims.ClassOf(name) != nil {
			continue
		}
		compare(name, wanted.scalar[name], usage.scalar[name], allocatable.scalar[name], quantity(resource.DecimalSI))
	}
}

// Room is the number of equal pods for which a node has enough of a resource.
type Room struct {
	Resource corev1.ResourceName
	Pods     int64
	// Reason is why no further pod can use the node, as in [Misfit.Reason].
	Reason string
}

// RoomFor lists the resources of a node that a pod takes, with the number of further such
// pods, the smallest first. It is empty for nodes of which only the name is known.
func (n *Nodes) RoomFor(pod *corev1.Pod, node *corev1.Node) []Room {
	if n.madeUp() || snapshot.NodeMissing(node) {
		return nil
	}
	pod = defaultedPod(pod)
	var rooms []Room
	n.eachResource(pod, node, n.usageOf(pod, node), func(r *resourceNeed) {
		rooms = append(rooms, Room{r.name, max(0, (r.capacity-r.used)/r.want), r.reason()})
	})
	slices.SortStableFunc(rooms, func(a, b Room) int { return cmp.Compare(a.Pods, b.Pods) })
	return rooms
}

// neighborsOf counts the placed pods for a pod that is not placed. Uncertainty from pods
// that could not be read is left out, see [Nodes.NotModelled].
func (n *Nodes) neighborsOf(pod *corev1.Pod) *neighbors {
	if known, found := n.neighbors.Load(pod); found {
		if near, ok := known.(*neighbors); ok {
			return near
		}
	}
	near := n.countNeighbors(pod)
	n.neighbors.Store(pod, near)
	return near
}

// NotModelled lists, in a few words each, the parts of the scheduler's decision about this
// pod that neither [Nodes.Fit] nor the allocator evaluates: plugins that are not modeled,
// and objects that could not be read.
func (n *Nodes) NotModelled(pod *corev1.Pod) []string {
	parts := n.Unevaluated(pod)
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(!n.seesPodsOf(requiredAffinity(pod), pod.Namespace) && len(requiredAffinity(pod)) > 0, "affinity to pods that could not be read")
	add(!n.seesPodsOf(requiredAntiAffinity(pod), pod.Namespace) && len(requiredAntiAffinity(pod)) > 0, "anti-affinity to pods that could not be read")
	add(!n.seesPodsOf(nil, pod.Namespace) && spreads(pod), "topology spread constraints, since pods could not be read")
	add(selectsNamespaces(pod) && n.snap.Gap(snapshot.ResourceNamespaces) != nil, "the labels of namespaces that its affinity selects, which could not be read")
	add(slices.ContainsFunc(n.snap.Pods, func(p *corev1.Pod) bool {
		return p.Status.NominatedNodeName != "" && p.Spec.NodeName == "" && p.UID != pod.UID
	}), "other pods with a nominated node (status.nominatedNodeName)")
	add(n.snap.Gap(snapshot.ResourcePods) != nil, "what pods that could not be read use")
	add(n.madeUp(), "the nodes' labels, taints and resources, which could not be read")
	return parts
}

// Unevaluated lists what this pod uses and this program never evaluates.
func (n *Nodes) Unevaluated(pod *corev1.Pod) []string {
	var parts []string
	add := func(used bool, part string) {
		if used {
			parts = append(parts, part)
		}
	}
	add(countsVolumes(n.snap, pod), "how many volumes a node can have")
	add(provisions(n.snap, pod), "the storage capacity that is left for new volumes")
	if name := pod.Spec.SchedulingGroup; name != nil && name.PodGroupName != nil {
		group := n.snap.PodGroup(pod.Namespace, *name.PodGroupName)
		add(group != nil && group.Spec.SchedulingConstraints != nil, "the topology constraints of its PodGroup")
		// Without the gate, the scheduler does not look at the parent (podGroupHasParent in
		// pkg/scheduler/backend/queue/workload_forest.go of Kubernetes v1.37.1).
		if group != nil && group.Spec.ParentCompositePodGroupName != nil && n.gates.Enabled("CompositePodGroup") {
			parent := *group.Spec.ParentCompositePodGroupName
			top, _ := n.snap.TopOf(group)
			if why := n.snap.Unknown(snapshot.ResourceCompositePodGroups, pod.Namespace); why != "" && top == nil {
				add(true, fmt.Sprintf("the other groups of CompositePodGroup %s, with which the scheduler places PodGroup %s or none (%s)", parent, group.Name, why))
			}
			for _, composite := range []*schedulingv1alpha3.CompositePodGroup{n.snap.CompositePodGroup(pod.Namespace, parent), top} {
				if composite != nil && composite.Spec.SchedulingConstraints != nil {
					add(true, "the topology constraints of CompositePodGroup "+composite.Name)
					break
				}
			}
		}
	}
	add(pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName, "the rules of scheduler "+pod.Spec.SchedulerName)
	return parts
}

// countsVolumes reports whether the plugin nodevolumelimits looks at the pod: CSI
// drivers say how many of their volumes a node can have.
func countsVolumes(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.CSI != nil }) {
		return true
	}
	return slices.ContainsFunc(VolumesOf(snap, pod), func(use VolumeUse) bool {
		if use.Claim == nil {
			return use.Ephemeral
		}
		volume := snap.Volume(use.Claim.Spec.VolumeName)
		return volume != nil && volume.Spec.CSI != nil || volume == nil && isProvisioned(snap, &use)
	})
}

// provisions reports whether a volume is yet to be made for the pod.
func provisions(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	return slices.ContainsFunc(VolumesOf(snap, pod), func(use VolumeUse) bool { return use.Claim != nil && isProvisioned(snap, &use) })
}

func isProvisioned(snap *snapshot.Snapshot, use *VolumeUse) bool {
	class := snap.StorageClass(StorageClassOf(use.Claim))
	return !VolumeBound(use.Claim) && WaitsForConsumer(use.Claim, class) && class.Provisioner != "" && class.Provisioner != noProvisioner
}

func spreads(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule })
}

func selectsNamespaces(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(requiredAffinity(pod), requiredAntiAffinity(pod)), func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}
