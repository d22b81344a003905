// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"maps"
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
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// applied makes the edits of a remedy in a snapshot by a JSON patch of each
// object, and nothing else.
func applied(t *testing.T, snap *snapshot.Snapshot, r *api.Remedy) *snapshot.Snapshot {
	t.Helper()
	amended := *snap
	if r.FeatureGate != "" {
		amended.Gates = maps.Clone(snap.Gates)
		tc.Gate(r.FeatureGate, true)(&amended)
	}
	for _, e := range r.Edits {
		namespace, name := e.Object.Namespace, e.Object.Name
		switch e.Object.Kind {
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
			at := slices.IndexFunc(amended.Workloads, func(w *snapshot.Workload) bool { return w.Kind == e.Object.Kind && w.Name == name })
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
		checkKeepsHardware(t, snap, r)
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

// checkKeepsHardware checks that a remedy asks for devices of the same drivers as before.
func checkKeepsHardware(t *testing.T, snap *snapshot.Snapshot, r *api.Remedy) {
	t.Helper()
	facts := cluster.New(snap)
	catalog := eligibility.NewCatalog(facts, facts.Gates.Selectors())
	for _, e := range r.Edits {
		var before, after string
		if !strings.HasSuffix(e.Path, "/deviceClassName") || json.Unmarshal(e.From, &before) != nil || json.Unmarshal(e.Value, &after) != nil {
			continue
		}
		class := snap.Class(before)
		if class == nil && english.Typo(before, []string{after}) == "" {
			t.Errorf("%s: class %s is no typo", r.Change, before)
		}
		if class == nil {
			continue
		}
		drivers := catalog.DriversOf(t.Context(), class)
		for _, driver := range catalog.DriversOf(t.Context(), snap.Class(after)) {
			if !slices.Contains(drivers, driver) {
				t.Errorf("%s: class %s has devices of driver %s, class %s has devices of %s", r.Change, after, driver, before, drivers)
			}
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
		opts := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), AllRemedies: true}
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
	add := func(p any) { tc.Add(snap, p) }
	if maybe(20) {
		add(ruleFor("broken", "z"))
	}
	if maybe(15) {
		for _, slice := range snap.Slices {
			slice.Spec.Pool.ResourceSliceCount++
		}
	}
	if maybe(30) {
		add(tc.ClassWhere("gpu-a", `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"`))
	}
	if maybe(50) {
		// n3 has what n1 has, n4 one device less.
		for _, name := range []string{"n3", "n4"} {
			add(tc.Nodes(name))
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
		add(tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) {
			if maybe(50) {
				p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
			}
			p.Spec.Priority = ptr.To(int32(random.IntN(3)))
		}))
	}
	if maybe(20) {
		add(tc.Slice("n1-npu", "npu.example.com", "n1", tc.Device("npu-0")).OnNode("n1"))
		add(tc.Class("npu", "npu.example.com"))
		add(tc.ClassWhere("gpu-any", `device.driver.endsWith("pu.example.com")`))
		for _, claim := range snap.Claims {
			if claim.Name == waiting && claim.Spec.Devices.Requests[0].Exactly != nil {
				names := []string{"gpus", "cpu", "npuu", "npu.example.com", "gpu-an", "gpu"}
				claim.Spec.Devices.Requests[0].Exactly.DeviceClassName = names[random.IntN(len(names))]
			}
		}
	}
	tc.SortObjects(snap.Slices)
	tc.SortObjects(snap.Classes)
	tc.SortObjects(snap.Nodes)
}

// ruleFor adds a rule that taints all devices of the driver.
func ruleFor(name, key string) any {
	return func(s *snapshot.Snapshot) {
		s.TaintRules = append(s.TaintRules, &resourceapi.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.DeviceTaintRuleSpec{
				DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(tc.Driver)},
				Taint:          resourceapi.DeviceTaint{Key: key, Effect: resourceapi.DeviceTaintEffectNoSchedule},
			},
		})
	}
}

// servingPod adds a pod with a priority that uses a claim of another namespace.
func servingPod(name, claim string, priority int32) any {
	return tc.Pod(name, tc.Using(claim), func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName, p.Status.Phase, p.Spec.Priority = "serving", "n1", corev1.PodRunning, &priority
	})
}

