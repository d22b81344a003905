// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
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
			correct(t, name, &found.GPUs[i])
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
	if measured(t, name) != nil {
		source += "; memory and MIG profiles as such a GPU reports them"
	}
	if err := encoder.Encode(simulated{Source: source, Count: len(found.GPUs), Findings: first}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("simulated", name+".json"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// measured returns what a real GPU of a machine reported, nil if none was asked.
func measured(t *testing.T, machine string) *GPU {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", strings.TrimPrefix(machine, "dgx-"), "gpus.json"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var found Findings
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatal(err)
	}
	return &found.GPUs[0]
}

// correct puts right what the mocks say of memory and MIG profiles. Their IDs are no GPU's,
// and they give some profiles more than their share of the memory, from which NVIDIA's
// library makes names that no GPU has, such as 1g.35gb for two of them.
func correct(t *testing.T, machine string, g *GPU) {
	t.Helper()
	if from := measured(t, machine); from != nil {
		g.Product, g.MemoryBytes, g.MIGProfiles = from.Product, from.MemoryBytes, from.MIGProfiles
		return
	}
	// Hopper and later GPUs are divided in the same way. Profiles have the same IDs on all GPUs.
	const eighths, mib, gib = 8, 1 << 20, 1 << 10
	like := measured(t, "dgx-h200").MIGProfiles
	for i := range g.MIGProfiles {
		p := &g.MIGProfiles[i]
		p.ID = like[i].ID
		if g.Architecture != "Ampere" {
			p.Placements, p.Instances = like[i].Placements, like[i].Instances
		}
		share := *g.MemoryBytes / mib * uint64(p.Placements[0].Size) / eighths
		if p.MemoryMiB <= share {
			continue
		}
		p.MemoryMiB = share
		slices, _, _ := strings.Cut(p.Name, ".")
		_, media, _ := strings.Cut(p.Name, "gb")
		p.Name = fmt.Sprintf("%s.%dgb%s", slices, (share+gib-1)/gib, media)
	}
}
