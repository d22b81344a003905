// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestOutputsMatchSchemas runs every verb with -o json, and holds what it prints,
// and all that is kept of earlier runs, against the schema of its kind, with no
// field besides. The published schema must take it, too.
func TestOutputsMatchSchemas(t *testing.T) {
	strict, published := map[string]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}
	for name := range printed() {
		strict[name] = compile(t, encode(t, schemaOf(t, name, false)))
		text, err := os.ReadFile(filepath.Join("..", "docs", "schema", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		published[name] = compile(t, text)
	}
	seen := map[string]int{}
	var check func(label string, object map[string]any)
	check = func(label string, object map[string]any) {
		name, _ := object["kind"].(string)
		if strict[name] == nil {
			t.Errorf("%s: there is no kind %q", label, name)
			return
		}
		seen[name]++
		for which, schema := range map[string]*jsonschema.Schema{"the types": strict[name], "docs/schema": published[name]} {
			if err := schema.Validate(object); err != nil {
				t.Errorf("%s is not as in %s: %v", label, which, err)
			}
		}
		items, _ := object["items"].([]any)
		for _, item := range items {
			if one, ok := item.(map[string]any); ok {
				check(label, one)
			}
		}
	}
	for label, text := range outputs(t) {
		check(label, parse(t, label, text))
	}
	for name := range printed() {
		if seen[name] == 0 {
			t.Errorf("nothing printed a %s", name)
		}
	}
}

func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// parse reads the first object of a text, as the validator wants it. Notes may
// follow.
func parse(t *testing.T, label string, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%s: %v\n%s", label, err, text)
	}
	return object
}

// outputs returns objects that the program has printed, by where they are from.
func outputs(t *testing.T) map[string][]byte {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	all := map[string][]byte{}
	err := filepath.WalkDir("testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".golden" && filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if entry.Name() == schemasFile {
			return nil
		}
		// Others are of Kubernetes: previews of ResourceSlices.
		if bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(apiVersion)) {
			all[path] = text
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Concat(clusterQuestions(t), nodeQuestions(t)) {
		if text := printedBy(t, line); text != nil {
			all[strings.Join(line, " ")] = text
		}
	}
	return all
}

// printedBy returns what a command line prints with -o json, nil where what it asks for
// could not be read.
func printedBy(t *testing.T, line []string) []byte {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), append(slices.Clone(line), "-o", "json"), streams, commands.Build{Version: "v0.0.0-test"})
	if code == 4 && out.Len() == 0 && strings.HasPrefix(errOut.String(), "error: list ") {
		return nil
	}
	if code > 2 {
		t.Fatalf("kubectl dra %s: exit code %d: %s", strings.Join(line, " "), code, errOut)
	}
	return out.Bytes()
}

// clusterQuestions returns the verbs that read a cluster, on the example cluster, on all
// field cases and where rights are missing.
func clusterQuestions(t *testing.T) [][]string {
	t.Helper()
	example := filepath.Join("..", "examples", "cluster")
	var lines [][]string
	for _, line := range []string{
		"why -A", "why -f ../examples/manifests", "top", "top -n research",
		"why pod/pretrain-0 -n research --node gpu-02", "why pod/notebook-0 -n research --node gpu-01",
		"why pod/pretrain-0 -n research --device gpu-02/gpu-3", "why pod/segment-3 -n vision --device mig-01/card-1-half-0",
		"slices", "pools", "devices", "claims -A", "claims -A --pending", "classes", "attributes", "attributes --class gpu.example.com", `cel device.driver=="gpu.example.com"`, `cel device.attributes["gpu.exmaple.com"].numa==0 --compare device.driver==""`, "cel device.drivr==1", "cel --from-device gpu-01/gpu-0", "taints", "version",
		"impact drain gpu-02", "impact cordon gpu-03", "impact remove driver/nic.example.com", "impact taint example.com/x:NoExecute --pool gpu-02", "impact apply -f testdata/taintrule.yaml", "impact upgrade 1.35",
		"tree node/", "tree pod/ablation-0 -n research", "tree claim/ablation-0-nic-45jj7 -n research", "tree class/decoder.example.com", "tree device/gpu-02/gpu-4",
	} {
		lines = append(lines, append(strings.Fields(line), "--snapshot", example))
	}
	for _, line := range []string{"impact upgrade-driver gpu-plugin", "impact drain gpu-04"} {
		lines = append(lines, append(strings.Fields(line), "--snapshot", example, "--snapshot", filepath.Join("..", "examples", "drivers", "gpu.yaml")))
	}
	cases, err := filepath.Glob(filepath.Join("fieldcases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		questions, err := readFieldCases(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range questions {
			lines = append(lines, append([]string{"why", "--snapshot", path}, strings.Fields(c.ask)...))
		}
		for _, verb := range []string{"devices", "claims"} {
			lines = append(lines, []string{verb, "--snapshot", path})
		}
	}
	return lines
}

