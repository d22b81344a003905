// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
)

// everything has one object of each kind, with references between them and
// the sorts of text that a snapshot of a customer has.
const everything = `
apiVersion: dra.kubectl.dev/v1alpha1
kind: Snapshot
takenAt: "2026-09-01T12:00:00Z"
serverVersion: v1.36.1
gates: {DRAPrioritizedList: {enabled: true, source: metrics}}
gaps: [{resource: events, namespace: acme-ml, reason: 'User "mallory" may not list events of https://10.9.8.7:6443'}]
---
apiVersion: v1
kind: Namespace
metadata: {name: acme-ml, uid: 11111111-2222-4333-8444-555555555501, labels: {kubernetes.io/metadata.name: acme-ml, team: acme}}
---
apiVersion: v1
kind: Node
metadata:
  name: acme-node-2
  uid: 11111111-2222-4333-8444-555555555502
  annotations: {secret: acme-annotation}
  labels: {kubernetes.io/hostname: acme-node-2, kubernetes.io/arch: amd64, rack: acme-rack, generation: "12"}
spec:
  providerID: aws:///acme/i-1
  taints: [{key: dedicated, value: acme-taint, effect: NoSchedule}]
status:
  addresses: [{type: InternalIP, address: 10.1.2.3}, {type: Hostname, address: acme-node-2}]
  nodeInfo: {machineID: acmemachine, kubeletVersion: v1.36.1}
  conditions: [{type: Ready, status: "True", message: acme-node-2 is ready at 10.1.2.3}]
---
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: acme-request}
spec: {driver: gpu.example.com, poolName: acme-node-2}
status:
  poolCount: 1
  conditions: [{type: Complete, status: "True", reason: CalculationComplete, message: acme-node-2 is counted, lastTransitionTime: "2026-09-01T12:00:00Z"}]
  pools:
  - driver: gpu.example.com
    poolName: acme-node-2
    nodeName: acme-node-2
    generation: 1
    totalDevices: 1
    validationError: 'PartitionTypeMissing: pool gpu.example.com/acme-node-2 declares nothing'
    partitionSummary: [{attribute: gpu.example.com/profile, type: acme-node-2-half, total: 1, allocatable: 0}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].host in ["acme-node-2", "other"]'}
  config: [{opaque: {driver: gpu.example.com, parameters: {apiVersion: gpu.example.com/v1, kind: GpuConfig, owner: acme-parameter}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: acme-node-2-gpu-abc, generateName: acme-node-2-gpu-, uid: 11111111-2222-4333-8444-555555555503, ownerReferences: [{apiVersion: v1, kind: Node, name: acme-node-2, uid: 11111111-2222-4333-8444-555555555502}]}
spec:
  driver: gpu.example.com
  nodeName: acme-node-2
  pool: {name: acme-node-2, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes:
      host: {string: acme-node-2}
      uuid: {string: GPU-99999999-2222-4333-8444-555555555555}
      wanted: {string: GPU-77777777-2222-4333-8444-555555555555}
      model: {string: H100}
    capacity: {memory: {value: 80Gi}}
    taints: [{key: gpu.example.com/xid, value: "79", effect: NoSchedule, timeAdded: "2026-09-01T11:00:00Z"}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: acme-rule}
spec: {deviceSelector: {driver: gpu.example.com, pool: acme-node-2, device: gpu-0}, taint: {key: gpu.example.com/drain, effect: NoSchedule}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: acme-template, namespace: acme-ml}
spec: {metadata: {labels: {owner: acme}}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: acme-train-0-gpu-x7k2p
  namespace: acme-ml
  uid: 11111111-2222-4333-8444-555555555504
  annotations: {resource.kubernetes.io/pod-claim-name: acme-podclaim}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: acme-train-0, uid: 11111111-2222-4333-8444-555555555505, controller: true}]
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].wanted == "GPU-77777777-2222-4333-8444-555555555555"'}}]
status:
  allocation:
    allocationTimestamp: "2026-09-01T11:30:00Z"
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: acme-node-2, device: gpu-0}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [acme-node-2]}]}]}
  reservedFor: [{resource: pods, name: acme-train-0, uid: 11111111-2222-4333-8444-555555555505}]
  devices: [{driver: gpu.example.com, pool: acme-node-2, device: gpu-0, conditions: [{type: Ready, status: "False", reason: Bad, message: acme-train-0 broke it, lastTransitionTime: "2026-09-01T11:30:00Z"}], data: {note: acme-data}, networkData: {interfaceName: acme0, ips: [10.5.5.5/24], hardwareAddress: "aa:bb:cc:dd:ee:ff"}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: acme-train-0
  namespace: acme-ml
  uid: 11111111-2222-4333-8444-555555555505
  labels: {app: acme-app}
spec:
  nodeName: acme-node-2
  serviceAccountName: acme-account
  nodeSelector: {rack: acme-rack}
  tolerations: [{key: dedicated, operator: Equal, value: acme-taint}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: generation, operator: Gt, values: ["11"]}, {key: kubernetes.io/hostname, operator: In, values: [acme-node-2]}]}]}}}
  resourceClaims: [{name: acme-podclaim, resourceClaimTemplateName: acme-template}]
  containers: [{name: acme-container, image: "registry.acme.com/train:1", env: [{name: KEY, value: acme-env}], resources: {claims: [{name: acme-podclaim}], limits: {cpu: "2"}}}]
  volumes: [{name: acme-volume, secret: {secretName: acme-secret}}]
status:
  phase: Running
  hostIP: 10.1.2.3
  podIP: 10.7.7.7
  conditions: [{type: PodScheduled, status: "True"}]
  resourceClaimStatuses: [{name: acme-podclaim, resourceClaimName: acme-train-0-gpu-x7k2p}]
  containerStatuses: [{name: acme-container, ready: true, image: "registry.acme.com/train:1", restartCount: 1, imageID: x, state: {waiting: {reason: ErrImagePull, message: "cannot pull registry.acme.com/train:1 from 10.3.3.3"}}, allocatedResourcesStatus: [{name: "claim:acme-podclaim/gpu", resources: [{resourceID: gpu.example.com/acme-node-2/gpu-0, health: Healthy}]}]}]
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: acme-group, namespace: acme-ml}
spec: {schedulingPolicy: {basic: {}}, workloadRef: {workloadName: acme-workload, templateName: acme-t}, resourceClaims: [{name: acme-podclaim, resourceClaimTemplateName: acme-template}]}
---
apiVersion: v1
kind: Event
metadata: {name: acme-train-0.1, namespace: acme-ml}
involvedObject: {kind: Pod, namespace: acme-ml, name: acme-train-0, uid: 11111111-2222-4333-8444-555555555505, fieldPath: "spec.containers{acme-container}"}
reason: FailedPrepareDynamicResources
message: 'Failed to prepare acme-ml/acme-train-0-gpu-old on acme-node-2: claim acme-train-0-gpu-x7k2p (uid 11111111-2222-4333-8444-555555555504) at 10.1.2.3 and fd00:1::2'
source: {component: kubelet, host: acme-node-2}
eventTime: null
reportingComponent: kubelet
reportingInstance: acme-node-2
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: acme-train, namespace: acme-ml, uid: 11111111-2222-4333-8444-555555555506}
spec:
  selector: {matchLabels: {app: acme-app}}
  template: {metadata: {labels: {app: acme-app}}, spec: {containers: [{name: acme-container}], resourceClaims: [{name: acme-podclaim, resourceClaimTemplateName: acme-template}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: acme-cron, namespace: acme-ml}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: acme-container}]}}}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: acme-rc, namespace: acme-ml}
spec: {selector: {app: acme-app}, template: {spec: {containers: [{name: acme-container}]}}}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: acme-pt, namespace: acme-ml}
template: {spec: {containers: [{name: acme-container}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: acme-zz-plugin, namespace: acme-ml}
spec: {template: {spec: {containers: [{name: acme-container, args: [--driver=gpu.example.com, --server=api.acme.com]}], volumes: [{name: acme-v, hostPath: {path: /var/lib/kubelet/plugins_registry}}]}}}
status: {desiredNumberScheduled: 3, numberReady: 2}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: pod-acme-train-0-1f2e3, namespace: acme-ml, ownerReferences: [{apiVersion: v1, kind: Pod, name: acme-train-0, uid: 11111111-2222-4333-8444-555555555505}]}
spec: {queueName: acme-queue, podSets: [{name: main}]}
status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: acme-queue is full, lastTransitionTime: "2026-09-01T11:00:00Z"}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: acme-train-1-gpu
  namespace: acme-ml
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"acme-train-1-gpu"},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com","adminAccess":true}}]}}}'
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}}
`

