// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// lintBases returns objects that the API server takes, and lint has no error about.
func lintBases() map[string]string {
	return map[string]string{
		"claim": `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: base}
spec:
  devices:
    requests:
    - name: one
      exactly:
        deviceClassName: gpu
        count: 2
        selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
        tolerations: [{key: example.com/t, operator: Equal, value: v, effect: NoSchedule}]
    - name: two
      firstAvailable:
      - {name: large, deviceClassName: gpu, count: 2}
      - {name: small, deviceClassName: gpu}
    constraints: [{requests: [one, two], matchAttribute: example.com/root}]
    config: [{requests: [one], opaque: {driver: gpu.example.com, parameters: {mode: fast}}}]
`,
		"template": `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: base}
spec: {spec: {devices: {requests: [{name: one, exactly: {deviceClassName: gpu}}]}}}
`,
		"class": `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: base}
spec:
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
  config: [{opaque: {driver: gpu.example.com, parameters: {mode: fast}}}]
  extendedResourceName: example.com/gpu
`,
		"slice": `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: base}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: x}, example.com/version: {version: 1.2.3}, cores: {int: 8}}
    capacity: {memory: {value: 80Gi}}
    taints: [{key: example.com/t, value: v, effect: NoSchedule}]
  - name: gpu-1
`,
		"shared": `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: base}
spec:
  driver: gpu.example.com
  allNodes: true
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    allowMultipleAllocations: true
    capacity: {memory: {value: 80Gi, requestPolicy: {default: 10Gi, validRange: {min: 10Gi, max: 80Gi, step: 10Gi}}}, cores: {value: 8, requestPolicy: {default: 1, validValues: [1, 2, 4]}}}
    consumesCounters: [{counterSet: board, counters: {slots: {value: 1}}}]
`,
		"counters": `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: base}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}
  pool: {name: node-1, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: board, counters: {slots: {value: 8}}}]
`,
		"rule": `
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: base}
spec: {deviceSelector: {driver: gpu.example.com, pool: node-1, device: gpu-0}, taint: {key: example.com/t, effect: NoExecute}}
`,
		"pod": `
apiVersion: v1
kind: Pod
metadata: {name: base}
spec:
  resourceClaims: [{name: one, resourceClaimName: c}, {name: two, resourceClaimTemplateName: t}]
  initContainers: [{name: init, image: i}]
  containers:
  - {name: main, image: i, resources: {claims: [{name: one}, {name: two, request: r}], limits: {deviceclass.resource.kubernetes.io/gpu: "1"}}}
`,
		"deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: base}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      resourceClaims: [{name: one, resourceClaimTemplateName: t}]
      containers: [{name: main, image: i, resources: {claims: [{name: one}]}}]
`,
	}
}

// lintChanges are changes of the bases, as "base path: value": of each, lint and the
// API server have to say the same. A value of "-" removes the field.
const lintChanges = `
claim spec.devices.requests[0].name: Bad_Name
claim spec.devices.requests[0].name: two
claim spec.devices.requests[0].name: "-"
claim spec.devices.requests[0].name: {not: text}
claim spec.devices.requests[0].exactly: "-"
claim spec.devices.requests[1].firstAvailable: []
claim spec.devices.requests[1].exactly: {deviceClassName: gpu}
claim spec.devices.requests[0].exactly.deviceClassName: "-"
claim spec.devices.requests[0].exactly.deviceClassName: ""
claim spec.devices.requests[0].exactly.deviceClassName: Gpu
claim spec.devices.requests[0].deviceClassName: gpu
claim spec.devices.requests[0].exactly.count: 0
claim spec.devices.requests[0].exactly.count: -1
claim spec.devices.requests[0].exactly.count: "2"
claim spec.devices.requests[0].exactly.count: 40
claim spec.devices.requests[0].exactly.allocationMode: All
claim spec.devices.requests[0].exactly.allocationMode: Some
claim spec.devices.requests[1].firstAvailable[0].allocationMode: Some
claim spec.devices.requests[1].firstAvailable[0].name: small
claim spec.devices.requests[1].firstAvailable[0].name: "-"
claim spec.devices.requests[1].firstAvailable[0].name: a/b
claim spec.devices.requests[1].firstAvailable[0].count: -3
claim spec.devices.requests[1].firstAvailable[0].deviceClassName: "-"
claim spec.devices.requests[1].firstAvailable[0].adminAccess: true
claim spec.devices.requests[0].exactly.adminAccess: true
claim spec.devices.requests[0].exactly.selectors: [{}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: ""}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: device.drver == "x"}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: '1 + 1'}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: 'device.capacity["a"].memory >= quantity("1Gi")'}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: 'device.capacity["a"].memory == "80Gi"'}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: 'device.attributes["a"].v.isGreaterThan(semver("01.2.3"))'}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: 'device.capacity["a"].m.isGreaterThan(quantity("8 GB"))'}}]
claim spec.devices.requests[0].exactly.selectors: [{cel: {expression: 'device.attributes["d"].all(a, device.attributes["d"].all(b, device.attributes["d"].all(c, device.attributes["d"].all(d, a == b || c == d))))'}}]
claim spec.devices.requests[0].exactly.tolerations: [{operator: Exists}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a, operator: Exists, value: v}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a b, operator: Exists}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a, operator: Near}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a, operator: Exists, effect: Never}]
claim spec.devices.requests[0].exactly.tolerations: [{key: a, operator: Equal, value: "a b"}]
claim spec.devices.constraints[0].requests: [three]
claim spec.devices.constraints[0].requests: [one, one]
claim spec.devices.constraints[0].requests: [two/small]
claim spec.devices.constraints[0].requests: [two/none]
claim spec.devices.constraints[0].requests: [a/b/c]
claim spec.devices.constraints[0].requests: "-"
claim spec.devices.constraints[0].matchAttribute: root
claim spec.devices.constraints[0].matchAttribute: "-"
claim spec.devices.constraints[0].matchAttribute: a b/root
claim spec.devices.constraints[0].matchAttribute: example.com/1root
claim spec.devices.constraints[0].matchAttribute: example.com/
claim spec.devices.constraints[0].matchAttribute: example.com/a-b
claim spec.devices.constraints[0].distinctAttribute: example.com/other
claim spec.devices.config[0].requests: [none]
claim spec.devices.config[0].opaque: "-"
claim spec.devices.config[0].opaque.driver: "-"
claim spec.devices.config[0].opaque.driver: a b
claim spec.devices.config[0].opaque.driver: nic.example.com
claim spec.devices.config[0].opaque.parameters: "-"
claim spec.devices.config[0].opaque.parameters: []
claim spec.devices.config[0].opaque.parameters: 5
claim spec.device: {}
claim spec.devices.requests: 5
claim spec.devices.requests: "-"
claim metadata.name: Bad
claim metadata.name: "-"
claim apiVersion: resource.k8s.io/v1beta1
template spec.spec.devices.requests[0].exactly.count: -1
template spec.spec.devices.requests[0].exactly.deviceClassName: "-"
template spec.spec.devices.requests[0].exactly.selectors: [{cel: {expression: "true"}}]
template spec.devices: {}
class spec.selectors: [{cel: {expression: "device"}}]
class spec.selectors: "-"
class spec.selectors: [{}]
class spec.config: [{}]
class spec.config[0].opaque.driver: ""
class spec.config[0].opaque.parameters: text
class spec.extendedResourceName: gpu
class spec.extendedResourceName: kubernetes.io/gpu
class spec.extendedResourceName: requests.example.com/gpu
class spec.extendedResourceName: deviceclass.resource.kubernetes.io/gpu
class spec: "-"
class metadata.name: a_b
slice spec.driver: ""
slice spec.driver: Gpu.example.com
slice spec.driver: a_b
slice spec.nodeName: "-"
slice spec.nodeName: ""
slice spec.nodeName: A B
slice spec.allNodes: true
slice spec.allNodes: false
slice spec.perDeviceNodeSelection: true
slice spec.perDeviceNodeSelection: false
slice spec.pool.name: a/b
slice spec.pool.name: A
slice spec.pool.name: ""
slice spec.pool.generation: -1
slice spec.pool.resourceSliceCount: 0
slice spec.devices[0].name: gpu-1
slice spec.devices[0].name: gpu.0
slice spec.devices[0].nodeName: node-1
slice spec.devices[0].attributes.model: {}
slice spec.devices[0].attributes.model: {string: a, int: 1}
slice spec.devices[0].attributes.model: {string: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
slice spec.devices[0].attributes.model: {version: 1.02.3}
slice spec.devices[0].attributes.model: {version: v1.2.3}
slice spec.devices[0].attributes.model: {version: "1.2"}
slice spec.devices[0].attributes.model: {version: 1.2.3-rc.01}
slice spec.devices[0].attributes.model: {version: 1.2.3-rc.1+b.01}
slice spec.devices[0].attributes.mo-del: {int: 1}
slice spec.devices[0].attributes["a/b/c"]: {int: 1}
slice spec.devices[0].attributes["a b/c"]: {int: 1}
slice spec.devices[0].attributes["/c"]: {int: 1}
slice spec.devices[0].attributes.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {int: 1}
slice spec.devices[0].capacity.memory: {value: 80 GB}
slice spec.devices[0].capacity.memory: {value: 1, requestPolicy: {default: 1}}
slice spec.devices[0].capacity.mem-ory: {value: 1}
slice spec.devices[0].taints[0].effect: "-"
slice spec.devices[0].taints[0].effect: Never
slice spec.devices[0].taints[0].effect: None
slice spec.devices[0].taints[0].key: "-"
slice spec.devices[0].taints[0].value: a b
slice spec.devices[0].bindingConditions: [a]
slice spec.devices[0].basic: {}
slice spec.sharedCounters: [{name: board, counters: {slots: {value: 8}}}]
shared spec.devices[0].allowMultipleAllocations: false
shared spec.devices[0].capacity.memory.requestPolicy.default: "-"
shared spec.devices[0].capacity.memory.requestPolicy.default: 5Gi
shared spec.devices[0].capacity.memory.requestPolicy.default: 15Gi
shared spec.devices[0].capacity.memory.requestPolicy.default: 90Gi
shared spec.devices[0].capacity.memory.requestPolicy.validRange.min: "-"
shared spec.devices[0].capacity.memory.requestPolicy.validRange.min: 100Gi
shared spec.devices[0].capacity.memory.requestPolicy.validRange.max: 5Gi
shared spec.devices[0].capacity.memory.requestPolicy.validRange.max: 100Gi
shared spec.devices[0].capacity.memory.requestPolicy.validRange.max: 75Gi
shared spec.devices[0].capacity.memory.requestPolicy.validRange.step: 0
shared spec.devices[0].capacity.memory.requestPolicy.validRange.step: 75Gi
shared spec.devices[0].capacity.memory.requestPolicy.validValues: [10Gi]
shared spec.devices[0].capacity.cores.requestPolicy.default: 3
shared spec.devices[0].capacity.cores.requestPolicy.validValues: [2, 1]
shared spec.devices[0].capacity.cores.requestPolicy.validValues: [1, 1]
shared spec.devices[0].capacity.cores.requestPolicy.validValues: [1, 16]
shared spec.devices[0].consumesCounters[0].counterSet: "-"
shared spec.devices[0].consumesCounters[0].counters: {}
shared spec.devices[0].consumesCounters[0].counters: {Slots: {value: 1}}
shared spec.devices[0].consumesCounters: [{counterSet: a, counters: {s: {value: 1}}}, {counterSet: a, counters: {s: {value: 1}}}]
shared spec.devices[0].consumesCounters: [{counterSet: a, counters: {s: {value: 1}}}, {counterSet: b, counters: {s: {value: 1}}}, {counterSet: c, counters: {s: {value: 1}}}]
counters spec.sharedCounters[0].name: A
counters spec.sharedCounters[0].name: "-"
counters spec.sharedCounters[0].counters: {}
counters spec.sharedCounters[0].counters: {A: {value: 1}}
counters spec.sharedCounters: [{name: a, counters: {s: {value: 1}}}, {name: a, counters: {s: {value: 1}}}]
counters spec.nodeSelector.nodeSelectorTerms: []
counters spec.nodeSelector: "-"
rule spec.deviceSelector.driver: a b
rule spec.deviceSelector.pool: A
rule spec.deviceSelector.device: a.b
rule spec.deviceSelector: {}
rule spec.deviceSelector: "-"
rule spec.deviceSelector.deviceClassName: gpu
rule spec.taint.effect: Never
rule spec.taint.effect: "-"
rule spec.taint.key: "-"
rule spec.taint.value: a b
pod spec.resourceClaims[0].name: two
pod spec.resourceClaims[0].name: "-"
pod spec.resourceClaims[0].name: A
pod spec.resourceClaims[0].resourceClaimName: "-"
pod spec.resourceClaims[0].resourceClaimTemplateName: t
pod spec.resourceClaims[0].resourceClaimName: A
pod spec.resourceClaims[0].source: {resourceClaimName: c}
pod spec.resourceClaims: []
pod spec.resourceClaims: [{name: one, resourceClaimName: c}, {name: two, resourceClaimTemplateName: t}, {name: three, resourceClaimName: d}]
pod spec.containers[0].resources.claims: [{name: three}]
pod spec.containers[0].resources.claims: [{name: one}, {name: one}]
pod spec.containers[0].resources.claims: [{name: one, request: a}, {name: one, request: b}]
pod spec.containers[0].resources.claims: [{name: one, request: a}, {name: one}]
pod spec.containers[0].resources.claims: [{name: one, request: A_B}]
pod spec.containers[0].resources.claims: [one]
pod spec.initContainers[0].resources: {claims: [{name: three}]}
pod spec.initContainers[0].resources: {claims: [{name: one}]}
pod spec.containers[0].resources.requests: {deviceclass.resource.kubernetes.io/gpu: "2"}
pod spec.containers[0].resources.requests: {deviceclass.resource.kubernetes.io/gpu: "1"}
pod spec.containers[0].resources: {requests: {deviceclass.resource.kubernetes.io/gpu: "1"}}
pod spec.containers[0].resources: {requests: {deviceclass.resource.kubernetes.io/gpu: "1"}, limits: {deviceclass.resource.kubernetes.io/gpu: "2"}}
pod spec.containers[0].resources: {requests: {example.com/gpu: "1"}}
pod spec.containers[0].resources: {requests: {example.com/gpu: "1"}, limits: {example.com/gpu: "2"}}
pod spec.containers[0].resources: {limits: {example.com/gpu: "2"}}
deployment spec.template.spec.resourceClaims[0].resourceClaimTemplateName: "-"
deployment spec.template.spec.resourceClaims[0].resourceClaimName: c
deployment spec.template.spec.containers[0].resources.claims: [{name: two}]
deployment spec.template.spec.resourceClaims[0].source: {resourceClaimName: c}
`

// rejecting returns the checks that say that the API server, or kubectl, rejects.
func rejecting() []string {
	return []string{"DRA2001", "DRA2002", "DRA2003", "DRA2004", "DRA2005", "DRA2006", "DRA2009", "DRA2102", "DRA2104", "DRA2106", "DRA2206", "DRA2301", "DRA2302"}
}

// TestLintAgreesWithTheServer holds what lint says to be rejected against a real API
// server, to which each object is sent as server-side dry run.
func TestLintAgreesWithTheServer(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	for name, base := range lintBases() {
		t.Run(name, func(t *testing.T) { c.compareLint(t, base) })
	}
	for line := range strings.Lines(strings.TrimSpace(lintChanges)) {
		line = strings.TrimSpace(line)
		t.Run(line, func(t *testing.T) {
			base, change, _ := strings.Cut(line, " ")
			path, text, ok := strings.Cut(change, ": ")
			var object, value any
			if err := yaml.Unmarshal([]byte(lintBases()[base]), &object); err != nil || !ok {
				t.Fatal(err, line)
			}
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				t.Fatal(err)
			}
			if object = changed(object, lintPath(path), value); object == nil {
				t.Fatalf("there is no %s", path)
			}
			written, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			c.compareLint(t, string(written))
		})
	}
}

// compareLint asks both about one object.
func (c *cluster) compareLint(t *testing.T, text string) {
	t.Helper()
	texts, err := files.Texts(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: extended}, spec: {extendedResourceName: example.com/gpu}}\n")})
	if err != nil {
		t.Fatal(err)
	}
	report, err := lint.Lint(t.Context(), texts, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range report.Findings {
		if slices.Contains(rejecting(), f.Code) {
			said = append(said, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Code, f.Message))
		}
	}
	rejection := c.dryRun(t, text)
	if (rejection != nil) != (len(said) > 0) {
		t.Errorf("the API server says %v, lint says %q of\n%s", rejection, said, text)
	}
}

func (c *cluster) dryRun(t *testing.T, text string) error {
	t.Helper()
	object, err := parseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	mapping.Resource.Version = kind.Version
	var client dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == "namespace" {
		client = c.dynamic.Resource(mapping.Resource).Namespace("default")
	}
	_, err = client.Create(t.Context(), &unstructured.Unstructured{Object: object.Object}, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		t.Fatalf("send it to the API server: %v", err)
	}
	return err
}

func lintPath(path string) []string {
	var tokens []string
	for path != "" {
		switch {
		case strings.HasPrefix(path, `["`):
			end := strings.Index(path, `"]`)
			tokens, path = append(tokens, path[2:end]), path[end+2:]
		case path[0] == '.':
			path = path[1:]
		case path[0] == '[':
			end := strings.IndexByte(path, ']')
			tokens, path = append(tokens, path[1:end]), path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			tokens, path = append(tokens, path[:end]), path[end:]
		}
	}
	return tokens
}

// changed sets a field of an object, or removes it; nil if there is no such place.
func changed(object any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch object := object.(type) {
	case map[string]any:
		if len(path) == 1 && value == "-" {
			delete(object, path[0])
			return object
		}
		if object[path[0]] == nil && len(path) > 1 {
			return nil
		}
		object[path[0]] = changed(object[path[0]], path[1:], value)
		return object
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(object) {
			return nil
		}
		object[i] = changed(object[i], path[1:], value)
		return object
	default:
		return nil
	}
}
