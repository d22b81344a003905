// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fleet returns a cluster with nodes "name gpus-of-the-plugin gpus-of-the-driver" and pods "owner node
// gpus". Pods without an owner have "-".
func fleet(t *testing.T, nodes, pods []string) *cluster.Cluster {
	t.Helper()
	snap := &snapshot.Snapshot{Classes: []*resourceapi.DeviceClass{class("gpu.nvidia.com", `device.driver == "gpu.nvidia.com"`, "")}}
	for _, text := range nodes {
		var name string
		var plugin, driver int
		if _, err := fmt.Sscan(text, &name, &plugin, &driver); err != nil {
			t.Fatal(err)
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, labelDeploy: "true"}}}
		n.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("110"), "cpu": resource.MustParse("96")}
		if plugin > 0 {
			n.Status.Allocatable[resourceGPU] = *resource.NewQuantity(int64(plugin), resource.DecimalSI)
		}
		snap.Nodes = append(snap.Nodes, n)
		if driver == 0 {
			continue
		}
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driverGPU, NodeName: &name, Pool: resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
		}}
		for i := range driver {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)})
		}
		snap.Slices = append(snap.Slices, slice)
	}
	for i, text := range pods {
		var owner, on, gpus string
		if _, err := fmt.Sscan(text, &owner, &on, &gpus); err != nil {
			t.Fatal(err)
		}
		snap.Pods = append(snap.Pods, pod(fmt.Sprintf("pod-%d", i), map[string]string{string(resourceGPU): gpus}, func(p *corev1.Pod) {
			p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(p.Name), on, corev1.PodRunning
			if owner != "-" {
				kind := "StatefulSet"
				if strings.HasPrefix(owner, "ds") {
					kind = "DaemonSet"
				}
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: types.UID(owner), Controller: new(true)}}
			}
		}))
	}
	return cluster.New(snap)
}

// stepLine sums up a step: nodes, devices and the node that has them, pods that leave, wait and move.
func stepLine(s *api.MigrationStep) string {
	text := fmt.Sprintf("%s: %d", strings.Join(s.Nodes, " "), s.Devices)
	if s.Like != "" {
		text += " as " + s.Like
	}
	text += fmt.Sprintf(", %d leave", s.Evicted)
	if s.Deleted > 0 {
		text += fmt.Sprintf(", %d deleted", s.Deleted)
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf(", %d wait", s.Waiting)
	}
	for _, o := range s.Moves {
		text += ", move " + o.Name
	}
	return text
}