// nodeQuestions returns the verbs that look at a node: one with faults, and one with a
// driver; and at simulated GPUs.
func nodeQuestions(t *testing.T) [][]string {
	t.Helper()
	faulty := startNode(t)
	cluster := filepath.Join("testdata", "contract", "node.yaml")
	driver, _, dir := startDriver(t, cluster)
	driver.SetHealth(kubeletplugin.DeviceHealth{PoolName: "node-1", DeviceName: "gpu-0", Health: "Healthy"})
	var lines [][]string
	for _, verb := range []string{"", "plugins", "health", "cdi", "pods", "state"} {
		line := append([]string{"node-probe"}, strings.Fields(verb)...)
		lines = append(lines, append(line, "--node-root", faulty, "--snapshot", filepath.Join("testdata", "nodeprobe", "cluster.yaml")))
	}
	for _, verb := range []string{"", "plugins", "health", "cdi", "prepare train -n ml --dry-run=client", "prepare train -n ml --twice --cleanup", "unprepare train -n ml", "unprepare train -n ml --driver none.example.com --force", "conform train -n ml"} {
		line := append([]string{"node-probe"}, strings.Fields(verb)...)
		lines = append(lines, append(line, "--node-root", dir, "--node-name", "node-1", "--snapshot", cluster))
	}
	for _, machine := range nvidia.SimulatedMachines() {
		lines = append(lines,
			[]string{"node-probe", "gpus", "--simulate", machine, "--snapshot", cluster},
			[]string{"node-probe", "preview", "--diff", "--simulate", machine, "--node-name", "gpu-01", "--snapshot", filepath.Join("..", "examples", "cluster")})
	}
	return lines
}

// startDriver starts the driver gpu.example.com with the claims of a file, and returns
// it with them and the root of its node.
func startDriver(t *testing.T, cluster string) (*testdriver.Driver, []*resourceapi.ResourceClaim, string) {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{cluster}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket has room for 107 bytes.
	root, err := os.MkdirTemp("", "dra")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.MkdirAll(filepath.Join(root, "etc", "cdi"), 0o755); err != nil {
		t.Fatal(err)
	}
	driver, err := testdriver.Start(context.WithoutCancel(t.Context()), testdriver.Config{
		Name: "gpu.example.com", Root: root, Kubelet: node.DefaultKubelet, CDI: "/etc/cdi", Claims: snap.Claims,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(driver.Stop)
	return driver, snap.Claims, root
}

// TestSchemasNotice changes the output as an incompatible release would.
func TestSchemasNotice(t *testing.T) {
	strict := compile(t, encode(t, schemaOf(t, "Explanation", false)))
	published := compile(t, encode(t, schemaOf(t, "Explanation", true)))
	line := []string{"why", "pod/pretrain-0", "-n", "research", "--snapshot", filepath.Join("..", "examples", "cluster")}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	text := string(printedBy(t, line))
	for name, change := range map[string]struct {
		old, new string
		// users is true if users who check against the published schema notice, too.
		users bool
	}{
		"a field has another name":           {`"nodeCount"`, `"nodesCount"`, true},
		"a field has another type":           {`"nodeCount": 14`, `"nodeCount": "14"`, true},
		"a verdict has another name":         {`"DoesNotFit"`, `"Unfit"`, true},
		"a code has another name":            {`"DeviceTainted"`, `"DeviceHasTaint"`, true},
		"a stage has another name":           {`"Allocation"`, `"Allocating"`, true},
		"the kind is another one":            {`"kind": "Explanation"`, `"kind": "Answer"`, true},
		"a field is new":                     {`"summary"`, `"mood": "bad", "summary"`, false},
		"an optional field has another name": {`"ageSeconds"`, `"ageMinutes"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.ReplaceAll(text, change.old, change.new)
			if changed == text {
				t.Fatalf("there is no %s in\n%s", change.old, text)
			}
			object := parse(t, name, []byte(changed))
			if strict.Validate(object) == nil {
				t.Error("the tests do not notice")
			}
			if noticed := published.Validate(object) != nil; noticed != change.users {
				t.Errorf("users notice: %t, want %t", noticed, change.users)
			}
		})
	}
}
