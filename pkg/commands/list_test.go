// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// sameNames has two pods, two claims, two pools and two devices of one name.
const sameNames = `
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: one, uid: p1}
spec: {nodeName: node-1, containers: [{name: main}], resourceClaims: [{name: c, resourceClaimName: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: two, uid: p2}
spec: {nodeName: node-1, containers: [{name: main}], resourceClaims: [{name: c, resourceClaimName: c}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: one, uid: c1}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: two, uid: c2}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec: {driver: a.example.com, nodeName: node-1, pool: {name: node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: g0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: b}
spec: {driver: b.example.com, nodeName: node-1, pool: {name: node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: g0}]}
`

// runOn runs the program on a snapshot.
func runOn(t *testing.T, content string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code = Run(t.Context(), append(args, "--snapshot", path), streams, Build{Version: "v0.0.0-test"})
	return out.String(), errOut.String(), code
}

func TestTreeOfOneOfSeveral(t *testing.T) {
	for start, full := range map[string][]string{
		"pod/p":            {"one, two", "pod/p", "-n", "two"},
		"claim/c":          {"one, two", "claim/c", "-n", "two"},
		"pool/node-1":      {"a.example.com/node-1, b.example.com/node-1", "pool/b.example.com/node-1"},
		"device/node-1/g0": {"a.example.com/node-1/g0, b.example.com/node-1/g0", "device/b.example.com/node-1/g0"},
	} {
		t.Run(start, func(t *testing.T) {
			if stdout, stderr, code := runOn(t, sameNames, "tree", start); code != 3 || stdout != "" || !strings.Contains(stderr, full[0]) {
				t.Errorf("exit code %d, want 3 and the names %s:\n%s%s", code, full[0], stdout, stderr)
			}
			if stdout, stderr, code := runOn(t, sameNames, append([]string{"tree"}, full[1:]...)...); code != 0 || stdout == "" {
				t.Errorf("%v: exit code %d, want a tree:\n%s", full[1:], code, stderr)
			}
		})
	}
}

// Without a namespace, a file is listed completely.
func TestClaimsOfSeveralNamespaces(t *testing.T) {
	for _, flags := range [][]string{{}, {"-A"}, {"--pending"}} {
		stdout, _, _ := runOn(t, sameNames, append([]string{"claims"}, flags...)...)
		if !strings.HasPrefix(stdout, "NAMESPACE") {
			t.Errorf("claims %v has claims of two namespaces and no column for them:\n%s", flags, stdout)
		}
	}
	if stdout, _, _ := runOn(t, sameNames, "claims", "-n", "one"); strings.Contains(stdout, "NAMESPACE") {
		t.Errorf("claims -n one has a column that is the same everywhere:\n%s", stdout)
	}
}

func TestFieldSelectorOfFixedValues(t *testing.T) {
	for _, verb := range []string{"slices", "pools", "devices", "claims"} {
		_, stderr, code := runOn(t, sameNames, verb, "--field-selector", "state!=Usabel")
		if code != 3 || !strings.Contains(stderr, `state is never "Usabel"`) {
			t.Errorf("%s: exit code %d, want 3 for a state that there is not:\n%s", verb, code, stderr)
		}
	}
	for selector, want := range map[string]string{"state=free": "2 devices", "state!=FREE": "No devices", "health=": "2 devices"} {
		if stdout, stderr, _ := runOn(t, sameNames, "devices", "--field-selector", selector); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: want %s:\n%s%s", selector, want, stdout, stderr)
		}
	}
}