// TestOrder switches the nodes with the fewest users first, says which pods wait meanwhile, and moves
// a workload once all of its pods fit.
func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		nodes, pods, want []string
		kept              map[string]string
		left              []string
		undecided         string
	}{
		"free nodes first": {
			nodes: []string{"a 8 0", "b 8 0", "d 0 8"}, pods: []string{"train a 4"},
			want: []string{"b: 8 as d, 0 leave, move train", "a: 8 as d, 0 leave"},
		},
		"hardware that is offered twice first": {
			nodes: []string{"a 8 0", "b 8 8"}, pods: []string{"train b 8", "infer b 1"},
			want: []string{"b: 8, 2 leave, move train", "a: 8 as b, 1 leave, move infer"},
		},
		"pods wait until the last step": {
			nodes: []string{"a 4 0", "b 4 0", "d 0 4"}, pods: []string{"big a 3", "big b 3", "big b 3"},
			want: []string{"a: 4 as d, 1 leave, 1 wait", "b: 4 as d, 2 leave, move big"},
		},
		"a workload that never fits": {
			nodes: []string{"a 8 0", "d 0 4"}, pods: []string{"big a 8", "small a 1"},
			want: []string{"a: 4 as d, 2 leave, 1 wait, move small"}, left: []string{"big"},
		},
		"pods that nothing creates again": {
			nodes: []string{"a 4 0", "d 0 4"}, pods: []string{"- a 2"},
			want: []string{"a: 4 as d, 0 leave, 1 deleted, move pod-0"},
		},
		"nothing is known of the driver": {
			nodes: []string{"a 4 0", "b 4 0"}, pods: []string{"train a 2"},
			want: []string{"b: 0, 0 leave"}, undecided: "gpu.nvidia.com will publish is not known",
		},
		"pods of a DaemonSet stay": {
			nodes: []string{"a 4 0", "b 4 0", "d 0 4"}, pods: []string{"ds-agent a 1", "train b 1"},
			want: []string{"b: 4 as d, 1 leave, move train"}, left: []string{"ds-agent"},
			kept: map[string]string{"a": "pods of ml daemonset/ds-agent have devices of the plugin"},
		},
		"many nodes in few steps": {
			nodes: []string{"a 4 0", "b 4 0", "c 4 0", "e 4 0", "f 4 0", "g 4 0", "h 4 0", "i 4 0", "j 4 0", "k 4 0", "l 4 0", "d 0 4"},
			want:  []string{"a b: 4 as d, 0 leave", "c e: 4 as d, 0 leave", "f g: 4 as d, 0 leave", "h i: 4 as d, 0 leave", "j k: 4 as d, 0 leave", "l: 4 as d, 0 leave"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Find(t.Context(), fleet(t, test.nodes, test.pods), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got, left []string
			for i := range found.Steps {
				got = append(got, stepLine(&found.Steps[i]))
			}
			if len(found.Kept) != len(test.kept) {
				t.Errorf("kept: %+v", found.Kept)
			}
			for _, k := range found.Kept {
				if test.kept[k.Node] == "" || !strings.HasPrefix(k.Reason, test.kept[k.Node]) {
					t.Errorf("kept: %+v", k)
				}
			}
			for _, o := range found.NotMoved {
				left = append(left, o.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if !slices.Equal(left, test.left) || !strings.Contains(found.Undecided, test.undecided) || found.Undecided != "" && test.undecided == "" {
				t.Errorf("not moved: %v, undecided: %q", left, found.Undecided)
			}
		})
	}
}

// TestOrderKeeps leaves nodes as they are whose devices are divided, or that a workload needs which
// cannot move.
func TestOrderKeeps(t *testing.T) {
	c := fleet(t, []string{"a 4 0", "shared 4 0", "d 0 4"}, []string{"train a 2", "notebook shared 1"})
	c.Snapshot.Nodes[1].Labels[labelReplicas] = "4"
	found, err := Find(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Kept) != 1 || found.Kept[0].Node != "shared" || !strings.Contains(found.Kept[0].Reason, "divides nvidia.com/gpu (replicas)") {
		t.Errorf("%+v", found.Kept)
	}
	if len(found.Steps) != 1 || stepLine(&found.Steps[0]) != "a: 4 as d, 1 leave, move train" {
		t.Errorf("%+v", found.Steps)
	}
	if diff := cmp.Diff([]string{
		"kubectl drain a --ignore-daemonsets --delete-emptydir-data", "kubectl label node a nvidia.com/gpu.deploy.device-plugin=false --overwrite",
		"# let the DaemonSet of driver gpu.nvidia.com select node a", `kubectl wait '--for=jsonpath={.status.allocatable.nvidia\.com/gpu}=0' node/a --timeout=15m && kubectl uncordon a`,
	}, found.Steps[0].Commands); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"kubectl rollout undo statefulset train -n ml", "kubectl drain a --ignore-daemonsets --delete-emptydir-data", "# let the DaemonSet of driver gpu.nvidia.com select node a no longer",
		"kubectl label node a nvidia.com/gpu.deploy.device-plugin=true --overwrite", "kubectl uncordon a",
	}, found.Steps[0].Back); diff != "" {
		t.Error(diff)
	}
	only, err := Find(t.Context(), c, Options{Namespace: "ml"})
	if err != nil || len(only.Steps)+len(only.Kept) > 0 {
		t.Errorf("%+v, %v", only.Steps, err)
	}
}

// TestClassWithoutDriver says why no step switches nodes whose class has no driver yet, and refuses a resource
// that nothing has.
func TestClassWithoutDriver(t *testing.T) {
	c := fleet(t, []string{"a 4 0", "d 0 4"}, []string{"train a 2"})
	c.Snapshot.Classes = append(c.Snapshot.Classes, class("mig.nvidia.com", "false", ""))
	c = cluster.New(c.Snapshot)
	found, err := Find(t.Context(), c, Options{Classes: map[string]string{"nvidia.com/gpu": "mig.nvidia.com"}})
	want := []api.MigrationKept{{Node: "a", Reason: "class mig.nvidia.com, for nvidia.com/gpu, selects no device, so that its driver is not known"}}
	if err != nil || !slices.Equal(found.Kept, want) {
		t.Errorf("%+v, %v", found, err)
	}
	options := Options{Classes: map[string]string{"nvidia.com/gpus": "gpu.nvidia.com"}}
	if _, err := Find(t.Context(), c, options); err == nil || !strings.Contains(err.Error(), "find extended resource nvidia.com/gpus: no node has it, no pod asks for it and no quota limits it; expected nvidia.com/gpu") {
		t.Error(err)
	}
	c.Snapshot.Gaps = []snapshot.Gap{{Resource: snapshot.ResourcePods, Reason: "may not list pods"}}
	if _, err := Find(t.Context(), cluster.New(c.Snapshot), options); err != nil {
		t.Errorf("with pods that could not be read: %v", err)
	}
}

