// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func sliceNode(slice *resourceapi.ResourceSlice) string { return ptr.Deref(slice.Spec.NodeName, "") }

// WithPreview returns a snapshot as [Snapshot.With] does, in which drivers have
// published the slices of a preview and nothing else in the same pools and for
// the same nodes, whatever the generation: a driver that comes up on a node
// removes what it does not publish. The slices are marked, see
// [Assumptions]. Nodes that the snapshot does not have are
// assumed; where it has none at all, the allocator does that.
func WithPreview(s, preview *Snapshot) *Snapshot {
	pools, nodes, names := map[PoolID]PoolID{}, map[PoolID]PoolID{}, map[string]PoolID{}
	upper := &Snapshot{}
	for _, slice := range preview.Slices {
		pool := PoolOf(slice)
		pools[pool], names[slice.Name] = pool, pool
		node := sliceNode(slice)
		if node == "" {
			continue
		}
		nodes[PoolID{Driver: slice.Spec.Driver, Name: node}] = pool
		if len(s.Nodes) > 0 && s.Node(node) == nil {
			upper.Nodes = append(upper.Nodes, missingNode(node))
		}
	}
	upper.Nodes = slices.CompactFunc(upper.Nodes, func(a, b *corev1.Node) bool { return a.Name == b.Name })
	lower := *s
	lower.Slices = nil
	replaced := map[PoolID][]string{}
	for _, slice := range s.Slices {
		by, found := pools[PoolOf(slice)]
		if !found && sliceNode(slice) != "" {
			by, found = nodes[PoolID{Driver: slice.Spec.Driver, Name: sliceNode(slice)}]
		}
		if !found {
			by, found = names[slice.Name]
		}
		switch {
		case !found:
			lower.Slices = append(lower.Slices, slice)
		case isPreview(slice):
			// What an earlier preview has replaced is what was published.
			published, _ := Annotated(slice, ReplacedAnnotation)
			replaced[by] = append(replaced[by], published...)
		default:
			replaced[by] = append(replaced[by], slice.Name)
		}
	}
	for _, slice := range preview.Slices {
		marked := *slice
		if !isPreview(&marked) {
			Annotate(&marked, PreviewAnnotation, nil)
		}
		if names := replaced[PoolOf(slice)]; len(names) > 0 {
			Annotate(&marked, ReplacedAnnotation, names)
			delete(replaced, PoolOf(slice))
		}
		upper.Slices = append(upper.Slices, &marked)
	}
	lower.PoolStatuses = withoutPools(s.PoolStatuses, pools)
	lower.Gaps = slices.Clone(s.Gaps)
	for i := range lower.Gaps {
		gap := &lower.Gaps[i]
		if gap.Resource == ResourceSlices && !slices.ContainsFunc(s.Slices, func(slice *resourceapi.ResourceSlice) bool { return isPreview(slice) }) {
			gap.Reason += " apart from those of the preview"
		}
	}
	return lower.With(upper)
}

// missingNode returns a node of which only the name is known.
func missingNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{corev1.LabelHostname: name},
		Annotations: map[string]string{PreviewAnnotation: ""},
	}}
}

// isPreview reports whether an object is none that a cluster has.
func isPreview(object metav1.Object) bool {
	_, found := object.GetAnnotations()[PreviewAnnotation]
	return found
}

// NodeMissing reports whether a node is in the snapshot only because a preview names it, so
// that nothing but its name is known.
func NodeMissing(node *corev1.Node) bool { return isPreview(node) }

// withoutPools takes from what the cluster has counted the pools that are no
// longer the ones it counted.
func withoutPools(requests []*resourcev1alpha3.ResourcePoolStatusRequest, pools map[PoolID]PoolID) []*resourcev1alpha3.ResourcePoolStatusRequest {
	kept := make([]*resourcev1alpha3.ResourcePoolStatusRequest, 0, len(requests))
	for _, request := range requests {
		if request.Status != nil {
			request = request.DeepCopy()
			request.Status.Pools = slices.DeleteFunc(request.Status.Pools, func(status resourcev1alpha3.PoolStatus) bool {
				_, gone := pools[PoolID{Driver: status.Driver, Name: status.PoolName}]
				return gone
			})
		}
		kept = append(kept, request)
	}
	return kept
}

