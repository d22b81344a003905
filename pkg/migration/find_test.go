// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// asking returns resources with limits that are requested, too.
func asking(quantities map[string]string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	for name, quantity := range quantities {
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return corev1.ResourceRequirements{Limits: list, Requests: maps.Clone(list)}
}

// pod returns a waiting pod with a container, which a change can modify.
func pod(name string, quantities map[string]string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: asking(quantities)}}
	p.Status.Phase = corev1.PodPending
	if change != nil {
		change(p)
	}
	return p
}

func class(name, expression, extended string) *resourceapi.DeviceClass {
	c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = selectorsOf([]string{expression})
	if extended != "" {
		c.Spec.ExtendedResourceName = &extended
	}
	return c
}

// mixed returns a cluster with a driver of NVIDIA on node-1, device plugins on other nodes, and pods.
func mixed(pods ...*corev1.Pod) *cluster.Cluster {
	gpu := func(name, product string) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type": {StringValue: new("gpu")}, "productName": {StringValue: &product}, "architecture": {StringValue: new("Hopper")},
		}}
	}
	mig := resourceapi.Device{Name: "mig-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": {StringValue: new("mig")}, "profile": {StringValue: new("1g.10gb+me")}}}
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: new("node-1"), Pool: resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourceapi.Device{gpu("gpu-0", "NVIDIA H100 80GB HBM3"), gpu("gpu-1", "NVIDIA H100 80GB HBM3"), gpu("gpu-2", "NVIDIA L4"), mig},
	}}
	nodes := []*corev1.Node{
		node("node-1", "", "", nil),
		node("node-2", "nvidia.com/gpu", "8", nil),
		node("node-3", "nvidia.com/gpu", "4", map[string]string{labelReplicas: "4", labelStrategy: "time-slicing"}),
		node("node-4", "nvidia.com/gpu", "7", map[string]string{labelMIGStrategy: "single", labelProduct: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me"}),
	}
	for _, n := range nodes {
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = corev1.ResourceList{}
		}
		n.Status.Allocatable["pods"], n.Status.Allocatable["cpu"] = resource.MustParse("110"), resource.MustParse("8")
	}
	return cluster.New(&snapshot.Snapshot{
		Release: snapshot.Release{Gates: map[string]snapshot.Gate{"DRAExtendedResource": {Enabled: true}}},
		Nodes:   nodes, Slices: []*resourceapi.ResourceSlice{slice}, Pods: pods,
		Classes: []*resourceapi.DeviceClass{
			class("a.nic", `device.driver == "a.nic.example.com"`, "example.com/rdma"),
			class("gpu.nvidia.com", `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`, ""),
			class("mig.nvidia.com", `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"`, ""),
		},
		Quotas: []*corev1.ResourceQuota{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpus"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				"requests.nvidia.com/gpu": resource.MustParse("16"), "requests.amd.com/gpu": resource.MustParse("2"), "requests.cpu": resource.MustParse("64"),
			}},
		}},
	})
}

