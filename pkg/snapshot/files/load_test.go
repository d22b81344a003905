// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// claimYAML is a manifest as people write it.
const claimYAML = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: ml}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com}
`

const classJSON = `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.example.com"}}`

// loadText loads standard input.
func loadText(t *testing.T, text string) (*snapshot.Snapshot, error) {
	t.Helper()
	return files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// tarred makes an archive of pairs of name and content.
func tarred(t *testing.T, files ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i := 0; i < len(files); i += 2 {
		header := &tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[i+1]))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

func TestOldObjectsHideNothing(t *testing.T) {
	read := func(text string) (*snapshot.Snapshot, error) {
		return files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
	}
	const old = "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceClaim\nmetadata: {name: old, namespace: ml}\n---\n" +
		"apiVersion: resource.k8s.io/v1alpha2\nkind: PodSchedulingContext\nmetadata: {name: old, namespace: ml}\n---\n" +
		"apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: old}\n"
	s, err := read(old + "---\n" + claimYAML)
	if err != nil || len(s.Claims) != 1 {
		t.Fatalf("%v, claims %v", err, s)
	}
	want := []string{
		"left out: 1 × PodSchedulingContext of resource.k8s.io/v1alpha2, which Kubernetes 1.32 removed",
		"left out: 1 × ResourceClass of resource.k8s.io/v1alpha2, which Kubernetes 1.32 removed",
		"left out: 1 × ResourceClaim of resource.k8s.io/v1alpha3, which Kubernetes 1.32 removed",
	}
	if diff := cmp.Diff(want, s.Notes()); diff != "" {
		t.Errorf("notes, -want +got:\n%s", diff)
	}
	if _, err := read(old); err == nil || !strings.Contains(err.Error(), "ResourceClaim/ml/old") {
		t.Errorf("nothing but old objects: %v", err)
	}
}

func TestLoadFormats(t *testing.T) {
	both := []string{"DeviceClass//gpu.example.com", "ResourceClaim/ml/train"}
	claimOnly := both[1:]
	indented := "- " + strings.ReplaceAll(strings.TrimSpace(claimYAML), "\n", "\n  ") + "\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"YAML":                         {claimYAML, claimOnly},
		"YAML with separators":         {"---\n---\n# nothing\n---\n" + claimYAML + "---\n", claimOnly},
		"YAML with a directive":        {"%YAML 1.1\n---\n" + claimYAML + "...\n", claimOnly},
		"YAML with a byte order mark":  {"\xef\xbb\xbf" + claimYAML, claimOnly},
		"YAML with Windows line ends":  {strings.ReplaceAll(claimYAML, "\n", "\r\n") + "---\r\n" + classJSON, both},
		"YAML flow mapping":            {"{apiVersion: v1, kind: Namespace, metadata: {name: ml}}", []string{"Namespace//ml"}},
		"UTF-16":                       {utf16le(classJSON), both[:1]},
		"JSON":                         {classJSON, both[:1]},
		"concatenated JSON":            {classJSON + "\n" + classJSON + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ml"}}`, []string{"Namespace//ml", both[0]}},
		"JSON and YAML":                {classJSON + "\n---\n" + claimYAML, both},
		"YAML and JSON":                {claimYAML + "---\n" + classJSON, both},
		"kind after items":             {`{"apiVersion":"v1","items":[` + classJSON + `],"kind":"List"}`, both[:1]},
		"typed list without kinds":     {`{"kind":"DeviceClassList","apiVersion":"resource.k8s.io/v1","items":[{"metadata":{"name":"gpu.example.com"}}]}`, both[:1]},
		"list in a list":               {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[` + classJSON + `]}]}`, both[:1]},
		"YAML list":                    {"apiVersion: v1\nitems:\n" + indented + "kind: List\n", claimOnly},
		"YAML list, indented":          {"apiVersion: v1\nkind: List\nitems:\n  " + strings.ReplaceAll(indented, "\n", "\n  "), claimOnly},
		"empty list":                   {`{"apiVersion":"v1","kind":"List","items":[]}`, nil},
		"gzip":                         {zipped(t, claimYAML), claimOnly},
		"tar":                          {tarred(t, "a/claim.yaml", claimYAML, "class.json", classJSON, "README.md", "# no"), both},
		"tar.gz":                       {zipped(t, tarred(t, "claim.yaml.gz", zipped(t, claimYAML), "class.json", classJSON)), both},
		"YAML merge":                   {"apiVersion: v1\nkind: Namespace\nmetadata: {<<: {name: a, labels: {b: c}}, name: ml}", []string{"Namespace//ml"}},
		"YAML aliases":                 {"apiVersion: v1\nkind: Namespace\nmetadata: {name: &n ml, labels: {a: *n, b: *n}}", []string{"Namespace//ml"}},
		"the same object twice":        {claimYAML + "---\n" + claimYAML, claimOnly},
		"twice but for server's count": {strings.Replace(claimYAML, "ml}", "ml, resourceVersion: '7'}", 1) + "---\n" + claimYAML, claimOnly},
		"only a generated name":        {`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"train-"}}`, []string{"Pod//train-xxxxx"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, testsnapshot.Names(testsnapshot.Load(t, test.text))); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// A character of several bytes stands wherever a reader cuts the text, at every one of
// its bytes.
func TestLoadLongTextOfManyBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	for shift := range 4 {
		text := "#" + strings.Repeat("x", shift) + strings.Repeat("\U0001F600", 70_000) + "\n" + claimYAML
		for name, content := range map[string]string{"plain": text, "gzip": zipped(t, text), "tar": tarred(t, "claim.yaml", text)} {
			if _, err := loadText(t, content); err != nil {
				t.Errorf("%s, %d: %v", name, shift, err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := files.Load(t.Context(), []string{path}, files.Options{}); err != nil {
				t.Errorf("file, %s, %d: %v", name, shift, err)
			}
		}
	}
}

func utf16le(s string) string {
	out := []byte{0xff, 0xfe}
	for _, c := range []byte(s) {
		out = append(out, c, 0)
	}
	return string(out)
}

// manyClaims are more than fit into one piece.
const manyClaims = 3000

func TestLoadLargeLists(t *testing.T) {
	var yamlList, jsonList strings.Builder
	yamlList.WriteString("apiVersion: v1\nitems:\n")
	jsonList.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i := range manyClaims {
		name := fmt.Sprintf("claim-%04d", i)
		fmt.Fprintf(&yamlList, "- apiVersion: resource.k8s.io/v1\n  kind: ResourceClaim\n  metadata:\n"+
			"    annotations:\n      text: |\n        - a\n\n        items:\n    name: %s\n", name)
		if i > 0 {
			jsonList.WriteByte(',')
		}
		fmt.Fprintf(&jsonList, `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q}}`, name)
	}
	yamlList.WriteString("kind: List\n")
	jsonList.WriteString("]}")
	anchored := strings.Replace(yamlList.String(), "claim-0000\n", "&first claim-0000\n", 1)
	anchored = strings.Replace(anchored, "    name: claim-2999\n", "    name: claim-2999\n    labels: {first: *first}\n", 1)
	for name, text := range map[string]string{
		"YAML": yamlList.String(), "JSON": jsonList.String(), "YAML with an alias across pieces": anchored,
	} {
		t.Run(name, func(t *testing.T) {
			s := testsnapshot.Load(t, text)
			if len(s.Claims) != manyClaims || s.Claims[17].Name != "claim-0017" {
				t.Errorf("got %d claims", len(s.Claims))
			}
		})
	}
	broken := strings.Replace(yamlList.String(), "name: claim-2500\n", "name: {claim-2500\n", 1)
	if _, err := loadText(t, broken); err == nil || !strings.Contains(err.Error(), "not YAML: line 22") {
		t.Errorf("want the line of the file, got: %v", err)
	}
	wrong := strings.Replace(jsonList.String(), `"claim-2500"`, "2500", 1)
	want := `read standard input, document 1: item 2501 of List (ResourceClaim): metadata.name: expected a string, found 2500`
	if _, err := loadText(t, wrong); err == nil || err.Error() != want {
		t.Errorf("want: %s\n got: %v", want, err)
	}
}

func TestLoadLargeFiles(t *testing.T) {
	const claims = 40000
	var items strings.Builder
	for i := range claims {
		if i > 0 {
			items.WriteString(",\n")
		}
		fmt.Fprintf(&items, `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"claim-%05d","labels":{"pad":"0123456789"}}}`, i)
	}
	const largeFile = 4 << 20 // from which on a file is not read as a whole
	if items.Len() < largeFile {
		t.Fatalf("too small: %d", items.Len())
	}
	path := filepath.Join(t.TempDir(), "large.json")
	loadFile := func(content string) (*snapshot.Snapshot, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return files.Load(t.Context(), []string{path}, files.Options{})
	}
	header := `{"apiVersion":"dra.kubectl.dev/v1alpha1","kind":"Snapshot","serverVersion":"v1.36.0","items":[` + "\n"
	for name, content := range map[string]string{
		"saved snapshot":             header + items.String() + "\n]}\n",
		"version after items":        strings.Replace(header, `"serverVersion":"v1.36.0",`, "", 1) + items.String() + `],"serverVersion":"v1.36.0"}`,
		"kubectl, then the snapshot": `{"apiVersion":"v1","items":[` + items.String() + `],"kind":"List"}` + header + "]}",
		"indented":                   " " + header + strings.ReplaceAll(items.String(), "{", "{\n    ") + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := loadFile(content)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Claims) != claims || s.Claims[claims-1].Name != "claim-39999" || s.ServerVersion != "v1.36.0" {
				t.Errorf("got %d claims, version %q", len(s.Claims), s.ServerVersion)
			}
		})
	}
	last := `"name":"claim-39999"`
	for name, test := range map[string]struct{ content, want string }{
		"cut off":        {header + items.String()[:items.Len()-10], "Snapshot: not JSON: the text ends in the middle"},
		"no comma":       {header + items.String() + " 1]}", `line 40001: expected "," or "]", found '1'`},
		"wrong type":     {header + strings.Replace(items.String(), last, `"name":7`, 1) + "]}", "item 40000 of Snapshot (ResourceClaim): metadata.name: expected a string, found 7"},
		"syntax":         {header + strings.Replace(items.String(), last, `"name"-7`, 1) + "]}", "line 40001: not JSON: "},
		"after it":       {header + items.String() + "\n]}\n{\"a\":1 \"b\":2}", "document 2: line 40003: expected"},
		"not a snapshot": {strings.Replace(header, "v1alpha1", "v9", 1) + items.String() + "]}", "saved by a newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadFile(test.content); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want: %s\n got: %v", test.want, err)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	pod := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ml"},"spec":` + spec + `}`
	}
	claim := func(version string) string { return strings.Replace(claimYAML, "/v1", "/"+version, 1) }
	header := func(gap string) string {
		return "apiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\ngaps: [{resource: pods, reason: hidden}, {resource: " + gap + ", reason: hidden}]\n"
	}
	owned := func(owner string) string {
		return strings.Replace(claimYAML, "namespace: ml", "namespace: ml, ownerReferences: [{"+owner+", uid: u}]", 1)
	}
	selectors := func(n int) string {
		return strings.Replace(classJSON, "}}", `},"spec":{"selectors":[`+strings.Repeat(`{"cel":{"expression":"true"}},`, n-1)+`{"cel":{"expression":"true"}}]}}`, 1)
	}
	devices := func(n int) string {
		return `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","pool":{"name":"p","resourceSliceCount":1},"devices":[` +
			strings.Repeat(`{"name":"a"},`, n-1) + `{"name":"a"}]}}`
	}
	manyKeys := ""
	for i := range 100 {
		manyKeys += fmt.Sprintf(`"k%d":"",`, i)
	}
	laughs := "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := 'b'; i < 'k'; i++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", i-1), 10), ", "))
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing":           {"", "standard input"},
		"comments":          {"# nothing\n---\n", "there are no Kubernetes objects in it"},
		"binary":            {"\x7fELF\x00\x00", "expected YAML, JSON, gzip or tar, found binary data"},
		"Latin-1":           {"name: caf\xe9\n", "found binary data"},
		"truncated JSON":    {classJSON[:60], "document 1: DeviceClass: not JSON: the text ends in the middle of a JSON value"},
		"truncated gzip":    {zipped(t, claimYAML)[:60], "the gzip data ends early"},
		"damaged gzip":      {"\x1f\x8bnonsense", "damaged gzip data"},
		"truncated tar":     {tarred(t, "claim.yaml", claimYAML)[:600], "standard input:claim.yaml: the tar archive ends early"},
		"JSON syntax":       {"\n" + strings.Replace(classJSON, `{"name"`, "{\n\"name\" 1", 1), "line 3"},
		"YAML syntax":       {claimYAML + "---\na: b\n  c: d\n", "document 2: not YAML: line "},
		"scalar":            {"just words", "expected a Kubernetes object, found a string"},
		"no kind":           {"replicaCount: 1", "without apiVersion and kind"},
		"no name":           {`{"apiVersion":"v1","kind":"Pod"}`, "Pod: metadata.name: expected a name, found none"},
		"recursion":         {"apiVersion: v1\nkind: Pod\nmetadata: &m {labels: *m}", "contains itself"},
		"billion laughs":    {laughs, "excessive aliasing"},
		"aliases of a text": {"a: &a " + strings.Repeat("x", 20000) + "\nb: [" + strings.Repeat("*a,", 2000) + "]", "expand to far more text"},
		"infinity":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priority: .inf}", "has no meaning in a Kubernetes object"},
		"wrong scalar": {
			strings.Replace(claimYAML, "gpu.example.com}", "gpu.example.com, count: two}", 1),
			`ResourceClaim/ml/train: spec.devices.requests[0].exactly.count: expected an integer, found the string "two"`,
		},
		"wrong list":     {pod(`{"containers":{"name":"c"}}`), "Pod/ml/p: spec.containers: expected a list, found an object"},
		"wrong object":   {pod(`[]`), "Pod/ml/p: spec: expected an object, found a list"},
		"wrong bool":     {pod(`{"hostNetwork":"yes"}`), `spec.hostNetwork: expected true or false, found the string "yes"`},
		"wrong quantity": {pod(`{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}`), `spec.containers[0].resources.limits["cpu"]: expected a quantity such as`},
		"wrong time": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":"yesterday"}}`,
			`metadata.creationTimestamp: expected a time such as "2006-01-02T15:04:05Z", found the string "yesterday"`,
		},
		"wrong annotation":   {strings.Replace(claimYAML, "ml}", "ml, annotations: {a: true}}", 1), `metadata.annotations["a"]: expected a string, found true`},
		"old claim":          {claim("v1alpha3"), "apiVersion: ResourceClaim of resource.k8s.io/v1alpha3 is gone since Kubernetes 1.32: expected one of v1, v1beta2, v1beta1"},
		"unknown version":    {claim("v3"), "resource.k8s.io/v3 is not known: expected one of v1, v1beta2, v1beta1"},
		"ResourceClass":      {"apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}", "DeviceClass replaced it"},
		"scheduling context": {"apiVersion: resource.k8s.io/v1alpha3\nkind: PodSchedulingContext\nmetadata: {name: c}", "the scheduler allocates without it"},
		"taint rule version": {"apiVersion: resource.k8s.io/v1beta1\nkind: DeviceTaintRule\nmetadata: {name: c}", "expected one of v1, v1beta2, v1alpha3"},
		"odd apiVersion":     {"apiVersion: a/b/c\nkind: Pod", "expected a group and a version"},
		"snapshot version":   {"apiVersion: dra.kubectl.dev/v9\nkind: Snapshot", "saved by a newer version of this program"},
		"gap of a typo":      {header("resourceclaim"), `document 1: Snapshot: gaps[1].resource: expected one of nodes, namespaces, pods, events, resourceslices.resource.k8s.io, `},
		"gap of no resource": {header("resourceclaim.resource.k8s.io"), `or another resource with its group, found "resourceclaim.resource.k8s.io"`},
		"deployment of zero": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}", "spec.template: expected a pod template, found none"},
		"two of a name": {
			claimYAML + "---\n" + strings.Replace(claimYAML, "name: gpu", "name: gpus", 1),
			"standard input, document 2: ResourceClaim/ml/train: it differs from the one in standard input, document 1",
		},
		"key twice":             {strings.Replace(classJSON, `"name":"gpu.example.com"`, `"name":"a","name":"gpu.example.com"`, 1), "document 1: DeviceClass/gpu.example.com: metadata.name: duplicate key"},
		"key twice, escaped":    {strings.Replace(classJSON, `"name":"gpu.example.com"`, `"name":"a","n\u0061me":"gpu.example.com"`, 1), "metadata.name: duplicate key"},
		"kind twice":            {strings.Replace(classJSON, `"kind":"DeviceClass"`, `"kind":"DeviceClass","kind":"Pod"`, 1), "kind: duplicate key"},
		"items twice":           {`{"apiVersion":"v1","kind":"List","items":[],"items":[` + classJSON + `]}`, "items: duplicate key"},
		"key of a list's item":  {`{"apiVersion":"v1","kind":"List","items":[` + classJSON + `,{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"","b":"","a":""}}]}`, "item 2 of List (ConfigMap): data.a: duplicate key"},
		"key of a large object": {`{"apiVersion":"v1","kind":"ConfigMap","data":{` + manyKeys + `"k7":""}}`, "ConfigMap: data.k7: duplicate key"},
		"key of parameters":     {strings.Replace(classJSON, "}}", `},"spec":{"config":[{"opaque":{"driver":"d","parameters":{"a":[{"b":1,"b":2}]}}}]}}`, 1), "spec.config[0].opaque.parameters.a[0].b: duplicate key"},
		"key of the header":     {`{"apiVersion":"dra.kubectl.dev/v1alpha1","kind":"Snapshot","gates":{"DRAx":{"enabled":true},"DRAx":{"enabled":false}},"items":[]}`, `Snapshot: gates["DRAx"]: duplicate key`},
		"YAML key twice":        {classJSON + "\n---\n" + claimYAML + "  a: b\nspec: {}\n", `document 2: line 12: "spec": duplicate key`},
		"YAML keys alike":       {"apiVersion: v1\nkind: ConfigMap\ndata: {1: a, '1': b}", `document 1: "1": duplicate key`},
		"kind of an owner":      {owned("kind: 'x$(touch pwned)', apiVersion: v1, name: a"), `document 1: ResourceClaim/ml/train: metadata.ownerReferences[0].kind: expected a kind (letters, digits and "-"), found "x$(touch pwned)"`},
		"version of an owner":   {owned("kind: Pod, apiVersion: '$(touch pwned)/v1', name: a"), `metadata.ownerReferences[0].apiVersion: expected a group and a version such as resource.k8s.io/v1, found "$(touch pwned)/v1"`},
		"name of an owner":      {owned("kind: Pod, apiVersion: v1, name: 'a b'"), `metadata.ownerReferences[0].name: expected a name`},
		"kind":                  {"apiVersion: v1\nkind: 'x$(touch pwned)'\nmetadata: {name: a}", `kind: expected a kind (letters, digits and "-"), found "x$(touch pwned)"`},
		"group":                 {"apiVersion: ';ls/v1'\nkind: Pod\nmetadata: {name: a}", `apiVersion: expected a group and a version`},
		"name":                  {strings.Replace(claimYAML, "name: train", "name: 'a;b'", 1), `metadata.name: expected a DNS subdomain (lowercase letters, digits, "-" and "."), found "a;b"`},
		"namespace":             {strings.Replace(claimYAML, "namespace: ml", "namespace: a.b", 1), `metadata.namespace: expected a DNS label (lowercase letters, digits and "-"), found "a.b"`},
		"name of a request":     {strings.Replace(claimYAML, "name: gpu", "name: 'g p u'", 1), "spec.devices.requests[0].name: expected a DNS label"},
		"class of a request":    {strings.Replace(claimYAML, "gpu.example.com}", "'`ls`'}", 1), "spec.devices.requests[0].exactly.deviceClassName: expected a DNS subdomain"},
		"consumer":              {claimYAML + "status: {reservedFor: [{resource: '$(ls)', name: a, uid: b}]}", "status.reservedFor[0].resource: expected a DNS label"},
		"event":                 {"apiVersion: v1\nkind: Event\nmetadata: {name: e}\ninvolvedObject: {kind: 'a b', name: p}", "Event/e: involvedObject.kind: expected a kind"},
		"gap of a namespace":    {strings.Replace(header("pods"), "reason: hidden", "namespace: 'a b', reason: hidden", 1), "gaps[0].namespace: expected a DNS label"},
		"gate":                  {"apiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\ngates: {'$(ls)': {enabled: true}}", "gates: expected a kind"},
		"selectors":             {selectors(33), "DeviceClass/gpu.example.com: spec.selectors: expected at most 32 elements, found 33"},
		"devices":               {devices(129), "ResourceSlice/s: spec.devices: expected at most 128 elements, found 129"},
		"expression":            {strings.Replace(selectors(1), `"true"`, `"`+strings.Repeat("1", 10<<10+1)+`"`, 1), "spec.selectors[0].cel.expression: expected at most 10240 characters, found 10241"},
		"values":                {pod(`{"containers":[` + strings.Repeat("{},", 200000) + `{}]}`), "Pod/ml/p: expected at most 100000 values in an object, found 400"},
		"large object":          {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":\"" + strings.Repeat("a", 9<<20) + "\"}", "document 1: ConfigMap: an object has at most 8 MiB of text, found 9.0 MiB"},
		"large YAML":            {"apiVersion: v1\nkind: ConfigMap\ndata: " + strings.Repeat("a", 9<<20), "document 1: an object has at most 8 MiB of text, found 9.0 MiB"},
		"large item":            {"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  data: " + strings.Repeat("a", 9<<20) + "\nkind: List\n", "item 1 of List: an object has at most 8 MiB of text"},
		"large item in JSON":    {`{"apiVersion":"v1","kind":"List","items":[` + classJSON + `,"` + strings.Repeat("a", 9<<20) + `"]}`, "item 2 of List: an object has at most 8 MiB of text"},
		"nested lists": {
			strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 20) + strings.Repeat("]}", 20), "lists are nested more than 8 deep",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			wantInputError(t, err, test.want)
		})
	}
}

