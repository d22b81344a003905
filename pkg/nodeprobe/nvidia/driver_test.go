// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
)

// TestPreviewIsTheDrivers compares with what the code of the driver itself has
// published for the same machines, two GPUs of each: testdata/driver has the
// output and how it was made.
func TestPreviewIsTheDrivers(t *testing.T) {
	want := driversOwn(t)
	for name := range machines() {
		for _, mig := range []bool{false, true} {
			for _, mode := range []string{"static", "combined", "split"} {
				for _, shares := range []string{sharesDisabled, sharesMemory, sharesUnlimited, "4"} {
					key := fmt.Sprintf("%s mig=%t %s %s", name, mig, mode, shares)
					specs, ok := want[key]
					if !ok {
						continue
					}
					delete(want, key)
					lib := mocked(t, name)
					lib.Devices = lib.Devices[:2]
					if mig {
						for _, d := range lib.Devices {
							partition(t, as[*server.Device](t, d))
						}
					}
					found, err := discovered(lib)
					if err != nil {
						t.Fatal(err)
					}
					settings := Settings{Node: "node", Split: mode == "split"}
					if err := settings.Configure(map[string]bool{gateDynamicMIG: mode != "static", gateShares: true}, shares); err != nil {
						t.Fatal(err)
					}
					list, err := Preview(found, settings)
					if err != nil {
						t.Fatalf("%s: %v", key, err)
					}
					got := []resourceapi.ResourceSliceSpec{}
					for _, s := range list {
						got = append(got, resourceapi.ResourceSliceSpec{Devices: s.Spec.Devices, SharedCounters: s.Spec.SharedCounters})
					}
					if diff := cmp.Diff(asJSON(t, specs), asJSON(t, got)); diff != "" {
						t.Errorf("%s (- the driver, + the preview):\n%s", key, diff)
					}
				}
			}
		}
	}
	for key := range want {
		t.Errorf("%s: not compared", key)
	}
}

func driversOwn(t *testing.T) map[string][]resourceapi.ResourceSliceSpec {
	t.Helper()
	file, err := os.Open("testdata/driver/driver.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]resourceapi.ResourceSliceSpec
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// asJSON returns a value as the API server sees it.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}