func withVersion(version string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.Attributes["version"] = resourceapi.DeviceAttribute{VersionValue: &version}
	}
}

func TestRemedies(t *testing.T) {
	theClaim := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}
	thePod := Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")}
	attribute := func(name string) string { return `device.attributes["gpu.example.com"].` + name }
	memoryOf := func(quantity string) string {
		return `device.capacity["gpu.example.com"].memory.compareTo(quantity("` + quantity + `")) >= 0`
	}
	tests := map[string]struct {
		cluster  []any
		target   Options
		conflict []string
		sameOn   int
		remedies []string
		// patch has pieces of the commands.
		patch []string
	}{
		"the nearest quantity": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Device("a", "memory:=40Gi"), tc.Device("b", "memory:=24Gi")), tc.Pool("n2", tc.Device("a", "memory:=40Gi"), tc.Device("b", "memory:=24Gi")),
				tc.Claim(waiting, tc.GPUs("gpu", 2, memoryOf("80Gi"))),
			},
			target:   theClaim,
			conflict: []string{"request gpu requires memory 80Gi or more"},
			sameOn:   1,
			remedies: []string{"User: require memory 24Gi or more instead of 80Gi or more in request gpu"},
		},
		"a number": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithInt("cores", 4)), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("cores")+" > 6"))},
			target:   theClaim,
			conflict: []string{"request gpu requires cores greater than 6"},
			remedies: []string{"User: require cores 4 or more instead of greater than 6 in request gpu"},
		},
		"a version": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Change(withVersion("1.4.0"))), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("version")+`.compareTo(semver("2.0.0")) >= 0`))},
			target:   theClaim,
			conflict: []string{"request gpu requires version 2.0.0 or more"},
			remedies: []string{"User: require version 1.4.0 or more instead of 2.0.0 or more in request gpu"},
		},
		"a misspelled text": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=atlas")), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "alas"`))},
			target:   theClaim,
			conflict: []string{`request gpu requires model "alas"`},
			remedies: []string{`User: require model "atlas" instead of "alas" in request gpu`},
		},
		"the largest capacity": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=10").Shareable()), tc.Sharing("one", "n1", "a", "memory", "4"),
				tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "8")),
			},
			target:   theClaim,
			conflict: []string{"request gpu requires 8 of memory", "a is allocated to claim serving/one"},
			remedies: []string{
				"Nobody: wait until claim serving/one is released",
				"User: request 6 instead of 8 of memory in request gpu",
			},
		},
		"both alternatives": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("four", 4), tc.GPUs("two", 2)))},
			target:   theClaim,
			conflict: []string{"request gpu/four needs 4 devices", "request gpu/two needs 2 devices"},
			remedies: []string{
				"User: request 1 device instead of 2 in request gpu/two",
				"User: request 1 device instead of 4 in request gpu/four",
			},
		},
		"all of them": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Serving("one", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 0).All())},
			target:   theClaim,
			conflict: []string{"request gpu needs all devices that match", "gpu-0 is allocated to claim serving/one"},
			remedies: []string{
				"Nobody: wait until claim serving/one is released",
				"User: request 2 devices instead of all in request gpu",
			},
		},
		"something to do, and then to wait for": {
			cluster: []any{
				tc.Nodes("n1"), tc.ChangeNode("n1", cordon), tc.Pool("n1", tc.Devices(1)...), tc.Serving("one", "n1", "gpu-0"),
				tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting)),
			},
			target:   thePod,
			conflict: []string{"cordoned"},
			remedies: []string{"Admin: uncordon node n1; and wait until claim serving/one is released"},
		},
		"more than a claim can have": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(40)...), tc.Claim(waiting, tc.GPUs("gpu", 33))},
			target:   theClaim,
			conflict: []string{"request gpu needs 33 devices, and a claim can have at most 32"},
			remedies: []string{"User: request 32 devices instead of 33 in request gpu"},
		},
		"a rule": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), ruleFor("broken", "xid"), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			target:   theClaim,
			conflict: []string{"taint xid:NoSchedule on gpu-0 is not tolerated"},
			remedies: []string{
				"Admin: delete DeviceTaintRule broken if it is no longer needed",
				"User: tolerate the device taint xid:NoSchedule if the workload can use such devices",
			},
			patch: []string{"kubectl delete devicetaintrule broken"},
		},
		"a pool without all of its slices": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...).Of(2), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			target:   theClaim,
			conflict: []string{"pool n1 of gpu.example.com is incomplete: 1 of 2 slices"},
			remedies: []string{"Admin: driver gpu.example.com publishes the whole of pool n1, not only 1 of 2 slices: see the log of its plugin on node n1"},
		},
		"a class that does not exist": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1).OfClass("gpus"))},
			target:   theClaim,
			remedies: []string{"User: request class gpu instead of gpus in request gpu"},
		},
		"another class of the same driver": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("b", "model=B")), tc.Serving("one", "n1", "a"),
				tc.ClassWhere("gpu-a", `device.driver == "gpu.example.com" && `+attribute("model")+` == "A"`), tc.ClassWhere("gpu-b", `device.driver == "gpu.example.com" && `+attribute("model")+` == "B"`),
				tc.Claim(waiting, tc.GPUs("gpu", 1).OfClass("gpu-a")),
			},
			target:   theClaim,
			conflict: []string{"a is allocated to claim serving/one"},
			remedies: []string{"Nobody: wait until claim serving/one is released", "User: request class gpu-b instead of gpu-a in request gpu", "User: request class gpu instead of gpu-a in request gpu"},
		},
		"admin access": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1).WithAdminAccess()), func(s *snapshot.Snapshot) { s.Claims[0].UID = "" }},
			target:  theClaim,
			remedies: []string{
				"Admin: label namespace ml with resource.kubernetes.io/admin-access=true, if its users may access devices that others use",
				"User: remove adminAccess",
			},
			patch: []string{"kubectl label namespace ml resource.kubernetes.io/admin-access=true"},
		},
		"a feature that is off": {
			cluster:  []any{tc.Gate("DRAPrioritizedList", false), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("one", 1)))},
			target:   theClaim,
			remedies: []string{"Admin: turn on the feature gate DRAPrioritizedList in the whole cluster"},
		},
		"a slice that needs a feature": {
			cluster: []any{
				tc.Gate("DRAPartitionableDevices", false), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("whole").Consuming("board", "slices=4")).Of(2), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			target:   theClaim,
			conflict: []string{"the feature gate DRAPartitionableDevices is off, which slice n1-00 needs"},
			remedies: []string{"Admin: turn on the feature gate DRAPartitionableDevices in the whole cluster"},
		},
		"binding conditions": {
			cluster: []any{
				tc.Gate("DRADeviceBindingConditions", false), tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").Change(func(d *resourceapi.Device) {
					d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
				})),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			target:   theClaim,
			conflict: []string{"the feature gate DRADeviceBindingConditions is off, which device a needs"},
			remedies: []string{"Admin: turn on the feature gate DRADeviceBindingConditions in the whole cluster"},
		},
		"a selector that fails": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"), tc.Device("b", "model=A")), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "A"`))},
			target:   theClaim,
			remedies: []string{`User: let the selector of request gpu be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		},
		"a selector that fails on a node which has nothing": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Device("a"), tc.Device("b", "model=A")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "A"`)),
			},
			target:   theClaim,
			remedies: []string{`User: let the selector of request gpu be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
		},
		"a class that fails": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a"), tc.Device("b", "model=A")), tc.ClassWhere("bad", attribute("model")+` == "A"`), tc.Claim(waiting, tc.GPUs("gpu", 1).OfClass("bad")),
			},
			target:   theClaim,
			remedies: []string{`Admin: let the selector of class bad be false where it fails now: has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "A"`},
			patch:    []string{"kubectl patch deviceclass bad --type=json"},
		},
		"a node selector": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "moon"} }),
			},
			target:   thePod,
			conflict: []string{"no label zone=moon, which spec.nodeSelector requires"},
			remedies: []string{"User: remove zone=moon from spec.nodeSelector"},
			patch:    []string{"kubectl get pod p -n ml", "/spec/nodeSelector"},
		},
		"a taint of the node": {
			cluster: []any{
				tc.Nodes("n1"), tc.ChangeNode("n1", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "only", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
				}),
				tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting)),
			},
			target:   thePod,
			conflict: []string{"node taint only=x:NoSchedule"},
			remedies: []string{"Admin: remove the taint only=x:NoSchedule from node n1", "User: tolerate the node taint only=x:NoSchedule if the pod may run there"},
		},
		"a template": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...),
				tc.Template("two", tc.GPUs("gpu", 2)),
				tc.Claim("p-gpu-x", tc.GPUs("gpu", 2)),
				tc.Pod("p", func(p *corev1.Pod) {
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
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n1", "gpu-1"),
				servingPod("pb", "b", -10), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting), func(*corev1.Pod) {}),
			},
			target:   thePod,
			conflict: []string{"gpu-0 is allocated to claim serving/a", "gpu-1 is allocated to claim serving/b"},
			remedies: []string{"Nobody: wait until claim serving/b (used by pod serving/pb, priority -10) is released; devices are not preempted, whatever the priority"},
		},
		"the least important ones": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n1", "gpu-1"), tc.Serving("c", "n1", "gpu-2"),
				servingPod("pa", "a", 100), servingPod("pb", "b", 5), servingPod("pc", "c", 1), tc.Claim(waiting, tc.GPUs("gpu", 2)),
				tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(50)) }),
			},
			target:   thePod,
			conflict: []string{"request gpu needs 2 devices", "gpu-0 is allocated to claim serving/a", "gpu-1 is allocated to claim serving/b"},
			remedies: []string{"Nobody: wait until 2 claims are released: serving/c (used by pod serving/pc, priority 1), serving/b (used by pod serving/pb, priority 5); devices are not preempted, whatever the priority"},
		},
		"an extended resource": {
			cluster: []any{
				tc.Gate("DRAExtendedResource", true), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), func(s *snapshot.Snapshot) { s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu") },
				tc.Pod("p", func(p *corev1.Pod) {
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
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "root=x"), tc.Device("b", "model=A", "root=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 2, attribute("model")+` == "Z"`)).Matching("gpu.example.com/root"),
			},
			target:   theClaim,
			conflict: []string{`request gpu requires model "Z"`},
			remedies: []string{`User: remove the selector model "Z" from request gpu; and request 1 device instead of 2 in request gpu`},
		},
		"a constraint on an attribute that no device has": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "root=x"), tc.Device("b", "root=x")),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/rot"),
			},
			target:   theClaim,
			conflict: []string{"all devices must have the same gpu.example.com/rot"},
			remedies: []string{"User: correct the constraint: gpu.example.com/root instead of gpu.example.com/rot"},
			patch:    []string{"/spec/devices/constraints/0/matchAttribute"},
		},
		"a capacity that is spelled wrong": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=10")), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memroy", "1"))},
			target:   theClaim,
			conflict: []string{"request gpu requires 1 of memroy"},
			remedies: []string{"User: correct the capacity in request gpu: memory instead of memroy"},
			patch:    []string{"/spec/devices/requests/0/exactly/capacity/requests/memory", "/spec/devices/requests/0/exactly/capacity/requests/memroy"},
		},
		"a capacity that no device has": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=10")), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("bandwidth", "1"))},
			target:   theClaim,
			conflict: []string{"request gpu requires 1 of bandwidth"},
			remedies: []string{"User: remove the capacity bandwidth from request gpu: it then takes all of a"},
			patch:    []string{"/spec/devices/requests/0/exactly/capacity"},
		},
		"groups that do not go together": {
			cluster: []any{
				tc.Gate("DRADeviceCompatibilityGroups", true), tc.Nodes("n1"), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Pool("n1", tc.Device("a").Consuming("board", "slices=2").InGroups("x"), tc.Device("b").Consuming("board", "slices=2").InGroups("y")).Of(2),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			target:   theClaim,
			conflict: []string{"request gpu needs 2 devices", "devices on counter set board of pool n1 must have a compatibility group in common"},
			remedies: []string{"User: request 1 device instead of 2 in request gpu"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(test.cluster...)
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