// wantInputError fails unless err is an InputError with a text.
func wantInputError(t *testing.T, err error, want string) {
	t.Helper()
	var input *files.InputError
	if !errors.As(err, &input) {
		t.Fatalf("want an InputError, got %v", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with: %s\ngot: %v", want, err)
	}
}

func TestLoadGaps(t *testing.T) {
	for written, want := range map[string]string{
		"resourceclaims":                 snapshot.ResourceClaims,
		"resourceclaims.resource.k8s.io": snapshot.ResourceClaims,
		"podgroups":                      snapshot.ResourcePodGroups,
		"nodes":                          snapshot.ResourceNodes,
		"/metrics":                       snapshot.ResourceMetrics,
		"podgroups.example.com":          "podgroups.example.com",
		"deployments.apps":               "deployments.apps",
		"replicationcontrollers":         "replicationcontrollers",
	} {
		s, err := loadText(t, "apiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\ngaps: [{resource: "+written+", reason: hidden}]\n")
		if err != nil {
			t.Fatal(err)
		}
		if s.Gap(want) == nil {
			t.Errorf("%s: no gap of %s in %v", written, want, s.Gaps)
		}
	}
}

func TestLoadPaths(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("dump.txt", claimYAML)
	write("cluster/b/claim.YAML", claimYAML)
	write("cluster/class.json.gz", zipped(t, classJSON))
	write("cluster/notes.txt", "not read")
	cluster := filepath.Join(dir, "cluster")

	s, err := files.Load(t.Context(), []string{cluster, plain}, files.Options{
		Gates: map[string]bool{"DRAPartitionableDevices": true}, KubernetesVersion: "v1.36.0",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"DeviceClass//gpu.example.com", "ResourceClaim/ml/train"}, testsnapshot.Names(s)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if gate := s.Gates["DRAPartitionableDevices"]; !gate.Enabled || gate.Source != snapshot.GateFromFlag {
		t.Errorf("gate of the options: got %+v", gate)
	}
	if s.ServerVersion != "v1.36.0" || s.Source != "2 files" {
		t.Errorf("got version %q, source %q", s.ServerVersion, s.Source)
	}

	missing := filepath.Join(dir, "no-such-file.yaml")
	_, err = files.Load(t.Context(), []string{plain, missing}, files.Options{})
	var input *files.InputError
	if !errors.As(err, &input) || input.Path != missing || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
	if _, err := files.Load(t.Context(), nil, files.Options{}); !errors.As(err, &input) {
		t.Errorf("no path: got %v", err)
	}
	conflicting := write("other.yaml", strings.Replace(claimYAML, "name: gpu", "name: gpus", 1))
	_, err = files.Load(t.Context(), []string{plain, conflicting}, files.Options{})
	if err == nil || !strings.Contains(err.Error(), plain) || !strings.Contains(err.Error(), conflicting) {
		t.Errorf("want both places, got: %v", err)
	}
}

func TestLoadLimits(t *testing.T) {
	zeros := zipped(t, strings.Repeat(" ", 1<<20))
	within := func(text string) error {
		_, err := files.Within(t.Context(), strings.NewReader(text), 200<<10, 50<<10, 256<<20, 10<<10, 2)
		return err
	}
	for name, test := range map[string]struct{ text, want string }{
		"inflates too far":    {zeros, "it has more than 0 MiB of text in compressed form; unpack it first"},
		"archive of too much": {zipped(t, tarred(t, "a.yaml", claimYAML, "b.yaml", strings.Repeat(" ", 1<<20))), "it has more than 0 MiB of text in compressed form"},
		"files of an archive": {tarred(t, "a.yaml", strings.Repeat(" ", 60<<10)), "it has more than 0 MiB of text in compressed form"},
		"plain":               {strings.Repeat(" ", 1<<20), "the input has more than"},
		"too many files":      {tarred(t, "a", "", "b", "", "c", ""), "the archive has more than 2 files"},
		"archive in archives": {tarred(t, "a.tar", tarred(t, "a.tar", tarred(t, "a.tar", tarred(t, "a.tar", tarred(t, "a.yaml", claimYAML))))), "nested more than 3 deep"},
		"gzip in gzip":        {zipped(t, zipped(t, claimYAML)), "it is compressed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := within(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want: %s\n got: %v", test.want, err)
			}
		})
	}
	// More than is kept at once, but within the limit.
	text := zipped(t, claimYAML+strings.Repeat("# comment\n", 3000))
	if err := within(text); err != nil {
		t.Errorf("within the limit: %v", err)
	}
}

