// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestPodClaims(t *testing.T) {
	extended := tc.Class(tc.ClassA, tc.DriverA)
	extended.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	group := &schedulingapi.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "group", UID: tc.UID("group")},
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
		"none": {pod: tc.Pod("p")},
		"by name, in order": {
			objects: []any{tc.Claim("c1"), tc.Claim("c2")},
			pod:     tc.Pod("p", tc.UsingClaim("b", "c2"), tc.UsingClaim("a", "c1")),
			want:    []string{"b: c2", "a: c1"},
		},
		"missing": {
			pod:     tc.Pod("p", tc.UsingClaim("a", "c")),
			want:    []string{"a:"},
			problem: ErrClaimMissing,
		},
		"not readable": {
			objects: []any{snapshot.Gap{Resource: snapshot.ResourceClaims, Namespace: "other"}},
			pod:     tc.Pod("p", tc.UsingClaim("a", "c")),
			want:    []string{"a:"},
			problem: ErrClaimUnreadable,
		},
		"being deleted": {
			objects: []any{tc.Claim("c").Deleted()},
			pod:     tc.Pod("p", tc.UsingClaim("a", "c")),
			want:    []string{"a: c"},
			problem: ErrClaimDeleting,
		},
		"made from a template": {
			objects: []any{tc.Template("t"), tc.Claim("p-a-x").OwnedBy("Pod", "p")},
			pod:     tc.Pod("p", tc.UsingTemplate("a", "t"), tc.Generated("a", ptr.To("p-a-x"))),
			want:    []string{"a: p-a-x from t"},
		},
		"made for another pod": {
			objects: []any{tc.Template("t"), tc.Claim("p-a-x").OwnedBy("Pod", "q")},
			pod:     tc.Pod("p", tc.UsingTemplate("a", "t"), tc.Generated("a", ptr.To("p-a-x"))),
			want:    []string{"a: p-a-x from t"},
			problem: ErrClaimNotOwned,
		},
		"not needed": {
			pod: tc.Pod("p", tc.UsingTemplate("a", "t"), tc.Generated("a", nil)),
		},
		"not made yet": {
			objects: []any{tc.Template("t", tc.Request("r", tc.ClassA, 1))},
			pod:     tc.Pod("p", tc.UsingTemplate("a", "t")),
			want:    []string{"a: p-a from t, made up: r"},
			problem: ErrClaimNotCreated,
		},
		"made, and not in the pod's status": {
			objects: []any{tc.Template("t"), tc.Claim("p-a-x").OwnedBy("Pod", "p").Change(func(c *resourceapi.ResourceClaim) {
				c.Annotations = map[string]string{podClaimAnnotation: "a"}
			})},
			pod:     tc.Pod("p", tc.UsingTemplate("a", "t")),
			want:    []string{"a: p-a-x from t"},
			problem: ErrClaimNotCreated,
		},
		"only a pod template": {
			objects: []any{tc.Template("t", tc.Request("r", tc.ClassA, 1)), tc.Claim("c")},
			pod:     tc.Pod("p", tc.OnlyTemplate, tc.UsingTemplate("a", "t"), tc.UsingClaim("b", "c")),
			want:    []string{"a: p-a from t, made up: r", "b: c"},
		},
		"template missing": {
			pod:     tc.Pod("p", tc.OnlyTemplate, tc.UsingTemplate("a", "t")),
			want:    []string{"a: from t"},
			problem: ErrTemplateMissing,
		},
		"claim of the group": {
			objects: []any{tc.Gates{GateWorkloadClaims}, tc.Claim("group-shared").OwnedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     tc.Pod("p", tc.InGroup("group"), tc.UsingTemplate("shared", "t"), tc.Generated("shared", ptr.To("group-shared"))),
			want:    []string{"shared: group-shared from t"},
		},
		"claim of the group while that is off": {
			objects: []any{tc.Claim("group-shared").OwnedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     tc.Pod("p", tc.InGroup("group"), tc.UsingTemplate("shared", "t"), tc.Generated("shared", ptr.To("group-shared"))),
			want:    []string{"shared: group-shared from t"},
			problem: ErrClaimNotOwned,
		},
		"claim of the group exists, the pod does not know": {
			objects: []any{tc.Gates{GateWorkloadClaims}, tc.Template("t"), tc.Claim("group-shared").OwnedBy("PodGroup", "group")},
			groups:  []*schedulingapi.PodGroup{group},
			pod:     tc.Pod("p", tc.InGroup("group"), tc.UsingTemplate("shared", "t")),
			want:    []string{"shared: group-shared from t"},
			problem: ErrClaimNotCreated,
		},
		"claim of the group is not made yet": {
			objects: []any{tc.Gates{GateWorkloadClaims}, tc.Template("t", tc.Request("r", tc.ClassA, 1))},
			groups:  []*schedulingapi.PodGroup{{ObjectMeta: group.ObjectMeta, Spec: group.Spec}},
			pod:     tc.Pod("p", tc.InGroup("group"), tc.UsingTemplate("shared", "t")),
			want:    []string{"shared: group-shared from t, made up: r"},
			problem: ErrClaimNotCreated,
		},
		"group missing": {
			objects: []any{tc.Gates{GateWorkloadClaims}, tc.Claim("c")},
			pod:     tc.Pod("p", tc.InGroup("group"), tc.UsingClaim("a", "c")),
			want:    []string{"a: c"},
			problem: ErrPodGroupMissing,
		},
		"extended resources": {
			objects: []any{tc.Gates{GateExtendedResource}, extended, tc.Claim("c")},
			pod:     tc.Pod("p", tc.UsingClaim("a", "c"), tc.Requesting("example.com/gpu=2")),
			want:    []string{"a: c", "extended resources: <extended-resources>, made up: container-0-request-0"},
		},
		"extended resources while they are off": {
			objects: []any{extended},
			pod:     tc.Pod("p", tc.Requesting("example.com/gpu=2")),
		},
		"extended resources of an earlier attempt": {
			objects: []any{tc.Gates{GateExtendedResource}, extended, tc.Claim("c", tc.Request("r", tc.ClassA, 1)).OwnedBy("Pod", "p").ForExtendedResources()},
			pod:     tc.Pod("p", tc.Requesting("example.com/gpu=2")),
			want:    []string{"extended resources: c"},
			problem: ErrClaimStale,
		},
		"extended resources of a running pod": {
			objects: []any{tc.Gates{GateExtendedResource}, extended, tc.Claim("c", tc.Request("r", tc.ClassA, 1)).OwnedBy("Pod", "p").ForExtendedResources()},
			pod:     tc.Pod("p", tc.OnNode(tc.Node1), tc.Requesting("example.com/gpu=2")),
			want:    []string{"extended resources: c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Snapshot(tt.objects...)
			snap.PodGroups = tt.groups
			before := tt.pod.DeepCopy()
			var got []string
			var problem error
			for _, c := range newCluster(t, snap).Claims.OfPod(tt.pod) {
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
	plain := tc.Request("r", tc.ClassA, 0)
	plain.Exactly.AllocationMode = ""
	a := newCluster(t, tc.Snapshot(tc.Template("t", plain)))
	p := tc.Pod("p", tc.UsingTemplate("gpus", "t"))
	c := a.Claims.OfPod(p)[0].Claim
	if r := c.Spec.Devices.Requests[0].Exactly; r.AllocationMode != resourceapi.DeviceAllocationModeExactCount || r.Count != 1 {
		t.Errorf("no defaults: %+v", r)
	}
	if c.Labels["made-from"] != "t" || c.Annotations[podClaimAnnotation] != "gpus" || !metav1.IsControlledBy(c, p) {
		t.Errorf("wrong metadata: %+v", c.ObjectMeta)
	}
}

func TestDefaulted(t *testing.T) {
	bare := func(name string) tc.RequestWrapper {
		return tc.Request(name, tc.ClassA, 0).Change(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "" })
	}
	c := tc.Claim("c", bare("r"), tc.FirstAvailable("f", bare("a"), tc.Request("b", tc.ClassA, 0).All()))
	want := tc.Claim("c", tc.Request("r", tc.ClassA, 1), tc.FirstAvailable("f", tc.Request("a", tc.ClassA, 1), tc.Request("b", tc.ClassA, 0).All()))
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

func TestExtendedResourceClaim(t *testing.T) {
	gpu := tc.Class(tc.ClassA, tc.DriverA)
	gpu.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	nic := tc.Class("nic", tc.DriverB)
	objects := []any{tc.Gates{GateExtendedResource}, gpu, nic}
	container := func(name string, requests ...string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: tc.ResourceList(requests...)}}
	}
	sidecar := func(name string, requests ...string) corev1.Container {
		c := container(name, requests...)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	containers := func(init []corev1.Container, main ...corev1.Container) *corev1.Pod {
		return tc.Pod("p", func(p *corev1.Pod) { p.Spec.InitContainers, p.Spec.Containers = init, main })
	}
	offering := func(quantities ...string) *corev1.Node {
		n := tc.Node(tc.Node1)
		n.Status.Allocatable = tc.ResourceList(quantities...)
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
			pod: tc.Pod("p", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = tc.ResourceList("example.com/gpu=2")
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
			a := newCluster(t, tc.Snapshot(objects...))
			before := tt.pod.DeepCopy()
			c, err := a.Claims.ExtendedResourceClaim(tt.pod, tt.node)
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

// TestClaimInOtherNamespace: a claim that the pod cannot use is named.
func TestClaimInOtherNamespace(t *testing.T) {
	elsewhere := tc.Claim("c").Change(func(c *resourceapi.ResourceClaim) { c.Namespace = "research" })
	pod := tc.Pod("p", tc.UsingClaim("a", "c"))
	got := newCluster(t, tc.Snapshot(elsewhere, pod)).Claims.OfPod(pod)
	want := "ResourceClaim ml/c does not exist; namespace research has a claim of that name, and a pod can use claims of its own namespace only"
	if len(got) != 1 || got[0].Problem == nil || got[0].Problem.Error() != want || !errors.Is(got[0].Problem, ErrClaimMissing) {
		t.Errorf("got %+v", got)
	}
}

func TestUnusedClaims(t *testing.T) {
	container := func(claims ...corev1.ResourceClaim) corev1.Container {
		return corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Claims: claims}}
	}
	claims := []PodClaim{{Entry: "gpus", Claim: &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{
		Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "big"}, {Name: "small"}}},
	}}}}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"all of it":                     {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"})}}, ""},
		"a request":                     {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus", Request: "big"})}}, ""},
		"an init container":             {corev1.PodSpec{InitContainers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"})}, Containers: []corev1.Container{container()}}, ""},
		"no container":                  {corev1.PodSpec{Containers: []corev1.Container{container()}}, "no container names claim gpus"},
		"a request that is not":         {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus", Request: "bigger"})}}, "container main names request bigger of claim gpus, which does not exist"},
		"an entry that is not":          {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"}, corev1.ResourceClaim{Name: "nic"})}}, "container main names claim nic, which is not in spec.resourceClaims"},
		"containers that are not known": {corev1.PodSpec{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
			found := UnusedClaims(&corev1.Pod{Spec: test.spec}, claims)
			if (len(found) == 0) != (test.want == "") || len(found) > 1 {
				t.Fatalf("%+v, want %q", found, test.want)
			}
			if len(found) == 1 && !strings.HasPrefix(found[0].Text(), test.want) {
				t.Errorf("%q, want %q", found[0].Text(), test.want)
			}
		})
	}
}
