// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestDoctorOnScenarios asks about the clusters of all scenarios, before there are
// pods. Only what their authors have made wrong on purpose is found.
func TestDoctorOnScenarios(t *testing.T) {
	wrong := map[string][]string{
		"class-selector":           {"DRA1301"},
		"extended-resource-both":   {"DRA1305"},
		"extended-resource-plugin": {"DRA1305"},
		"no-devices":               {"DRA1206", "DRA1301"},
		"pool-dangling-counter":    {"DRA1203"},
		"pool-duplicate-device":    {"DRA1203"},
		"pool-incomplete":          {"DRA1201"},
		"taint-all":                {"DRA1506"},
		"taint-slice":              {"DRA1506"},
	}
	for _, s := range loadScenarios(t) {
		var documents []string
		for _, o := range s.objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, string(text))
		}
		var gates []string
		for _, gate := range s.Gates {
			gates = append(gates, gate+"=true")
		}
		path := filepath.Join(t.TempDir(), s.name+".yaml")
		if err := os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if codes := diagnosed(t, "--snapshot", path, "--feature-gates", strings.Join(gates, ",")); !slices.Equal(codes, wrong[s.name]) {
			t.Errorf("%s: found %v, wrong are %v", s.name, codes, wrong[s.name])
		}
	}
}

// TestDoctorIsSilentOnRecordedSlices asks about what drivers of several kinds have
// published, some on real hardware, and about examples.
func TestDoctorIsSilentOnRecordedSlices(t *testing.T) {
	for _, path := range []string{
		filepath.Join("..", "examples", "live", "devices.yaml"),
		filepath.Join("..", "pkg", "nodeprobe", "nvidia", "testdata", "h100", "plain.yaml"),
		filepath.Join("..", "pkg", "nodeprobe", "nvidia", "testdata", "h100", "dynamic-mig.yaml"),
		filepath.Join("testdata", "recorded", "example-gpu.yaml"),
		filepath.Join("testdata", "recorded", "example-cpu.yaml"),
		filepath.Join("testdata", "recorded", "example-net.yaml"),
	} {
		if codes := diagnosed(t, "--snapshot", path); len(codes) > 0 {
			t.Errorf("%s: found %v", path, codes)
		}
	}
}

// diagnosed returns the codes of what doctor finds that is wrong.
func diagnosed(t *testing.T, args ...string) []string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), append([]string{"doctor", "-o", "json", "--min-severity", "Warning"}, args...), streams, commands.Build{Version: "v0.0.0-test"})
	found := &api.Diagnosis{}
	if err := json.Unmarshal(out.Bytes(), found); err != nil {
		t.Fatalf("doctor %v: exit code %d: %v\n%s", args, code, err, errOut)
	}
	var codes []string
	for _, f := range found.Findings {
		if f.Severity != api.SeverityUnknown {
			codes = append(codes, f.Code)
		}
	}
	return slices.Compact(codes)
}
