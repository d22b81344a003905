// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// remedyCase is a reason for which nothing fits, and a remedy for it. In all
// texts, $C stands for a name that only this case with this owner has: that of
// the namespace and of the class; driver $C.example.com has devices on the nodes
// $C-1 and $C-2. The pods use template t.
type remedyCase struct {
	name string
	// kinds are the kinds of all edits of the remedy; change is a part of its text, where
	// several remedies have these kinds.
	kinds  []whatif.EditKind
	change string
	// owners make the pods, all kinds of them if there are none; replicas is how
	// many pods a workload has, 2 if it is 0.
	owners   []string
	replicas int
	// target is the kind of the target: a pod of the workload if it is empty, "workload",
	// "template", or "podgroup" for the PodGroup gang. With "pod", a Trainer owns the pods, which
	// is not read: the remedy says what to change in it.
	target string
	// devices are the devices of each node; nodes is the number of nodes, 2 if it is 0.
	// node has further fields of the nodes.
	devices, node string
	nodes         int
	// class is the spec of the class, claim the spec of the template's claims.
	class, claim string
	// pod and container have further fields of the pods and their container.
	pod, container string
	// plain is true for pods without claims.
	plain bool
	// objects are created before the pods; labels are the labels of the namespace until
	// then.
	objects, labels string
	// without is true for a remedy without commands: somebody else, or time, makes its
	// edits.
	without bool
}

func remedyOwners() []string {
	return []string{"pod", "deployment", "replicaset", "statefulset", "job", "cronjob", "daemonset", "replicationcontroller", "trainer"}
}

func exactly(fields string) string {
	return "{devices: {requests: [{name: gpus, exactly: {deviceClassName: $C" + fields + "}}]}}"
}