func TestNamesThatThereAreNot(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"devices", "--node", "node-9"}, "node node-9 does not exist"},
		{[]string{"devices", "--pool", "nope"}, "no ResourceSlice has pool nope"},
		{[]string{"devices", "--driver", "nope"}, "no ResourceSlice has driver nope"},
		{[]string{"devices", "--columns", "nope"}, "no device has an attribute or a capacity nope"},
		{[]string{"taints", "add", "--pool", "nope", "example.com/x:NoSchedule", "--dry-run=client"}, "no ResourceSlice has pool nope"},
		{[]string{"taints", "add", "pool-a/gpu-0", "example.com/x:NoSchedule"}, "choose devices with flags: --driver DRIVER --pool POOL --device DEVICE"},
		{[]string{"taints", "add", "--device", "g9", "example.com/x:NoSchedule", "--dry-run=client"}, "no ResourceSlice has device g9"},
	} {
		if stdout, stderr, _ := runOn(t, sameNames, tc.args...); !strings.Contains(stdout+stderr, tc.want) {
			t.Errorf("%v does not say %q:\n%s%s", tc.args, tc.want, stdout, stderr)
		}
	}
	if stdout, stderr, _ := runOn(t, sameNames, "devices", "--node", "node-1", "--pool", "node-1", "--driver", "a.example.com"); strings.Contains(stderr, "no ResourceSlice") || strings.Contains(stderr, "no node") || !strings.Contains(stdout, "1 device:") {
		t.Errorf("what there is, is said not to be:\n%s%s", stdout, stderr)
	}
}

// TestWaitingInNoNamespace says that a namespace does not exist, if that is known.
func TestWaitingInNoNamespace(t *testing.T) {
	const namespaces = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml}}\n"
	for file, wants := range map[string]map[string]string{
		sameNames:              {"ml": "namespace ml.\n", "nosuch": "namespace nosuch.\n"},
		sameNames + namespaces: {"ml": "namespace ml.\n", "nosuch": "namespace nosuch, which does not exist.\n"},
	} {
		for namespace, want := range wants {
			if _, stderr, code := runOn(t, file, "why", "-n", namespace); code != 0 || stderr != "No pods are waiting for devices in "+want {
				t.Errorf("code %d, want 0 and %q, got %q", code, want, stderr)
			}
		}
	}
}

// TestListsOfNoNamespace expects the same items with and without a namespace.
func TestListsOfNoNamespace(t *testing.T) {
	const namespaces = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml}}\n"
	_, stderr, code := runOn(t, sameNames+namespaces, "claims", "-n", "nosuch")
	if code != 0 || !strings.HasPrefix(stderr, "No ResourceClaims in namespace nosuch found in file ") || !strings.Contains(stderr, ": the namespace does not exist.\n") {
		t.Errorf("code %d: %q", code, stderr)
	}
	if _, stderr, _ := runOn(t, sameNames, "claims", "-n", "nosuch"); strings.Contains(stderr, "does not exist") {
		t.Errorf("the namespaces are not known: %q", stderr)
	}
}

// fabric is a pool that every node can reach, and a slice of a node that is gone.
const fabric = `
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: f}
spec: {driver: f.example.com, allNodes: true, pool: {name: fabric, generation: 1, resourceSliceCount: 1}, devices: [{name: f0}, {name: f1}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: g}
spec: {driver: a.example.com, nodeName: node-gone, pool: {name: node-gone, generation: 1, resourceSliceCount: 1}, devices: [{name: g0}]}
`

func TestDevicesForSeveralNodes(t *testing.T) {
	if _, stderr, _ := runOn(t, sameNames+fabric, "devices", "--node", "node-1"); !strings.Contains(stderr, "can reach 2 devices besides") {
		t.Errorf("devices --node leaves devices out without a word:\n%s", stderr)
	}
	if stdout, _, _ := runOn(t, sameNames+fabric, "tree", "node/node-1"); !strings.Contains(stdout, "Pool f.example.com/fabric  (for all nodes; 2 devices, 2 free)") {
		t.Errorf("tree node/node-1 leaves out a pool that the node can reach:\n%s", stdout)
	}
	for _, start := range []string{"node/node-gone", "node/"} {
		if stdout, stderr, _ := runOn(t, sameNames+fabric, "tree", start); !strings.Contains(stdout, "Node node-gone  (does not exist)\n└── Pool a.example.com/node-gone") {
			t.Errorf("tree %s does not know a node that a slice names:\n%s%s", start, stdout, stderr)
		}
	}
}