// PreviewedClassDriver names the driver of a preview that brings a DeviceClass, empty
// if none does.
func PreviewedClassDriver(s *Snapshot, class string) (driver string) {
	for _, slice := range s.Slices {
		if classes, _ := Annotated(slice, ClassesAnnotation); isPreview(slice) && slices.Contains(classes, class) {
			return slice.Spec.Driver
		}
	}
	return ""
}

// PreviewAssumptions says, a sentence each, what a snapshot with previews takes
// for granted. It is empty for a snapshot without previews.
func PreviewAssumptions(s *Snapshot) []string {
	previews := map[PoolID][]*resourceapi.ResourceSlice{}
	devices, published := map[PoolID]map[string]bool{}, map[PoolID]bool{}
	for _, slice := range s.Slices {
		pool := PoolOf(slice)
		if !isPreview(slice) {
			published[pool] = true
			continue
		}
		previews[pool] = append(previews[pool], slice)
		if devices[pool] == nil {
			devices[pool] = map[string]bool{}
		}
		for i := range slice.Spec.Devices {
			devices[pool][slice.Spec.Devices[i].Name] = true
		}
	}
	var sentences []string
	pools := slices.SortedFunc(maps.Keys(previews), func(a, b PoolID) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Name, b.Name))
	})
	for _, pool := range pools {
		if published[pool] {
			sentences = append(sentences, fmt.Sprintf("pool %s of %s has slices of a preview beside published ones, which does not happen: lay the preview over them with --with-preview", pool.Name, pool.Driver))
			continue
		}
		sentences = append(sentences, previewAssumption(pool, previews[pool]))
	}
	for _, node := range s.Nodes {
		if isPreview(node) {
			sentences = append(sentences, fmt.Sprintf("node %s is not in the cluster: assumed that it joins the cluster and is suitable for the pod", node.Name))
		}
	}
	for _, pool := range pools {
		if holders := holdersOfMissing(s, pool, devices[pool]); len(holders) > 0 {
			sentences = append(sentences, fmt.Sprintf("the preview of pool %s lacks devices that are allocated to claims, and nothing is counted for these: %s",
				pool.Name, someOf(holders)))
		}
	}
	return sentences
}

// previewAssumption returns what the slices of one pool assume.
func previewAssumption(pool PoolID, list []*resourceapi.ResourceSlice) string {
	after, simulated, node := list[0].Annotations[PreviewAnnotation], "", ""
	var replaced []string
	for _, slice := range list {
		simulated = cmp.Or(simulated, slice.Annotations[SimulatedAnnotation])
		node = cmp.Or(node, sliceNode(slice))
		names, _ := Annotated(slice, ReplacedAnnotation)
		replaced = append(replaced, names...)
	}
	what, taken := "a preview", "assumed that the driver publishes it"
	if simulated != "" {
		what = fmt.Sprintf("a preview of the simulated machine %s", simulated)
	}
	if after != "" {
		what += fmt.Sprintf(" (as by %s)", after)
	}
	if node != "" {
		taken = fmt.Sprintf("assumed that the driver comes up on node %s with it", node)
	}
	if simulated != "" && node != "" {
		taken = fmt.Sprintf("assumed that node %s is such a machine and the driver comes up on it", node)
	}
	if len(replaced) > 0 {
		taken += ", in place of ResourceSlice " + someOf(replaced)
	}
	return fmt.Sprintf("pool %s of %s is %s: %s", pool.Name, pool.Driver, what, taken)
}

// holdersOfMissing lists the claims with devices of a pool that it does not
// have, as "ml/train (gpu-1, gpu-2)".
func holdersOfMissing(s *Snapshot, pool PoolID, devices map[string]bool) []string {
	var holders []string
	for _, claim := range s.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		var missing []string
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if (PoolID{Driver: result.Driver, Name: result.Pool}) == pool && !devices[result.Device] {
				missing = append(missing, result.Device)
			}
		}
		if len(missing) > 0 {
			holders = append(holders, fmt.Sprintf("claim %s/%s (%s)", claim.Namespace, claim.Name, someOf(missing)))
		}
	}
	return holders
}

// someOf names not too many of a list.
func someOf(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
