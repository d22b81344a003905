// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const compatibilityDocument = "../docs/compatibility.md"

// documented returns the releases in the tables of the document, by their minor versions.
// The API server can emulate each.
func documented() []int { return []int{35, 36, 37} }

// TestCompatibilityGates compares the document's table of feature gates with the program's.
// With -update it is written again; the last column keeps its text about each gate.
func TestCompatibilityGates(t *testing.T) {
	content, err := os.ReadFile(compatibilityDocument)
	if err != nil {
		t.Fatal(err)
	}
	meaning := map[string]string{}
	for _, row := range tableRows(string(content), "gate") {
		meaning[row.name] = row.cells[len(row.cells)-1]
	}
	table := "| gate |"
	for _, minor := range documented() {
		table += fmt.Sprintf(" 1.%d |", minor)
	}
	table += " what the program makes of it |\n|---|" + strings.Repeat("---|", len(documented())+1) + "\n"
	for _, gate := range snapshot.GateSpecs() {
		name := "`" + gate.Name + "`"
		table += "| " + name + " |"
		for _, minor := range documented() {
			table += " " + gateCell(gate.In(minor)) + " |"
		}
		if meaning[name] == "" {
			t.Errorf("the document does not say what the program makes of %s", gate.Name)
		}
		table += " " + meaning[name] + " |\n"
	}
	want := regexp.MustCompile(`(?m)(^\| gate \|.*\n)(\|.*\n)+`).ReplaceAllLiteralString(string(content), table)
	if want == string(content) {
		return
	}
	if !golden.FlagUpdate() {
		t.Fatalf("the program has other gates (run: go test ./test -run TestCompatibilityGates -update), -document +program:\n%s", cmp.Diff(string(content), want))
	}
	if err := os.WriteFile(compatibilityDocument, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// gateCell returns what the document says about a gate in one release.
func gateCell(release snapshot.GateRelease, exists bool) string {
	switch {
	case !exists:
		return ""
	case release.Locked:
		return "GA, always on"
	case release.Stage == snapshot.GateGA:
		return "GA, on"
	case release.Default:
		return strings.ToLower(string(release.Stage)) + ", on"
	default:
		return strings.ToLower(string(release.Stage)) + ", off"
	}
}

// TestCompatibilityLibraries holds the versions in the document against go.mod.
func TestCompatibilityLibraries(t *testing.T) {
	content, err := os.ReadFile(compatibilityDocument)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	rows := tableRows(string(content), "library")
	for _, row := range rows {
		for _, module := range codeSpans(row.name) {
			if want := "\t" + module + " " + row.cells[0] + "\n"; !strings.Contains(string(modules), want) {
				t.Errorf("go.mod has another version of %s than %s", module, row.cells[0])
			}
		}
	}
	if len(rows) == 0 {
		t.Error("the document has no table of libraries")
	}
}

// TestCompatibility runs the verbs on an API server that behaves like each of
// the releases that it can emulate, and holds the document against what it
// serves and which feature gates it has.
func TestCompatibility(t *testing.T) {
	content, err := os.ReadFile(compatibilityDocument)
	if err != nil {
		t.Fatal(err)
	}
	versions := []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}
	options := controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true, EmulatedVersion: fmt.Sprintf("1.%d", documented()[0])}
	c := startCluster(t, options)
	c.createAll(t, "ml", compatibilityObjects)
	// The versions go up, as they do in a cluster that is upgraded.
	for i, minor := range documented() {
		release := fmt.Sprintf("1.%d", minor)
		options.EmulatedVersion, options.RuntimeConfig = release, nil
		if i > 0 {
			mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
		}
		t.Run(release, func(t *testing.T) {
			c.checkGates(t, minor)
			byDefault := c.served(t, versions)
			c.checkVerbs(t, minor, string(content))

			options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1beta2": true, "resource.k8s.io/v1beta1": true, "resource.k8s.io/v1alpha3": true}
			mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
			all := c.served(t, versions)
			for _, row := range tableRows(string(content), "Kubernetes") {
				if row.name != release || row.header[0] != "`v1`" {
					continue
				}
				for column, version := range versions {
					cell := all[version]
					if cell != "" && byDefault[version] == "" {
						cell = "(" + cell + ")"
					}
					if row.cells[column] != cell {
						t.Errorf("the document says that %s of %s has %q, the API server has %q", version, release, row.cells[column], cell)
					}
				}
				return
			}
			t.Errorf("the document does not say what %s serves", release)
		})
	}
}

