// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"archive/tar"
	"bytes"
	stdcmp "cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// hostileTexts returns texts that the API server stores where it takes any text: they mean
// something else to a terminal, in YAML, in JSON, in a diff or to a shell.
func hostileTexts() []string {
	texts := []string{
		"", " ", "\n", "\t", "\r", "a\rb", "\r\n", " a", "a ", "a\n", "\na", "a\n\n", "  a\n b", "\tb",
		"yes", "no", "on", "null", "~", "<<", "=", "true", "0o17", "017", "1e3", "1_000", "12:30:45", "2026-09-01", "-0", ".nan",
		"- a", ": ", "a: b", "a #b", "%", "%YAML 1.2", "---", "a\n---\nb", "...", "...\n", "{", "[", "\"", "'", "\\", "&a", "*a", "!a", "|", ">-", "@", "`", "? a",
		"\x00", "\x01", "\x1b[2J", "\x1b]0;title\a", "\x7f", "\u0085", "a\u0085b", "\u009b31m", "\u00a0", "\u200e", "\u200f", "\u202e", "\u2066a\u2069", "\u2028", "\u2029",
		"\ufeff", "\ufffd", "\ufffe", "\uffff", "\U0001F600", "\U0010ffff", "\U000e0041", "日本",
		"$(touch pwned)", "`touch pwned`", "; touch pwned", "<script>alert(1)</script>", "]]>", "a&b", "{{.}}", "@@ -1 +1 @@", "+++ b/x", "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b",
	}
	return append(texts, strings.Repeat("long words ", 1000), strings.Repeat("x", 20000))
}

// hostileObjects returns objects with such texts wherever the API server accepts any.
func hostileObjects(texts []string) []*unstructured.Unstructured {
	annotations, parameters := map[string]any{}, map[string]any{}
	var selectors, conditions []any
	for i, text := range texts {
		annotations[fmt.Sprintf("example.com/a%d", i)] = text
		if len(text) < 1000 {
			parameters[fmt.Sprintf("%d %s", i, text)] = []any{text}
		}
	}
	// YAML writes keys of more than 1024 characters in another way.
	parameters[strings.Repeat("k", 2000)] = strings.Repeat("v ", 500)
	for at := 0; at < len(texts); at += 4 {
		// A text with an invalid escape would be another one in CEL.
		var list []string
		for _, text := range texts[at:min(at+4, len(texts))] {
			if len(text) < 1000 && !strings.ContainsAny(text, "\x00\r") {
				list = append(list, `r"""x`+strings.ReplaceAll(text, `"`, "'")+`x"""`)
			}
		}
		selectors = append(selectors, map[string]any{"cel": map[string]any{"expression": "!(device.driver in [" + strings.Join(list, ",\n") + "])"}})
	}
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "annotations": annotations}
	}
	config := []any{map[string]any{"opaque": map[string]any{"driver": "gpu.example.com", "parameters": parameters}}}
	for i := range 8 {
		text := strings.Join(texts[i*len(texts)/8:(i+1)*len(texts)/8], "|")
		if len(text) > 20000 {
			text = text[:20000]
		}
		conditions = append(conditions, map[string]any{"type": fmt.Sprintf("T%d", i), "status": "True", "reason": "R", "message": text, "lastTransitionTime": "2026-09-15T09:30:00Z"})
	}
	dra := func(kind, name string, fields map[string]any) *unstructured.Unstructured {
		object := map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta(name)}
		maps.Copy(object, fields)
		return &unstructured.Unstructured{Object: object}
	}
	var devices []any
	for at := 0; at < len(texts); at += 16 {
		attributes := map[string]any{}
		for i, text := range texts[at:min(at+16, len(texts))] {
			if len(text) <= resourceapi.DeviceAttributeMaxValueLength {
				attributes[fmt.Sprintf("a%d", at+i)] = map[string]any{"string": text}
			}
		}
		devices = append(devices, map[string]any{"name": fmt.Sprintf("gpu-%d", at/16), "attributes": attributes})
	}
	request := func(selectors []any) map[string]any {
		exactly := map[string]any{"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": int64(1), "selectors": selectors}
		return map[string]any{"devices": map[string]any{"requests": []any{map[string]any{"name": "gpu", "exactly": exactly}}, "config": config}}
	}
	core := func(kind, name string, fields map[string]any) *unstructured.Unstructured {
		object := dra(kind, name, fields)
		object.Object["apiVersion"] = "v1"
		return object
	}
	return []*unstructured.Unstructured{
		core("Namespace", "ml", nil),
		core("Node", "node-1", map[string]any{"status": map[string]any{
			"allocatable": map[string]any{"pods": "110"}, "capacity": map[string]any{"pods": "110"}, "conditions": conditions,
		}}),
		dra("DeviceClass", "gpu.example.com", map[string]any{"spec": map[string]any{"config": config, "selectors": selectors}}),
		dra("ResourceSlice", "slice", map[string]any{"spec": map[string]any{
			"driver": "gpu.example.com", "nodeName": "node-1", "devices": devices,
			"pool": map[string]any{"name": "node-1", "generation": int64(1), "resourceSliceCount": int64(1)},
		}}),
		dra("ResourceClaimTemplate", "template", map[string]any{"spec": map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": request(selectors)}}),
		dra("ResourceClaim", "pending", map[string]any{"spec": request(selectors)}),
		dra("ResourceClaim", "allocated", map[string]any{"spec": request(selectors), "status": map[string]any{
			"allocation": map[string]any{"devices": map[string]any{
				"results": []any{map[string]any{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}},
				"config":  []any{map[string]any{"source": "FromClaim", "opaque": map[string]any{"driver": "gpu.example.com", "parameters": parameters}}},
			}},
			"devices": []any{map[string]any{"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0", "conditions": conditions, "data": parameters}},
		}}),
		core("Pod", "train-0", map[string]any{"spec": map[string]any{
			"containers":     []any{map[string]any{"name": "main", "image": "example.com/none", "resources": map[string]any{"claims": []any{map[string]any{"name": "gpu"}}}}},
			"resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimName": "pending"}},
		}}),
		core("Event", "train-0.1", map[string]any{
			"involvedObject": map[string]any{"kind": "Pod", "namespace": "ml", "name": "train-0"}, "type": "Warning", "reason": "FailedScheduling",
			"message": strings.Join(texts[:len(texts)-2], "|"),
		}),
	}
}

