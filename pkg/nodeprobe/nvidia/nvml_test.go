// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the values of the mocks anew")

// TestSimulatedMachines compares the data with the mocks that it is from.
func TestSimulatedMachines(t *testing.T) {
	for name := range machines() {
		found, err := discovered(mocked(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range found.GPUs {
			for _, value := range []string{"pcieRoot", "numaNode", "xids"} {
				found.GPUs[i].Missing = append(found.GPUs[i].Missing, Missing{Value: value, Reason: "the simulation has none", Unsupported: true})
			}
		}
		if *update {
			writeSimulated(t, name, found)
			continue
		}
		kept, err := simulate(name)
		if err != nil {
			t.Fatal(err)
		}
		found.Simulated = name
		if diff := cmp.Diff(found, kept); diff != "" {
			t.Errorf("%s is not what the mocks have (run with -update, and build again):\n%s", name, diff)
		}
	}
	if got, want := len(SimulatedMachines()), len(machines()); got != want {
		t.Errorf("%d machines in the data, %d mocks", got, want)
	}
}

func writeSimulated(t *testing.T, name string, found *Findings) {
	t.Helper()
	first := *found.DeepCopy()
	first.GPUs = first.GPUs[:1]
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	source := "github.com/NVIDIA/go-nvml v0.13.4-0, pkg/nvml/mock/" + strings.ReplaceAll(name, "-", "")
	if err := encoder.Encode(simulated{Source: source, Count: len(found.GPUs), Findings: first}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("simulated", name+".json"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
