// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
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

// TestListingHints expects that the command in the advice about a name works as it is: it reads
// the same files, or the same cluster, and all it lists is there.
func TestListingHints(t *testing.T) {
	for line, want := range map[string]string{
		"devices --node nope":                       "nodes",
		"nodes nope":                                "nodes",
		"tree node/nope":                            "nodes",
		"plan --drain nope":                         "nodes",
		"fit --add node=nope":                       "nodes",
		"impact drain nope":                         "nodes",
		"devices --class nope":                      "classes",
		"classes nope":                              "classes",
		"tree class/nope":                           "classes",
		"cel true --driver nope":                    "slices",
		"impact remove driver/nope":                 "slices",
		"pools nope":                                "pools",
		"tree pool/nope":                            "pools",
		"impact taint x.io/y:NoExecute --pool nope": "pools",
		"impact remove device/a/nope":               "devices",
		"cel true --device nope":                    "devices",
		"claims nope -n media":                      "claims -n media",
		"tree claim/nope -n media":                  "claims -n media",
		"tree pod/nope -n media":                    "tree -n media",
		"plan --without pod/media/nope":             "tree -A",
		"taints remove nope --dry-run=client":       "taints --field-selector 'rule!='",
		"usage nope -A":                             "usage -A",
	} {
		args := append(strings.Fields(line), "--snapshot", "../../examples/cluster")
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), args, streams, Build{})
		_, advice, _ := strings.Cut(errOut.String(), "\nList what there is: kubectl dra ")
		if code != 3 || !strings.HasPrefix(advice, want+" --snapshot ") || !strings.HasSuffix(advice, " --snapshot ../../examples/cluster\n") {
			t.Errorf("%s: exit code %d, want 3 and the advice %s:\n%s", line, code, want, errOut)
			continue
		}
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		args = strings.Fields(strings.ReplaceAll(advice, "'", ""))
		if code := Run(t.Context(), args, streams, Build{}); code != 0 || out.Len() == 0 {
			t.Errorf("%s: %v has exit code %d: %s", line, args, code, errOut)
		}
	}
}

// TestListingHintsOfClusters expects the flags that choose a cluster in the advice, and no token.
func TestListingHintsOfClusters(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := NewRoot(streams, Build{})
	cmd, _, _ := root.Find([]string{"pools"})
	flags := []string{"--context", "prod", "-n", "ml", "-A", "--as-group", "a b", "--as-group=c", "--token=secret", "--insecure-skip-tls-verify", "--sort-by", "name", "x"}
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cli.PrintError(&out, cli.WithFlags(cmd, cli.NotFound("pool", "x", "cluster")))
	want := "error: find pool x: not found in cluster\nList what there is: kubectl dra pools -A --as-group 'a b' --as-group c --context=prod --insecure-skip-tls-verify=true -n ml\n"
	if out.String() != want {
		t.Errorf("got %swant %s", out.String(), want)
	}
}