// TestStoredTextsSurvive stores texts in all their forms in an API server, and saves and
// loads the objects: the texts are the same in every format. Output for programs decodes to
// the same texts, and output for people has no control characters.
func TestStoredTextsSurvive(t *testing.T) {
	options := everything()
	options.WithoutScheduler, options.WithoutControllerManager = true, true
	c := startCluster(t, options)
	p, ctx := programFor(t, c.kubeconfig), t.Context()
	texts := hostileTexts()
	for _, object := range hostileObjects(texts) {
		mustDo(t, func() error { return c.create(ctx, "ml", object) })
	}

	dir := t.TempDir()
	saved := func(name string, args ...string) string {
		path := filepath.Join(dir, name)
		if code, _, said := p.tried(t, append([]string{"snapshot", "-o", path}, args...)...); code != 0 || !strings.HasPrefix(said, "Saved ") {
			t.Fatalf("save %s: code %d, %s", name, code, said)
		}
		return path
	}
	load := func(path string) *snapshot.Snapshot {
		t.Helper()
		snap, err := files.Load(ctx, []string{path}, files.Options{})
		if err != nil {
			t.Fatalf("load %s: %v", filepath.Base(path), err)
		}
		return snap
	}
	whole := saved("cluster.yaml")
	want := load(whole)
	c.requireSame(t, want)
	var paths []string
	for _, name := range []string{"a.json", "b.yaml.gz", "c.json.gz", "d.yaml"} {
		paths = append(paths, saved(name, "--snapshot", whole))
	}
	paths = append(paths, archived(t, paths[0]), archived(t, paths[3]), filepath.Dir(archived(t, whole)))
	for _, name := range []string{"live.json", "live.yaml.gz", "live.json.gz"} {
		paths = append(paths, saved(name))
	}
	for _, path := range paths {
		got := load(path)
		if problem := differs(want, got); problem != "" {
			t.Errorf("%s has something else than %s:\n%s", filepath.Base(path), filepath.Base(whole), problem)
		}
	}
	redacted := load(saved("redacted.yaml", "--redact"))
	for _, name := range []string{"redacted.json", "redacted.json.gz"} {
		if problem := differs(redacted, load(saved(name, "--redact"))); problem != "" {
			t.Errorf("%s has something else than redacted.yaml:\n%s", name, problem)
		}
	}

	t.Run("output", func(t *testing.T) {
		for _, args := range [][]string{
			{"why", "pod/train-0"},
			{"why", "claim/pending"},
			{"why", "claim/allocated"},
			{"why", "template/template"},
			{"why", "pod/train-0", "--node", "node-1"},
			{"why", "pod/train-0", "--device", "gpu-0"},
			{"why", "-A"},
			{"claims"},
			{"classes"},
			{"devices"},
			{"pools"},
			{"slices"},
			{"taints"},
			{"tree"},
			{"tree", "claim/allocated"},
		} {
			args = append(args, "-n", "ml")
			requireCleanOutputs(t, p, whole, args)
		}
	})
	t.Run("templates", func(t *testing.T) {
		for i, text := range texts {
			if len(text) > resourceapi.DeviceAttributeMaxValueLength {
				continue
			}
			output := `jsonpath={.items[*].attributes.gpu\.example\.com/a` + fmt.Sprint(i) + `}`
			if code, out, said := p.tried(t, "devices", "--snapshot", whole, "-o", output); code != 0 || out != text {
				t.Errorf("-o %s: code %d, %q %s, want %q", output, code, out, said, text)
			}
		}
	})
	t.Run("attributes", func(t *testing.T) {
		for _, output := range []string{"json", "yaml", "kyaml"} {
			_, text, _ := p.tried(t, "devices", "-o", output)
			var list struct {
				Items []struct {
					Attributes map[string]any `json:"attributes"`
				} `json:"items"`
			}
			if err := yaml.Unmarshal([]byte(text), &list); err != nil {
				t.Fatalf("%s: %v", output, err)
			}
			got := map[string]string{}
			for _, item := range list.Items {
				for name, value := range item.Attributes {
					got[strings.TrimPrefix(name, "gpu.example.com/")] = fmt.Sprint(value)
				}
			}
			for i, text := range texts {
				if len(text) <= resourceapi.DeviceAttributeMaxValueLength && got[fmt.Sprintf("a%d", i)] != text {
					t.Errorf("-o %s: attribute %q is %q", output, text, got[fmt.Sprintf("a%d", i)])
				}
			}
		}
	})
}

