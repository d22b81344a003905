// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// lintText checks a text as if it was in the file m.yaml.
func lintText(t *testing.T, text string, opts Options) *api.LintReport {
	t.Helper()
	texts, err := files.Texts(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text), StdinName: "m.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := Lint(t.Context(), texts, opts)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// said returns the findings in lines such as "DRA2001 3:5".
func said(found *api.LintReport) []string {
	var lines []string
	for _, f := range found.Findings {
		lines = append(lines, fmt.Sprintf("%s %d:%d", f.Code, f.Line, f.Column))
	}
	return lines
}

const gpuClass = `
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
`

const gpuSlice = `
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: a
    attributes: {model: {string: x}, cores: {int: 8}}
  - name: b
    attributes: {cores: {int: 8}}
`

// claimText returns a claim with one request, from line 8 on.
func claimText(request string) string {
	return `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
` + indent(request, 8)
}

func indent(text string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", by) + line)
	}
	return b.String() + "\n"
}

// selecting returns a claim with one expression, which stands at 11:37.
func selecting(expression string) string {
	return claimText("selectors:\n- cel: {expression: '" + expression + "'}")
}

// podText returns a pod with one claim and one container, whose fields begin in line 10.
func podText(entry, container string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  resourceClaims:\n  - " + entry + "\n  containers:\n  - name: main\n    image: i\n" + indent(container, 4)
}

