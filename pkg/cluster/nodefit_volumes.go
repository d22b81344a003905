// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// noProvisioner is the provisioner of a StorageClass without one
// (NotSupportedProvisioner in k8s.io/component-helpers/storage/volume).
const noProvisioner = "kubernetes.io/no-provisioner"

// VolumeUse is a volume of a pod with a PersistentVolumeClaim.
type VolumeUse struct {
	// Volume is the name in the pod's spec.volumes, Name the name of the claim.
	Volume, Name string
	// Ephemeral is true if the claim is made for the pod.
	Ephemeral bool
	// Claim is nil if it does not exist.
	Claim *corev1.PersistentVolumeClaim
}

// VolumesOf lists the volumes of a pod with PersistentVolumeClaims.
func VolumesOf(snap *snapshot.Snapshot, pod *corev1.Pod) []VolumeUse {
	var uses []VolumeUse
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		use := VolumeUse{Volume: volume.Name}
		switch {
		case volume.PersistentVolumeClaim != nil:
			use.Name = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			// k8s.io/component-helpers/storage/ephemeral
			use.Name, use.Ephemeral = pod.Name+"-"+volume.Name, true
		default:
			continue
		}
		use.Claim = snap.VolumeClaim(pod.Namespace, use.Name)
		uses = append(uses, use)
	}
	return uses
}

// VolumeBound reports whether a claim is bound to its volume (isPVCBound in
// pkg/scheduler/framework/plugins/volumebinding/binder.go).
func VolumeBound(claim *corev1.PersistentVolumeClaim) bool {
	_, completed := claim.Annotations[snapshot.BindCompletedAnnotation]
	return claim.Spec.VolumeName != "" && completed
}

// StorageClassOf returns the name of the StorageClass of a claim.
func StorageClassOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[corev1.BetaStorageClassAnnotation]; name != "" || claim.Spec.StorageClassName == nil {
		return name
	}
	return *claim.Spec.StorageClassName
}

// WaitsForConsumer reports whether an unbound claim is bound only when the scheduler has
// found a node for the pod.
func WaitsForConsumer(claim *corev1.PersistentVolumeClaim, class *storageapi.StorageClass) bool {
	return claim.Spec.VolumeName == "" && class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storageapi.VolumeBindingWaitForFirstConsumer
}

// volumeMisfits runs the filters of the plugins volumebinding and volumezone, as far as
// volumes could be read. It ignores the capacity that CSI drivers publish, and the limit of
// volumes of a node.
func volumeMisfits(snap *snapshot.Snapshot, pod *corev1.Pod, node *corev1.Node) []Misfit {
	var misfits []Misfit
	chosen := map[string]bool{}
	for _, use := range VolumesOf(snap, pod) {
		if use.Claim == nil {
			continue
		}
		if VolumeBound(use.Claim) {
			misfits = append(misfits, boundVolumeMisfits(snap, use.Claim, node)...)
			continue
		}
		class := snap.StorageClass(StorageClassOf(use.Claim))
		if !WaitsForConsumer(use.Claim, class) || snap.Unknown(snapshot.ResourceVolumes, "") != "" {
			continue
		}
		if volume := matchingVolume(snap, use.Claim, node, chosen); volume != "" {
			chosen[volume] = true
			continue
		}
		switch {
		case class.Provisioner == "" || class.Provisioner == noProvisioner:
			misfits = append(misfits, Misfit{
				Reason: fmt.Sprintf("no PersistentVolume of StorageClass %s for PersistentVolumeClaim %s can be used on the node", class.Name, use.Name),
				Path:   "metadata.labels", Wanted: "an available PersistentVolume for the node",
			})
		case !matchesTopology(class.AllowedTopologies, node.Labels):
			misfits = append(misfits, Misfit{
				Reason: fmt.Sprintf("StorageClass %s of PersistentVolumeClaim %s makes no volumes for the node: allowedTopologies", class.Name, use.Name),
				Path:   "metadata.labels", Wanted: "allowedTopologies of the StorageClass",
			})
		}
	}
	return misfits
}

