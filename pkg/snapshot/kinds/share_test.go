// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// objects returns the nodes, pods, claims and slices of a snapshot.
func objects(s *snapshot.Snapshot) []metav1.Object {
	var all []metav1.Object
	for _, node := range s.Nodes {
		all = append(all, node.DeepCopy())
	}
	for _, pod := range s.Pods {
		all = append(all, pod.DeepCopy())
	}
	for _, claim := range s.Claims {
		all = append(all, claim.DeepCopy())
	}
	for _, slice := range s.Slices {
		all = append(all, slice.DeepCopy())
	}
	return all
}

// TestObjectsSayTheSame shares parts of all objects of clusters with all kinds of devices.
func TestObjectsSayTheSame(t *testing.T) {
	for name, s := range map[string]*snapshot.Snapshot{
		"fleet": fleet.Mixed(200), "everything": testsnapshot.Load(t, testsnapshot.Everything()),
	} {
		before, after := objects(s), objects(s)
		sharer := kinds.NewSharer()
		for _, object := range after {
			sharer.Object(object)
		}
		for i := range before {
			if !reflect.DeepEqual(before[i], after[i]) {
				t.Errorf("%s: %T %s was changed to %v", name, before[i], before[i].GetName(), after[i])
			}
		}
	}
}

// TestWhatIsEqualIsThereOnce covers two pods of one workload, and two devices of one model.
func TestWhatIsEqualIsThereOnce(t *testing.T) {
	s := testsnapshot.Load(t, `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml, labels: {app: train}}
spec:
  containers: [{name: main, image: train, resources: {requests: {cpu: "1"}}}]
  tolerations: [{key: example.com/slow, operator: Exists}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A}, numa: {int: 0}, healthy: {bool: true}, firmware: {version: 1.2.3}}
    capacity: {memory: {value: 80Gi}}
`)
	sharer := kinds.NewSharer()
	pod := func() *corev1.Pod {
		pod := s.Pods[0].DeepCopy()
		sharer.Object(pod)
		return pod
	}
	a, b := pod(), pod()
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Tolerations[0] != &b.Spec.Tolerations[0] ||
		reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("equal pods have containers, tolerations or labels of their own")
	}
	device := func() *resourceapi.Device {
		slice := s.Slices[0].DeepCopy()
		sharer.Object(slice)
		return &slice.Spec.Devices[0]
	}
	x, y := device(), device()
	for name, attribute := range x.Attributes {
		other := y.Attributes[name]
		if attribute.StringValue != other.StringValue || attribute.VersionValue != other.VersionValue || attribute.IntValue != other.IntValue || attribute.BoolValue != other.BoolValue {
			t.Errorf("the values of attribute %s are apart", name)
		}
	}
	if reflect.ValueOf(x.Capacity).Pointer() != reflect.ValueOf(y.Capacity).Pointer() {
		t.Error("equal capacities are apart")
	}
}

// TestOthersStayApart covers pods that differ in what a hash does not look at.
func TestOthersStayApart(t *testing.T) {
	sharer := kinds.NewSharer()
	for _, command := range []string{"a", "b", "a"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", WorkingDir: command}}}}
		sharer.Object(pod)
		if got := pod.Spec.Containers[0].WorkingDir; got != command {
			t.Errorf("a container has %q of another pod instead of %q", got, command)
		}
	}
}