func TestLoadConvertsAndSetsDefaults(t *testing.T) {
	const spec = `{"requests":[{"name":"gpu",%s},{"name":"any","firstAvailable":[{"name":"big","deviceClassName":"c","tolerations":[{"key":"k","value":"v"}]}]}]}`
	flat := `"deviceClassName":"gpu.example.com","selectors":[{"cel":{"expression":"true"}}]`
	want := resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
		{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "gpu.example.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "true"}}},
		}},
		{Name: "any", FirstAvailable: []resourceapi.DeviceSubRequest{{
			Name: "big", DeviceClassName: "c", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			Tolerations: []resourceapi.DeviceToleration{{Key: "k", Operator: resourceapi.DeviceTolerationOpEqual, Value: "v"}},
		}}},
	}}
	for version, request := range map[string]string{"v1": `"exactly":{` + flat + `}`, "v1beta2": `"exactly":{` + flat + `}`, "v1beta1": flat} {
		t.Run(version, func(t *testing.T) {
			devices := fmt.Sprintf(spec, request)
			s := testsnapshot.Load(t, fmt.Sprintf(`{"apiVersion":"resource.k8s.io/%[1]s","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":%[2]s}}
{"apiVersion":"resource.k8s.io/%[1]s","kind":"ResourceClaimTemplate","metadata":{"name":"t"},"spec":{"spec":{"devices":%[2]s}}}
{"apiVersion":"resource.k8s.io/%[1]s","kind":"DeviceClass","metadata":{"name":"d"},"spec":{"extendedResourceName":"example.com/gpu"}}`, version, devices))
			if diff := cmp.Diff(want, s.Claims[0].Spec.Devices); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, s.Templates[0].Spec.Spec.Devices); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if name := s.Classes[0].Spec.ExtendedResourceName; name == nil || *name != "example.com/gpu" {
				t.Errorf("class: got extended resource %v", name)
			}
		})
	}
}

