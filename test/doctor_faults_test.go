// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
)

// sickNamespace is where the faults of TestDoctorOnCluster are.
const sickNamespace = "sick"

// sickCluster is a healthy one: a node with devices, one without, and the service
// account of the driver with its rights.
const sickCluster = `
apiVersion: v1
kind: Namespace
metadata: {name: sick}
---
apiVersion: v1
kind: Node
metadata: {name: sick-a, labels: {kubernetes.io/hostname: sick-a}}
` + readyNode + `---
apiVersion: v1
kind: Node
metadata: {name: sick-b, labels: {kubernetes.io/hostname: sick-b}}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sick}
spec: {selectors: [{cel: {expression: 'device.driver == "sick.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: sick-a}
spec: {driver: sick.example.com, nodeName: sick-a, pool: {name: sick-a, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0, attributes: {uuid: {string: GPU-0}}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sick-driver}
rules:
- {apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: [list, watch, create, update, delete]}
- {apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sick-driver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sick-driver}
subjects: [{kind: ServiceAccount, namespace: sick, name: driver}]`

// sickness is a fault, and how it ends.
type sickness struct {
	code string
	// what tells faults of one code apart; empty for most.
	what string
	// says is a part of the message.
	says string
	// also are the codes of what follows from it.
	also []string
	// steps make it: objects, or commands for a shell.
	steps []string
	// pasted is true if the commands of the remedy end it.
	pasted bool
	// undo are commands that end what deleting the objects does not.
	undo string
}

func (s *sickness) name() string { return strings.TrimSuffix(s.code+" "+s.what, " ") }

func isShell(step string) bool { return strings.HasPrefix(step, "kubectl ") }

// sickDriver returns the DaemonSet of the driver, with a pod template that has more.
func sickDriver(account, more string) string {
	return strings.NewReplacer("$ACCOUNT", account, "$MORE", more).Replace(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: driver}
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec:
      serviceAccountName: $ACCOUNT
      $MORE
      volumes: [{name: plugins, hostPath: {path: /var/lib/kubelet/plugins}}, {name: registry, hostPath: {path: /var/lib/kubelet/plugins_registry}}]
      containers:
      - name: driver
        image: example.com/driver
        args: [--driver-name=sick.example.com]
        volumeMounts: [{name: plugins, mountPath: /var/lib/kubelet/plugins}, {name: registry, mountPath: /var/lib/kubelet/plugins_registry}]`)
}

// sickSlice returns a slice of the driver with that spec.
func sickSlice(name, spec string) string {
	return "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " + name + "}, spec: {driver: sick.example.com, " + spec + "}}"
}

// sickPool returns the only slice of a pool of its name on sick-a.
func sickPool(name, devices string) string {
	return sickSlice(name, "nodeName: sick-a, pool: {name: "+name+", generation: 1, resourceSliceCount: 1}, "+devices)
}

// sickClass returns a class with that spec.
func sickClass(name, spec string) string {
	return "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: " + name + "}, spec: {" + spec + "}}"
}

// sickClaim returns a claim that has a device, given as pool/device, with more in its
// status.
func sickClaim(name, device, status string) string {
	pool, device, _ := strings.Cut(device, "/")
	return strings.NewReplacer("$NAME", name, "$POOL", pool, "$DEVICE", device, "$STATUS", status).Replace(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: $NAME}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}
status:
  allocation:
    allocationTimestamp: "2026-01-01T00:00:00Z"
    devices: {results: [{request: gpus, driver: sick.example.com, pool: $POOL, device: $DEVICE}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [sick-a]}]}]}
  $STATUS`)
}

// sickUnbound is a pod that waits for a device which its driver cannot bind.
const sickUnbound = `
apiVersion: v1
kind: Pod
metadata: {name: unbound}
spec: {resourceClaims: [{name: gpus, resourceClaimName: unbound}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: unbound}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}
status:
  allocation:
    devices: {results: [{request: gpus, driver: sick.example.com, pool: binding, device: a, bindingConditions: [Ready], bindingFailureConditions: [Failed]}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [sick-a]}]}]}
  devices: [{driver: sick.example.com, pool: binding, device: a, conditions: [{type: Failed, status: "True", reason: Tested, message: tested, lastTransitionTime: "2026-01-01T00:00:00Z"}]}]`

// sickPod returns a pod whose claim is made of a template of its name, for so many devices
// of a class, with more in the request.
func sickPod(name, class, count, more string) string {
	return strings.NewReplacer("$NAME", name, "$CLASS", class, "$COUNT", count, "$MORE", more).Replace(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: $NAME}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: $CLASS, count: $COUNT$MORE}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: $NAME}
spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: $NAME}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}`)
}

// claimedPod waits until the status of a pod names its claim. Before, the two are not known to
// belong together, and the same fault is found with each.
func claimedPod(pod string) string {
	return "kubectl wait -n sick --for=jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}' pod/" + pod + " --timeout=60s"
}

// boundPod waits until a pod has its node.
func boundPod(pod string) string {
	return "kubectl wait -n sick --for=condition=PodScheduled pod/" + pod + " --timeout=60s"
}

// reported returns what a kubelet tells about a pod.
func reported(pod, message string) string {
	return fmt.Sprintf(`kubectl create -n sick -f - <<EOF
{apiVersion: v1, kind: Event, metadata: {name: %[1]s}, type: Warning, reason: FailedPrepareDynamicResources, message: "%[2]s", count: 3,
 lastTimestamp: "$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)", source: {component: kubelet},
 involvedObject: {kind: Pod, namespace: sick, name: %[1]s, uid: $(kubectl get pod %[1]s -n sick -o jsonpath='{.metadata.uid}')}}
EOF`, pod, message)
}

// kubeletOf sets the version of the kubelet of sick-a.
func kubeletOf(version string) string {
	return `kubectl patch node sick-a --subresource=status --type=merge -p '{"status":{"nodeInfo":{"kubeletVersion":"` + version + `"}}}'`
}

// componentPod makes the pod of a component as kubeadm does, with more in its command.
func componentPod(name, more string) string {
	return strings.NewReplacer("$NAME", name, "$MORE", more).Replace(`kubectl create -n kube-system -f - <<EOF
{apiVersion: v1, kind: Pod, metadata: {name: $NAME-cp, labels: {component: $NAME, tier: control-plane}},
 spec: {hostNetwork: true, priorityClassName: system-node-critical, containers: [{name: $NAME, image: registry.k8s.io/$NAME:v1.37.1, command: [$NAME, --leader-elect=true$MORE]}]}}
EOF`)
}

const sickRule = `{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: $NAME}, spec: {deviceSelector: {driver: sick.example.com, pool: $POOL}, taint: {key: example.com/sick, value: "$VALUE", effect: $EFFECT}}}`

func sickTaint(name, pool, value, effect string) string {
	rule := strings.NewReplacer("$NAME", name, "$POOL", pool, "$VALUE", value, "$EFFECT", effect).Replace(sickRule)
	// What is empty is not stored.
	return strings.Replace(rule, ` value: "",`, "", 1)
}

// sicknesses returns all faults that objects of the API make on a cluster with the defaults
// of its release.
func sicknesses() []sickness {
	onA, onB := "nodeSelector: {kubernetes.io/hostname: sick-a}", "nodeSelector: {kubernetes.io/hostname: sick-b}"
	list := []sickness{
		{code: "DRA1004", steps: []string{kubeletOf("v1.30.0")}, undo: kubeletOf("")},
		{
			code: "DRA1008", says: "DRAPartitionableDevices is on in the API server and off in kube-scheduler, which does not support devices that consume shared counters",
			steps: []string{componentPod("kube-controller-manager", ""), componentPod("kube-scheduler", ", --feature-gates=DRAPartitionableDevices=false")},
			undo:  "kubectl delete pods --all -n kube-system --force --grace-period=0",
		},
		{
			code: "DRA1009", says: "kube-scheduler v1.35.4 is more than one minor release older than the API server", also: []string{"DRA1008"},
			steps: []string{strings.Replace(componentPod("kube-scheduler", ""), ":v1.37.1", ":v1.35.4", 1)},
			undo:  "kubectl delete pods --all -n kube-system --force --grace-period=0",
		},
		{code: "DRA1010", says: "dra-controller has 1 pod in namespace sick, and none is ready", steps: []string{
			`{apiVersion: v1, kind: Pod, metadata: {name: controller, labels: {app.kubernetes.io/name: dra-controller, app.kubernetes.io/part-of: kubectl-dra}}, spec: {containers: [{name: controller, image: example.com/none}]}}`,
		}},
		{code: "DRA1101", also: []string{"DRA1105"}, steps: []string{sickDriver("driver", "nodeSelector: {nowhere: here}")}},
		{code: "DRA1102", says: "no PriorityClass with name missing was found", also: []string{"DRA1105"}, steps: []string{sickDriver("driver", "priorityClassName: missing")}},
		{code: "DRA1102", what: "quota", says: "exceeded quota: priority", also: []string{"DRA1105"}, steps: []string{
			`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: sick-critical}, value: 1000000}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: priority}, spec: {hard: {pods: "0"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [sick-critical]}]}}}`,
			"kubectl wait -n sick --for=jsonpath='{.status.hard.pods}'=0 resourcequota/priority --timeout=60s",
			sickDriver("driver", "priorityClassName: sick-critical"),
		}},
		{code: "DRA1103", also: []string{"DRA1102", "DRA1105"}, steps: []string{sickDriver("driver", onA)}},
		{code: "DRA1104", also: []string{"DRA1102", "DRA1103", "DRA1105"}, steps: []string{
			sickDriver("driver", onB),
			"kubectl wait -n sick --for=create pod -l app=driver --timeout=60s && kubectl wait -n sick --for=condition=PodScheduled pod -l app=driver --timeout=60s",
			`kubectl patch -n sick $(kubectl get pods -n sick -l app=driver -o name) --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'`,
		}},
		{
			code: "DRA1106", says: "the service account nobody of DaemonSet sick/driver may not list, watch, create, update and delete resourceslices.resource.k8s.io and get resourceclaims.resource.k8s.io", also: []string{"DRA1102", "DRA1103", "DRA1105"}, pasted: true,
			steps: []string{sickDriver("nobody", onA)}, undo: "kubectl delete clusterrole,clusterrolebinding dra-driver-driver-resourceslices dra-driver-driver-resourceclaims",
		},
		{code: "DRA1107", says: "driver sick.example.com is not registered with the kubelet of node sick-a: 1 pod waits", steps: []string{
			sickPod("lost", "sick", "1", ""), boundPod("lost"), reported("lost", "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver sick.example.com is not registered"),
		}},
	}
	return append(append(list, sickPools()...), append(sickClaims(), sickWaiting()...)...)
}

