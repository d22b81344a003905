// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestWrittenExpressionsAreAllocated puts each expression that "attributes" and
// "cel --from-device" write into a claim of a class that selects everything: the
// real scheduler has to allocate a device for which it is true.
func TestWrittenExpressionsAreAllocated(t *testing.T) {
	c := startCluster(t, everything())
	const id = "written"
	c.createAll(t, id, strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: $C}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $C}
---
apiVersion: v1
kind: Node
metadata: {name: $C, labels: {kubernetes.io/hostname: $C}}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $C-gpus}
spec:
  driver: $C.example.com
  nodeName: $C
  pool: {name: $C, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {productName: {string: Atlas-80}, cores: {int: 8}, ecc: {bool: true}, driverVersion: {version: 535.1.0}, uuid: {string: u-0}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-1, attributes: {productName: {string: Atlas-141}, cores: {int: 12}, ecc: {bool: false}, driverVersion: {version: 550.54.15}, uuid: {string: u-1}}, capacity: {memory: {value: 141Gi}}}
  - {name: gpu-2, attributes: {productName: {string: Atlas-141}, cores: {int: 12}, ecc: {bool: true}, driverVersion: {version: 550.54.15}, uuid: {string: u-2}}, capacity: {memory: {value: 141Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $C-nics}
spec:
  driver: nic-$C.example.com
  nodeName: $C
  pool: {name: $C, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: nic-0, attributes: {speed: {int: 100}}}`, "$C", id))
	defer c.deletePods(t, id)

	written := map[string]string{}
	var list listOf[api.Attribute]
	c.askJSON(t, &list, "attributes")
	for i := range list.Items {
		if written[list.Items[i].Name] = list.Items[i].Expression; list.Items[i].Expression == "" {
			t.Errorf("there is no expression for %s", list.Items[i].Name)
		}
	}
	for _, device := range []string{"gpu-0", "gpu-1", "nic-0"} {
		var e api.Evaluation
		c.askJSON(t, &e, "cel", "--from-device", device)
		for i, expression := range e.Like.Selectors {
			written[fmt.Sprintf("%s/%d", device, i)] = expression
		}
		if len(e.Like.Selectors) == 0 {
			t.Errorf("there is no expression for %s", device)
		}
	}
	number := 0
	for name, expression := range written {
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			number++
			c.allocates(t, id, fmt.Sprintf("p%d", number), expression)
		})
	}
}

// askJSON reads what the program prints.
func (c *cluster) askJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	got := invoke(t.Context(), c.kubeconfig, append(args, "-o", "json")...)
	if got.code != 0 {
		t.Fatalf("%v: %+v", args, got)
	}
	if err := json.Unmarshal([]byte(got.out), into); err != nil {
		t.Fatal(err)
	}
}

// allocates gives a pod a claim with an expression, and wants the device that it
// gets to be one for which the program says that it is true.
func (c *cluster) allocates(t *testing.T, id, name, expression string) {
	t.Helper()
	var e api.Evaluation
	c.askJSON(t, &e, "cel", expression)
	claim := &resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "device", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: id, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
				Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}},
			},
		}}}},
	}
	if _, err := c.kube.ResourceV1().ResourceClaims(id).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatalf("the API server refuses %s: %v", expression, err)
	}
	c.createAll(t, id, strings.NewReplacer("$C", id, "$P", name).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: $P, namespace: $C}
spec:
  nodeSelector: {kubernetes.io/hostname: $C}
  resourceClaims: [{name: device, resourceClaimName: $P}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: device}]}}]`))
	if got := c.decision(t.Context(), id, name, func(decision) bool { return false }); got.reason != scheduled {
		t.Fatalf("%s: the pod is not scheduled: %+v", expression, got)
	}
	allocated, err := c.kube.ResourceV1().ResourceClaims(id).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result := allocated.Status.Allocation.Devices.Results[0]
	device := result.Driver + "/" + result.Pool + "/" + result.Device
	found := false
	for _, matching := range e.Matching {
		found = found || matching == device
	}
	if !found {
		t.Errorf("%s: the scheduler allocated %s, which is not among %v", expression, device, e.Matching)
	}
	// The next expression may be about the same device.
	c.deletePods(t, id)
	if err := c.kube.ResourceV1().ResourceClaims(id).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPrompt works with the prompt in a real terminal.
func TestPrompt(t *testing.T) {
	p := programFor(t, filepath.Join(t.TempDir(), "none"))
	example, err := filepath.Abs(filepath.Join("..", "examples", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, p, 100, 30, "cel", "--snapshot", example, "--class", "gpu.example.com")
	term.shows("60 devices of class gpu.example.com", "tab complete")
	term.types(`device.attributes["gpu.example.com"].pro`)
	term.keys("Tab")
	term.types(` == "A`)
	term.keys("Tab")
	term.shows(`productName == "Atlas-80"`, "true 52   false 8   fails 0   of 60 devices")
	term.keys("Enter")
	term.shows("True for 52 of 60 devices", "By driver", "> device.attributes")
	term.keys("Up")
	term.types(" && false")
	term.shows("true 0   false 60")
	term.keys("C-c")
	term.shows("ended with 0", "", "tab complete")

	// The next one remembers.
	term = openTerminal(t, p, 80, 24, "cel", "--snapshot", example)
	term.shows("104 devices", "tab complete")
	term.keys("Up")
	term.shows(`productName == "Atlas-80"`, "true 80   false 8   fails 16   of 104 devices")
	term.keys("C-c")
}
