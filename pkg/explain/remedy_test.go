// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// applied makes the edits of a remedy in a snapshot by a JSON patch of each
// object, and nothing else.
func applied(t *testing.T, snap *snapshot.Snapshot, r *api.Remedy) *snapshot.Snapshot {
	t.Helper()
	amended := *snap
	if r.FeatureGate != "" {
		gate(r.FeatureGate, true)(&amended)
	}
	for _, e := range r.Edits {
		kind, rest, _ := strings.Cut(e.Object, "/")
		namespace, name, ok := strings.Cut(rest, "/")
		if !ok {
			namespace, name = "", rest
		}
		switch kind {
		case api.KindClaim:
			applyTo(t, &amended.Claims, namespace, name, e)
		case api.KindTemplate:
			applyTo(t, &amended.Templates, namespace, name, e)
		case api.KindPod:
			applyTo(t, &amended.Pods, namespace, name, e)
		case "DeviceClass":
			applyTo(t, &amended.Classes, namespace, name, e)
		case "DeviceTaintRule":
			applyTo(t, &amended.TaintRules, namespace, name, e)
		case "Namespace":
			applyTo(t, &amended.Namespaces, namespace, name, e)
		case "ResourceSlice":
			applyTo(t, &amended.Slices, namespace, name, e)
		case api.KindNode:
			applyTo(t, &amended.Nodes, namespace, name, e)
		default:
			at := slices.IndexFunc(amended.Workloads, func(w *snapshot.Workload) bool { return w.Kind == kind && w.Name == name })
			w := *amended.Workloads[at]
			e.Path = strings.TrimPrefix(e.Path, "/spec/template/spec")
			w.Template.Spec = *patched(t, &w.Template.Spec, e)
			amended.Workloads = slices.Clone(amended.Workloads)
			amended.Workloads[at] = &w
		}
	}
	return &amended
}

func applyTo[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, list *[]P, namespace, name string, e api.Edit,
) {
	t.Helper()
	*list = slices.Clone(*list)
	for i, o := range *list {
		switch {
		case o.GetNamespace() != namespace || o.GetName() != name:
		case e.Path == "":
			*list = slices.Delete(*list, i, i+1)
			return
		default:
			(*list)[i] = patched(t, (*T)(o), e)
			return
		}
	}
	t.Fatalf("there is no %s", e.Object)
}