func sickPools() []sickness {
	counters := `sharedCounters: [{name: board, counters: {slices: {value: "$VALUE"}}}]`
	counted := "nodeName: sick-a, pool: {name: counted, generation: 1, resourceSliceCount: 2}, "
	part := `{name: $NAME, consumesCounters: [{counterSet: board, counters: {slices: {value: "1"}}}]}`
	parts := "devices: [" + strings.ReplaceAll(part, "$NAME", "part-0") + ", " + strings.ReplaceAll(part, "$NAME", "part-1") + "]"
	return []sickness{
		{code: "DRA1201", steps: []string{sickSlice("half", "nodeName: sick-a, pool: {name: half, generation: 1, resourceSliceCount: 2}, devices: [{name: a}]")}},
		{code: "DRA1202", steps: []string{
			sickSlice("two-a", "nodeName: sick-a, pool: {name: two, generation: 1, resourceSliceCount: 1}, devices: [{name: a}]"),
			sickSlice("two-b", "nodeName: sick-a, pool: {name: two, generation: 1, resourceSliceCount: 1}, devices: [{name: b}]"),
		}},
		{code: "DRA1202", what: "two pools with one name", steps: []string{
			sickSlice("same-a", "nodeName: sick-a, pool: {name: same, generation: 1, resourceSliceCount: 1}, devices: [{name: a}]"),
			sickSlice("same-b", "nodeName: sick-b, pool: {name: same, generation: 1, resourceSliceCount: 1}, devices: [{name: b}]"),
		}},
		{code: "DRA1203", steps: []string{
			sickSlice("dup-a", "nodeName: sick-a, pool: {name: dup, generation: 1, resourceSliceCount: 2}, devices: [{name: a}]"),
			sickSlice("dup-b", "nodeName: sick-a, pool: {name: dup, generation: 1, resourceSliceCount: 2}, devices: [{name: a}]"),
		}},
		{code: "DRA1205", pasted: true, steps: []string{sickSlice("gone", "nodeName: gone, pool: {name: gone, generation: 1, resourceSliceCount: 1}, devices: [{name: a}]")}},
		{code: "DRA1206", steps: []string{sickSlice("empty", "nodeName: sick-a, pool: {name: empty, generation: 1, resourceSliceCount: 1}")}},
		{code: "DRA1207", also: []string{"DRA1407"}, steps: []string{
			sickSlice("counters", counted+strings.ReplaceAll(counters, "$VALUE", "1")), sickSlice("parts", counted+parts),
			sickClaim("first", "counted/part-0", ""), sickClaim("second", "counted/part-1", ""),
		}},
		{code: "DRA1209", pasted: true, steps: []string{
			"{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: earlier, ownerReferences: [{apiVersion: v1, kind: Node, name: sick-a, uid: earlier}]}, spec: {driver: sick.example.com, nodeName: sick-a, pool: {name: earlier, generation: 1, resourceSliceCount: 1}, devices: [{name: a}]}}",
		}},
		{code: "DRA1210", steps: []string{sickPool("twice", "devices: [{name: a, attributes: {uuid: {string: GPU-0}}}]")}},
		{code: "DRA1211", steps: []string{sickPool("typed", "devices: [{name: a, attributes: {uuid: {int: 7}}}]")}},
		{code: "DRA1213", says: "a device plugin offers example.com/sick on 1 node", steps: []string{
			`kubectl patch node sick-a --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/sick":"2"},"allocatable":{"example.com/sick":"2"}}}'`,
		}, undo: `kubectl patch node sick-a --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/sick":null},"allocatable":{"example.com/sick":null}}}'`},
		{code: "DRA1301", steps: []string{sickClass("wrong", `selectors: [{cel: {expression: 'device.driver == "sikc.example.com"'}}]`)}},
		{code: "DRA1302", steps: []string{sickClass("wrong", `selectors: [{cel: {expression: 'device.attributes["sick.example.com"].missing == "x"'}}]`)}},
		{code: "DRA1303", steps: []string{strings.ReplaceAll(sickPool("other", "devices: [{name: a}]"), "sick.example.com", "other.example.com"), sickClass("any", "")}},
		{code: "DRA1304", steps: []string{sickClass("one", "extendedResourceName: example.com/sick"), sickClass("two", "extendedResourceName: example.com/sick")}},
		{code: "DRA1305", steps: []string{
			sickClass("plugin", `extendedResourceName: example.com/sick, selectors: [{cel: {expression: 'device.driver == "sick.example.com"'}}]`),
			`kubectl patch node sick-b --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/sick":"2"},"allocatable":{"example.com/sick":"2"}}}'`,
		}, undo: `kubectl patch node sick-b --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/sick":null},"allocatable":{"example.com/sick":null}}}'`},
		{code: "DRA1306", steps: []string{strings.ReplaceAll(sickPool("other", "devices: [{name: a}]"), "sick.example.com", "other.example.com")}},
	}
}