func TestLoadOldSlice(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{
		"driver":"d","nodeName":"n","pool":{"name":"p","resourceSliceCount":1},
		"devices":[{"name":"gpu-0","basic":{"attributes":{"model":{"string":"m"}},"capacity":{"memory":{"value":"80Gi"}}}}]}}`)
	spec := s.Slices[0].Spec
	memory := spec.Devices[0].Capacity["memory"].Value
	if *spec.NodeName != "n" || *spec.Devices[0].Attributes["model"].StringValue != "m" || memory.String() != "80Gi" {
		t.Errorf("got %+v", spec)
	}
}

func TestLoadTaintRules(t *testing.T) {
	rule := func(version, selector string) string {
		return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/%s","kind":"DeviceTaintRule","metadata":{"name":"r"},
			"spec":{"deviceSelector":{%s},"taint":{"key":"k","effect":"NoSchedule"}}}`, version, selector)
	}
	for _, version := range []string{"v1", "v1beta2", "v1alpha3"} {
		s := testsnapshot.Load(t, rule(version, `"pool":"node-1"`))
		if len(s.TaintRules) != 1 || *s.TaintRules[0].Spec.DeviceSelector.Pool != "node-1" || s.TaintRules[0].Spec.Taint.TimeAdded != nil {
			t.Errorf("%s: got %+v", version, s.TaintRules)
		}
	}
	s := testsnapshot.Load(t, rule("v1alpha3", `"deviceClassName":"gpu.example.com"`))
	if gap := s.Gap(snapshot.ResourceTaintRules); len(s.TaintRules) != 0 || gap == nil || !strings.Contains(gap.Reason, "DeviceTaintRule r is left out") {
		t.Errorf("a rule that cannot be kept: got rules %v, gap %v", s.TaintRules, gap)
	}
}