// TestNamesThatThereAreNot expects exit code 3 and the nearest name, never an empty list.
func TestNamesThatThereAreNot(t *testing.T) {
	for line, want := range map[string]string{
		"devices --node node-01":                    "find node node-01: not found in file FILE; did you mean node-1?",
		"devices --pool nope":                       "find pool nope: not found in file FILE\n",
		"devices --driver a.exmaple.com":            "find driver a.exmaple.com: not found in file FILE; did you mean a.example.com?",
		"devices --class gpus":                      "find DeviceClass gpus: not found in file FILE; did you mean gpu?",
		"devices node-1/h0":                         "find device node-1/h0: not found in what can be read of file FILE",
		"attributes --driver nope":                  "find driver nope: not found in file FILE",
		"claims --class gpus -A":                    "find DeviceClass gpus: not found in file FILE; did you mean gpu?",
		"claims usse":                               "find claim usse: not found in what can be read of file FILE; did you mean uses?",
		"claims -n owe":                             "find namespace owe: not found in file FILE; did you mean one?",
		"tree node/nod-1":                           "find node nod-1: not found in file FILE; did you mean node-1?",
		"tree pool/a.example.com/nod-1":             "find pool a.example.com/nod-1: not found in file FILE; did you mean a.example.com/node-1?",
		"tree claim/usse":                           "find claim usse: not found in file FILE; did you mean uses?",
		"cel true --driver nope":                    "find driver nope: not found in file FILE",
		"fit --class gpus":                          "find DeviceClass gpus: not found in file FILE; did you mean gpu?",
		"plan --drain nod-1":                        "find node nod-1: not found in file FILE; did you mean node-1?",
		"impact taint x.io/y:NoExecute --pool nope": "find pool nope: not found in file FILE",
		"taints add node-1/g0 x.io/y:NoSchedule":    "choose devices with flags: --driver DRIVER --pool POOL --device DEVICE",
		"taints remove nope --dry-run=client":       "find DeviceTaintRule nope: not found in file FILE",
		"why usse -n one":                           "find ResourceClaim one/usse: not found in file FILE; did you mean uses?",
		"why node/nod-1":                            "find Node nod-1: not found in file FILE; did you mean node-1?",
		"why -n owe":                                "find namespace owe: not found in file FILE; did you mean one?",
		"status -n owe":                             "find namespace owe: not found in file FILE; did you mean one?",
		"pools -o jsn":                              `read --output: "jsn" is not a valid value; did you mean json?`,
		"pools --by stat":                           `read --by: "stat" is not a valid value; did you mean state?`,
		"devices --frei":                            "unknown flag: --frei; did you mean --free?",
		"impact drian":                              `unknown command "drian"; did you mean drain?`,
		"drain n1":                                  `unknown command "drain"; did you mean impact drain?`,
		"doctor --fail-on eror":                     `read --fail-on: "eror" is not a valid value; did you mean Error?`,
	} {
		stdout, stderr, code := runOn(t, admin, strings.Fields(line)...)
		stderr = regexp.MustCompile(`file \S+\.yaml`).ReplaceAllString(stderr, "file FILE")
		if code != 3 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, want 3 and %q:\n%s%s", line, code, want, stdout, stderr)
		}
	}
	if stdout, stderr, code := runOn(t, sameNames, "devices", "--columns", "nope"); code != 0 || !strings.Contains(stderr, "no device has an attribute or a capacity nope") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, _ := runOn(t, sameNames, "devices", "--node", "node-1", "--pool", "node-1", "--driver", "a.example.com"); strings.Contains(stderr, "not found") || !strings.Contains(stdout, "1 device:") {
		t.Errorf("what there is, is said not to be:\n%s%s", stdout, stderr)
	}
}

// TestAbsentNamespace fails where a namespace is known not to exist. Without namespaces, a file
// may have an empty one, unless its name is near another.
func TestAbsentNamespace(t *testing.T) {
	const namespaces = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml}}\n"
	for _, verb := range []string{"why", "claims", "plan", "status", "usage", "tree", "pools"} {
		for name, test := range map[string]struct {
			file, namespace string
			absent          bool
		}{
			"known":             {sameNames + namespaces, "ml", false},
			"of objects":        {sameNames + namespaces, "one", false},
			"unknown":           {sameNames + namespaces, "nosuch", true},
			"may exist":         {sameNames, "nosuch", false},
			"typo of another":   {sameNames, "onne", true},
			"all are asked for": {sameNames + namespaces, "nosuch -A", false},
		} {
			_, stderr, code := runOn(t, test.file, strings.Fields(verb+" -n "+test.namespace)...)
			if absent := code == 3 && strings.HasPrefix(stderr, "error: find namespace "+test.namespace+": not found in file "); absent != test.absent {
				t.Errorf("%s -n, %s: exit code %d: %q", verb, name, code, stderr)
			}
		}
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
