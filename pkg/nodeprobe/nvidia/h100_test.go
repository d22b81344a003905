// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// TestPreviewH100 makes the slices again that were made on a virtual machine with one
// H100, from what NVML and sysfs reported there. The UUID is an invented one.
func TestPreviewH100(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", "h100", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var found Findings
	if err := json.Unmarshal(read("gpus.json"), &found); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string]Settings{"plain.yaml": {Node: "vm", Split: true}, "dynamic-mig.yaml": {Node: "vm", Split: true, DynamicMIG: true}} {
		var want resourceapi.ResourceSliceList
		if err := yaml.UnmarshalStrict(read(name), &want); err != nil {
			t.Fatal(err)
		}
		made, err := Preview(&found, settings)
		if err != nil {
			t.Fatal(err)
		}
		var got []resourceapi.ResourceSlice
		for _, slice := range made {
			got = append(got, *slice)
		}
		if diff := cmp.Diff(asText(t, want.Items), asText(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func asText(t *testing.T, slices []resourceapi.ResourceSlice) string {
	t.Helper()
	text, err := yaml.Marshal(slices)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