func patched[T any](t *testing.T, from *T, e api.Edit) *T {
	t.Helper()
	before, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	operation := map[string]any{"op": e.Op, "path": e.Path}
	if e.Value != nil {
		operation["value"] = e.Value
	}
	text, err := json.Marshal([]any{operation})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("%s %s %s: %v\n%s", e.Object, e.Op, e.Path, err, before)
	}
	to := new(T)
	if err := json.Unmarshal(after, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// checkRemedies asks again with each remedy applied: it has to fit, on as many
// nodes as it says, with these devices.
func checkRemedies(t *testing.T, snap *snapshot.Snapshot, opts Options, e *api.Explanation) {
	t.Helper()
	for i := range e.Remedies {
		r := &e.Remedies[i]
		again, err := Explain(t.Context(), applied(t, snap, r), opts)
		if err != nil {
			t.Fatal(err)
		}
		if again.Verdict != api.Fits && again.Verdict != api.Allocated {
			t.Errorf("%s: it does not fit: %s\n%s", r.Change, again.Summary, asJSON(r))
			continue
		}
		fitting, found := 0, false
		for _, group := range again.Nodes {
			if group.Verdict == api.Fits {
				fitting += group.Count
				found = found || slices.Contains(group.Names, r.Node)
			}
		}
		if fitting != r.Nodes || !found {
			t.Errorf("%s: fits on %d nodes, not on %d, or not on %s", r.Change, fitting, r.Nodes, r.Node)
		}
	}
}

// TestRemediesAreTrue holds the remedies in random clusters against the
// allocator.
func TestRemediesAreTrue(t *testing.T) {
	cases := 400
	if testing.Short() {
		cases = 150
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		snap := randomCluster(t, random)
		crowd(snap, random)
		enrich(snap, random)
		opts := Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting, AllRemedies: true}
		e, err := Explain(t.Context(), snap, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Remedies {
			word, _, _ := strings.Cut(r.Change, " ")
			counts[r.Actor+" "+word]++
		}
		checkRemedies(t, snap, opts, e)
		if t.Failed() {
			t.Fatalf("seed %d\nclaims %s\nslices %s", seed, asJSON(snap.Claims), asJSON(snap.Slices))
		}
	}
	t.Log(counts)
	if len(counts) < 5 {
		t.Errorf("only these: %v", counts)
	}
}

// enrich adds what an administrator could do something about, a pod with
// restrictions, and nodes with the same or almost the same devices.
func enrich(snap *snapshot.Snapshot, random *rand.Rand) {
	maybe := func(percent int) bool { return random.IntN(100) < percent }
	add := func(p part) { p(snap) }
	if maybe(20) {
		add(ruleFor("broken", "z"))
	}
	if maybe(15) {
		for _, slice := range snap.Slices {
			slice.Spec.Pool.ResourceSliceCount++
		}
	}
	if maybe(30) {
		add(class("gpu-a", `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"`))
	}
	if maybe(50) {
		// n3 has what n1 has, n4 one device less.
		for _, name := range []string{"n3", "n4"} {
			add(nodes(name))
			for _, slice := range slices.Clone(snap.Slices) {
				if slice.Spec.Pool.Name != "n1" {
					continue
				}
				same := slice.DeepCopy()
				same.Name, same.Spec.Pool.Name = strings.Replace(slice.Name, "n1", name, 1), name
				if same.Spec.NodeName != nil {
					same.Spec.NodeName = &name
				}
				if name == "n4" && len(same.Spec.Devices) > 1 {
					same.Spec.Devices = same.Spec.Devices[1:]
				}
				snap.Slices = append(snap.Slices, same)
			}
		}
	}
	if maybe(40) {
		add(changedPod("p", func(p *corev1.Pod) {
			if maybe(50) {
				p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
			}
			p.Spec.Priority = ptr.To(int32(random.IntN(3)))
		}, waiting))
	}
	tc.SortObjects(snap.Slices)
	tc.SortObjects(snap.Classes)
	tc.SortObjects(snap.Nodes)
}

// ruleFor adds a rule that taints all devices of the driver.
func ruleFor(name, key string) part {
	return func(s *snapshot.Snapshot) {
		s.TaintRules = append(s.TaintRules, &resourceapi.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.DeviceTaintRuleSpec{
				DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(driver)},
				Taint:          resourceapi.DeviceTaint{Key: key, Effect: resourceapi.DeviceTaintEffectNoSchedule},
			},
		})
	}
}

// servingPod adds a pod with a priority that uses a claim of another namespace.
func servingPod(name, claim string, priority int32) part {
	return changedPod(name, func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName, p.Status.Phase, p.Spec.Priority = "serving", "n1", corev1.PodRunning, &priority
	}, claim)
}

func withVersion(version string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes["version"] = resourceapi.DeviceAttribute{VersionValue: &version}
	}
}