const admin = sameNames + `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: uses, namespace: one, uid: c3}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status: {allocation: {devices: {results: [{request: gpu, driver: a.example.com, pool: node-1, device: g0}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: watches, namespace: one, uid: c4}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, adminAccess: true}}]}}
status: {allocation: {devices: {results: [{request: gpu, driver: a.example.com, pool: node-1, device: g0, adminAccess: true}]}}}
`

func TestClaimsWithAdminAccess(t *testing.T) {
	stdout, _, _ := runOn(t, admin, "claims", "uses", "watches")
	for _, want := range []string{"gpu=1xgpu(admin)", "2 claims: 2 allocated; 1 device\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
}

func TestTaintsWhoseGateIsOff(t *testing.T) {
	const rule = sameNames + `
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {pool: node-1}, taint: {key: example.com/x, effect: NoExecute}}
`
	for gates, want := range map[string]string{
		"DRADeviceTaints=true,DRADeviceTaintRules=true":  "",
		"DRADeviceTaints=true,DRADeviceTaintRules=false": "DRADeviceTaintRules is off, so rules do nothing",
		"DRADeviceTaints=false":                          "DRADeviceTaints is off, so taints do nothing",
	} {
		stdout, stderr, code := runOn(t, rule, "taints", "--feature-gates", gates)
		if code != 0 || want == "" && strings.Contains(stderr, "off") || !strings.Contains(stderr, want) {
			t.Errorf("with %s, want a note %q:\n%s%s", gates, want, stdout, stderr)
		}
	}
}

// TestWideDoesNotLeadToItself expects no hint about -o wide below -o wide.
func TestWideDoesNotLeadToItself(t *testing.T) {
	broken := strings.Replace(sameNames, "resourceSliceCount: 1", "resourceSliceCount: 2", 1)
	for _, verb := range []string{"pools", "slices"} {
		if stdout, _, _ := runOn(t, broken, verb); !strings.Contains(stdout, "-o wide shows why") {
			t.Errorf("%s does not lead to the reason:\n%s", verb, stdout)
		}
		if stdout, _, _ := runOn(t, broken, verb, "-o", "wide"); strings.Contains(stdout, "-o wide") || !strings.Contains(stdout, "1 of 2 slices") && !strings.Contains(stdout, "1/2") {
			t.Errorf("%s -o wide does not have the reason, or leads to itself:\n%s", verb, stdout)
		}
	}
}

// A label that a slice wants of nodes does not look like the name of one.
func TestScopeOfLabel(t *testing.T) {
	labelled := strings.Replace(sameNames, "nodeName: node-1, pool", "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: Exists}]}]}, pool", 1)
	if stdout, _, _ := runOn(t, labelled, "devices"); !strings.Contains(stdout, "with rack   a.example.com") {
		t.Errorf("the scope does not tell a label from a node:\n%s", stdout)
	}
}

// TestReasonIsInFullInPipe expects whole reasons without a terminal: a script must not lose
// their ends.
func TestReasonIsInFullInPipe(t *testing.T) {
	stdout := stdoutOf(t, "claims", "-A", "--pending", "--snapshot", filepath.Join("..", "..", "examples", "cluster"))
	if strings.Contains(stdout, "…\n") || !strings.Contains(stdout, "did you mean productName?\n") {
		t.Errorf("reasons are cut:\n%s", stdout)
	}
}

func TestUnknownCommandLeadsOn(t *testing.T) {
	for word, want := range map[string]string{
		"pod": "why pod/NAME", "free": "devices --free", "get": "kubectl dra nodes, slices", "describe": "why TYPE/NAME", "claimz": "; did you mean claims?",
	} {
		if _, stderr, code := runOn(t, sameNames, word); code != 3 || !strings.Contains(stderr, want) {
			t.Errorf("kubectl dra %s does not lead to %q:\n%s", word, want, stderr)
		}
	}
}