// served tells in the document's words what the API server has in each version.
func (c *cluster) served(t *testing.T, versions []string) map[string]string {
	t.Helper()
	served := map[string]string{}
	for _, version := range versions {
		list, err := c.kube.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				names[resource.Name] = true
			}
		}
		var words []string
		claims := []string{"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
		if !slices.ContainsFunc(claims, func(name string) bool { return !names[name] }) {
			words = append(words, "devices and claims")
			for _, name := range claims {
				delete(names, name)
			}
		}
		for name, word := range map[string]string{"devicetaintrules": "taint rules", "resourcepoolstatusrequests": "pool status"} {
			if names[name] {
				words = append(words, word)
				delete(names, name)
			}
		}
		slices.Sort(words)
		served[version] = strings.Join(append(words, slices.Sorted(maps.Keys(names))...), ", ")
	}
	return served
}

// checkGates compares the gates of the API server with the program's table.
func (c *cluster) checkGates(t *testing.T, minor int) {
	t.Helper()
	metrics, err := c.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="([^"]+)",stage="([^"]*)"\} ([01])$`).FindAllStringSubmatch(string(metrics), -1) {
		// Features that are generally available have no stage there.
		stage := snapshot.GateStage(strings.ToUpper(match[2][:min(len(match[2]), 1)]) + strings.ToLower(match[2][min(len(match[2]), 1):]))
		if stage == "" {
			stage = snapshot.GateGA
		}
		found[match[1]] = fmt.Sprintf("%s %t", stage, match[3] == "1")
	}
	for _, gate := range snapshot.GateSpecs() {
		release, exists := gate.In(minor)
		want := ""
		if exists {
			want = fmt.Sprintf("%s %t", release.Stage, release.Default)
		}
		if found[gate.Name] != want {
			t.Errorf("the table says that %s is %q in 1.%d, the API server has %q", gate.Name, want, minor, found[gate.Name])
		}
		delete(found, gate.Name)
	}
	for name := range found {
		if strings.HasPrefix(name, "DRA") {
			t.Errorf("the program does not know the gate %s, which 1.%d has", name, minor)
		}
	}
}

// checkVerbs runs the verbs that the document names, and wants of each what the
// table says: that it works, or the sentence about what does not.
func (c *cluster) checkVerbs(t *testing.T, minor int, document string) {
	t.Helper()
	runs := map[string][]string{
		"why":                {"why", "claim/small"},
		"fit":                {"fit", "--class", "gpu", "--count", "1"},
		"impact":             {"impact", "cordon", "node-a"},
		"plan":               {"plan"},
		"slices":             {"slices"},
		"pools":              {"pools"},
		"devices":            {"devices"},
		"claims":             {"claims", "--pending"},
		"classes":            {"classes"},
		"attributes":         {"attributes"},
		"cel":                {"cel", `device.driver != ""`},
		"tree":               {"tree", "node/"},
		"top":                {"top", "--once"},
		"snapshot":           {"snapshot"},
		"taints":             {"taints"},
		"taints add":         {"taints", "add", "--pool", "node-a", "example.com/worn:NoSchedule", "--dry-run=server"},
		"pools --ask-server": {"pools", "--ask-server"},
		"test":               {"test", "--dry-run=server", "--class", "gpu"},
	}
	column := slices.Index(documented(), minor)
	for _, row := range tableRows(document, "verb") {
		for _, verb := range codeSpans(row.name) {
			args, known := runs[verb]
			if !known {
				t.Errorf("the document names %s, which is not tested", verb)
				continue
			}
			delete(runs, verb)
			got := invoke(t.Context(), c.kubeconfig, args...)
			limits := codeSpans(row.cells[column])
			if works := len(limits) == 0; works && (got.code != 0 || got.errOut != "" && verb != "taints" || strings.Contains(got.out, "Assumptions (not verified)")) {
				t.Errorf("%s does not work in 1.%d: %+v", verb, minor, got)
			}
			for _, limit := range limits {
				if !strings.Contains(got.out+got.errOut, limit) {
					t.Errorf("%s in 1.%d does not say %q: %+v", verb, minor, limit, got)
				}
			}
		}
	}
	for verb := range runs {
		t.Errorf("the document does not name %s", verb)
	}
}

const compatibilityObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: ml}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-a}
spec:
  driver: gpu.example.com
  nodeName: node-a
  pool: {name: node-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {model: {string: A}}}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: small}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
`
