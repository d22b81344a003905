// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// simulatedFiles has the values of go-nvml's mocks for a machine. They are kept as data
// because the mocks need cgo like the rest of go-nvml, and so would everything that
// simulates; the tests compare them with the mocks.
//
//go:embed simulated/*.json
var simulatedFiles embed.FS

// simulated is a machine with a number of equal GPUs.
type simulated struct {
	// Source names the source of the values.
	Source string `json:"source"`
	Count  int    `json:"count"`
	// Findings have the first GPU.
	Findings Findings `json:"findings"`
}

// SimulatedMachines returns the possible values of [Options.Simulate].
func SimulatedMachines() []string {
	entries, err := simulatedFiles.ReadDir("simulated")
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}

// simulate returns the findings for a simulated machine. Its GPUs differ in index, minor
// number, PCI bus ID and UUID.
func simulate(name string) (*Findings, error) {
	if !slices.Contains(SimulatedMachines(), name) {
		return nil, fmt.Errorf("simulate %q: unknown machine", name)
	}
	data, err := simulatedFiles.ReadFile(path.Join("simulated", name+".json"))
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", name, err)
	}
	var from simulated
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&from); err != nil {
		return nil, fmt.Errorf("simulate %s: %w", name, err)
	}
	f := from.Findings.DeepCopy()
	f.Simulated = name
	first := f.GPUs[0]
	f.GPUs = nil
	for i := range from.Count {
		g := *first.DeepCopy()
		g.Index, g.Minor = i, &i
		g.UUID = simulatedUUID(name, i)
		g.PCIBusID = fmt.Sprintf("0000:%02x:00.0", i)
		f.GPUs = append(f.GPUs, g)
	}
	return f, nil
}

// simulatedUUID returns the same UUID each time, unlike the mocks.
func simulatedUUID(name string, index int) string {
	return "GPU-" + uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s/%d", name, index)).String()
}