// requireSame holds a snapshot against what the API server has.
func (c *cluster) requireSame(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	ctx := t.Context()
	same := func(what string, got, want any) {
		t.Helper()
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s is not what the API server has: %s", what, cmp.Diff(want, got))
		}
	}
	claims, err := c.kube.ResourceV1().ResourceClaims("ml").List(ctx, metav1.ListOptions{})
	if err != nil || len(claims.Items) != len(s.Claims) {
		t.Fatalf("%d claims, want %d, %v", len(s.Claims), len(claims.Items), err)
	}
	for i := range claims.Items {
		want := &claims.Items[i]
		got := s.Claim("ml", want.Name)
		same("annotations of "+want.Name, got.Annotations, want.Annotations)
		same("selectors of "+want.Name, got.Spec.Devices.Requests, want.Spec.Devices.Requests)
		same("parameters of "+want.Name, decoded(t, &got.Spec.Devices.Config[0].Opaque.Parameters), decoded(t, &want.Spec.Devices.Config[0].Opaque.Parameters))
		for k := range want.Status.Devices {
			same("conditions of "+want.Name, got.Status.Devices[k].Conditions, want.Status.Devices[k].Conditions)
			same("data of "+want.Name, decoded(t, got.Status.Devices[k].Data), decoded(t, want.Status.Devices[k].Data))
		}
	}
	slice, err := c.kube.ResourceV1().ResourceSlices().Get(ctx, "slice", metav1.GetOptions{})
	if err != nil || len(s.Slices) != 1 {
		t.Fatalf("%d slices, %v", len(s.Slices), err)
	}
	same("the devices", s.Slices[0].Spec.Devices, slice.Spec.Devices)
	class, err := c.kube.ResourceV1().DeviceClasses().Get(ctx, "gpu.example.com", metav1.GetOptions{})
	if err != nil || len(s.Classes) != 1 {
		t.Fatalf("%d classes, %v", len(s.Classes), err)
	}
	same("the selectors of the class", s.Classes[0].Spec.Selectors, class.Spec.Selectors)
	node, err := c.kube.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
	if err != nil || s.Node("node-1") == nil {
		t.Fatalf("no node, %v", err)
	}
	messages := func(node *corev1.Node) []string {
		var list []string
		for _, condition := range node.Status.Conditions {
			list = append(list, condition.Message)
		}
		return list
	}
	same("the messages of the node", messages(s.Node("node-1")), messages(node))
}

