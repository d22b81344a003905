// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ShapeFor finds a target and returns its shape, see [ShapeOf]. It fails with a
// [*explain.TargetError] if there is no such target, or if it has no claims.
func ShapeFor(c *cluster.Cluster, options target.Options) (*Shape, *snapshot.Snapshot, error) {
	found, err := target.Find(c, options)
	if err != nil {
		return nil, nil, err
	}
	if len(found.Claims) == 0 {
		return nil, nil, &explain.TargetError{Target: found.Object, Message: found.Object.Title() + " has no claims that copies could be made of"}
	}
	shape, snap := ShapeOf(c.Snapshot, found)
	return shape, snap, nil
}

// ShapeOf returns the shape of a target: a pod like its pod, or for a claim or a template a
// pod with a claim like that. The snapshot that is returned has what the shape needs.
func ShapeOf(snap *snapshot.Snapshot, t *target.Target) (*Shape, *snapshot.Snapshot) {
	if t.Pod != nil && t.Object.Kind != api.KindClaim {
		shape := &Shape{Target: t.Object, One: "copy of " + t.Object.Title(), Several: "copies of " + t.Object.Title(), Pod: copyOf(t.Pod)}
		if group := target.GroupOf(t.Pod); group != "" {
			shape.Assumption = fmt.Sprintf("copies are counted one by one, without PodGroup %s", group)
		}
		return shape, snap
	}
	spec := t.Claims[0].Claim.Spec
	shape, after := ShapeOfClaims(snap, t.Object.Namespace, t.Object.Name, &spec)
	shape.Target = t.Object
	shape.One, shape.Several = "claim like "+t.Object.Title(), "claims like "+t.Object.Title()
	return shape, after
}

// ShapeOfClaims returns the shape of claims with a spec, each for a pod that needs nothing
// else.
func ShapeOfClaims(snap *snapshot.Snapshot, namespace, name string, spec *resourceapi.ResourceClaimSpec) (*Shape, *snapshot.Snapshot) {
	// No object in a cluster can have such a name.
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-…"}}
	template.Spec.Spec = *spec
	after := *snap
	after.Templates = append(append([]*resourceapi.ResourceClaimTemplate{}, snap.Templates...), template)
	snapshot.SortByName(after.Templates)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-…"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To(template.Name)}}
	return &Shape{Target: api.Ref(api.KindClaim, namespace, ""), One: "claim", Several: "claims", Pod: pod, Claims: true}, &after
}

// ClassShape describes claims for devices of a class.
type ClassShape struct {
	// Class is the DeviceClass, Count is how many devices each claim is for.
	Class string
	Count int64
	// Where is a CEL expression that the devices have to match, Same an attribute that the devices
	// of a claim must have in common; both may be empty.
	Where, Same string
}

// ShapeOfClass returns the shape of claims for devices of a class.
func ShapeOfClass(snap *snapshot.Snapshot, namespace string, of ClassShape) (*Shape, *snapshot.Snapshot) {
	shape, after := ShapeOfClaims(snap, namespace, "copy", of.claim())
	what := "for " + english.Count(int(of.Count), "device")
	if of.Same != "" {
		what += " with the same " + of.Same
	}
	what += " of class " + of.Class
	if of.Where != "" {
		what += " where " + of.Where
	}
	shape.One, shape.Several = "claim "+what, "claims "+what
	return shape, after
}

func (c *ClassShape) claim() *resourceapi.ResourceClaimSpec {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: c.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: c.Count}
	if c.Where != "" {
		exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: c.Where}}}
	}
	spec := &resourceapi.ResourceClaimSpec{}
	// Reasons name the request: users know it by its class.
	spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: c.Class, Exactly: exactly}}
	if c.Same != "" {
		attribute := resourceapi.FullyQualifiedName(c.Same)
		spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
	}
	return spec
}

// copyOf returns a pod as it would be created once more, without the rest of its PodGroup.
func copyOf(pod *corev1.Pod) *corev1.Pod {
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences,
	}, Spec: *pod.Spec.DeepCopy()}
	made.Spec.NodeName = ""
	made.Spec.SchedulingGates = nil
	made.Spec.SchedulingGroup = nil
	return made
}

// Constrain makes the devices of each claim that a copy has to itself have an attribute in common,
// besides what its claims ask, and returns the snapshot with the templates for that. It fails with a
// [*explain.TargetError] if copies have no claims to themselves.
func (s *Shape) Constrain(snap *snapshot.Snapshot, attribute string) (*snapshot.Snapshot, error) {
	name := resourceapi.FullyQualifiedName(attribute)
	after := *snap
	after.Templates = slices.Clone(snap.Templates)
	s.Pod = s.Pod.DeepCopy()
	constrained := 0
	for i := range s.Pod.Spec.ResourceClaims {
		entry := &s.Pod.Spec.ResourceClaims[i]
		if entry.ResourceClaimTemplateName == nil {
			continue
		}
		constrained++
		template := snap.Template(s.Pod.Namespace, *entry.ResourceClaimTemplateName)
		if template == nil {
			continue
		}
		template = template.DeepCopy()
		// No object in a cluster can have such a name.
		template.Name += "-…same"
		template.Spec.Spec.Devices.Constraints = append(template.Spec.Spec.Devices.Constraints, resourceapi.DeviceConstraint{MatchAttribute: &name})
		if entry.ResourceClaimTemplateName = &template.Name; snap.Template(template.Namespace, template.Name) == nil {
			after.Templates = append(after.Templates, template)
		}
	}
	if constrained == 0 {
		return nil, &explain.TargetError{Target: s.Target, Message: s.Target.Title() + " has no claim made from a template, to which a constraint could be added"}
	}
	snapshot.SortByName(after.Templates)
	s.One += " with the same " + attribute
	s.Several += " with the same " + attribute
	return &after, nil
}