func boundVolumeMisfits(snap *snapshot.Snapshot, claim *corev1.PersistentVolumeClaim, node *corev1.Node) []Misfit {
	volume := snap.Volume(claim.Spec.VolumeName)
	if volume == nil {
		return nil
	}
	if !usableOn(volume, node) {
		terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
		return []Misfit{{
			Reason: fmt.Sprintf("PersistentVolume %s of PersistentVolumeClaim %s cannot be used on the node", volume.Name, claim.Name),
			Path:   "metadata.labels", Found: labelsFor(terms, node), Wanted: describeTerms(terms),
		}}
	}
	return zoneMisfits(volume, claim, node)
}

// zoneMisfits implements the filter of the plugin volumezone: the labels of a volume have
// to be on the node, if the node has labels of a zone or region.
func zoneMisfits(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, node *corev1.Node) []Misfit {
	stable := map[string]string{
		corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelTopologyRegion: corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	}
	located := false
	for key := range stable {
		_, found := node.Labels[key]
		located = located || found
	}
	if !located {
		return nil
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
		value, found := volume.Labels[key]
		if !found {
			continue
		}
		here, labeled := node.Labels[key]
		if !labeled {
			here = node.Labels[stable[key]]
		}
		// Several zones are separated by two underscores.
		if !slices.Contains(strings.Split(value, "__"), here) {
			return []Misfit{{
				Reason: fmt.Sprintf("PersistentVolume %s of PersistentVolumeClaim %s is in another zone", volume.Name, claim.Name),
				Path:   labelPath(key), Found: here, Wanted: value,
			}}
		}
	}
	return nil
}

// usableOn reports whether the node affinity of a volume allows the node.
func usableOn(volume *corev1.PersistentVolume, node *corev1.Node) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	return err == nil && selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}})
}

// matchingVolume finds an existing volume for a claim that waits for its first consumer
// (FindMatchingVolume in k8s.io/component-helpers/storage/volume).
func matchingVolume(snap *snapshot.Snapshot, claim *corev1.PersistentVolumeClaim, node *corev1.Node, chosen map[string]bool) string {
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	if err != nil || claim.Spec.Selector == nil {
		selector = labels.Everything()
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, volume := range snap.Volumes {
		size := volume.Spec.Capacity[corev1.ResourceStorage]
		reserved := volume.Spec.ClaimRef
		switch {
		case chosen[volume.Name], volume.DeletionTimestamp != nil,
			reserved != nil && (reserved.Namespace != claim.Namespace || reserved.Name != claim.Name || reserved.UID != "" && reserved.UID != claim.UID),
			reserved == nil && volume.Status.Phase != corev1.VolumeAvailable,
			classOfVolume(volume) != StorageClassOf(claim), size.Cmp(wanted) < 0,
			volumeMode(volume.Spec.VolumeMode) != volumeMode(claim.Spec.VolumeMode),
			!hasModes(volume.Spec.AccessModes, claim.Spec.AccessModes),
			!selector.Matches(labels.Set(volume.Labels)), !usableOn(volume, node):
			continue
		}
		return volume.Name
	}
	return ""
}

func classOfVolume(volume *corev1.PersistentVolume) string {
	return cmp.Or(volume.Annotations[corev1.BetaStorageClassAnnotation], volume.Spec.StorageClassName)
}

func volumeMode(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

func hasModes(has, wanted []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(wanted, func(mode corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(has, mode) })
}

// matchesTopology reports whether a node matches, as MatchTopologySelectorTerms of
// pkg/apis/core/v1/helper does: no term at all matches every node.
func matchesTopology(terms []corev1.TopologySelectorTerm, found map[string]string) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		return len(term.MatchLabelExpressions) > 0 && !slices.ContainsFunc(term.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
			value, exists := found[r.Key]
			return !exists || !slices.Contains(r.Values, value)
		})
	})
}