func TestLoadPodGroups(t *testing.T) {
	group := func(version, ref string) string {
		return `{"apiVersion":"scheduling.k8s.io/` + version + `","kind":"PodGroup","metadata":{"name":"g"},"spec":{` + ref +
			`,"schedulingPolicy":{"gang":{"minCount":3}},"resourceClaims":[{"name":"c","resourceClaimName":"shared"}]}}`
	}
	const flat = `"workloadRef":{"workloadName":"w","templateName":"t"}`
	want := testsnapshot.Load(t, group("v1beta1", flat)).PodGroups
	if want[0].Spec.SchedulingPolicy.Gang.MinCount != 3 || want[0].Spec.WorkloadRef.TemplateName != "t" {
		t.Fatalf("got %+v", want[0].Spec)
	}
	for version, ref := range map[string]string{
		"v1alpha3": flat,
		"v1alpha2": `"podGroupTemplateRef":{"workload":{"workloadName":"w","podGroupTemplateName":"t"}}`,
	} {
		if diff := cmp.Diff(want, testsnapshot.Load(t, group(version, ref)).PodGroups); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestLoadWorkloads(t *testing.T) {
	const template = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","command":["x"]}],"resourceClaims":[{"name":"gpu"}]}}`
	object := func(apiVersion, kind, fields string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"w"},%s}`, apiVersion, kind, fields)
	}
	inSpec := `"spec":{"selector":{"matchLabels":{"app":"a"}},"template":` + template + `}`
	for name, text := range map[string]string{
		"Deployment":            object("apps/v1", "Deployment", inSpec),
		"Job":                   object("batch/v1", "Job", inSpec),
		"CronJob":               object("batch/v1", "CronJob", `"spec":{"jobTemplate":{"spec":{"selector":{"matchLabels":{"app":"a"}},"template":`+template+`}}}`),
		"ReplicationController": object("v1", "ReplicationController", `"spec":{"selector":{"app":"a"},"template":`+template+`}`),
		"PodTemplate":           object("v1", "PodTemplate", `"template":`+template),
		"custom resource":       object("example.com/v1", "TrainJob", inSpec),
	} {
		t.Run(name, func(t *testing.T) {
			s := testsnapshot.Load(t, text)
			if len(s.Workloads) != 1 {
				t.Fatalf("got %v, skipped %v", testsnapshot.Names(s), s.Skipped)
			}
			w := s.Workloads[0]
			if len(w.Template.Spec.ResourceClaims) != 1 || w.Template.Spec.Containers[0].Command != nil {
				t.Errorf("got template %+v", w.Template.Spec)
			}
			if name != "PodTemplate" && (w.Selector == nil || w.Selector.MatchLabels["app"] != "a") {
				t.Errorf("got selector %v", w.Selector)
			}
		})
	}
}

func TestLoadSkipsOtherKinds(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}
{"apiVersion":"example.com/v1","kind":"ThingList","metadata":{"name":"c"}}
{"apiVersion":"example.com/v1","kind":"Thing","spec":{"template":{"spec":{"containers":3}}}}`)
	want := map[string]int{"v1, Kind=ConfigMap": 2, "example.com/v1, Kind=ThingList": 1, "example.com/v1, Kind=Thing": 1}
	if diff := cmp.Diff(want, s.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestLoadEvents(t *testing.T) {
	s := testsnapshot.Load(t, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"new"},"regarding":{"kind":"Pod","name":"p"},"note":"n","reason":"r"}
{"apiVersion":"v1","kind":"Event","metadata":{"name":"old"},"involvedObject":{"kind":"ResourceClaim","name":"c"},"message":"m"}
{"apiVersion":"v1","kind":"Event","metadata":{"name":"other"},"involvedObject":{"kind":"Node","name":"n"},"message":"m"}`)
	if len(s.Events) != 2 || s.Events[0].Message != "n" || s.Events[0].InvolvedObject.Name != "p" || s.Events[1].Message != "m" {
		t.Errorf("got %+v", s.Events)
	}
}

func TestWith(t *testing.T) {
	cluster := testsnapshot.Load(t, classJSON+"\n---\n"+claimYAML)
	manifest := testsnapshot.Load(t, strings.Replace(claimYAML, "name: gpu", "name: new", 1)+"---\n"+strings.Replace(claimYAML, "train", "a", 1))
	both := cluster.With(manifest)
	want := []string{"DeviceClass//gpu.example.com", "ResourceClaim/ml/a", "ResourceClaim/ml/train"}
	if diff := cmp.Diff(want, testsnapshot.Names(both)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if got := both.Claim("ml", "train").Spec.Devices.Requests[0].Name; got != "new" {
		t.Errorf("the other's claim must win, got request %q", got)
	}
	if len(cluster.Claims) != 1 || cluster.Claims[0].Spec.Devices.Requests[0].Name != "gpu" || len(manifest.Classes) != 0 {
		t.Error("an input was changed")
	}
}

// TestErrorsQuoteNothingOfWhatIsNoObject takes texts that are named by mistake, or through a link.
func TestErrorsQuoteNothingOfWhatIsNoObject(t *testing.T) {
	for _, text := range []string{
		"HUSH\n", "root:$6$HUSH$HUSH/:19000:0:99999:7:::\nHUSH:*:1::::::\n", "KEY=HUSH\nX: [HUSH\n",
		"-----BEGIN PRIVATE KEY-----\nHUSH\n", "a: *HUSH\n", `{"a": HUSH}`, "HUSH: 1\nHUSH: 2\n", "a:\n  HUSH: 1\n  HUSH: 2\n",
		`{"HUSH": "HUSH", "HUSH": 1}`, `{"a": {"HUSH": 1, "HUSH": 2}}`, "? [HUSH]\n: x\n", "? {HUSH: 1}\n: x\n", "!!int HUSH", "a: !!float HUSH",
		`"HUSH`, "'HUSH", "HUSH%\tx: \"\\HUSH\"\n@HUSH\n", "%HUSH\n---\na: b", "- HUSH", "a: &a [*a, HUSH]", "kind: [HUSH]", "HUSH: {", "a: !HUSH x", "{HUSH}", "a: |\n HUSH\nHUSH",
	} {
		for name, err := range map[string]error{
			"load":      second(files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})),
			"manifests": second(files.Manifests(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})),
		} {
			if err == nil || strings.Contains(err.Error(), "HUSH") {
				t.Errorf("%s of %q: %v", name, text, err)
			}
		}
		texts, err := files.Texts(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
		for i := range texts {
			err = errors.Join(err, texts[i].Err)
		}
		if err != nil && strings.Contains(err.Error(), "HUSH") {
			t.Errorf("texts of %q: %v", text, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestLoadNoAnswers leaves out the events of dra-controller, which are conclusions and no facts.
func TestLoadNoAnswers(t *testing.T) {
	const events = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Event, metadata: {namespace: ml, name: kubelet}, involvedObject: {kind: Pod, namespace: ml, name: train}, reportingComponent: kubelet, type: Warning, reason: FailedPrepareDynamicResources}
- {apiVersion: v1, kind: Event, metadata: {namespace: ml, name: core}, involvedObject: {kind: Pod, namespace: ml, name: train}, reportingComponent: dra-controller, type: Warning, reason: PreparationFailed}
- {apiVersion: events.k8s.io/v1, kind: Event, metadata: {namespace: ml, name: new}, regarding: {kind: Pod, namespace: ml, name: train}, reportingController: dra-controller, type: Warning, reason: PreparationFailed}
`
	path := filepath.Join(t.TempDir(), "events.yaml")
	if err := os.WriteFile(path, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := files.Load(t.Context(), []string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Events) != 1 || s.Events[0].Name != "kubelet" {
		t.Errorf("%d events, want that of the kubelet alone", len(s.Events))
	}
}
