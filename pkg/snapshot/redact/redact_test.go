// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func TestRedactLeavesNothing(t *testing.T) {
	s := testsnapshot.Load(t, testsnapshot.Everything())
	original := testsnapshot.Load(t, testsnapshot.Everything())
	redacted := Snapshot(s)
	requireEqual(t, original, s)
	for _, format := range []files.Format{files.JSON, files.YAML} {
		var saved bytes.Buffer
		if err := files.Write(&saved, redacted, format); err != nil {
			t.Fatal(err)
		}
		// Whatever is secret in there has one of these.
		secret := regexp.MustCompile(`.*(acme|mallory|10\.\d+\.\d+\.\d+|fd00|aa:bb|11111111|GPU-9999).*`)
		if leak := secret.FindString(saved.String()); leak != "" {
			t.Errorf("%s: left in the output: %s", format, leak)
		}
		requireEqual(t, redacted, testsnapshot.Load(t, saved.String()))
	}
	requireEqual(t, redacted, Snapshot(s))
}

func TestRedactKeepsRelations(t *testing.T) {
	s := Snapshot(testsnapshot.Load(t, testsnapshot.Everything()))
	node, slice, claim, pod := s.Nodes[0], s.Slices[0], s.Claims[0], s.Pods[0]
	device := slice.Spec.Devices[0]
	same := func(what string, values ...string) {
		t.Helper()
		if values[0] == "" || slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			t.Errorf("%s: got %q", what, values)
		}
	}
	same("node", "node-0001", node.Name, *slice.Spec.NodeName, slice.Spec.Pool.Name, *device.Attributes["host"].StringValue,
		slice.OwnerReferences[0].Name, node.Labels[corev1.LabelHostname], claim.Status.Allocation.Devices.Results[0].Pool,
		claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0], pod.Spec.NodeName,
		*s.TaintRules[0].Spec.DeviceSelector.Pool, s.Events[0].Source.Host)
	same("pod", "pod-0001", pod.Name, s.Queued[0].OwnerReferences[0].Name, claim.OwnerReferences[0].Name, claim.Status.ReservedFor[0].Name, s.Events[0].InvolvedObject.Name)
	same("pod UID", string(pod.UID), string(claim.OwnerReferences[0].UID), string(claim.Status.ReservedFor[0].UID))
	same("claim", "claim-0001", claim.Name, *pod.Status.ResourceClaimStatuses[0].ResourceClaimName)
	same("template", "template-0001", s.Templates[0].Name, *pod.Spec.ResourceClaims[0].ResourceClaimTemplateName)
	same("claim of the pod", pod.Spec.ResourceClaims[0].Name, pod.Status.ResourceClaimStatuses[0].Name,
		pod.Spec.Containers[0].Resources.Claims[0].Name, claim.Annotations["resource.kubernetes.io/pod-claim-name"])
	same("namespace", "namespace-0001", s.Namespaces[0].Name, pod.Namespace, s.Gaps[0].Namespace)
	same("driver", "gpu.example.com", slice.Spec.Driver, s.Classes[0].Name)
	same("device", "gpu-0", device.Name, claim.Status.Allocation.Devices.Results[0].Device)
	same("value that an expression wants", "GPU-77777777-2222-4333-8444-555555555555", *device.Attributes["wanted"].StringValue)
	same("model", "H100", *device.Attributes["model"].StringValue)
	same("expression", `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].host in ["node-0001", "other"]`,
		s.Classes[0].Spec.Selectors[0].CEL.Expression)
	same("selector of the workload", s.Workloads[4].Selector.MatchLabels["app"], s.Workloads[4].Template.Labels["app"], pod.Labels["app"])
	same("taint of the node", node.Spec.Taints[0].Value, pod.Spec.Tolerations[0].Value)

	plugin, _ := s.Workloads[1].KubeletPlugin()
	same("driver in a plugin", append(plugin, slice.Spec.Driver)...)
	same("dropped field", "spec.devices.requests[0].exactly.adminAccess", snapshot.DroppedFields(s.Claims[1])[0].Path)

	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	if ok, err := required.Match(node); !ok || err != nil {
		t.Errorf("the pod must still match its node: %v, %v", ok, err)
	}
	want := `Failed to prepare namespace-0001/name-0001 on node-0001: claim claim-0001 (uid ` + string(claim.UID) + `) at ip-0001 and ip-000`
	if got := s.Events[0].Message; !strings.HasPrefix(regexp.MustCompile(`name-\d+`).ReplaceAllString(
		regexp.MustCompile(`at ip-\d+`).ReplaceAllString(got, "at ip-0001"), "name-0001"), want) {
		t.Errorf("message: want %s\ngot: %s", want, got)
	}
}

