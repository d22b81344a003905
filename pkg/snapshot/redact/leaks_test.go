// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// redactedText returns a text after redaction.
func redactedText(t *testing.T, text string) string {
	t.Helper()
	var saved bytes.Buffer
	if err := files.Write(&saved, Snapshot(testsnapshot.Load(t, text)), files.JSON); err != nil {
		t.Fatal(err)
	}
	return saved.String()
}

// aNode is the node of the names.
const aNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-07.ml.acme.example"}}
`

func TestRedactMessages(t *testing.T) {
	for message, want := range map[string]string{
		"dial tcp 10.77.1.1:4791: connection refused":                             "dial tcp ip-0001:4791: connection refused",
		"address 10.77.1.1/24 in use":                                             "address ip-0001/24 in use",
		"listen on [fd00:77::1]:4791":                                             "listen on [ip-0001]:4791",
		"addresses 10.77.1.1,10.77.1.2 added":                                     "addresses ip-0001,ip-0002 added",
		"node gpu-07 not ready":                                                   "node node-0001 not ready",
		"node GPU-07.ML.acme.example not ready":                                   "node node-0001 not ready",
		"node gpu-07.other.example not ready":                                     "node node-0001 not ready",
		"failed to pull from https://bob:hunter2@reg.acme.io/x":                   "failed to pull from …",
		"denied for alice@acme.io with key AKIAIOSFODNN7EXAMPLE":                  "denied for …@… with key …",
		"token eyJhbGciOi.eyJzdWIi.c2lnbmF0 expired":                              "token … expired",
		"account 123456789012 of Mallory":                                         "account … of …",
		"mac 02:42:AC:11:00:02 or 0242.ac11.0002 or 02-42-ac-11-00-02":            "… …:…:…:…:…:… or … or …",
		"0/14 nodes are available: 3 Insufficient cpu, 12 cannot allocate claims": "0/14 nodes are available: 3 Insufficient cpu, 12 cannot allocate claims",
	} {
		pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"},"status":{"conditions":[{"type":"PodScheduled","status":"False","message":%q}]}}`, message)
		if got := Snapshot(testsnapshot.Load(t, aNode+pod)).Pods[0].Status.Conditions[0].Message; got != want {
			t.Errorf("%s\nwant %s\ngot  %s", message, want, got)
		}
	}
}