// TestWorkloads says what becomes of workloads, and that what a workload becomes has no extended
// resource left.
func TestWorkloads(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	const productName = `device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"`
	for name, test := range map[string]struct {
		pod *corev1.Pod
		way api.MigrationWay
		// reason is a part of the reason, notes of the notes.
		reason, notes string
		// requests has "template.request: count class selectors", claims "container: claim.request".
		requests, claims []string
		verdict          api.Verdict
	}{
		"a whole GPU": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "2", "cpu": "1"}, on("node-2")), way: api.MigrationClaims, verdict: api.Fits,
			reason: "ResourceClaimTemplate p-gpu, for class gpu.nvidia.com", requests: []string{"p-gpu.main: 2 gpu.nvidia.com"}, claims: []string{"main: gpu.main"},
		},
		"a product": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "2"}, func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{labelProduct: "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.memory": "81559"}
				p.Spec.NodeName = "node-2"
			}), way: api.MigrationClaims, verdict: api.DoesNotFit, notes: "node selector nvidia.com/gpu.memory=81559 stays",
			requests: []string{`p-gpu.main: 2 gpu.nvidia.com device.attributes["gpu.nvidia.com"].architecture == "Hopper" ` + productName}, claims: []string{"main: gpu.main"},
		},
		"a product that nobody publishes": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "1"}, func(p *corev1.Pod) {
				p.Spec.NodeSelector, p.Spec.NodeName = map[string]string{labelProduct: "Tesla-T4"}, "node-2"
			}), way: api.MigrationClaims, verdict: api.DoesNotFit, notes: "node selector nvidia.com/gpu.product=Tesla-T4 stays",
			requests: []string{"p-gpu.main: 1 gpu.nvidia.com"}, claims: []string{"main: gpu.main"},
		},
		"a MIG device": {
			pod: pod("p", map[string]string{"nvidia.com/mig-1g.10gb.me": "1"}, nil), way: api.MigrationClaims, verdict: api.Fits,
			requests: []string{`p-mig-1g-10gb-me.main: 1 mig.nvidia.com device.attributes["gpu.nvidia.com"].profile == "1g.10gb+me"`}, claims: []string{"main: mig-1g-10gb-me.main"},
		},
		"a MIG device that nobody publishes": {
			pod: pod("p", map[string]string{"nvidia.com/mig-2g.20gb": "1"}, nil), way: api.MigrationClaims, verdict: api.DoesNotFit, notes: "no device has the MIG profile 2g.20gb yet",
			requests: []string{`p-mig-2g-20gb.main: 1 mig.nvidia.com device.attributes["gpu.nvidia.com"].profile == "2g.20gb"`}, claims: []string{"main: mig-2g-20gb.main"},
		},
		"the strategy single": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "1"}, on("node-4")), way: api.MigrationClaims, verdict: api.Fits,
			requests: []string{`p-gpu.main: 1 mig.nvidia.com device.attributes["gpu.nvidia.com"].profile == "1g.10gb+me"`}, claims: []string{"main: gpu.main"},
		},
		"time-slicing": {pod: pod("p", map[string]string{"nvidia.com/gpu": "1"}, on("node-3")), way: api.MigrationNotPossible, reason: "shares nvidia.com/gpu by time-slicing"},
		"somewhere":    {pod: pod("p", map[string]string{"nvidia.com/gpu": "1"}, nil), way: api.MigrationNotPossible, reason: "by time-slicing"},
		"no class":     {pod: pod("p", map[string]string{"amd.com/gpu": "1"}, nil), way: api.MigrationUnknown, reason: "choose one with --class amd.com/gpu=NAME"},
		"served":       {pod: pod("p", map[string]string{"example.com/rdma": "1"}, nil), way: api.MigrationUnchanged, reason: "class a.nic serves example.com/rdma where no device plugin does"},
		"two resources, one of them served, and an init container": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb.me": "1", "example.com/rdma": "1"}, func(p *corev1.Pod) {
				p.Spec.NodeName = "node-2"
				p.Spec.InitContainers = []corev1.Container{
					{Name: "small", Resources: asking(map[string]string{"nvidia.com/gpu": "1"})},
					{Name: "large", Resources: asking(map[string]string{"nvidia.com/gpu": "4"})},
				}
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("other")}}
			}), way: api.MigrationClaims, verdict: api.Undetermined, notes: "init container large gets devices of its own",
			requests: []string{"p-gpu-2.large: 4 gpu.nvidia.com", "p-gpu-2.main: 2 gpu.nvidia.com", `p-mig-1g-10gb-me.main: 1 mig.nvidia.com device.attributes["gpu.nvidia.com"].profile == "1g.10gb+me"`},
			claims:   []string{"small: gpu-2.main", "large: gpu-2.large", "main: gpu-2.main", "main: mig-1g-10gb-me.main"},
		},
		"an unknown kind of workload": {
			pod: pod("p", map[string]string{"nvidia.com/gpu": "1"}, func(p *corev1.Pod) {
				p.Spec.NodeName = "node-2"
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "ray", Controller: new(true)}}
			}), way: api.MigrationUnknown, reason: "where a RayCluster has its pod template is not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Find(t.Context(), mixed(test.pod), Options{})
			if err != nil || len(found.Workloads) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			w := &found.Workloads[0]
			if w.Way != test.way || !strings.Contains(w.Reason, test.reason) || !strings.Contains(strings.Join(w.Notes, "; "), test.notes) {
				t.Fatalf("%s: %s %q, want %s: %s %q", w.Way, w.Reason, w.Notes, test.way, test.reason, test.notes)
			}
			if test.verdict != api.Undetermined && w.Verdict != test.verdict {
				t.Errorf("%s: %s, want %s", w.Verdict, w.Summary, test.verdict)
			}
			if w.Way != api.MigrationClaims {
				if len(w.Templates)+len(w.Edits)+len(w.Commands) > 0 {
					t.Errorf("changes: %+v", w)
				}
				return
			}
			if diff := cmp.Diff(test.requests, requestsIn(t, w.Templates)); diff != "" {
				t.Errorf("requests, -want +got:\n%s", diff)
			}
			after, err := whatif.Edited(test.pod, w.Edits, "")
			if err != nil {
				t.Fatal(err)
			}
			if after.Spec.NodeName != "" {
				t.Errorf("the new pod is bound to node %s", after.Spec.NodeName)
			}
			var claims []string
			for _, c := range slices.Concat(after.Spec.InitContainers, after.Spec.Containers) {
				for _, claim := range c.Resources.Claims {
					claims = append(claims, c.Name+": "+claim.Name+"."+claim.Request)
				}
			}
			if diff := cmp.Diff(test.claims, claims); diff != "" {
				t.Errorf("claims, -want +got:\n%s", diff)
			}
			left := slices.DeleteFunc(cluster.ExtendedResources(after), func(name corev1.ResourceName) bool { return name == "example.com/rdma" })
			if len(left) > 0 {
				t.Errorf("the pod still asks for %v", left)
			}
			if len(w.Commands) == 0 {
				t.Error("no commands")
			}
		})
	}
}