// remedyCases returns every kind of edit; [TestRemediesWork] fails for one without a case.
func remedyCases() []remedyCase {
	kinds := func(list ...whatif.EditKind) []whatif.EditKind { return list }
	// What the commands do depends on the owner, and on whether they change a
	// template of claims or the pods. The first case of both has all owners.
	some, editable := []string{"pod", "job"}, []string{"pod", "deployment", "replicaset", "statefulset", "job", "cronjob", "replicationcontroller"}
	return []remedyCase{
		{name: "count", kinds: kinds(whatif.EditDeviceCount), claim: exactly(", count: 8")},
		{name: "count-of-workload", target: "workload", kinds: kinds(whatif.EditDeviceCount), owners: []string{"deployment", "job", "statefulset", "trainer"}, claim: exactly(", count: 8")},
		{name: "count-of-template", target: "template", kinds: kinds(whatif.EditDeviceCount), owners: []string{"pod", "deployment", "job"}, claim: exactly(", count: 8")},
		{
			name: "all", kinds: kinds(whatif.EditAllocationMode, whatif.EditDeviceCount), owners: some, nodes: 1, replicas: 1,
			claim: exactly(", allocationMode: All"), objects: holderOf("gpu-0"),
		},
		{
			name: "selector", kinds: kinds(whatif.EditSelector), owners: some,
			claim: exactly(`, selectors: [{cel: {expression: "device.attributes['$C.example.com'].model == 'B'"}}]`),
		},
		{
			name: "capacity", kinds: kinds(whatif.EditCapacity), owners: some,
			devices: "[{name: gpu-0, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}]",
			claim:   exactly(", capacity: {requests: {memory: 80Gi}}"),
		},
		{
			name: "constraint", kinds: kinds(whatif.EditConstraint), owners: []string{"pod", "deployment"},
			claim: "{devices: {requests: [{name: gpus, exactly: {deviceClassName: $C, count: 4}}], constraints: [{matchAttribute: $C.example.com/root}]}}",
		},
		{
			name: "capacity-name", kinds: kinds(whatif.EditCapacity), owners: []string{"pod", "deployment"},
			devices: "[{name: gpu-0, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}]",
			claim:   exactly(", capacity: {requests: {memroy: 10Gi}}"),
		},
		{
			name: "capacity-domain", kinds: kinds(whatif.EditCapacity), change: "instead of cores", owners: []string{"pod", "deployment"},
			devices: `[{name: gpu-0, allowMultipleAllocations: true, capacity: {$C.example.com/cores: {value: "8"}}}]`,
			claim:   exactly(`, capacity: {requests: {cores: "2"}}`),
		},
		{
			name: "capacity-of-nothing", kinds: kinds(whatif.EditCapacity), owners: []string{"pod", "deployment"},
			devices: "[{name: gpu-0, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}]",
			claim:   exactly(", capacity: {requests: {bandwidth: 10Gi}}"),
		},
		{
			name: "constraint-name", kinds: kinds(whatif.EditConstraint), owners: []string{"pod", "deployment"},
			devices: "[{name: gpu-0, attributes: {root: {string: a}}}, {name: gpu-1, attributes: {root: {string: a}}}]",
			claim:   "{devices: {requests: [{name: gpus, exactly: {deviceClassName: $C, count: 2}}], constraints: [{matchAttribute: $C.example.com/rot}]}}",
		},
		{
			name: "tolerate-device-taint", kinds: kinds(whatif.EditDeviceToleration), owners: []string{"pod", "daemonset"},
			devices: "[{name: gpu-0, taints: [{key: ecc, value: bad, effect: NoSchedule}]}]", claim: exactly(""),
		},
		{
			name: "device-taint", kinds: kinds(whatif.EditDeviceTaint), change: "repair gpu-0", without: true, owners: []string{"pod"}, nodes: 1,
			devices: `[{name: gpu-0, taints: [{key: xid, value: "79", effect: NoSchedule}]}]`, claim: exactly(""),
		},
		{
			name: "class", kinds: kinds(whatif.EditDeviceClassName), owners: some,
			claim: "{devices: {requests: [{name: gpus, exactly: {deviceClassName: $Cx}}]}}",
		},
		{
			// Without the gang, one pod would take both devices and run.
			name: "alternatives", target: "podgroup", kinds: kinds(whatif.EditAlternatives), owners: []string{"deployment", "job"}, nodes: 1, devices: "[{name: gpu-0}, {name: gpu-1}]",
			claim:   "{devices: {requests: [{name: gpus, firstAvailable: [{name: whole, deviceClassName: $C, count: 2}, {name: half, deviceClassName: $C}]}]}}",
			objects: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: gang}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}",
			pod:     "nodeSelector: {case: $C}, schedulingGroup: {podGroupName: gang}",
		},
		{
			name: "request", kinds: kinds(whatif.EditRequest), owners: some, devices: "[{name: gpu-0}]",
			claim: "{devices: {requests: [{name: a, exactly: {deviceClassName: $C}}, {name: b, exactly: {deviceClassName: $C}}]}}",
		},
		{
			name: "several", kinds: kinds(whatif.EditSelector, whatif.EditDeviceCount), owners: []string{"pod", "deployment"},
			claim: `{devices: {requests: [{name: gpus, exactly: {deviceClassName: $C, count: 4, selectors: [{cel: {expression: "device.attributes['$C.example.com'].model == 'B'"}}]}}],
  constraints: [{matchAttribute: $C.example.com/root}]}}`,
		},
		{
			name: "guard", kinds: kinds(whatif.EditSelector), owners: some, devices: "[{name: gpu-0}, {name: gpu-1, attributes: {model: {string: A}}}, {name: gpu-2, attributes: {model: {string: A}}}]",
			claim: exactly(`, selectors: [{cel: {expression: "device.attributes['$C.example.com'].model == 'A'"}}]`),
		},
		{
			name: "no-admin-access", kinds: kinds(whatif.EditAdminAccess), owners: some, labels: "resource.kubernetes.io/admin-access",
			claim: exactly(", adminAccess: true"),
		},
		{
			name: "admin-access", kinds: kinds(whatif.EditNamespaceLabel), owners: some, labels: "resource.kubernetes.io/admin-access",
			claim: exactly(", adminAccess: true"),
		},
		{
			name: "class-selector", kinds: kinds(whatif.EditClassSelector), owners: some, devices: "[{name: gpu-0}, {name: gpu-1, attributes: {model: {string: A}}}, {name: gpu-2, attributes: {model: {string: A}}}]",
			class: `{selectors: [{cel: {expression: "device.driver == '$C.example.com' && device.attributes['$C.example.com'].model == 'A'"}}]}`, claim: exactly(""),
		},
		{
			name: "taint-rule", kinds: kinds(whatif.EditTaintRule), owners: some, claim: exactly(""), objects: `
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: $C}
spec: {deviceSelector: {driver: $C.example.com}, taint: {key: xid, effect: NoSchedule}}
`,
		},
		{
			name: "released", kinds: kinds(whatif.EditAllocation), without: true, owners: []string{"pod"}, nodes: 1, devices: "[{name: gpu-0}]",
			claim: exactly(""), objects: holderOf("gpu-0"),
		},
		{
			name: "pool", kinds: kinds(whatif.EditPoolSlices), without: true, owners: []string{"pod"}, nodes: 1, devices: "[{name: gpu-0}], ",
			claim: exactly(""),
		},
		{name: "node-selector", kinds: kinds(whatif.EditNodeSelector), owners: editable, claim: exactly(""), pod: "nodeSelector: {zone: moon}"},
		{
			name: "node-selector-of-workload", target: "workload", kinds: kinds(whatif.EditNodeSelector), owners: []string{"deployment", "job", "cronjob", "replicationcontroller", "statefulset", "trainer"},
			claim: exactly(""), pod: "nodeSelector: {case: $C, zone: moon}",
		},
		{
			name: "node-selector-of-unknown-owner", target: "pod", kinds: kinds(whatif.EditNodeSelector), owners: []string{"trainer"}, without: true,
			claim: exactly(""), pod: "nodeSelector: {case: $C, zone: moon}",
		},
		{
			name: "node-affinity", kinds: kinds(whatif.EditNodeAffinity), owners: some, claim: exactly(""),
			pod: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [moon]}]}]}}}",
		},
		{
			name: "toleration", kinds: kinds(whatif.EditPodToleration), owners: editable, claim: exactly(""),
			node: "spec: {taints: [{key: dedicated, value: x, effect: NoSchedule}]}",
		},
		{
			name: "node-taint", kinds: kinds(whatif.EditNodeTaint), owners: []string{"pod"}, nodes: 1, claim: exactly(""),
			node: "spec: {taints: [{key: dedicated, value: x, effect: NoSchedule}]}",
		},
		{
			name: "cordon", kinds: kinds(whatif.EditNodeCordon), owners: []string{"pod"}, nodes: 1, claim: exactly(""), node: "spec: {unschedulable: true}",
		},
		{
			name: "full-node", kinds: kinds(whatif.EditPodRemoval), owners: []string{"pod"}, nodes: 1, claim: exactly(""),
			container: "resources: {requests: {cpu: \"6\"}, claims: [{name: devices}]}", objects: `
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {nodeName: $C-1, containers: [{name: main, image: example.com/none, resources: {requests: {cpu: "4"}}}]}
`,
		},
		{
			name: "cpu", kinds: kinds(whatif.EditPodResources), owners: editable, claim: exactly(""),
			container: "resources: {requests: {cpu: \"12\"}, claims: [{name: devices}]}",
		},
		{
			name: "init-cpu", kinds: kinds(whatif.EditPodResources), change: "in init container fetch", owners: []string{"pod", "deployment"}, claim: exactly(""),
			pod: `nodeSelector: {case: $C}, initContainers: [{name: fetch, image: example.com/none, resources: {requests: {cpu: "12"}}}]`,
		},
		{
			name: "pod-cpu", kinds: kinds(whatif.EditPodResources), change: "in the pod (spec.resources)", owners: []string{"pod", "deployment"}, claim: exactly(""),
			pod: `nodeSelector: {case: $C}, resources: {requests: {cpu: "12"}}`,
		},
		{
			name: "extended", kinds: kinds(whatif.EditPodResources), owners: editable, plain: true,
			class:     `{selectors: [{cel: {expression: "device.driver == '$C.example.com'"}}], extendedResourceName: $C.example.com/gpu}`,
			container: "resources: {limits: {$C.example.com/gpu: \"8\", cpu: \"1\"}}",
		},
	}
}

// holderOf returns a claim that has a device of the first node.
func holderOf(device string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: other}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: $C}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: $C.example.com, pool: $C-1, device: %s}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [$C-1]}]}]}
`, device)
}
