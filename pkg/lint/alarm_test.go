// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// lintFiles checks files of a directory, and gives the findings in lines such as
// "a.yaml:3 Warning DRA2105 message".
func lintFiles(t *testing.T, opts Options, manifests map[string]string) []string {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range manifests {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := files.Texts(t.Context(), []string{"."}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := Lint(t.Context(), texts, opts)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range report.Findings {
		if len(f.Fix) > 0 {
			f.Message += " (fix)"
		}
		lines = append(lines, fmt.Sprintf("%s:%d %s %s %s", f.File, f.Line, f.Severity, f.Code, f.Message))
	}
	return lines
}

func classText(name, expression string) string {
	return "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: " + name + "}\nspec: {selectors: [{cel: {expression: '" + expression + "'}}]}\n---\n"
}

func templateText(namespace, name, request string) string {
	return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {spec: {devices: {requests: [{name: gpu, exactly: {" + request + "}}]}}}\n---\n"
}

func usingText(namespace, template string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: " + namespace + "}\nspec:\n  resourceClaims: [{name: gpu, resourceClaimTemplateName: " + template + "}]\n" +
		"  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]\n---\n"
}

// TestAlarms covers manifests as people write them, and all that is said about them.
func TestAlarms(t *testing.T) {
	mig := classText("mig.gpu.example.com", `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].type == "mig"`)
	gpu := classText("gpu", `device.driver == "gpu.example.com"`)
	cluster := &snapshot.Snapshot{}
	for name, test := range map[string]struct {
		opts  Options
		files map[string]string
		want  []string
	}{
		"the class of a driver's chart, beside a class of the files": {files: map[string]string{
			"m.yaml": mig + templateText("team", "t", "deviceClassName: gpu.example.com") + usingText("team", "t"),
		}},
		"the same where all classes are known": {opts: Options{Cluster: cluster}, files: map[string]string{
			"m.yaml": mig + templateText("team", "t", "deviceClassName: gpu.example.com"),
		}, want: []string{"m.yaml:9 Warning DRA2201 gpu.example.com is a driver, and no DeviceClass has that name"}},
		"another kind of devices is no typo": {files: map[string]string{
			"m.yaml": gpu + classText("gpu.example.com", `device.driver == "gpu.example.com"`) + templateText("team", "t", "deviceClassName: cpu") + templateText("team", "u", "deviceClassName: cpu.example.com"),
		}},
		"nor is a class of another driver": {files: map[string]string{
			"m.yaml": classText("network", `device.driver == "nic.example.com"`) + templateText("team", "t", `deviceClassName: networks, selectors: [{cel: {expression: 'device.driver == "net.example.org"'}}]`),
		}},
		"a claim that no container names": {files: map[string]string{
			"m.yaml": templateText("team", "t", "deviceClassName: net") + strings.Replace(usingText("team", "t"), ", resources: {claims: [{name: gpu}]}", "", 1),
		}, want: []string{"m.yaml:10 Info DRA2101 no container names claim gpu in resources.claims: all run without its devices, unless its driver configures the pod as a whole, as network drivers do"}},
		"no apiVersion": {files: map[string]string{
			"m.yaml": templateText("team", "t", "deviceClassName: gpu") + strings.Replace(usingText("team", "t"), "apiVersion: v1\n", "", 1),
		}, want: []string{"m.yaml:6 Error DRA2009 apiVersion: expected v1, found none"}},
		"an apiVersion of another kind": {files: map[string]string{
			"m.yaml": "apiVersion: apps/v1\nkind: Job\nmetadata: {name: j}\n",
		}, want: []string{"m.yaml:1 Error DRA2009 apiVersion: expected batch/v1, found apps/v1"}},
		"kinds of others": {files: map[string]string{
			"m.yaml": "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\n---\nkind: Cluster\nname: kind\n",
		}},
		"a template in another namespace": {files: map[string]string{
			"m.yaml": templateText("gpu-test", "t", "deviceClassName: gpu") + templateText("gpu-tests", "t1", "deviceClassName: gpu") + usingText("gpu-tests", "t"),
		}, want: []string{"m.yaml:15 Warning DRA2105 ResourceClaimTemplate t is in namespace gpu-test, and a pod in namespace gpu-tests cannot use it"}},
		"the same document in two files": {files: map[string]string{
			"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n---\n" + templateText("ns", "t", "deviceClassName: gpu"),
			"b.yaml": "# again\nkind: Namespace\napiVersion: v1\nmetadata:\n  name: ns # here\n---\n" + templateText("ns", "t", "deviceClassName: gpu, count: 1, allocationMode: ExactCount"),
		}},
		"two documents of one name": {files: map[string]string{
			"a.yaml": templateText("ns", "t", "deviceClassName: gpu"), "b.yaml": templateText("ns", "t", "deviceClassName: gpu, count: 2"),
			"c/a.yaml": templateText("ns", "t", "deviceClassName: gpu, count: 3"),
			"d.yaml":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}\n",
		}, want: []string{
			"b.yaml:3 Info DRA2008 ResourceClaimTemplate/ns/t is also in a.yaml:3, and differs",
			"d.yaml:8 Error DRA2008 Deployment/default/d is also in d.yaml:3, and differs",
		}},
		"slices of another directory": {files: map[string]string{
			"one/slice.yaml": strings.TrimPrefix(gpuSlice, "\n---\n"),
			"one/t.yaml":     gpu + templateText("ns", "t", `deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "x"'}}]`),
			"two/t.yaml":     templateText("ns", "t", `deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].models == 3'}}]`),
		}, want: []string{
			"one/t.yaml:9 Warning DRA2303 attribute model (domain gpu.example.com) is read without a guard: device b of driver gpu.example.com does not have it (fix)",
		}},
		"a toleration and a rule": {files: map[string]string{
			"m.yaml": gpu + templateText("ns", "t", "deviceClassName: gpu, tolerations: [{key: a/b, value: v}, {key: a/c, operator: Exists}, {key: a/c, effect: NoExecute, operator: Exists}]"),
			"r.yaml": "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {deviceSelector: {driver: gpu.example.com}, taint: {key: a/b, value: v, effect: NoExecute}}\n" +
				"---\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: q}\nspec: {deviceSelector: {driver: nic.example.com}, taint: {key: a/c, effect: NoExecute}}\n",
		}, want: []string{"m.yaml:9 Warning DRA2209 the toleration of a/b names no effect: taints with effect NoExecute evict the pod all the same, such as that of DeviceTaintRule r"}},
		"quotas that the API server refuses": {files: map[string]string{
			"m.yaml": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/pods: -1, gpu.deviceclass.resource.k8s.io/devices: 1500m}}\n",
		}, want: []string{
			`m.yaml:4 Error DRA2009 spec.hard["count/pods"]: expected 0 or more, found -1`,
			`m.yaml:4 Error DRA2009 spec.hard["gpu.deviceclass.resource.k8s.io/devices"]: expected a whole number, found 1500m`,
		}},
		"a selector without cel": {files: map[string]string{
			"m.yaml": templateText("ns", "t", "deviceClassName: gpu, selectors: [{}]"),
		}, want: []string{"m.yaml:4 Error DRA2009 spec.spec.devices.requests[0].exactly.selectors[0]: expected cel, found none"}},
		"a quantity that only a device makes endless": {files: map[string]string{
			"m.yaml": gpu + templateText("ns", "t", `deviceClassName: gpu, selectors: [{cel: {expression: 'device.driver == "gpu.example.com" && has(device.attributes["gpu.example.com"].model) && quantity(device.attributes["gpu.example.com"].model).isGreaterThan(quantity("1"))'}}]`) +
				strings.Replace(strings.TrimPrefix(gpuSlice, "\n---\n"), "{string: x}", "{string: 1e999999999}", 1),
		}, want: []string{"m.yaml:9 Error DRA2308 evaluating the expression does not end: schedulers hang at it"}},
		"what is no manifest, beside manifests": {files: map[string]string{
			"chart/templates/a.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {{ include \"name\" . }}\n",
			"data.yaml":               "- {op: remove, path: /spec}\n",
			"k/kustomization.yaml":    "kind: Kustomization\nresources: [p.yaml]\npatches: [{path: patch.yaml}]\n",
			"k/p.yaml":                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n",
			"k/patch.yaml":            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, args: [a]}]}\n",
			"other/patch.yaml":        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, $patch: delete}]}\n",
			"broken.yaml":             "a: [\n",
			"broken/in/template.yaml": "kind: {{ .Kind }}\n",
		}, want: []string{
			"broken/in/template.yaml:1 Info DRA2001 a template, which was not checked",
			"broken.yaml:1 Error DRA2001 not YAML: line 1: did not find expected node content",
			"chart/templates/a.yaml:1 Info DRA2001 a template, which was not checked",
		}},
		"configuration of another driver": {files: map[string]string{
			"m.yaml": gpu + strings.Replace(templateText("ns", "t", "deviceClassName: gpu"), "requests:", "config: [{opaque: {driver: nic.example.org, parameters: {a: 1}}}], requests:", 1),
			"n.yaml": strings.Replace(templateText("ns", "u", "deviceClassName: gpu"), "requests:", "config: [{opaque: {driver: gpu.exmaple.com, parameters: {a: 1}}}], requests:", 1),
		}, want: []string{
			"m.yaml:9 Warning DRA2207 the configuration is for driver nic.example.org, and the requested devices are of gpu.example.com: it is ignored",
			"n.yaml:4 Warning DRA2207 the configuration is for driver gpu.exmaple.com, and the requested devices are of gpu.example.com: it is ignored (fix)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lintFiles(t, test.opts, test.files)
			got = slices.DeleteFunc(got, func(line string) bool { return strings.Contains(line, string(api.SeverityInfo)+" DRA2105") })
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(test.want, "\n     "))
			}
		})
	}
}