func TestRedactKeepsOrder(t *testing.T) {
	order := []string{"z-9", "a-10", "b", "a-9", "node", "0a"}
	var text strings.Builder
	for _, name := range order {
		text.WriteString("---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {original: " + name + "}}\n" +
			"---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s-" + name + "}\n" +
			"spec: {driver: d, pool: {name: " + name + "-pool, resourceSliceCount: 1}, nodeName: " + name + "}\n")
	}
	s := testsnapshot.Load(t, text.String())
	redacted := Snapshot(s)
	for i := range s.Nodes {
		var before, after []int
		for j := range s.Nodes {
			before = append(before, strings.Compare(s.Slices[i].Spec.Pool.Name, s.Slices[j].Spec.Pool.Name))
			after = append(after, strings.Compare(redacted.Slices[i].Spec.Pool.Name, redacted.Slices[j].Spec.Pool.Name))
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("pool %s sorts differently (-want +got):\n%s", s.Slices[i].Spec.Pool.Name, diff)
		}
		if *redacted.Slices[i].Spec.NodeName != redacted.Nodes[slices.IndexFunc(s.Nodes, func(n *corev1.Node) bool {
			return n.Name == *s.Slices[i].Spec.NodeName
		})].Name {
			t.Errorf("slice %s is on another node", s.Slices[i].Name)
		}
	}
}

func TestRedactRenamesDevicesThatHoldNames(t *testing.T) {
	s := Snapshot(testsnapshot.Load(t, `
apiVersion: v1
kind: Node
metadata: {name: acme-node-1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: d, pool: {name: p, resourceSliceCount: 1}, devices: [{name: b-acme-node-1}, {name: a}]}
`))
	devices := s.Slices[0].Spec.Devices
	if devices[0].Name != "device-0002" || devices[1].Name != "device-0001" {
		t.Errorf("got %s, %s", devices[0].Name, devices[1].Name)
	}
}

func TestRedactReplacesNothingInsideWords(t *testing.T) {
	s := Snapshot(testsnapshot.Load(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"},
		"spec":{"containers":[{"name":"c","image":"x"},{"name":"d","image":"acme/train:1"}]},
		"status":{"conditions":[{"type":"PodScheduled","status":"False","message":"pod a/p: example.com took acme/train:10 for docker.io/acme/train:1, then \"acme/train:1\"."}]}}`))
	pod := s.Pods[0]
	if got := pod.Spec.Containers[0].Image; got == "x" {
		t.Error("the image x is still there")
	}
	image := pod.Spec.Containers[1].Image
	want := "pod " + pod.Namespace + "/" + pod.Name + ": … took …/…:… for " + image + ", then \"" + image + "\"."
	if got := pod.Status.Conditions[0].Message; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRedactPreview redacts what a preview noted about the slices in whose place it
// is.
func TestRedactPreview(t *testing.T) {
	slice := func(name, node string) string {
		return `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: ` + name + `}
spec: {driver: gpu.example.com, nodeName: ` + node + `, pool: {name: ` + node + `, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
`
	}
	laid, err := files.Preview(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(slice("acme-node-1-new", "acme-node-1"))})
	if err != nil {
		t.Fatal(err)
	}
	with := snapshot.WithPreview(testsnapshot.Load(t, slice("acme-node-1-gpu-x7w2k", "acme-node-1")+slice("acme-node-2-gpu-2vx6p", "acme-node-2")), laid)
	assumptions := strings.Join(snapshot.PreviewAssumptions(Snapshot(with)), "\n")
	if strings.Contains(assumptions, "acme") || !strings.Contains(assumptions, "in place of ResourceSlice slice-000") {
		t.Errorf("redacted: %s", assumptions)
	}
}

// TestRedactedJobsEnd keeps whether a Job is complete or has failed.
func TestRedactedJobsEnd(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"}, "spec": {"template": {"spec": {"containers": []}}},
		"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}]}}`)
	if end := Snapshot(s).Workloads[0].End; end == nil || *end != (snapshot.JobEnd{Condition: "Failed", Reason: "DeadlineExceeded"}) {
		t.Errorf("got %v", end)
	}
}

// TestRedactedJobsLimit keeps how long a Job runs at most, and that its pods have the same
// limit.
func TestRedactedJobsLimit(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml", "uid": "7a94b1b5-2f0e-4d2b-9a55-1f1b7c3c9f10"},
			"spec": {"activeDeadlineSeconds": 3600, "template": {"spec": {"containers": []}}}, "status": {"startTime": "2026-09-15T12:00:00Z"}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-x", "namespace": "ml", "uid": "0e2b1b5a-2f0e-4d2b-9a55-1f1b7c3c9f11",
			"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "7a94b1b5-2f0e-4d2b-9a55-1f1b7c3c9f10", "controller": true}]}, "spec": {"containers": []}}
	]}`)
	redacted := Snapshot(s)
	job, pod := redacted.Workloads[0], redacted.Pods[0]
	if job.Limit == nil || job.Limit.ActiveDeadlineSeconds != 3600 || !job.Limit.StartTime.Equal(&s.Workloads[0].Limit.StartTime) {
		t.Errorf("the limit is %v", job.Limit)
	}
	if owner := pod.OwnerReferences[0]; owner.UID != job.UID || owner.Name != job.Name || pod.Namespace != job.Namespace {
		t.Errorf("the pod is of %s %s, the Job is %s %s", owner.Name, owner.UID, job.Name, job.UID)
	}
}

// TestRedactKeepsDiscoveredSharing keeps the labels that say how a device plugin shares GPUs.
func TestRedactKeepsDiscoveredSharing(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {
		"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing", "example.com/owner": "acme"}}}`)
	labels := Snapshot(s).Nodes[0].Labels
	for _, key := range []string{"nvidia.com/gpu.product", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"} {
		if got, want := labels[key], s.Nodes[0].Labels[key]; got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if labels["example.com/owner"] == "acme" {
		t.Error("the owner is not redacted")
	}
}