// faulty has, for each check, a manifest with its fault and one without it.
func faulty() map[string]struct {
	text string
	// at is the position of the finding, says a part of its message.
	at, says string
	// right is silent.
	right string
} {
	use := "resources: {claims: [{name: gpu}]}"
	gpu := "{name: gpu, resourceClaimTemplateName: t}"
	template := "\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}\n"
	return map[string]struct{ text, at, says, right string }{
		"DRA2001": {"apiVersion: v1\nkind: Pod\nspec: {containers: 5}\nmetadata: {name: p}\n", "3:20", "expected a list", podText(gpu, use) + template + gpuClass},
		"DRA2002": {"apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}\n", "2:7", "is gone", gpuClass},
		"DRA2003": {strings.Replace(claimText("count: 2"), "      exactly:\n        deviceClassName: gpu\n        count", "      deviceClassName: gpu\n      count", 1), "9:7", "under exactly", claimText("count: 2")},
		"DRA2004": {strings.Replace(claimText("count: 2"), "/v1\n", "/v1beta1\n", 1), "8:7", "no field exactly", claimText("count: 2")},
		"DRA2005": {podText("name: gpu\n    source: {resourceClaimTemplateName: t}", use) + template, "7:5", "under source", podText(gpu, use) + template},
		"DRA2006": {claimText("counts: 2"), "10:9", "did you mean count", claimText("count: 2")},
		"DRA2007": {strings.Replace(claimText("count: 2"), "/v1\n", "/v1beta2\n", 1), "1:13", "deprecated", claimText("count: 2")},
		"DRA2008": {claimText("count: 2") + "---\n" + claimText("count: 3"), "14:18", "also in m.yaml:3, and differs", claimText("count: 2") + "---\n" + strings.Replace(claimText("count: 2"), "{name: c}", "{name: d}", 1)},
		"DRA2009": {claimText("count: -2"), "10:16", "at least 1", claimText("count: 2")},
		"DRA2101": {podText(gpu, "") + template, "6:12", "no container names claim gpu", podText(gpu, use) + template},
		"DRA2102": {podText(gpu, "resources: {claims: [{name: gpu}, {name: nic}]}") + template, "10:46", `names claim "nic"`, podText(gpu, use) + template},
		"DRA2103": {podText(gpu, "resources: {claims: [{name: gpu, request: q}]}") + template, "10:47", `names request "q"`, podText(gpu, "resources: {claims: [{name: gpu, request: r}]}") + template},
		"DRA2104": {podText("{name: gpu, resourceClaimName: c, resourceClaimTemplateName: t}", use) + template, "6:5", "both", podText(gpu, use) + template},
		"DRA2105": {podText("{name: gpu, resourceClaimTemplateName: tt}", use) + template, "6:44", "not in the files", podText(gpu, use) + template},
		"DRA2106": {podText(gpu, "resources: {claims: [{name: gpu}], requests: {deviceclass.resource.kubernetes.io/gpu: 2}, limits: {deviceclass.resource.kubernetes.io/gpu: 1}}") + template, "10:91", "must be the same", podText(gpu, "resources: {claims: [{name: gpu}], limits: {deviceclass.resource.kubernetes.io/gpu: 2}}") + template},
		"DRA2201": {strings.Replace(claimText(""), "Name: gpu", "Name: gpu.example.com", 1) + gpuClass, "9:26", "is a driver", claimText("") + gpuClass},
		"DRA2202": {claimText("count: 33"), "10:16", "33 devices", claimText("count: 32")},
		"DRA2203": {claimText("count: 1") + "    constraints:\n    - matchAttribute: a/b\n", "12:7", "about one device", claimText("count: 2") + "    constraints:\n    - matchAttribute: a/b\n"},
		"DRA2204": {alternatives("count: 1", "count: 2"), "11:9", "r/second is never reached", alternatives("count: 2", "count: 1")},
		"DRA2205": {claimText("tolerations:\n- operator: Exists"), "11:11", "every taint", claimText("tolerations:\n- {key: a/b, operator: Exists}")},
		"DRA2206": {claimText("adminAccess: true") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n", "10:22", "lacks the label", claimText("adminAccess: true") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {resource.kubernetes.io/admin-access: \"true\"}}}\n"},
		"DRA2207": {claimText("") + "    config:\n    - opaque: {driver: nic.example.com, parameters: {a: 1}}\n" + gpuClass, "12:24", "it is ignored", claimText("") + "    config:\n    - opaque: {driver: gpu.example.com, parameters: {a: 1}}\n" + gpuClass},
		"DRA2208": {strings.Replace(claimText(""), "Name: gpu", "Name: gpuu", 1) + gpuClass, "9:26", "not in the files", claimText("") + gpuClass},
		"DRA2209": {claimText("tolerations:\n- {key: a/b, operator: Exists}"), "11:11", "evict the pod all the same", claimText("tolerations:\n- {key: a/b, operator: Exists}\n- {key: a/b, operator: Exists, effect: NoExecute}")},
		"DRA2301": {selecting("device.driver = \"x\""), "11:44", "does not compile", selecting("device.driver == \"x\"")},
		"DRA2302": {selecting(`device.attributes["d"].all(a, device.attributes["d"].all(b, device.attributes["d"].all(c, device.attributes["d"].all(d, a == b || c == d))))`), "11:29", "the limit is 1,000,000", selecting("device.driver == \"x\"")},
		"DRA2303": {selecting(`device.attributes["gpu.example.com"].model == "x"`) + gpuClass + gpuSlice, "11:29", "device b of driver", selecting(`has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "x"`) + gpuClass + gpuSlice},
		"DRA2304": {selecting(`device.attributes["gpu.example.com"].cores == "8"`) + gpuClass + gpuSlice, "11:29", "type int", selecting(`device.attributes["gpu.example.com"].cores == 8`) + gpuClass + gpuSlice},
		"DRA2305": {selecting(`device.driver == "d" && device.attributes["d"].v.isLessThan(semver("1.02.3"))`), "11:98", "semver", selecting(`device.driver == "d" && device.attributes["d"].v.isLessThan(semver("1.2.3"))`)},
		"DRA2306": {selecting(`device.driver == "d" && device.capacity["d"].m.isLessThan(quantity("80 GB"))`), "11:98", "80 GB", selecting(`device.driver == "d" && device.capacity["d"].m.isLessThan(quantity("80G"))`)},
		"DRA2307": {selecting(`device.attributes["gpu.example.com"].crores == 8`) + gpuClass + gpuSlice, "11:29", "exists on none of the 2 devices", selecting(`device.attributes["gpu.example.com"].cores == 8`) + gpuClass + gpuSlice},
		"DRA2308": {selecting(`device.capacity["d"].m.isLessThan(quantity("1e999999999"))`), "11:74", "schedulers hang", selecting(`device.driver == "d" && device.capacity["d"].m.isLessThan(quantity("1e9"))`)},
		"DRA2401": {"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\nspec: {}\n", "4:1", "every device", gpuClass},
		"DRA2402": {strings.Replace(gpuClass, "spec: {", "spec: {config: [{opaque: {driver: nic.example.com, parameters: {}}}], ", 1), "6:35", "it is ignored", gpuClass},
		"DRA2403": {"apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {taint: {key: a/b, effect: NoExecute}}\n", "4:1", "it selects no device, but before 1.37.1 kube-scheduler takes that for all devices", "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {deviceSelector: {driver: d}, taint: {key: a/b, effect: NoExecute}}\n"},
		"DRA2404": {strings.Replace(gpuSlice, "{string: x}", "{string: 80Gi}", 1), "12:34", "80Gi", gpuSlice},
		"DRA2405": {"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {gpuu.deviceclass.resource.k8s.io/devices: 1}}\n" + gpuClass, "4:57", "does not exist", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {gpu.deviceclass.resource.k8s.io/devices: 1}}\n" + gpuClass},
	}
}