// requireEqual compares all that a saved snapshot tells.
func requireEqual(t *testing.T, want, got *Snapshot) {
	t.Helper()
	if !want.TakenAt.Equal(got.TakenAt) {
		t.Errorf("taken at: want %v, got %v", want.TakenAt, got.TakenAt)
	}
	parts := func(s *Snapshot) []any {
		return []any{
			s.ServerVersion, s.Gates, s.Gaps, s.Nodes, s.Namespaces, s.Pods, s.Events, s.Slices, s.Classes, s.Claims,
			s.Templates, s.TaintRules, s.PoolStatuses, s.PodGroups, s.Workloads, s.Queued,
		}
	}
	w, g := parts(want), parts(got)
	for i := range w {
		if !equality.Semantic.DeepEqual(w[i], g[i]) {
			t.Errorf("snapshots differ (-want +got):\n%s", cmp.Diff(w[i], g[i]))
		}
	}
}

func TestSaveLoad(t *testing.T) {
	want := mustLoad(t, everything)
	if n := len(names(want)); n != 18 {
		t.Fatalf("want 18 objects, got %d: %v", n, names(want))
	}
	for _, format := range []Format{FormatJSON, FormatYAML} {
		var saved bytes.Buffer
		if err := want.Save(&saved, format); err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, mustLoad(t, saved.String()))
	}
	var saved bytes.Buffer
	if err := want.Save(&saved, FormatJSON); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(saved.String(), "\n"); lines != 1+18+1 {
		t.Errorf("want one object a line, got %d lines", lines)
	}
	if err := want.Save(&saved, "xml"); err == nil {
		t.Error("want an error for an unknown format")
	}
}