// requestsIn lists the requests of templates.
func requestsIn(t *testing.T, templates []json.RawMessage) []string {
	t.Helper()
	var list []string
	for _, text := range templates {
		var template resourceapi.ResourceClaimTemplate
		if err := json.Unmarshal(text, &template); err != nil {
			t.Fatal(err)
		}
		for _, r := range template.Spec.Spec.Devices.Requests {
			text := template.Name + "." + r.Name + ": " + resource.NewQuantity(r.Exactly.Count, resource.DecimalSI).String() + " " + r.Exactly.DeviceClassName
			for _, s := range r.Exactly.Selectors {
				text += " " + s.CEL.Expression
			}
			list = append(list, text)
		}
	}
	return list
}

// TestGroups counts the pods of a workload once, and leaves out finished pods and other namespaces.
func TestGroups(t *testing.T) {
	owned := func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-template-hash": "abc"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", Controller: new(true)}}
	}
	gpu := map[string]string{"nvidia.com/gpu": "1"}
	found, err := Find(t.Context(), mixed(
		pod("done", gpu, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("plain", map[string]string{"cpu": "1"}, nil),
		pod("web-abc-1", gpu, owned), pod("web-abc-2", gpu, owned),
		pod("z", gpu, func(p *corev1.Pod) { p.Namespace = "other" }),
	), Options{Namespace: "ml"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Workloads) != 1 || found.Workloads[0].Object.Argument() != "deployment/web" || found.Workloads[0].Pods != 2 {
		t.Errorf("%+v", found.Workloads)
	}
}

// TestQuotas proposes a limit for claims where the class of a resource is known.
func TestQuotas(t *testing.T) {
	found, err := Find(t.Context(), mixed(), Options{})
	if err != nil || len(found.Quotas) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	if q := found.Quotas[0]; q.Resource != "requests.amd.com/gpu" || q.Becomes != "" || !strings.Contains(q.Reason, "no class") {
		t.Errorf("%+v", q)
	}
	want := `kubectl patch resourcequota gpus -n ml --type=merge -p '{"spec":{"hard":{"gpu.nvidia.com.deviceclass.resource.k8s.io/devices":"16"}}}'`
	if q := found.Quotas[1]; q.Becomes != "gpu.nvidia.com.deviceclass.resource.k8s.io/devices" || q.Hard != 16 || q.Commands[0] != want {
		t.Errorf("%+v", q)
	}
}

// TestServedMIG knows nothing about a resource that is a MIG device on some nodes and that a class
// serves on others, unless the user chose a class.
func TestServedMIG(t *testing.T) {
	c := mixed(pod("p", map[string]string{"nvidia.com/gpu": "1"}, func(p *corev1.Pod) { p.Spec.NodeName = "node-4" }))
	c.Snapshot.Classes[1].Spec.ExtendedResourceName = new("nvidia.com/gpu")
	c = cluster.New(c.Snapshot)
	found, err := Find(t.Context(), c, Options{})
	if err != nil || found.Workloads[0].Way != api.MigrationUnknown || !strings.Contains(found.Workloads[0].Reason, "is a MIG device on its nodes, and class gpu.nvidia.com") {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = Find(t.Context(), c, Options{Classes: map[string]string{"nvidia.com/gpu": "mig.nvidia.com"}})
	if err != nil || found.Workloads[0].Way != api.MigrationClaims || found.Workloads[0].Asks[0].Class != "mig.nvidia.com" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestChosenClass takes the class of the options, and fails if it does not exist.
func TestChosenClass(t *testing.T) {
	c := mixed(pod("p", map[string]string{"amd.com/gpu": "1"}, nil))
	found, err := Find(t.Context(), c, Options{Classes: map[string]string{"amd.com/gpu": "gpu.nvidia.com"}})
	if err != nil || found.Workloads[0].Way != api.MigrationClaims || found.Workloads[0].Asks[0].Class != "gpu.nvidia.com" || found.Workloads[0].Verdict != api.Fits {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = Find(t.Context(), c, Options{Classes: map[string]string{"amd.com/gpu": "none"}})
	if unknown := (*ClassError)(nil); !errors.As(err, &unknown) {
		t.Errorf("error %v", err)
	}
}

// TestNameable finds the class that lets workloads stay as they are with one more field, and finds none
// where that would not help.
func TestNameable(t *testing.T) {
	find := func(change func(*snapshot.Snapshot), pods ...*corev1.Pod) []api.MigrationClass {
		t.Helper()
		c := mixed(pods...)
		if change != nil {
			change(c.Snapshot)
		}
		found, err := Find(t.Context(), cluster.New(c.Snapshot), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Classes
	}
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	gpu := pod("gpu", map[string]string{"nvidia.com/gpu": "1"}, on("node-2"))
	pods := []*corev1.Pod{
		gpu, pod("gpu-and-rdma", map[string]string{"nvidia.com/gpu": "1", "example.com/rdma": "1"}, on("node-2")),
		pod("gpu-and-mig", map[string]string{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb.me": "1"}, on("node-2")),
		pod("mig-single", map[string]string{"nvidia.com/gpu": "1"}, on("node-4")), pod("sliced", map[string]string{"nvidia.com/gpu": "1"}, on("node-3")),
	}
	want := []api.MigrationClass{{
		Class: "gpu.nvidia.com", Resource: "nvidia.com/gpu", Devices: 3, Workloads: 2,
		Command: `kubectl patch deviceclass gpu.nvidia.com --type=merge -p '{"spec":{"extendedResourceName":"nvidia.com/gpu"}}'`,
	}}
	if diff := cmp.Diff(want, find(nil, pods...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, change := range map[string]func(*snapshot.Snapshot){
		"the feature is off":      func(s *snapshot.Snapshot) { s.Gates["DRAExtendedResource"] = snapshot.Gate{} },
		"another name":            func(s *snapshot.Snapshot) { s.Classes[1].Spec.ExtendedResourceName = new("example.com/gpu") },
		"a class without devices": func(s *snapshot.Snapshot) { s.Slices = nil },
	} {
		if found := find(change, gpu); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestDiff shows the template of a claim and the edit of a workload, without the node of one of its pods.
func TestDiff(t *testing.T) {
	c := mixed(pod("web-0", map[string]string{"nvidia.com/gpu": "1", "cpu": "1"}, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.ServiceAccountName = "node-2", "web"
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)}}
	}))
	found, err := Find(t.Context(), c, Options{Diffs: true})
	if err != nil {
		t.Fatal(err)
	}
	template, edit, both := strings.Cut(found.Workloads[0].Diff, "--- ml/statefulset/web\n")
	if !both || !strings.HasPrefix(template, "--- /dev/null\n+++ ml/resourceclaimtemplate/web-gpu\n@@ -0,0 +1,15 @@\n+apiVersion: resource.k8s.io/v1\n") {
		t.Errorf("%s", found.Workloads[0].Diff)
	}
	want := `+++ ml/statefulset/web
@@ -4,9 +4,13 @@
       containers:
       - name: main
         resources:
+          claims:
+          - name: gpu
+            request: main
           limits:
             cpu: "1"
-            nvidia.com/gpu: "1"
           requests:
             cpu: "1"
-            nvidia.com/gpu: "1"
+      resourceClaims:
+      - name: gpu
+        resourceClaimTemplateName: web-gpu
`
	if diff := cmp.Diff(want, edit); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// node returns a node with one resource, or none if the quantity is "".
func node(name, resourceName, quantity string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if quantity != "" {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse(quantity)}
	}
	return n
}

// TestServed groups nodes with the same offers, and finds hardware that is offered twice.
func TestServed(t *testing.T) {
	snap := &snapshot.Snapshot{
		Nodes: []*corev1.Node{
			node("both", "nvidia.com/gpu", "2", nil),
			node("cpu", "cpu", "64", nil),
			node("driver", "nvidia.com/gpu", "0", nil),
			node("nic", "example.com/nic", "2", nil),
			node("plugin-1", "nvidia.com/gpu", "8", nil),
			node("plugin-2", "nvidia.com/gpu", "8", nil),
		},
		Slices: []*resourceapi.ResourceSlice{
			tc.Slice("both", "gpu.nvidia.com", "both", tc.Devices(2)...).OnNode("both").ResourceSlice,
			tc.Slice("driver", "gpu.nvidia.com", "driver", tc.Devices(4)...).OnNode("driver").ResourceSlice,
			tc.Slice("fabric", "fabric.example.com", "fabric", tc.Devices(1)...).OnAllNodes().ResourceSlice,
			tc.Slice("nic", "gpu.nvidia.com", "nic", tc.Devices(1)...).OnNode("nic").ResourceSlice,
		},
	}
	gpu := []api.PluginOffer{{Resource: "nvidia.com/gpu", Allocatable: 8}}
	want := []api.MigrationNodes{
		{Count: 2, Names: []string{"plugin-1", "plugin-2"}, Plugins: gpu},
		{
			Count: 1, Names: []string{"both"}, Plugins: []api.PluginOffer{{Resource: "nvidia.com/gpu", Allocatable: 2}},
			Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 2, SameAs: []string{"nvidia.com/gpu"}}},
		},
		{Count: 1, Names: []string{"driver"}, Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 4}}},
		{
			Count: 1, Names: []string{"nic"}, Plugins: []api.PluginOffer{{Resource: "example.com/nic", Allocatable: 2}},
			Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 1}},
		},
	}
	if diff := cmp.Diff(want, served(cluster.New(snap), newPlugins(snap))); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// TestSharing tells sharing from labels alone, and nothing from a strategy without replicas.
func TestSharing(t *testing.T) {
	for name, test := range map[string]struct {
		resource string
		labels   map[string]string
		want     api.PluginSharing
	}{
		"no labels":           {"nvidia.com/gpu", nil, ""},
		"one replica":         {"nvidia.com/gpu", map[string]string{labelReplicas: "1", labelStrategy: "none"}, ""},
		"time-slicing":        {"nvidia.com/gpu", map[string]string{labelReplicas: "4", labelStrategy: "time-slicing"}, api.SharingTimeSlicing},
		"renamed":             {"nvidia.com/gpu.shared", map[string]string{labelReplicas: "4", labelStrategy: "time-slicing"}, api.SharingTimeSlicing},
		"MPS":                 {"nvidia.com/gpu", map[string]string{labelReplicas: "4", labelStrategy: "mps"}, api.SharingMPS},
		"an older plugin":     {"nvidia.com/gpu", map[string]string{labelReplicas: "4"}, api.SharingReplicas},
		"product alone":       {"nvidia.com/gpu", map[string]string{labelProduct: "Tesla-T4-SHARED"}, api.SharingReplicas},
		"not a number":        {"nvidia.com/gpu", map[string]string{labelReplicas: "many"}, ""},
		"MIG as nvidia/gpu":   {"nvidia.com/gpu", map[string]string{labelMIGStrategy: "single", labelProduct: "A100-SXM4-40GB-MIG-1g.5gb"}, api.SharingMIG},
		"whole GPU, strategy": {"nvidia.com/gpu", map[string]string{labelMIGStrategy: "single", labelProduct: "A100-SXM4-40GB"}, ""},
		"another resource":    {"amd.com/gpu", map[string]string{labelReplicas: "4"}, ""},
	} {
		if got := sharing(test.labels, corev1.ResourceName(test.resource)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestConfigured knows how the device plugin divides GPUs by its configuration, and says where labels of
// nodes differ from it.
func TestConfigured(t *testing.T) {
	policy := func(name, chosen string) []*snapshot.ClusterPolicy {
		p := &snapshot.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}
		p.Spec.MIG.Strategy, p.Spec.DevicePlugin.Config.Name, p.Spec.DevicePlugin.Config.Default = "single", name, chosen
		return []*snapshot.ClusterPolicy{p}
	}
	disabled := policy("plugin", "sliced")
	disabled[0].Spec.DevicePlugin.Enabled = new(false)
	configs := []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin"}, Data: map[string]string{
		"whole":  "version: v1",
		"sliced": "version: v1\nflags: {migStrategy: mixed}\nsharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
		"mps":    "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 2}]}, timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
	}}}
	mounts := func(node string) []*corev1.Pod {
		p := pod("plugin", nil, func(p *corev1.Pod) {
			p.Namespace, p.Spec.NodeName = "gpu-operator", node
			p.Spec.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}}},
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "plugin"}}}},
			}
		})
		return []*corev1.Pod{p}
	}
	for name, test := range map[string]struct {
		policies []*snapshot.ClusterPolicy
		pods     []*corev1.Pod
		labels   map[string]string
		resource string
		want     api.PluginSharing
		// contradiction is one of labels and configuration, unknown is a part of the reason why the
		// configuration is not known.
		contradiction, unknown string
	}{
		"the default":                 {policies: policy("plugin", "sliced"), want: api.SharingTimeSlicing},
		"renamed":                     {policies: policy("plugin", "sliced"), resource: "nvidia.com/gpu.shared", want: api.SharingTimeSlicing},
		"the label":                   {policies: policy("plugin", "sliced"), labels: map[string]string{labelConfig: "whole"}, want: ""},
		"no default":                  {policies: policy("plugin", ""), want: ""},
		"MPS in place of time-slices": {policies: policy("plugin", "mps"), want: ""},
		"MPS of MIG devices":          {policies: policy("plugin", "mps"), resource: "nvidia.com/mig-1g.10gb", want: api.SharingMPS},
		"labels say the same":         {policies: policy("plugin", "sliced"), labels: map[string]string{labelReplicas: "4", labelStrategy: "time-slicing", labelMIGStrategy: "single"}, want: api.SharingTimeSlicing},
		"labels say less":             {policies: policy("plugin", "sliced"), labels: map[string]string{labelReplicas: "1"}, want: api.SharingTimeSlicing, contradiction: "labels say no sharing, and sliced of ConfigMap gpu-operator/plugin says time-slicing"},
		"labels say more":             {policies: policy("plugin", "whole"), labels: map[string]string{labelReplicas: "4", labelStrategy: "mps"}, want: api.SharingMPS, contradiction: "labels say mps, and whole of ConfigMap gpu-operator/plugin says no sharing"},
		"another strategy":            {policies: policy("plugin", "sliced"), labels: map[string]string{labelMIGStrategy: "mixed"}, want: api.SharingTimeSlicing, contradiction: "labels say MIG strategy mixed, and sliced of ConfigMap gpu-operator/plugin says single"},
		"a mount, without a default":  {pods: mounts("n"), unknown: "ConfigMap gpu-operator/plugin has no configuration default"},
		"a mount and a label":         {pods: mounts("n"), labels: map[string]string{labelConfig: "sliced"}, want: api.SharingTimeSlicing},
		"a mount on another node":     {pods: mounts("other"), unknown: "there is no ClusterPolicy"},
		"an operator without plugin":  {policies: disabled, unknown: "there is no ClusterPolicy"},
		"a missing ConfigMap":         {policies: policy("other", "sliced"), unknown: "the snapshot does not have ConfigMap other"},
		"an unknown label":            {policies: policy("plugin", "sliced"), labels: map[string]string{labelConfig: "none"}, unknown: "ConfigMap gpu-operator/plugin has no configuration none"},
		"another vendor":              {policies: policy("plugin", "sliced"), resource: "amd.com/gpu", want: ""},
	} {
		if test.resource == "" {
			test.resource = "nvidia.com/gpu"
		}
		n := node("n", "nvidia.com/gpu", "4", test.labels)
		p := newPlugins(&snapshot.Snapshot{
			Nodes: []*corev1.Node{n}, Pods: test.pods, ClusterPolicies: test.policies, PluginConfigs: configs,
			Listed: []string{snapshot.ResourceClusterPolicies, snapshot.ResourcePluginConfigs},
		})
		resource := corev1.ResourceName(test.resource)
		got, contradiction := p.sharingOn(n, resource)
		if got != test.want || contradiction != test.contradiction {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, contradiction, test.want, test.contradiction)
		}
		if unknown := p.notConfigured(); (unknown != "") != (test.unknown != "") || !strings.Contains(unknown, test.unknown) {
			t.Errorf("%s: unknown: %q, want %q", name, unknown, test.unknown)
		}
	}
}