func alternatives(first, second string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: r
      firstAvailable:
      - {name: first, deviceClassName: gpu, %s}

      - {name: second, deviceClassName: gpu, %s}
`, first, second)
}

// TestFaults makes a fault for each check, and expects its finding at its place and
// nothing of the check in the manifest without it.
func TestFaults(t *testing.T) {
	tests := faulty()
	for code, test := range tests {
		t.Run(code, func(t *testing.T) {
			opts := Options{}
			if code == "DRA2201" {
				// It takes all classes.
				opts.Cluster = &snapshot.Snapshot{}
			}
			found := lintText(t, test.text, opts)
			at := slices.IndexFunc(found.Findings, func(f api.Finding) bool { return f.Code == code })
			if at < 0 {
				t.Fatalf("not found, only %v in\n%s", said(found), test.text)
			}
			f := found.Findings[at]
			if got := fmt.Sprintf("%d:%d", f.Line, f.Column); got != test.at || f.File != "m.yaml" || !strings.Contains(f.Message, test.says) {
				t.Errorf("%s:%s %s, want m.yaml:%s and %q in\n%s", f.File, got, f.Message, test.at, test.says, test.text)
			}
			for _, f := range lintText(t, test.right, Options{}).Findings {
				if f.Code == code || f.Severity == api.SeverityError {
					t.Errorf("the right one: %d:%d %s %s in\n%s", f.Line, f.Column, f.Code, f.Message, test.right)
				}
			}
		})
	}
	for _, check := range Checks() {
		if _, tested := tests[check.Code]; !tested && !strings.HasPrefix(check.Code, "DRA25") {
			t.Errorf("no fault for %s", check.Code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(tests)) {
		if !slices.Contains(checks.Codes(Descriptions()), code) {
			t.Errorf("a fault for %s, which does not exist", code)
		}
	}
}

// TestCodes keeps codes in their groups and in order.
func TestCodes(t *testing.T) {
	if !slices.IsSorted(checks.Codes(Descriptions())) || len(slices.Compact(checks.Codes(Descriptions()))) != len(checks.Codes(Descriptions())) {
		t.Errorf("not sorted, or one twice: %v", checks.Codes(Descriptions()))
	}
	for _, check := range Checks() {
		if !slices.ContainsFunc(Groups(), func(g checks.Group) bool { return strings.HasPrefix(check.Code, "DRA"+g.Number) }) {
			t.Errorf("%s is in no group", check.Code)
		}
		if check.About == "" || check.Advice == "" {
			t.Errorf("%s: its page would be empty", check.Code)
		}
	}
}

func TestChoiceAndIgnoring(t *testing.T) {
	text := strings.Replace(claimText("count: 33\ncounts: 1"), "{name: c}", "{name: c, annotations: {dra.kubectl.dev/ignore: DRA2202}}", 1)
	if found := lintText(t, text, Options{}); !slices.Equal(said(found), []string{"DRA2006 11:9"}) || found.Ignored != 1 || found.Counts.Error != 1 {
		t.Errorf("ignoring: %v, %d ignored", said(found), found.Ignored)
	}
	if found := lintText(t, text, Options{Choice: checks.Choice{Only: []string{"DRA23"}}}); len(found.Findings) > 0 || len(found.Checks) != 8 {
		t.Errorf("only DRA23: %v of %v", said(found), found.Checks)
	}
	old := strings.Replace(claimText("count: 2"), "/v1\n", "/v1beta2\n", 1)
	if found := lintText(t, old, Options{Choice: checks.Choice{Skip: []string{"DRA2007"}}}); len(found.Findings) > 0 {
		t.Errorf("without DRA2007: %v", said(found))
	}
}

// TestProposedFields says of fields that no release has yet, and that docs/compatibility.md
// names, that they are unknown.
func TestProposedFields(t *testing.T) {
	text := claimText("selectors:\n- cel:\n    variables: [{name: all, expression: device.attributes}]\n    expression: '\"gpu.example.com\" in variables.all'")
	if found := lintText(t, text, Options{}); len(found.Findings) == 0 || !strings.HasSuffix(found.Findings[0].Message, "cel.variables: unknown field") {
		t.Errorf("%+v", found.Findings)
	}
}

// TestRemovedVersions has, for each version of a kind, the release that removes it
// (APILifecycleRemoved in k8s.io/api).
func TestRemovedVersions(t *testing.T) {
	rule := "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {deviceSelector: {driver: d.example.com}, taint: {key: a/b, effect: NoExecute}}\n"
	claim := claimText("count: 2")
	for name, test := range map[string]struct {
		text    string
		release string
		want    api.Severity
		says    string
	}{
		"v1beta1, not yet":       {strings.Replace(claim, "/v1\n", "/v1beta1\n", 1), "v1.37.2", api.SeverityInfo, "Kubernetes 1.38 removes it"},
		"v1beta1, removed":       {strings.Replace(claim, "/v1\n", "/v1beta1\n", 1), "v1.38.0", api.SeverityError, "Kubernetes 1.38 does not serve ResourceClaim of resource.k8s.io/v1beta1"},
		"v1beta2, not yet":       {strings.Replace(claim, "/v1\n", "/v1beta2\n", 1), "v1.38.0", api.SeverityInfo, "Kubernetes 1.39 removes it"},
		"v1beta2, removed":       {strings.Replace(claim, "/v1\n", "/v1beta2\n", 1), "v1.39.0", api.SeverityError, "1.39 removed it"},
		"v1, never":              {claim, "v1.50.0", "", ""},
		"no release":             {strings.Replace(claim, "/v1\n", "/v1beta1\n", 1), "", api.SeverityInfo, "1.38"},
		"an older release":       {strings.Replace(claim, "/v1\n", "/v1beta1\n", 1), "v1.33.0", api.SeverityInfo, "1.38"},
		"a rule, not yet":        {rule, "v1.38.0", "", ""},
		"a rule, removed":        {rule, "v1.39.0", api.SeverityError, "DeviceTaintRule of resource.k8s.io/v1alpha3"},
		"a budget of long ago":   {"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: 1}\n", "", api.SeverityError, "1.25 removed it"},
		"a budget of these days": {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: 1}\n", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := lintText(t, test.text, Options{KubernetesVersion: test.release, Choice: checks.Choice{Only: []string{"DRA2007"}}})
			switch {
			case test.want == "" && len(found.Findings) > 0, test.want != "" && len(found.Findings) != 1:
				t.Errorf("found %v", said(found))
			case test.want != "" && (found.Findings[0].Severity != test.want || !strings.Contains(found.Findings[0].Message, test.says)):
				t.Errorf("%s: %s, want %s: %s", found.Findings[0].Severity, found.Findings[0].Message, test.want, test.says)
			}
		})
	}
}

// TestPlaces finds fields in Lists, in JSON, and behind aliases.
func TestPlaces(t *testing.T) {
	tests := map[string]struct{ text, at string }{
		"list":    {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: resource.k8s.io/v1\n  kind: ResourceClaim\n  metadata: {name: c}\n  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: g, count: 40}}]}}\n", "DRA2202 7:78"},
		"json":    {"{\n\t\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"c\"},\n\t\"spec\": {\"devices\": {\"requests\": [{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"g\", \"count\": 40}}]}}\n}\n", "DRA2202 3:95"},
		"comment": {"# one\n---\n# two\n" + claimText("count: 40"), "DRA2202 13:16"},
		"block":   {claimText("selectors:\n- cel:\n    expression: |\n      true &&\n      device.drver == \"x\""), "DRA2301 14:21"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if found := lintText(t, test.text, Options{}); !slices.Equal(said(found), []string{test.at}) {
				t.Errorf("%v, want %s", said(found), test.at)
			}
		})
	}
}

// FuzzLint looks for texts that end the program.
func FuzzLint(f *testing.F) {
	for _, test := range faulty() {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		texts, err := files.Texts(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
		if err != nil {
			return
		}
		if _, err := Lint(t.Context(), texts, Options{}); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatIsNoObject checks texts that are YAML and no objects: the errors are in the words
// of Kubernetes.
func TestWhatIsNoObject(t *testing.T) {
	for text, want := range map[string]string{
		"just text\n":                     `expected a Kubernetes object, found a string`,
		"- a\n- b\n":                      "expected a Kubernetes object, found a list",
		"3\n":                             "expected a Kubernetes object, found a number or a boolean",
		"{apiVersion: v1, kind: [Pod]}\n": "kind: expected a string, found a list",
		"{metadata: 3}\n":                 "metadata: expected an object, found 3",
		"{metadata: {annotations: {a: 3}}, apiVersion: v1}\n": `metadata.annotations["a"]: expected a string, found 3`,
	} {
		found := lintText(t, text, Options{})
		if len(found.Findings) != 1 || found.Findings[0].Message != want {
			t.Errorf("%q: %+v, want %s", text, found.Findings, want)
		}
	}
}