func decoded(t *testing.T, raw *runtime.RawExtension) (value any) {
	t.Helper()
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// differs tells what two snapshots do not have in common, but for when they were
// taken.
func differs(want, got *snapshot.Snapshot) string {
	parts := func(s *snapshot.Snapshot) []any {
		return []any{s.ServerVersion, s.Gates, s.Gaps, s.Nodes, s.Namespaces, s.Pods, s.Events, s.Slices, s.Classes, s.Claims, s.Templates, s.TaintRules, s.Workloads}
	}
	w, g := parts(want), parts(got)
	for i := range w {
		if !equality.Semantic.DeepEqual(w[i], g[i]) {
			return cmp.Diff(w[i], g[i])
		}
	}
	return ""
}

// archived packs a file into an archive that is alone in a directory.
func archived(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zipper := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipper)
	mustDo(t, func() error {
		return archive.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o600, Size: int64(len(content))})
	})
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	mustDo(t, archive.Close)
	mustDo(t, zipper.Close)
	archivePath := filepath.Join(t.TempDir(), filepath.Base(path)+".tar.gz")
	mustDo(t, func() error { return os.WriteFile(archivePath, packed.Bytes(), 0o600) })
	return archivePath
}

// requireCleanOutputs runs a verb on the cluster and on a snapshot of it in all forms
// of output that there are.
func requireCleanOutputs(t *testing.T, p *program, path string, args []string) {
	t.Helper()
	for _, source := range [][]string{nil, {"--snapshot", path}} {
		decodedAs := map[string]any{}
		for _, output := range []string{"", "wide", "name", "json", "yaml", "kyaml", "custom-columns=NAME:.name,ATTRIBUTES:.attributes,MESSAGE:.message,STATE:.state"} {
			line := slices.Concat(args, source)
			if output != "" {
				line = append(line, "-o", output)
			}
			code, out, errOut := p.tried(t, line...)
			if code > 2 && !regexp.MustCompile(`read --output: .* is not a valid value\nAllowed are `).MatchString(errOut) && !strings.Contains(errOut, "does not have -o") {
				t.Errorf("%q: code %d, %s", line, code, errOut)
				continue
			}
			requireNoControl(t, line, errOut)
			switch output {
			case "json", "yaml", "kyaml":
				var value any
				if err := yaml.Unmarshal([]byte(out), &value); err != nil {
					t.Errorf("%q: %v", line, err)
				}
				withoutTimes(value)
				decodedAs[output] = value
			}
			if strings.HasSuffix(output, "yaml") {
				// Tabs, and what only orders or separates others, are not escaped there.
				out = strings.Map(func(r rune) rune {
					if r == '\t' || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
						return -1
					}
					return r
				}, out)
			}
			requireNoControl(t, line, out)
		}
		for _, output := range []string{"yaml", "kyaml"} {
			if diff := cmp.Diff(decodedAs["json"], decodedAs[output]); diff != "" {
				t.Errorf("%q: -o %s has something else than -o json: %s", args, output, diff)
			}
		}
	}
}

// withoutTimes removes what passes from one run to the next.
func withoutTimes(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			withoutTimes(item)
		}
	case map[string]any:
		for key := range value {
			if strings.HasSuffix(key, "Seconds") {
				delete(value, key)
				continue
			}
			withoutTimes(value[key])
		}
	}
}

// requireNoControl finds what would move the cursor of a terminal, or show a text in
// another order than it has.
func requireNoControl(t *testing.T, line []string, text string) {
	t.Helper()
	for at, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)) {
			t.Errorf("%q prints %q in %q", line, r, text[max(0, at-60):min(len(text), at+60)])
			return
		}
	}
}