func TestRedactAttributes(t *testing.T) {
	for value, kept := range map[string]bool{
		"10.77.1.1/24": false, "10.77.1.1:4791": false, "10.77.1.1,10.77.1.2": false, "fd00:77::1/64": false, "port 1 at 10.77.1.1": false,
		"02:42:ac:11:00:02": false, "02-42-AC-11-00-02": false, "0242.ac11.0002": false, "0242ac110002": false, "0c42:a103:0012:3456": false,
		"MIG-99999999-2222-4333-8444-555555555555/1/0": false, "GPU-99999999-2222-4333-8444-555555555555": false, "a@acme.example": false,
		"gpu-07": false, "GPU-07.ml.acme.example": false, "eth0.gpu-07": false, "db.ml.acme.example": false, "s3.ACME.example": false, "ml.acme.example": false,
		"ip-10-77-1-1": false, "10-77-1-1.internal": false, "iqn.2003-01.org.x:disk": false, "nqn.2014-08.org.nvmexpress:uuid:1": false,
		"naa.5000c500a1b2c3d4": false, "wwn-0x5000c500a1b2c3d4": false, "50:06:01:60:3b:20:11:22": false, "0x500601603b201122": false,
		"H100": true, "0000:41:00.0": true, "570.124.06": true, "mlx5_0": true, "1g.10gb": true, "NVIDIA H100 80GB HBM3": true, "roce": true,
	} {
		slice := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","pool":{"name":"p","resourceSliceCount":1},
			"devices":[{"name":"a","attributes":{"x":{"string":%q}}}]}}`, value)
		got := *Snapshot(testsnapshot.Load(t, aNode+slice)).Slices[0].Spec.Devices[0].Attributes["x"].StringValue
		if kept != (got == value) {
			t.Errorf("%s: got %s", value, got)
		}
	}
}

func TestRedactExpressions(t *testing.T) {
	const name = "gpu-07.ml.acme.example"
	x := `device.attributes["d"].x`
	for expression, want := range map[string]string{
		x + ` == "gpu-07.ml.acme.example" // of Mallory`:                                         x + ` == "node-0001"`,
		x + ` == 'gpu-07.ml.acme.example'`:                                                       x + ` == "node-0001"`,
		x + ` == """gpu-07.ml.acme.example"""`:                                                   x + ` == "node-0001"`,
		x + ` == r"gpu-07.ml.acme.example"`:                                                      x + ` == "node-0001"`,
		x + ` == "gpu-\x307.ml.acme.example"`:                                                    x + ` == "node-0001"`,
		x + ` == "gpu-" + "07.ml.acme.example"`:                                                  x + ` == "node-0001"`,
		"[" + x + "].all(y, y in ['a',\n 'gpu-07'])":                                             "[" + x + `].all(y, y in ["a", "node-0001"])`,
		x + ` == "db.ml.acme.example"`:                                                           x + ` == "name-0001"`,
		`has(` + x + `) && device.?driver.orValue("") == "" && cel.bind(a, "b", a == ` + x + `)`: `has(` + x + `) && device.?driver.orValue("") == "" && cel.bind(a, "b", a == ` + x + `)`,
		// What does not compile stays so, and has no word left.
		x + ` == "` + name:                     unreadable,
		`acmeHost == "a"`:                      unreadable,
		`device.acme == "a"`:                   unreadable,
		`device.attributes["d"].x.acme() == 1`: unreadable,
		`"acme"`:                               `"acme"`,
		`acme("a") && true`:                    unreadable,
	} {
		class := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"c"},"spec":{"selectors":[{"cel":{"expression":%q}}]}}`, expression)
		if got := Snapshot(testsnapshot.Load(t, aNode+class)).Classes[0].Spec.Selectors[0].CEL.Expression; got != want {
			t.Errorf("%s\nwant %s\ngot  %s", expression, want, got)
		}
	}
}

// TestRedactAttributesCalledSecret replaces the values of attributes that are called like
// secrets, wherever they are, and keeps what compares with them.
func TestRedactAttributesCalledSecret(t *testing.T) {
	for _, name := range []string{"password", "clientSecret", "token", "licenseKey", "host", "hostName", "ipAddress", "bmc", "switch", "tor_switch"} {
		s := Snapshot(testsnapshot.Load(t, fmt.Sprintf(`
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, pool: {name: p, resourceSliceCount: 1}, devices: [
  {name: a, attributes: {%[1]s: {string: acme}, model: {string: H100}, other: {string: acme}}}, {name: b, attributes: {%[1]s: {string: mallory}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {selectors: [{cel: {expression: 'device.attributes["d"].%[1]s == "acme" && device.attributes["d"].model == "H100"'}}]}}
`, name)))
		a, b := s.Slices[0].Spec.Devices[0].Attributes, s.Slices[0].Spec.Devices[1].Attributes
		value := *a[resourceapi.QualifiedName(name)].StringValue
		want := fmt.Sprintf(`device.attributes["d"].%s == %q && device.attributes["d"].model == "H100"`, name, value)
		if value == "acme" || *a["other"].StringValue != value || *a["model"].StringValue != "H100" || *b[resourceapi.QualifiedName(name)].StringValue == value ||
			s.Classes[0].Spec.Selectors[0].CEL.Expression != want {
			t.Errorf("%s: %s, %s, %s", name, value, *a["other"].StringValue, s.Classes[0].Spec.Selectors[0].CEL.Expression)
		}
	}
}

// TestRedactOptional covers objects that are only read if a pod depends on them, and
// leftovers in other kinds.
func TestRedactOptional(t *testing.T) {
	text := redactedText(t, aNode+`
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: acme-quota, namespace: acme-ml}
spec: {hard: {acme-fast.storageclass.storage.k8s.io/requests.storage: 1Gi, gpu.example.com.deviceclass.resource.k8s.io/devices: "4"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [acme-high]}]}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: acme-limits, namespace: acme-ml}
spec: {limits: [{type: Container, max: {cpu: "2"}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: acme-data, namespace: acme-ml, finalizers: [acme.example/keep, kubernetes.io/pvc-protection]}
spec: {volumeName: acme-volume, storageClassName: acme-fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: acme-volume}
spec: {storageClassName: acme-fast, claimRef: {kind: PersistentVolumeClaim, namespace: acme-ml, name: acme-data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [acme-rack]}]}]}}}
status: {message: broken by acme}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: acme-fast}
provisioner: csi.example.com
parameters: {server: acme-server}
allowedTopologies: [{matchLabelExpressions: [{key: rack, values: [acme-rack]}]}]
---
apiVersion: v1
kind: Namespace
metadata: {name: acme-ml}
status: {conditions: [{type: NamespaceDeletionContentFailure, status: "True", message: acme-thing is left}]}
---
apiVersion: v1
kind: Pod
metadata: {name: acme-pod, namespace: acme-ml}
spec: {resources: {claims: [{name: acme-entry}]}, resourceClaims: [{name: acme-entry, resourceClaimName: acme-claim}], schedulingGates: [{name: acme.example/gate}]}
---
apiVersion: v1
kind: Event
metadata: {name: acme-event, namespace: acme-ml}
involvedObject: {kind: Pod, namespace: acme-ml, name: acme-pod}
reportingComponent: acme-operator
reportingInstance: acme-operator-7d9f
message: acme
`)
	if at := strings.Index(text, "acme"); at >= 0 {
		t.Errorf("left: …%s…", text[max(0, at-100):min(len(text), at+50)])
	}
	s := Snapshot(testsnapshot.Load(t, aNode+`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"a"},"spec":{"storageClassName":"fast"}}
{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"fast"},"provisioner":"p"}
{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"a"},"spec":{"hard":{"fast.storageclass.storage.k8s.io/requests.storage":"1Gi","cpu":"1"}}}`))
	class := s.StorageClasses[0].Name
	if *s.VolumeClaims[0].Spec.StorageClassName != class {
		t.Errorf("another class: %s", *s.VolumeClaims[0].Spec.StorageClassName)
	}
	if _, found := s.Quotas[0].Spec.Hard[corev1.ResourceName(class+".storageclass.storage.k8s.io/requests.storage")]; !found || len(s.Quotas[0].Spec.Hard) != 2 {
		t.Errorf("quota: %v", s.Quotas[0].Spec.Hard)
	}
}
