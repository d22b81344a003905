// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestEscapedExponents reads quantities with escapes, which neither Kubernetes nor
// this program decodes.
func TestEscapedExponents(t *testing.T) {
	for _, quantity := range []string{`1\u0065-999999999`, `1e-\u0039999999999`, `\u0031e-999999999`} {
		object := `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "status": {"allocatable": {"cpu": "` + quantity + `"}}}`
		_, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(object)})
		var input *files.InputError
		if !errors.As(err, &input) || input.Field != `status.allocatable["cpu"]` || !strings.HasPrefix(input.Err.Error(), "expected a quantity") {
			t.Errorf("%s: %v", quantity, err)
		}
	}
}

// TestLongExponents reads quantities that take forever to decode or to compare,
// and texts that only look like them.
func TestLongExponents(t *testing.T) {
	long := strings.Repeat("9", 9)
	const refused = "expected a quantity with an exponent between -99 and 99, found "
	head := func(apiVersion, kind string) string {
		return `{"apiVersion": "` + apiVersion + `", "kind": "` + kind + `", "metadata": {"name": "x", "namespace": "ns"}, `
	}
	device := func(value string) string {
		return head("resource.k8s.io/v1", "ResourceSlice") + `"spec": {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
			"devices": [{"name": "d0", "capacity": {"memory": {"value": ` + value + `}}}]}}`
	}
	const capacity = `spec.devices[0].capacity["memory"].value`
	pod := func(container string) string {
		return head("v1", "Pod") + `"spec": {"containers": [{"name": "c", ` + container + `}]}}`
	}
	claim := head("resource.k8s.io/v1", "ResourceClaim") + `"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c",
		"capacity": {"requests": {"memory": "1e` + long + `"}}}}]}}}`
	for _, test := range []struct {
		name, document, field string
	}{
		{"a capacity", device(`"1e` + long + `"`), capacity},
		{"a small one", device(`"1e-` + long + `"`), capacity},
		{"a negative one", device(`"-1.5E-` + long + `"`), capacity},
		{"with zeros", device(`"1e` + strings.Repeat("0", 100) + `100"`), capacity},
		{"beyond 32 bits", device(`"1e4294967300"`), capacity},
		{"a number", device(`1e-` + long), capacity},
		{"with spaces around it", device(`"  1e-` + long + ` "`), capacity},
		{"with another space", device("\"\u00a01e-" + long + `"`), capacity},
		{"after a sign", device(`"+1e-` + long + `"`), capacity},
		{"the bound", device(`"1e99"`), ""},
		{"the other bound", device(`"1e-99"`), ""},
		{"just beyond", device(`"1e100"`), capacity},
		{"an older version", strings.Replace(device(`"1e-`+long+`"`), "/v1", "/v1beta2", 1), capacity},
		{"a claim", claim, `spec.devices.requests[0].exactly.capacity.requests["memory"]`},
		{"a node", head("v1", "Node") + `"status": {"allocatable": {"cpu": "1e-` + long + `"}}}`, `status.allocatable["cpu"]`},
		{"a quota", head("v1", "ResourceQuota") + `"spec": {"hard": {"pods": "1e-` + long + `"}}}`, `spec.hard["pods"]`},
		{"a limit range", head("v1", "LimitRange") + `"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1e` + long + `"}}]}}`, `spec.limits[0].max["cpu"]`},
		{"a volume", head("v1", "PersistentVolume") + `"spec": {"capacity": {"storage": "1e` + long + `"}}}`, `spec.capacity["storage"]`},
		{"a container", pod(`"resources": {"limits": {"cpu": "1e-` + long + `"}}`), `spec.containers[0].resources.limits["cpu"]`},
		{"a container's environment", pod(`"env": [{"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1e` + long + `"}}}]`), `spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor`},
		{
			"a workload", head("apps/v1", "Deployment") + `"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1e-` + long + `"}}}]}}}}`,
			`spec.template.spec.containers[0].resources.requests["cpu"]`,
		},
		{"a label", strings.Replace(pod(`"image": "1e999999"`), `"namespace"`, `"labels": {"commit": "1e`+long+`"}, "namespace"`, 1), ""},
		{"another kind", head("v1", "ConfigMap") + `"data": {"x": "1e` + long + `"}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "object.json")
			if err := os.WriteFile(path, []byte(test.document), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := files.Load(t.Context(), []string{path}, files.Options{})
			var input *files.InputError
			switch {
			case test.field == "" && err != nil && strings.Contains(err.Error(), refused):
				t.Error(err)
			case test.field != "" && (!errors.As(err, &input) || input.Field != test.field || input.Document != 1 || input.Path != path || !strings.HasPrefix(input.Err.Error(), refused)):
				t.Errorf("got %v, want the field %s", err, test.field)
			}
		})
	}
}