func sickClaims() []sickness {
	device := `{driver: sick.example.com, pool: sick-a, device: gpu-0, conditions: [{type: $TYPE, status: "$STATUS", reason: Tested, message: tested, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	finalizer := `kubectl patch resourceclaim kept -n sick --type=merge -p '{"metadata":{"finalizers":$LIST}}'`
	return []sickness{
		{code: "DRA1402", pasted: true, steps: []string{`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: orphan, annotations: {resource.kubernetes.io/pod-claim-name: gpus}, ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: gone, controller: true}]}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}`}},
		{code: "DRA1403", steps: []string{
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: kept, finalizers: [example.com/keep]}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}}",
			"kubectl delete resourceclaim kept -n sick --wait=false",
		}, undo: strings.ReplaceAll(finalizer, "$LIST", "null")},
		{code: "DRA1404", also: []string{"DRA1407"}, steps: []string{sickClaim("vanished", "sick-a/gpu-7", "")}},
		{code: "DRA1405", also: []string{"DRA1407"}, steps: []string{sickClaim("first", "sick-a/gpu-0", ""), sickClaim("second", "sick-a/gpu-0", "")}},
		{code: "DRA1406", steps: []string{strings.ReplaceAll(sickPod("unused", "sick", "1", ""), ", resources: {claims: [{name: gpus}]}", ""), boundPod("unused")}},
		{code: "DRA1407", pasted: true, steps: []string{sickClaim("idle", "sick-a/gpu-0", "")}},
		{code: "DRA1408", also: []string{"DRA1603"}, steps: []string{
			sickPod("ill", "sick", "1", ""), boundPod("ill"),
			`kubectl patch pod ill -n sick --subresource=status --type=merge -p '{"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"none","imageID":"","ready":true,"started":true,"restartCount":0,"state":{"running":{}},"allocatedResourcesStatus":[{"name":"claim:gpus","resources":[{"resourceID":"sick.example.com/sick-a/gpu-0","health":"Unhealthy"}]}]}]}}'`,
		}},
		{code: "DRA1410", also: []string{"DRA1407"}, steps: []string{
			sickClaim("unready", "sick-a/gpu-0", "devices: ["+strings.NewReplacer("$TYPE", "Ready", "$STATUS", "False").Replace(device)+"]"),
		}},
		{code: "DRA1411", steps: []string{`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: typo}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick, selectors: [{cel: {expression: 'device.attributes["sick.example.com"].uuid == "GPU-7"'}}]}}]}}}`}},
		{code: "DRA1501", steps: []string{sickTaint("idle", "missing", "", "NoSchedule")}, pasted: true},
		{code: "DRA1502", steps: []string{sickTaint("none", "sick-a", "", "None")}, pasted: true},
		{code: "DRA1504", also: []string{"DRA1603"}, steps: []string{
			sickPod("tolerant", "sick", "1", ", tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]"), boundPod("tolerant"), sickTaint("evict", "sick-a", "", "NoExecute"),
		}},
		{code: "DRA1505", steps: []string{sickTaint("one", "sick-a", "one", "NoSchedule"), sickTaint("two", "sick-a", "two", "NoSchedule")}},
	}
}

func sickWaiting() []sickness {
	return []sickness{
		{code: "DRA1601", steps: []string{sickPod("never", "sick", "2", ""), claimedPod("never")}},
		{code: "DRA1601", what: "selector", says: "GPU-7", steps: []string{sickPod("typo", "sick", "1", `, selectors: [{cel: {expression: 'device.attributes["sick.example.com"].uuid == "GPU-7"'}}]`), claimedPod("typo")}},
		{code: "DRA1602", steps: []string{sickPod("typo", "missing", "1", ""), claimedPod("typo")}},
		{code: "DRA1602", what: "selector", steps: []string{sickPod("typo", "sick", "1", `, selectors: [{cel: {expression: 'device.attributes["sick.example.com"].uid == "GPU-0"'}}]`), claimedPod("typo")}},
		{code: "DRA1603", steps: []string{
			sickPod("rejected", "sick", "1", ""), boundPod("rejected"), reported("rejected", "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim rejected: bad config"),
		}},
		{code: "DRA1604", says: "1 of 1 sick.deviceclass.resource.k8s.io/devices used", steps: []string{
			`{apiVersion: v1, kind: ResourceQuota, metadata: {name: devices}, spec: {hard: {sick.deviceclass.resource.k8s.io/devices: "1"}}}`,
			`kubectl wait -n sick --for=jsonpath='{.status.hard.sick\.deviceclass\.resource\.k8s\.io/devices}'=1 resourcequota/devices --timeout=60s`,
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: counted}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}}",
		}},
		{code: "DRA1605", says: "3 pods wait for the devices of claim sick/holder-gpus-", steps: []string{
			sickPod("holder", "sick", "1", ""), boundPod("holder"), sickPod("a", "sick", "1", ""), sickPod("b", "sick", "1", ""), sickPod("c", "sick", "1", ""),
		}},
		{code: "DRA1608", says: "no PriorityClass with name robot was found", steps: []string{
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: refused}, spec: {selector: {matchLabels: {app: refused}}, template: {metadata: {labels: {app: refused}}, spec: {priorityClassName: robot, resourceClaims: [{name: gpus, resourceClaimTemplateName: one}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}}}}",
			"kubectl wait -n sick --for=condition=ReplicaFailure deployment/refused --timeout=60s",
		}},
		{code: "DRA1901", steps: []string{kubeletOf("v1.34.1")}, undo: kubeletOf("")},
		{code: "DRA1903", also: []string{"DRA1201"}, steps: []string{
			sickSlice("half", "nodeName: sick-a, pool: {name: half, generation: 1, resourceSliceCount: 2}, devices: [{name: a}]"),
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: all}, spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick, allocationMode: All}}]}}}}",
		}},
		{code: "DRA1905", steps: []string{
			kubeletOf("v1.35.0"), sickPool("more", "devices: [{name: a, attributes: {uuid: {string: GPU-8}}}]"),
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: shared}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick}}]}}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: first}, spec: {resourceClaims: [{name: gpus, resourceClaimName: shared}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}}", boundPod("first"),
			strings.Replace(strings.Replace(sickPod("second", "sick", "1", ""), "resourceClaims: [", "resourceClaims: [{name: shared, resourceClaimName: shared}, ", 1), "claims: [{name: gpus}]", "claims: [{name: gpus}, {name: shared}]", 1), boundPod("second"),
		}, undo: kubeletOf("")},
	}
}
