// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func usingClaim(entry, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimName: &name})
	}
}

func usingTemplate(entry, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: &name})
	}
}

// generated records the name of a claim made from a template, nil for "none
// needed".
func generated(entry string, name *string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: entry, ResourceClaimName: name})
	}
}

func onlyTemplate(p *corev1.Pod) { p.UID = "" }

func onNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = name }
}

func inGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
}

// requesting sets requests of the only container: "cpu=1".
func requesting(requests ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = resourceList(requests...) }
}

func template(name string, requests ...wrapRequest) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: resourceapi.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"made-from": name}},
			Spec:       claim("").withRequests(requests...).Spec,
		},
	}
}

func (c wrapClaim) ownedBy(kind, name string) wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
	if kind == "PodGroup" {
		owner.APIVersion = schedulingapi.SchemeGroupVersion.String()
	}
	out.OwnerReferences = []metav1.OwnerReference{owner}
	return out
}

func (c wrapClaim) deleted() wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	out.DeletionTimestamp = &metav1.Time{}
	return out
}

func (c wrapClaim) forExtendedResources() wrapClaim {
	out := wrapClaim{c.DeepCopy()}
	out.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	return out
}

func TestPodClaims(t *testing.T) {
	extended := class(classA, driverA)
	extended.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	group := &schedulingapi.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "group", UID: "group"},
		Spec: schedulingapi.PodGroupSpec{ResourceClaims: []schedulingapi.PodGroupResourceClaim{
			{Name: "shared", ResourceClaimTemplateName: ptr.To("t")},
		}},
		Status: schedulingapi.PodGroupStatus{ResourceClaimStatuses: []schedulingapi.PodGroupResourceClaimStatus{
			{Name: "shared", ResourceClaimName: ptr.To("group-shared")},
		}},
	}
	tests := map[string]struct {
		objects []any
		groups  []*schedulingapi.PodGroup
		pod     *corev1.Pod
		want    []string
		problem error
	}{
		"none": {pod: pod("p")},
		"by name, in order": {
			objects: []any{claim("c1"), claim("c2")},
			pod:     pod("p", usingClaim("b", "c2"), usingClaim("a", "c1")),
			want:    []string{"b: c2", "a: c1"},
		},
		"missing": {
			pod:     pod("p", usingClaim("a", "c")),
			want:    []string{"a:"},
			problem: ErrClaimMissing,
		},
		"not readable": {
			objects: []any{snapshot.Gap{Resource: snapshot.ResourceClaims, Namespace: "other"}},
			pod:     pod("p", usingClaim("a", "c")),
			want:    []string{"a:"},
			problem: ErrClaimUnreadable,
		},
		"being deleted": {
			objects: []any{claim("c").deleted()},
			pod:     pod("p", usingClaim("a", "c")),
			want:    []string{"a: c"},
			problem: ErrClaimDeleting,
		},
		"made from a template": {
			objects: []any{template("t"), claim("p-a-x").ownedBy("Pod", "p")},
			pod:     pod("p", usingTemplate("a", "t"), generated("a", ptr.To("p-a-x"))),
			want:    []string{"a: p-a-x from t"},
		},
		"made for another pod": {
			objects: []any{template("t"), claim("p-a-x").ownedBy("Pod", "q")},
			pod:     pod("p", usingTemplate("a", "t"), generated("a", ptr.To("p-a-x"))),
			want:    []string{"a: p-a-x from t"},
			problem: ErrClaimNotOwned,
		},
		"not needed": {
			pod: pod("p", usingTemplate("a", "t"), generated("a", nil)),
		},
		"not made yet": {
			objects: []any{template("t", request("r", classA, 1))},
			pod:     pod("p", usingTemplate("a", "t")),
			want:    []string{"a: p-a from t, made up: r"},
			problem: ErrClaimNotCreated,
		},
		"only a pod template": {
			objects: []any{template("t", request("r", classA, 1)), claim("c")},
			pod:     pod("p", onlyTemplate, usingTemplate("a", "t"), usingClaim("b", "c")),
			want:    []string{"a: p-a from t, made up: r", "b: c"},
		},
		"template missing": {
			pod:     pod("p", onlyTemplate, usingTemplate("a", "t")),
			want:    []string{"a: from t"},
			problem: ErrTemplateMissing,
		},
		"claim of the group": {
			objects: []any{gates{gateWorkloadClaims}, claim("group-shared").ownedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     pod("p", inGroup("group"), usingTemplate("shared", "t"), generated("shared", ptr.To("group-shared"))),
			want:    []string{"shared: group-shared from t"},
		},
		"claim of the group while that is off": {
			objects: []any{claim("group-shared").ownedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     pod("p", inGroup("group"), usingTemplate("shared", "t"), generated("shared", ptr.To("group-shared"))),
			want:    []string{"shared: group-shared from t"},
			problem: ErrClaimNotOwned,
		},
		"claim of the group exists, the pod does not know": {
			objects: []any{gates{gateWorkloadClaims}, template("t"), claim("group-shared").ownedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     pod("p", inGroup("group"), usingTemplate("shared", "t")),
			want:    []string{"shared: group-shared from t"},
			problem: ErrClaimNotCreated,
		},
		"group missing": {
			objects: []any{gates{gateWorkloadClaims}, claim("c")},
			pod:     pod("p", inGroup("group"), usingClaim("a", "c")),
			want:    []string{"a: c"},
			problem: ErrPodGroupMissing,
		},
		"extended resources": {
			objects: []any{gates{gateExtendedResource}, extended, claim("c")},
			pod:     pod("p", usingClaim("a", "c"), requesting("example.com/gpu=2")),
			want:    []string{"a: c", "extended resources: <extended-resources>, made up: container-0-request-0"},
		},
		"extended resources while they are off": {
			objects: []any{extended},
			pod:     pod("p", requesting("example.com/gpu=2")),
		},
		"extended resources of an earlier attempt": {
			objects: []any{gates{gateExtendedResource}, extended, claim("c").withRequests(request("r", classA, 1)).ownedBy("Pod", "p").forExtendedResources()},
			pod:     pod("p", requesting("example.com/gpu=2")),
			want:    []string{"extended resources: c"},
			problem: ErrClaimStale,
		},
		"extended resources of a running pod": {
			objects: []any{gates{gateExtendedResource}, extended, claim("c").withRequests(request("r", classA, 1)).ownedBy("Pod", "p").forExtendedResources()},
			pod:     pod("p", onNode(node1), requesting("example.com/gpu=2")),
			want:    []string{"extended resources: c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			snap := cluster(tt.objects...)
			snap.PodGroups = tt.groups
			before := tt.pod.DeepCopy()
			var got []string
			var problem error
			for _, c := range newAllocator(t, snap).PodClaims(tt.pod) {
				got = append(got, describePodClaim(c))
				problem = errors.Join(problem, c.Problem)
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !errors.Is(problem, tt.problem) || (problem == nil) != (tt.problem == nil) {
				t.Errorf("got problem %v, want %v", problem, tt.problem)
			}
			if diff := gocmp.Diff(before, tt.pod); diff != "" {
				t.Errorf("the pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func describePodClaim(c PodClaim) string {
	text := c.Entry + ":"
	if c.ExtendedResources {
		text = "extended resources:"
	}
	if c.Claim != nil {
		text += " " + c.Claim.Name
	}
	if c.Template != "" {
		text += " from " + c.Template
	}
	if c.Generated {
		text += ", made up:"
		for _, r := range c.Claim.Spec.Devices.Requests {
			text += " " + r.Name
		}
	}
	return text
}

func TestGeneratedClaim(t *testing.T) {
	plain := request("r", classA, 0)
	plain.Exactly.AllocationMode = ""
	a := newAllocator(t, cluster(template("t", plain)))
	p := pod("p", usingTemplate("gpus", "t"))
	c := a.PodClaims(p)[0].Claim
	if r := c.Spec.Devices.Requests[0].Exactly; r.AllocationMode != resourceapi.DeviceAllocationModeExactCount || r.Count != 1 {
		t.Errorf("no defaults: %+v", r)
	}
	if c.Labels["made-from"] != "t" || c.Annotations[podClaimAnnotation] != "gpus" || !metav1.IsControlledBy(c, p) {
		t.Errorf("wrong metadata: %+v", c.ObjectMeta)
	}
}

func TestDefaulted(t *testing.T) {
	bare := func(name string) wrapRequest {
		return request(name, classA, 0).change(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "" })
	}
	c := claim("c").withRequests(bare("r"), firstAvailable("f", bare("a"), requestAll("b", classA)))
	want := claim("c").withRequests(request("r", classA, 1), firstAvailable("f", request("a", classA, 1), requestAll("b", classA)))
	before := c.DeepCopy()
	got := Defaulted(c.ResourceClaim)
	if diff := gocmp.Diff(want.ResourceClaim, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(before, c.ResourceClaim); diff != "" {
		t.Errorf("the claim was changed (-before +after):\n%s", diff)
	}
	if Defaulted(got) != got {
		t.Error("a claim with defaults was copied")
	}
}

func resourceList(quantities ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, counter := range counterMap(quantities) {
		list[corev1.ResourceName(name)] = counter.Value
	}
	return list
}

func TestExtendedResourceClaim(t *testing.T) {
	gpu := class(classA, driverA)
	gpu.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	nic := class("nic", driverB)
	objects := []any{gates{gateExtendedResource}, gpu, nic}
	container := func(name string, requests ...string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: resourceList(requests...)}}
	}
	sidecar := func(name string, requests ...string) corev1.Container {
		c := container(name, requests...)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	containers := func(init []corev1.Container, main ...corev1.Container) *corev1.Pod {
		return pod("p", func(p *corev1.Pod) { p.Spec.InitContainers, p.Spec.Containers = init, main })
	}
	offering := func(quantities ...string) *corev1.Node {
		n := node(node1)
		n.Status.Allocatable = resourceList(quantities...)
		return n
	}
	const implicit = resourceapi.ResourceDeviceClassPrefix + "nic"
	tests := map[string]struct {
		pod  *corev1.Pod
		node *corev1.Node
		want []string
		err  string
	}{
		"none": {pod: containers(nil, container("a", "cpu=1")), node: offering()},
		"one": {
			pod:  containers(nil, container("a", "cpu=1", "example.com/gpu=2")),
			node: offering(),
			want: []string{"container-0-request-1: 2 class-a"},
		},
		"only a limit": {
			pod: pod("p", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = resourceList("example.com/gpu=2")
			}),
			node: offering(),
			want: []string{"container-0-request-0: 2 class-a"},
		},
		"implicit name": {
			pod:  containers(nil, container("a", implicit+"=1"), container("b", implicit+"=1", "example.com/gpu=1")),
			node: offering(),
			want: []string{"container-0-request-0: 1 nic", "container-1-request-0: 1 nic", "container-1-request-1: 1 class-a"},
		},
		"from a device plugin": {
			pod:  containers(nil, container("a", "example.com/gpu=1")),
			node: offering("example.com/gpu=8"),
		},
		"one from a device plugin, the other not": {
			pod:  containers(nil, container("a", implicit+"=1", "example.com/gpu=1")),
			node: offering("example.com/gpu=8"),
			want: []string{"container-0-request-0: 1 nic"},
		},
		"device plugin without devices": {
			pod:  containers(nil, container("a", "example.com/gpu=1")),
			node: offering("example.com/gpu=0"),
			want: []string{"container-0-request-0: 1 class-a"},
		},
		"another one that nobody has": {
			pod:  containers(nil, container("a", "example.com/gpu=1", "example.com/fpga=1")),
			node: offering(),
			err:  "extended resource example.com/fpga is offered neither by the node nor by a DeviceClass",
		},
		"init container uses those of the main ones": {
			pod:  containers([]corev1.Container{container("i", "example.com/gpu=2")}, container("a", "example.com/gpu=1"), container("b", "example.com/gpu=1")),
			node: offering(),
			want: []string{"container-1-request-0: 1 class-a", "container-2-request-0: 1 class-a"},
		},
		"init containers need more": {
			pod: containers([]corev1.Container{
				container("i", "example.com/gpu=3"), container("j", "example.com/gpu=5"), container("k", "example.com/gpu=5"),
			}, container("a", "example.com/gpu=1")),
			node: offering(),
			want: []string{"container-1-request-0: 4 class-a", "container-3-request-0: 1 class-a"},
		},
		"sidecar": {
			pod: containers([]corev1.Container{
				container("i", "example.com/gpu=3"), sidecar("s", "example.com/gpu=2"), container("j", "example.com/gpu=3"),
			}, container("a", "example.com/gpu=1")),
			node: offering(),
			want: []string{"container-1-request-0: 2 class-a", "container-2-request-0: 2 class-a", "container-3-request-0: 1 class-a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAllocator(t, cluster(objects...))
			before := tt.pod.DeepCopy()
			c, err := a.ExtendedResourceClaim(tt.pod, tt.node)
			if fmt.Sprint(err) != tt.err && (err != nil || tt.err != "") {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			var got []string
			if c != nil {
				for _, r := range c.Spec.Devices.Requests {
					got = append(got, fmt.Sprintf("%s: %d %s", r.Name, r.Exactly.Count, r.Exactly.DeviceClassName))
				}
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(before, tt.pod); diff != "" {
				t.Errorf("the pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestExtendedResourcesAreAllocated(t *testing.T) {
	gpu := class(classA, driverA)
	gpu.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	a := newAllocator(t, cluster(append(incubatingGates(), gateExtendedResource), gpu, slice("s", driverA, "pool", device("d1"), device("d2"))))
	for count, want := range map[string]Outcome{"2": Fits, "3": DoesNotFit} {
		c, err := a.ExtendedResourceClaim(pod("p", requesting("example.com/gpu="+count)), node(node1))
		if err != nil {
			t.Fatal(err)
		}
		if v := check(t, a, node(node1), wrapClaim{c}); v.Outcome != want {
			t.Errorf("%s devices: got %s (%v), want %s", count, v.Outcome, v.Err, want)
		}
	}
}

func TestExtendedResourceNames(t *testing.T) {
	tests := map[corev1.ResourceName]struct{ extended, scalar bool }{
		"cpu":                      {},
		"hugepages-2Mi":            {scalar: true},
		"attachable-volumes-csi":   {scalar: true},
		"example.com/gpu":          {extended: true, scalar: true},
		"kubernetes.io/x":          {scalar: true},
		"requests.example.com/gpu": {},
		"example.com/not/a/name":   {},
		corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + "gpu"): {extended: true, scalar: true},
	}
	for name, want := range tests {
		if got := isDRAExtendedResource(name); got != want.extended {
			t.Errorf("%s: extended %t, want %t", name, got, want.extended)
		}
		if got := isScalarResource(name); got != want.scalar {
			t.Errorf("%s: scalar %t, want %t", name, got, want.scalar)
		}
	}
	quantity := resource.MustParse("1")
	if sum := sumOf(corev1.ResourceList{"example.com/gpu": quantity, "nonsense": quantity}); len(sum.scalar) != 1 {
		t.Errorf("got %v", sum.scalar)
	}
}