func TestSaveFile(t *testing.T) {
	dir := t.TempDir()
	want := mustLoad(t, everything)
	for _, name := range []string{"a.json", "b.yaml", "c.yml", "d.json.gz", "e.yaml.gz", "a.json"} {
		path := filepath.Join(dir, name)
		if err := SaveFile(t.Context(), want, path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v", name, info.Mode())
		}
		got, err := Load(t.Context(), []string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, got)
	}
	err := SaveFile(t.Context(), want, filepath.Join(dir, "f.txt"))
	if err == nil || !strings.Contains(err.Error(), "expected .json, .yaml, .yml") {
		t.Errorf("unknown extension: got %v", err)
	}
	lost := filepath.Join(dir, "no", "such", "directory.json")
	if err := SaveFile(t.Context(), want, lost); err == nil || err.Error() != "save snapshot as "+lost+": no such file or directory" {
		t.Errorf("missing directory: got %v", err)
	}
	broken := *want
	broken.Claims = append(broken.Claims[:0:0], want.Claims...)
	broken.Claims[0] = broken.Claims[0].DeepCopy()
	broken.Claims[0].Status.Devices[0].Data.Raw = []byte("{")
	if err := SaveFile(t.Context(), &broken, filepath.Join(dir, "g.json")); err == nil {
		t.Error("want an error for an object that cannot be encoded")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 5 {
		t.Errorf("want no files left behind, got %v", entries)
	}
}