// TestVerify compares the steps of an earlier plan with clusters.
func TestVerify(t *testing.T) {
	nodes, pods := []string{"a 4 0", "b 4 0", "d 0 4"}, []string{"big a 3", "big b 3", "small b 1"}
	plan, err := Find(t.Context(), fleet(t, nodes, pods), Options{})
	if err != nil || len(plan.Steps) != 2 || len(plan.Steps[0].Moves) == 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for name, test := range map[string]struct {
		nodes, pods []string
		// cordoned is a node, claims are numbers of pods that ask by claims.
		cordoned string
		claims   []int
		want     []string
	}{
		"nothing done": {nodes: nodes, pods: pods, want: []string{"NotTaken", "NotTaken"}},
		"as planned":   {nodes: []string{"a 0 4", "b 4 0", "d 0 4"}, pods: pods, claims: []int{0, 1, 2}, want: []string{"Taken", "NotTaken"}},
		"fewer devices": {
			nodes: []string{"a 0 3", "b 4 0", "d 0 4"}, pods: pods, claims: []int{0, 1, 2}, cordoned: "a",
			want: []string{"Differs: gpu.nvidia.com publishes 3 devices for node a, and 4 were expected; node a is cordoned", "NotTaken"},
		},
		"a workload left behind": {
			nodes: []string{"a 0 4", "b 0 4", "d 0 4"}, pods: pods, claims: []int{2},
			want: []string{"Differs: 2 pods of ml statefulset/big still ask for extended resources", "Taken"},
		},
		"moved, but not switched": {
			nodes: nodes, pods: pods, claims: []int{0, 1, 2},
			want: []string{"Differs: node a still offers 4 nvidia.com/gpu; gpu.nvidia.com publishes 0 devices for node a, and 4 were expected", "NotTaken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet(t, test.nodes, test.pods)
			for _, i := range test.claims {
				c.Snapshot.Pods[i].Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			}
			if n := c.Snapshot.Node(test.cordoned); n != nil {
				n.Spec.Unschedulable = true
			}
			found, err := Find(t.Context(), c, Options{Plan: plan})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, check := range found.Verified {
				text := string(check.State)
				if len(check.Findings) > 0 {
					text += ": " + strings.Join(check.Findings, "; ")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestServedElsewhere checks quotas and workloads whose resource a class names, with the feature on and
// off.
func TestServedElsewhere(t *testing.T) {
	find := func(enabled bool) *api.Migration {
		t.Helper()
		c := mixed(pod("rdma", map[string]string{"example.com/rdma": "1"}, nil))
		c.Snapshot.Gates["DRAExtendedResource"] = snapshot.Gate{Enabled: enabled}
		c.Snapshot.Quotas[0].Spec.Hard = corev1.ResourceList{"requests.example.com/rdma": resource.MustParse("2")}
		found, err := Find(t.Context(), cluster.New(c.Snapshot), Options{})
		if err != nil || len(found.Workloads) != 1 || len(found.Quotas) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		return found
	}
	found := find(true)
	if w, q := &found.Workloads[0], &found.Quotas[0]; w.Way != api.MigrationUnchanged || q.Becomes != "" || q.Reason != "it limits claims for class a.nic, too, which names the resource" {
		t.Errorf("%+v, %+v", w, q)
	}
	found = find(false)
	if w := &found.Workloads[0]; w.Way != api.MigrationUnknown || !strings.Contains(w.Reason, "class a.nic names example.com/rdma, but the feature gate DRAExtendedResource is off") {
		t.Errorf("%+v", w)
	}
}

// TestOrderWithGaps decides neither steps nor an earlier plan where claims could not be read, or the
// taints of devices.
func TestOrderWithGaps(t *testing.T) {
	c := fleet(t, []string{"a 4 0", "d 0 4"}, []string{"train a 2"})
	plan, err := Find(t.Context(), c, Options{})
	if err != nil || len(plan.Steps) == 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for _, resource := range []string{snapshot.ResourceClaims, snapshot.ResourceTaintRules} {
		c.Snapshot.Gaps = []snapshot.Gap{{Resource: resource, Reason: "may not list " + resource}}
		for given, want := range map[*api.Migration]string{nil: "the order is not decided: ", plan: "neither the order nor the earlier plan is decided: "} {
			found, err := Find(t.Context(), cluster.New(c.Snapshot), Options{Plan: given})
			if err != nil || len(found.Steps)+len(found.Verified) > 0 || found.Undecided != want+"may not list "+resource {
				t.Errorf("%+v, %v", found, err)
			}
		}
	}
}