func TestRemedies(t *testing.T) {
	theClaim := Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting}
	thePod := Options{Kind: api.KindPod, Namespace: namespace, Name: "p"}
	attribute := func(name string) string { return `device.attributes["gpu.example.com"].` + name }
	memoryOf := func(quantity string) string {
		return `device.capacity["gpu.example.com"].memory.compareTo(quantity("` + quantity + `")) >= 0`
	}
	tests := map[string]struct {
		cluster  []part
		target   Options
		conflict []string
		sameOn   int
		remedies []string
		// patch has pieces of the commands.
		patch []string
	}{
		"the nearest quantity": {
			cluster: []part{
				nodes("n1", "n2"), pool("n1", device("a", withMemory("40Gi")), device("b", withMemory("24Gi"))), pool("n2", device("a", withMemory("40Gi")), device("b", withMemory("24Gi"))),
				claim(waiting, exact("gpu", 2, where(memoryOf("80Gi")))),
			},
			target:   theClaim,
			conflict: []string{"request gpu requires memory 80Gi or more"},
			sameOn:   1,
			remedies: []string{"User: require memory 24Gi or more instead of 80Gi or more in request gpu"},
		},
		"a number": {
			cluster:  []part{nodes("n1"), pool("n1", device("a", withInt("cores", 4))), claim(waiting, exact("gpu", 1, where(attribute("cores")+" > 6")))},
			target:   theClaim,
			conflict: []string{"request gpu requires cores greater than 6"},
			remedies: []string{"User: require cores 4 or more instead of greater than 6 in request gpu"},
		},
		"a version": {
			cluster:  []part{nodes("n1"), pool("n1", device("a", withVersion("1.4.0"))), claim(waiting, exact("gpu", 1, where(attribute("version")+`.compareTo(semver("2.0.0")) >= 0`)))},
			target:   theClaim,
			conflict: []string{"request gpu requires version 2.0.0 or more"},
			remedies: []string{"User: require version 1.4.0 or more instead of 2.0.0 or more in request gpu"},
		},
		"a misspelled text": {
			cluster:  []part{nodes("n1"), pool("n1", device("a", withModel("atlas"))), claim(waiting, exact("gpu", 1, where(attribute("model")+` == "alas"`)))},
			target:   theClaim,
			conflict: []string{`request gpu requires model "alas"`},
			remedies: []string{`User: require model "atlas" instead of "alas" in request gpu`},
		},
		"the largest capacity": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", tc.Shareable, withMemory("10"))), sharing("one", "n1", "a", "memory", "4"),
				claim(waiting, exact("gpu", 1, wanting("memory", "8"))),
			},
			target:   theClaim,
			conflict: []string{"request gpu requires 8 of memory", "a is allocated to claim serving/one"},
			remedies: []string{
				"Nobody: wait until claim serving/one is released",
				"User: request 6 instead of 8 of memory in request gpu",
			},
		},
		"both alternatives": {
			cluster:  []part{nodes("n1"), pool("n1", devices(1)...), claim(waiting, firstOf("gpu", alternative("four", 4), alternative("two", 2)))},
			target:   theClaim,
			conflict: []string{"request gpu/four needs 4 devices", "request gpu/two needs 2 devices"},
			remedies: []string{
				"User: request 1 device instead of 2 in request gpu/two",
				"User: request 1 device instead of 4 in request gpu/four",
			},
		},
		"all of them": {
			cluster:  []part{nodes("n1"), pool("n1", devices(3)...), holding("one", "n1", "gpu-0"), claim(waiting, exact("gpu", 0, all))},
			target:   theClaim,
			conflict: []string{"request gpu needs all devices that match", "gpu-0 is allocated to claim serving/one"},
			remedies: []string{
				"Nobody: wait until claim serving/one is released",
				"User: request 2 devices instead of all in request gpu",
			},
		},
		"more than a claim can have": {
			cluster:  []part{nodes("n1"), pool("n1", devices(40)...), claim(waiting, exact("gpu", 33))},
			target:   theClaim,
			conflict: []string{"request gpu needs 33 devices, and a claim can have at most 32"},
			remedies: []string{"User: request 32 devices instead of 33 in request gpu"},
		},
		"a rule": {
			cluster:  []part{nodes("n1"), pool("n1", devices(1)...), ruleFor("broken", "xid"), claim(waiting, exact("gpu", 1))},
			target:   theClaim,
			conflict: []string{"taint xid:NoSchedule on gpu-0 is not tolerated"},
			remedies: []string{
				"Admin: delete DeviceTaintRule broken if it is no longer needed",
				"User: tolerate the device taint xid:NoSchedule if the workload can use such devices",
			},
			patch: []string{"kubectl delete devicetaintrule broken"},
		},
		"a pool without all of its slices": {
			cluster:  []part{nodes("n1"), slice("n1", twoSlices, devices(2)...), claim(waiting, exact("gpu", 1))},
			target:   theClaim,
			conflict: []string{"pool n1 of gpu.example.com is incomplete: 1 of 2 slices"},
			remedies: []string{"Admin: driver gpu.example.com publishes the whole of pool n1, not only 1 of 2 slices"},
		},
		"a class that does not exist": {
			cluster:  []part{nodes("n1"), pool("n1", devices(1)...), claim(waiting, exact("gpu", 1, ofClass("gpus")))},
			target:   theClaim,
			remedies: []string{"User: request class gpu instead of gpus in request gpu"},
		},
		"another class of the same driver": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withModel("A")), device("b", withModel("B"))), holding("one", "n1", "a"),
				class("gpu-a", `device.driver == "gpu.example.com" && `+attribute("model")+` == "A"`), class("gpu-b", `device.driver == "gpu.example.com" && `+attribute("model")+` == "B"`),
				claim(waiting, exact("gpu", 1, ofClass("gpu-a"))),
			},
			target:   theClaim,
			conflict: []string{"a is allocated to claim serving/one"},
			remedies: []string{"Nobody: wait until claim serving/one is released", "User: request class gpu-b instead of gpu-a in request gpu", "User: request class gpu instead of gpu-a in request gpu"},
		},
		"admin access": {
			cluster: []part{nodes("n1"), pool("n1", devices(1)...), claim(waiting, exact("gpu", 1, admin)), func(s *snapshot.Snapshot) { s.Claims[0].UID = "" }},
			target:  theClaim,
			remedies: []string{
				"Admin: label namespace ml with resource.kubernetes.io/admin-access=true, if its users may access devices that others use",
				"User: remove adminAccess",
			},
			patch: []string{"kubectl label namespace ml resource.kubernetes.io/admin-access=true"},
		},
		"a feature that is off": {
			cluster:  []part{gate("DRAPrioritizedList", false), nodes("n1"), pool("n1", devices(1)...), claim(waiting, firstOf("gpu", alternative("one", 1)))},
			target:   theClaim,
			remedies: []string{"Admin: turn on the feature gate DRAPrioritizedList in the whole cluster"},
		},
		"a slice that needs a feature": {
			cluster: []part{
				gate("DRAPartitionableDevices", false), nodes("n1"), counters("n1", "board", "slices", "4"),
				slice("n1", twoSlices, device("whole", withCounter("board", "slices", "4"))), claim(waiting, exact("gpu", 1)),
			},
			target:   theClaim,
			conflict: []string{"the feature gate DRAPartitionableDevices is off, which slice n1-00 needs"},
			remedies: []string{"Admin: turn on the feature gate DRAPartitionableDevices in the whole cluster"},
		},
		"binding conditions": {
			cluster: []part{
				gate("DRADeviceBindingConditions", false), nodes("n1"), pool("n1", device("a", func(d *resourceapi.Device) {
					d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
				})),
				claim(waiting, exact("gpu", 1)),
			},
			target:   theClaim,
			conflict: []string{"the feature gate DRADeviceBindingConditions is off, which device a needs"},
			remedies: []string{"Admin: turn on the feature gate DRADeviceBindingConditions in the whole cluster"},
		},
		"a selector that fails": {
			cluster:  []part{nodes("n1"), pool("n1", device("a"), device("b", withModel("A"))), claim(waiting, exact("gpu", 1, where(attribute("model")+` == "A"`)))},
			target:   theClaim,
			remedies: []string{`User: let the selector of request gpu be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		},
		"a selector that fails on a node which has nothing": {
			cluster: []part{
				nodes("n1", "n2"), pool("n1", devices(1)...), pool("n2", device("a"), device("b", withModel("A"))),
				claim(waiting, exact("gpu", 1, where(attribute("model")+` == "A"`))),
			},
			target:   theClaim,
			remedies: []string{`User: let the selector of request gpu be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		},
		"a class that fails": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a"), device("b", withModel("A"))), class("bad", attribute("model")+` == "A"`), claim(waiting, exact("gpu", 1, ofClass("bad"))),
			},
			target:   theClaim,
			remedies: []string{`Admin: let the selector of class bad be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
			patch:    []string{"kubectl patch deviceclass bad --type=json"},
		},
		"a node selector": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(1)...), claim(waiting, exact("gpu", 1)),
				changedPod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "moon"} }, waiting),
			},
			target:   thePod,
			conflict: []string{"no label zone=moon, which spec.nodeSelector requires"},
			remedies: []string{"User: remove zone=moon from spec.nodeSelector"},
			patch:    []string{"kubectl get pod p -n ml", "/spec/nodeSelector"},
		},
		"a taint of the node": {
			cluster: []part{
				nodes("n1"), changeNode("n1", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "only", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
				}),
				pool("n1", devices(1)...), claim(waiting, exact("gpu", 1)), pod("p", waiting),
			},
			target:   thePod,
			conflict: []string{"node taint only=x:NoSchedule"},
			remedies: []string{"Admin: remove the taint only=x:NoSchedule from node n1", "User: tolerate the node taint only=x:NoSchedule if the pod may run there"},
		},
		"a template": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(1)...),
				func(s *snapshot.Snapshot) {
					s.Templates = append(s.Templates, &resourceapi.ResourceClaimTemplate{
						ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"},
						Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{exact("gpu", 2)}}}},
					})
				},
				claim("p-gpu-x", exact("gpu", 2)),
				changedPod("p", func(p *corev1.Pod) {
					p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("two")}}
					p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("p-gpu-x")}}
				}),
				func(s *snapshot.Snapshot) {
					s.Claims[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p", Controller: ptr.To(true)}}
				},
			},
			target:   thePod,
			conflict: []string{"request gpu needs 2 devices"},
			remedies: []string{"User: request 1 device instead of 2 in request gpu"},
			patch:    []string{"kubectl get resourceclaimtemplate two -n ml", "kubectl get pod p -n ml -o yaml | kubectl replace --force -f -"},
		},
		"one that is less important than those of no pod": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(2)...), holding("a", "n1", "gpu-0"), holding("b", "n1", "gpu-1"),
				servingPod("pb", "b", -10), claim(waiting, exact("gpu", 1)), changedPod("p", func(*corev1.Pod) {}, waiting),
			},
			target:   thePod,
			conflict: []string{"gpu-0 is allocated to claim serving/a", "gpu-1 is allocated to claim serving/b"},
			remedies: []string{"Nobody: wait until claim serving/b (used by pod serving/pb, priority -10) is released; devices are not preempted, whatever the priority"},
		},
		"the least important ones": {
			cluster: []part{
				nodes("n1"), pool("n1", devices(3)...), holding("a", "n1", "gpu-0"), holding("b", "n1", "gpu-1"), holding("c", "n1", "gpu-2"),
				servingPod("pa", "a", 100), servingPod("pb", "b", 5), servingPod("pc", "c", 1), claim(waiting, exact("gpu", 2)),
				changedPod("p", func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(50)) }, waiting),
			},
			target:   thePod,
			conflict: []string{"request gpu needs 2 devices", "gpu-0 is allocated to claim serving/a", "gpu-1 is allocated to claim serving/b"},
			remedies: []string{"Nobody: wait until 2 claims are released: serving/c (used by pod serving/pc, priority 1), serving/b (used by pod serving/pb, priority 5); devices are not preempted, whatever the priority"},
		},
		"an extended resource": {
			cluster: []part{
				gate("DRAExtendedResource", true), nodes("n1"), pool("n1", devices(2)...), func(s *snapshot.Snapshot) { s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu") },
				changedPod("p", func(p *corev1.Pod) {
					list := corev1.ResourceList{"example.com/gpu": resource.MustParse("3")}
					p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
				}),
			},
			target:   thePod,
			conflict: []string{"container main requests 3 of example.com/gpu"},
			remedies: []string{"User: request 2 instead of 3 of example.com/gpu in container main"},
			patch:    []string{"/spec/containers/0/resources/requests/example.com~1gpu"},
		},
		"several wishes": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", withModel("A"), tc.WithAttribute("root", "x")), device("b", withModel("A"), tc.WithAttribute("root", "y"))),
				constrained(waiting, same("gpu.example.com/root"), exact("gpu", 2, where(attribute("model")+` == "Z"`))),
			},
			target:   theClaim,
			conflict: []string{`request gpu requires model "Z"`},
			remedies: []string{`User: remove the selector model "Z" from request gpu; and remove the constraint: the same gpu.example.com/root`},
		},
		"a constraint on an attribute that no device has": {
			cluster: []part{
				nodes("n1"), pool("n1", device("a", tc.WithAttribute("root", "x")), device("b", tc.WithAttribute("root", "x"))),
				constrained(waiting, same("gpu.example.com/rot"), exact("gpu", 2)),
			},
			target:   theClaim,
			conflict: []string{"all devices must have the same gpu.example.com/rot"},
			remedies: []string{"User: correct the constraint: gpu.example.com/root instead of gpu.example.com/rot"},
			patch:    []string{"/spec/devices/constraints/0/matchAttribute"},
		},
		"a capacity that is spelled wrong": {
			cluster:  []part{nodes("n1"), pool("n1", device("a", withMemory("10"))), claim(waiting, exact("gpu", 1, wanting("memroy", "1")))},
			target:   theClaim,
			conflict: []string{"request gpu requires 1 of memroy"},
			remedies: []string{"User: correct the capacity in request gpu: memory instead of memroy"},
			patch:    []string{"/spec/devices/requests/0/exactly/capacity/requests/memory", "/spec/devices/requests/0/exactly/capacity/requests/memroy"},
		},
		"a capacity that no device has": {
			cluster:  []part{nodes("n1"), pool("n1", device("a", withMemory("10"))), claim(waiting, exact("gpu", 1, wanting("bandwidth", "1")))},
			target:   theClaim,
			conflict: []string{"request gpu requires 1 of bandwidth"},
			remedies: []string{"User: remove the capacity bandwidth from request gpu"},
			patch:    []string{"/spec/devices/requests/0/exactly/capacity"},
		},
		"groups that do not go together": {
			cluster: []part{
				gate("DRADeviceCompatibilityGroups", true), nodes("n1"), counters("n1", "board", "slices", "4"),
				slice("n1", twoSlices, device("a", withCounter("board", "slices", "2", "x")), device("b", withCounter("board", "slices", "2", "y"))),
				claim(waiting, exact("gpu", 2)),
			},
			target:   theClaim,
			conflict: []string{"request gpu needs 2 devices", "devices on counter set board of pool n1 must have a compatibility group in common"},
			remedies: []string{"User: request 1 device instead of 2 in request gpu"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, test.cluster...)
			test.target.AllRemedies = true
			before := asJSON(snap)
			e, err := Explain(t.Context(), snap, test.target)
			if err != nil {
				t.Fatal(err)
			}
			if asJSON(snap) != before {
				t.Error("the snapshot was changed")
			}
			var conflict, found []string
			patches, sameOn := "", 0
			if e.Conflict != nil {
				sameOn = e.Conflict.OtherNodeCount
				for _, f := range e.Conflict.Facts {
					conflict = append(conflict, f.Text)
				}
			}
			for _, r := range e.Remedies {
				found = append(found, r.Actor+": "+r.Change)
				patches += strings.Join(r.Commands, "\n") + "\n"
			}
			if diff := cmp.Diff(test.conflict, conflict); diff != "" {
				t.Errorf("conflict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.remedies, found); diff != "" {
				t.Errorf("remedies (-want +got):\n%s", diff)
			}
			if sameOn != test.sameOn {
				t.Errorf("the same on %d nodes, want %d", sameOn, test.sameOn)
			}
			for _, piece := range test.patch {
				if !strings.Contains(patches, piece) {
					t.Errorf("no command has %q:\n%s", piece, patches)
				}
			}
			checkRemedies(t, snap, test.target, e)
		})
	}
}
