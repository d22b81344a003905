// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Shape is the model of copies.
type Shape struct {
	Target api.ObjectRef
	// One and Several name a copy and copies: "copy of Pod ml/train-0".
	One, Several string
	// Pod is one of them. The snapshot does not have it.
	Pod *corev1.Pod
	// Claims is set if the pod stands for claims alone, so that nothing counts that pods
	// take.
	Claims bool
	// Assumption is an assumption about the copies, empty for none.
	Assumption string
}

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

// CountShape says how many copies of a shape fit, and whether that is as many as are asked
// for. It fails if ctx is done.
func CountShape(ctx context.Context, s *cluster.Cluster, shape *Shape, replicas int) (*api.Fit, error) {
	asker := &explain.Asker{}
	now, err := countIn(ctx, asker, s, shape.Pod, nil, mostCopies(), true)
	if err != nil {
		return nil, err
	}
	later, err := countIn(ctx, asker, released(s), shape.Pod, nil, mostCopies(), false)
	if err != nil {
		return nil, err
	}
	answer := now.asked.Answer
	f := &api.Fit{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Fit"},
		Target:   shape.Target, Replicas: replicas, Allocator: answer.Allocator, Assumptions: answer.Assumptions,
		Now: now.count, Released: later.count, Next: now.next, NodeCount: answer.NodeCount, Nodes: []api.CopyNodes{},
	}
	if shape.Assumption != "" {
		f.Assumptions = append(f.Assumptions, shape.Assumption)
	}
	f.Bounds = slices.Compact(slices.Sorted(slices.Values(slices.Concat(now.bounds, later.bounds))))
	f.Nodes = append(f.Nodes, groupsOf(now, later)...)
	f.Limits = limits(now, later, !shape.Claims)
	obey(f, now, !shape.Claims)
	f.Verdict = outcome(f, now)
	f.Summary = summary(f, shape)
	return f, nil
}

// obey makes the counts as small as quotas, and what else blocks a pod, make them.
func obey(f *api.Fit, now *counted, withPod bool) {
	for _, limit := range verdict.QuotaLimits(now.asked.Question, withPod) {
		if f.Now.AtLeast > limit.Copies {
			f.Next = &api.CopyStop{Code: api.QuotaExceeded, Message: limit.Refusal.Reason}
		}
		for _, count := range []*api.CopyCount{&f.Now, &f.Released} {
			lower(count, limit.Copies)
		}
	}
	if now.asked.Answer.Verdict == api.Blocked {
		f.Next = &api.CopyStop{Code: now.asked.Answer.Code, Message: now.asked.Answer.Summary}
		lower(&f.Now, 0)
		lower(&f.Released, 0)
	}
}

// lower makes a count no more than a number.
func lower(count *api.CopyCount, most int) {
	count.AtLeast = min(count.AtLeast, most)
	count.AtMost = ptr.To(min(ptr.Deref(count.AtMost, most), most))
}

func outcome(f *api.Fit, now *counted) api.Verdict {
	switch v := now.asked.Answer.Verdict; {
	case f.Now.AtLeast >= f.Replicas:
		return api.Fits
	case v == api.Error, v == api.Undetermined:
		return v
	case f.Now.AtMost != nil && *f.Now.AtMost < f.Replicas:
		return api.DoesNotFit
	default:
		return api.Undetermined
	}
}

func summary(f *api.Fit, shape *Shape) string {
	text := fmt.Sprintf("%s more %s fit now", english.Between(f.Now.AtLeast, f.Now.AtMost), shape.Several)
	if f.Now.AtLeast == 0 && f.Next != nil {
		switch f.Verdict {
		case api.Undetermined:
			return english.Sentence(f.Next.Message)
		case api.Error:
			return english.Sentence(text) + " " + english.Sentence(f.Next.Message)
		default:
		}
	}
	if most := f.Now.AtMost; most != nil && *most == f.Now.AtLeast && *most == 1 {
		text = fmt.Sprintf("1 more %s fits now", shape.One)
	}
	if f.Replicas > 1 {
		text += fmt.Sprintf(", %d are asked for", f.Replicas)
	}
	return english.Sentence(text + fmt.Sprintf("; %s once all claims are released", english.Between(f.Released.AtLeast, f.Released.AtMost)))
}

// groupsOf puts nodes together that take the same number of copies.
func groupsOf(now, later *counted) []api.CopyNodes {
	type key struct {
		now, released int
		code          api.Code
		message       string
	}
	groups := map[key]*api.CopyNodes{}
	var list []*api.CopyNodes
	for name, on := range now.nodes {
		k := key{on.copies, 0, on.code, on.message}
		if then := later.nodes[name]; then != nil {
			k.released = then.copies
		}
		if groups[k] == nil {
			groups[k] = &api.CopyNodes{Now: k.now, Released: k.released, Code: k.code, Message: k.message}
			list = append(list, groups[k])
		}
		groups[k].Count++
		groups[k].Names = append(groups[k].Names, name)
	}
	for _, g := range list {
		slices.SortFunc(g.Names, english.CompareNames)
	}
	slices.SortFunc(list, func(a, b *api.CopyNodes) int {
		return cmp.Or(cmp.Compare(b.Now, a.Now), cmp.Compare(b.Released, a.Released), cmp.Compare(b.Count, a.Count), english.CompareNames(a.Names[0], b.Names[0]))
	})
	nodes := make([]api.CopyNodes, 0, len(list))
	for _, g := range list {
		nodes = append(nodes, *g)
	}
	return nodes
}

// limits returns the limits besides devices: the room on the nodes that may take copies, and
// quotas.
func limits(now, later *counted, withPod bool) []api.CopyLimit {
	q, one := now.asked.Question, tied(now.asked.Question)
	may := map[string]bool{}
	for _, node := range slices.Concat(now.suited, later.suited) {
		may[node.Name] = true
	}
	rooms, order := map[corev1.ResourceName]int{}, []corev1.ResourceName{}
	if withPod {
		for _, node := range q.Reach.Candidates {
			if !may[node.Name] {
				continue
			}
			for _, room := range q.Cluster.Nodes.RoomFor(q.Pod, node) {
				if _, known := rooms[room.Resource]; !known {
					order = append(order, room.Resource)
				}
				if here := int(min(room.Pods, unlimited)); one {
					rooms[room.Resource] = max(rooms[room.Resource], here)
				} else {
					rooms[room.Resource] += here
				}
			}
		}
	}
	list := make([]api.CopyLimit, 0, len(order))
	for _, name := range order {
		list = append(list, api.CopyLimit{Resource: string(name), Copies: rooms[name]})
	}
	for _, limit := range verdict.QuotaLimits(q, withPod) {
		list = append(list, api.CopyLimit{Resource: string(limit.Resource), Quota: limit.Quota, Copies: limit.Copies})
	}
	slices.SortStableFunc(list, func(a, b api.CopyLimit) int {
		return cmp.Or(cmp.Compare(a.Copies, b.Copies), cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}