const (
	// longQuantity is a quantity that an API server stores anywhere: it computes with it
	// for some time.
	longQuantity = "1e2000000"
	// endlessQuantity is a quantity that an API server stores where it does not compute.
	endlessQuantity = "1e999999999"
)

// quantitiesCluster has a node with a device, and a pod and a claim for it.
const quantitiesCluster = `
{apiVersion: v1, kind: Namespace, metadata: {name: ml}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: "8", pods: "110"}, capacity: {cpu: "8", pods: "110"}, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: fine}, spec: {driver: gpu.example.com, nodeName: node-1, pool: {name: node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0, capacity: {memory: {value: 80Gi}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: fine}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: 8Gi}}}}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: fine}, spec: {containers: [{name: c, image: example.com/none, resources: {requests: {cpu: "1"}, claims: [{name: r}]}}], resourceClaims: [{name: r, resourceClaimName: fine}]}}
`

// TestStoredQuantities stores quantities whose exponents make computations too slow,
// wherever an API server accepts them. They are left out one by one, and the output says so
// without delay.
func TestStoredQuantities(t *testing.T) {
	options := everything()
	options.WithoutScheduler, options.WithoutControllerManager = true, true
	c := startCluster(t, options)
	p, ctx := programFor(t, c.kubeconfig), t.Context()
	c.createAll(t, "ml", quantitiesCluster)
	if code, _, said := p.tried(t, "why", "pod/fine", "-n", "ml"); code != 0 {
		t.Fatalf("before: code %d, %s", code, said)
	}
	slice := func(device string) string {
		return `spec: {driver: gpu.example.com, nodeName: node-2, pool: {name: node-2, generation: 1, resourceSliceCount: 1}, devices: [{name: d, ` + device + `}]}`
	}
	policy := func(policy string) string {
		return slice(`allowMultipleAllocations: true, capacity: {memory: {value: "QUANTITY", requestPolicy: {` + policy + `}}}`)
	}
	// The allocator crashes for these; files with them are refused.
	for valid, want := range map[string]string{
		`min: "0", step: "0"`:                    "step: Invalid value: \"0\": must be greater than zero",
		`min: "0", step: "18446744073709551616"`: "step: Invalid value: \"18446744073709551616\"",
		`step: "1"`:                              "min: Required value",
	} {
		object, err := parseObject([]byte(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: long}, ` +
			strings.ReplaceAll(policy(`default: "0", validRange: {`+valid+`}`), "QUANTITY", "1e30") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.clientFor(t, object).Create(ctx, object, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("validRange {%s}: got %v, want an error with %q", valid, err, want)
		}
	}
	const (
		claimSpec = `spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: "QUANTITY"}}}}]}}`
		value     = `spec.devices[0].capacity["memory"].`
	)
	for _, test := range []struct{ kind, quantity, fields, path string }{
		{"ResourceSlice", endlessQuantity, slice(`capacity: {memory: {value: "QUANTITY"}}`), value + "value"},
		{"ResourceSlice", endlessQuantity, `spec: {driver: gpu.example.com, nodeName: node-2, pool: {name: node-2, generation: 1, resourceSliceCount: 1}, sharedCounters: [{name: c, counters: {units: {value: "QUANTITY"}}}]}`, `spec.sharedCounters[0].counters["units"].value`},
		{"ResourceSlice", longQuantity, policy(`default: "1", validValues: ["1", "QUANTITY"]`), value + "value"},
		{"ResourceSlice", longQuantity, policy(`default: "QUANTITY", validRange: {min: "1"}`), value + "value"},
		{"ResourceSlice", longQuantity, policy(`default: "1", validRange: {min: "1", max: "QUANTITY"}`), value + "value"},
		{"ResourceClaim", endlessQuantity, claimSpec, `spec.devices.requests[0].exactly.capacity.requests["memory"]`},
		{"ResourceClaim", endlessQuantity, `spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}, status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: node-1, device: gpu-0, shareID: 11111111-1111-4111-8111-111111111111, consumedCapacity: {memory: "QUANTITY"}}]}}}`, `status.allocation.devices.results[0].consumedCapacity["memory"]`},
		{"ResourceClaimTemplate", endlessQuantity, `spec: {` + claimSpec + `}`, `spec.spec.devices.requests[0].exactly.capacity.requests["memory"]`},
		{"Pod", longQuantity, `spec: {containers: [{name: c, image: example.com/none, resources: {requests: {cpu: "QUANTITY"}}}]}`, `spec.containers[0].resources.requests["cpu"]`},
		{"Pod", longQuantity, `spec: {containers: [{name: c, image: example.com/none, resources: {limits: {example.com/card: "QUANTITY"}}}]}`, `spec.containers[0].resources.limits["example.com/card"]`},
		{"Node", longQuantity, `status: {allocatable: {cpu: "QUANTITY"}, capacity: {cpu: "8"}}`, `status.allocatable["cpu"]`},
		{"ResourceQuota", longQuantity, `spec: {hard: {requests.cpu: "QUANTITY"}}`, `spec.hard["requests.cpu"]`},
		{"LimitRange", endlessQuantity, `spec: {limits: [{type: Container, min: {cpu: "QUANTITY"}}]}`, `spec.limits[0].min["cpu"]`},
		{"PersistentVolumeClaim", longQuantity, `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "QUANTITY"}}}`, ""},
	} {
		name := test.kind + " " + stdcmp.Or(test.path, "where it matters")
		t.Run(name, func(t *testing.T) {
			apiVersion := "v1"
			if strings.HasPrefix(test.kind, "ResourceClaim") || test.kind == "ResourceSlice" {
				apiVersion = "resource.k8s.io/v1"
			}
			object, err := parseObject([]byte(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: long}, %s}", apiVersion, test.kind, strings.ReplaceAll(test.fields, "QUANTITY", test.quantity))))
			if err != nil {
				t.Fatal(err)
			}
			client := c.clientFor(t, object)
			created, err := client.Create(ctx, object, metav1.CreateOptions{})
			if err == nil && test.kind == "ResourceClaim" && object.Object["status"] != nil {
				created.Object["status"] = object.Object["status"]
				_, err = client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatalf("the API server does not store it: %v", err)
			}
			defer mustDo(t, func() error {
				return client.Delete(ctx, "long", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			})
			path := filepath.Join(t.TempDir(), "cluster.yaml")
			said := "left out " + test.kind + " "
			if test.path != "" {
				said = test.path + ": expected a quantity with an exponent between -99 and 99, found "
			}
			for _, args := range [][]string{
				{"snapshot", "-o", path},
				{"why", "pod/fine", "-n", "ml"},
				{"why", "-A"},
				{"claims", "-A"},
				{"devices"},
				{"pools"},
				{"slices", "-o", "wide"},
				{"classes"},
				{"tree", "-A"},
				{"why", "pod/fine", "-n", "ml", "--snapshot", path},
			} {
				code, out, errOut := p.tried(t, args...)
				if told := slices.Contains([]string{"Pod", "Node", "ResourceClaimTemplate"}, test.kind); told && args[0] == "why" && args[1] == "pod/fine" && code == 0 &&
					!strings.Contains(strings.Join(strings.Fields(out), " "), "; left out "+test.kind+" ") {
					t.Errorf("%q does not tell what is left out:\n%s", args, out)
				}
				if code < 0 || strings.Contains(errOut, "panic") {
					t.Fatalf("%q does not end: code %d, %s", args, code, errOut)
				}
			}
			snap, err := files.Load(ctx, []string{path}, files.Options{})
			if err != nil {
				t.Fatal(err)
			}
			left := slices.ContainsFunc(snap.Gaps, func(gap snapshot.Gap) bool { return gap.LeftOut && strings.Contains(gap.Reason, said) })
			if left != (test.path != "") {
				t.Errorf("want a gap: %v, got %+v", test.path != "", snap.Gaps)
			}
			if snap.Claim("ml", "fine") == nil || snap.Node("node-1") == nil || len(snap.Slices) != 1 || snap.Slices[0].Name != "fine" {
				t.Errorf("more is left out than the one")
			}
		})
	}
}

// clientFor returns a client for objects of the kind of one.
func (c *cluster) clientFor(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Scope.Name() == "namespace" {
		return c.dynamic.Resource(mapping.Resource).Namespace("ml")
	}
	return c.dynamic.Resource(mapping.Resource)
}
