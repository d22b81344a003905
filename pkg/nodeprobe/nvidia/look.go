// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// queryTimeout limits the answer of NVML. A machine with eight GPUs takes a second or two;
// a GPU that hangs can block it forever.
const queryTimeout = 30 * time.Second

// Options configure the look.
type Options struct {
	// Library is the path of the NVML library on the node. Empty for the paths that the
	// NVIDIA DRA driver tries.
	Library string
	// Simulate is one of [SimulatedMachines], to be used instead of the node.
	Simulate string
}

// Look describes the GPUs of a node. It always returns findings; errors are among the
// checks. It only fails for an unknown machine in the options.
func Look(ctx context.Context, host *node.Host, options Options) (*Findings, error) {
	f := &Findings{}
	if options.Simulate != "" {
		var err error
		if f, err = simulate(options.Simulate); err != nil {
			return nil, err
		}
		f.check(node.Good("gpus/nvml", "", "simulated: %s", english.Count(len(f.GPUs), "GPU")))
	} else {
		f = lookAt(ctx, host, options.Library)
	}
	f.TypeMeta = metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "GPUFindings"}
	for i := range f.GPUs {
		f.check(gpuChecks(&f.GPUs[i])...)
	}
	f.Cliques = cliques(f.GPUs)
	f.check(domainChecks(f)...)
	return f, nil
}

func (f *Findings) check(checks ...node.Check) { f.Checks = append(f.Checks, checks...) }

// lookAt looks at a real node: the PCI bus, then NVML, then the kernel log.
func lookAt(ctx context.Context, host *node.Host, library string) *Findings {
	pci, pciErr := pciGPUs(host)
	where, f, err := askNVML(ctx, host, library)
	if err != nil {
		f = &Findings{GPUs: []GPU{}}
		f.check(notAsked(where, library != "", err, pci, pciErr))
	} else {
		f.Library = where
		f.check(node.Good("gpus/nvml", where, "%s, driver %s", english.Count(len(f.GPUs), "GPU"), cmp.Or(f.DriverVersion, "unknown")))
		f.check(untold("gpus/nvml", "NVML", f.failures())...)
	}
	f.PCI = pci
	switch {
	case errors.Is(pciErr, fs.ErrNotExist):
		f.check(node.NotKnown("gpus/pci", pciDevices, "there is no such directory: sysfs is not to be seen"))
	case pciErr != nil:
		f.check(node.Failed("gpus/pci", pciDevices, pciErr))
	case err == nil:
		f.check(compareWithPCI(f.GPUs, pci)...)
	}
	for i := range f.GPUs {
		g := &f.GPUs[i]
		if g.PCIBusID == "" {
			continue
		}
		var gone []Missing
		g.PCIeRoot, g.NUMANode, gone = topology(host, g.PCIBusID)
		g.Missing = append(g.Missing, gone...)
	}
	addXIDs(f.GPUs, host)
	if len(f.GPUs) > 0 {
		f.IMEX = lookAtIMEX(host)
	}
	nameProcesses(f.GPUs, host)
	return f
}

// askNVML loads the library and asks it. where is its path on the node, empty if the
// dynamic linker finds it.
func askNVML(ctx context.Context, host *node.Host, library string) (where string, f *Findings, err error) {
	where, here, err := findLibrary(host, library)
	if err != nil {
		return where, nil, err
	}
	type answer struct {
		findings *Findings
		err      error
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	// Nothing can interrupt NVML. If it hangs, it is abandoned.
	done := make(chan answer, 1)
	go func() {
		findings, err := openNVML(here)
		done <- answer{findings, err}
	}()
	select {
	case a := <-done:
		return where, a.findings, a.err
	case <-ctx.Done():
		return where, nil, fmt.Errorf("NVML did not answer: %w", ctx.Err())
	}
}

// notAsked returns the check for NVML without an answer. That is OK only on a node without
// GPUs, and if no path was given.
func notAsked(where string, given bool, err error, pci []PCIDevice, pciErr error) node.Check {
	const name = "gpus/nvml"
	var other *notNVMLError
	switch {
	case errors.As(err, &other), given && noLibrary(err):
		return node.Bad(name, where, "%v", err)
	case given && !hasNVML:
		return node.NotKnown(name, where, "%v", err)
	case pciErr == nil && len(pci) == 0 && (!hasNVML || errors.Is(err, errNoLibrary) || noLibrary(err)):
		return node.Good(name, where, "no NVIDIA GPU on the PCI bus")
	case !hasNVML, errors.Is(err, context.DeadlineExceeded) && len(pci) == 0, errors.Is(err, context.Canceled):
		return node.NotKnown(name, where, "%v", err)
	case pciErr != nil:
		return node.NotKnown(name, where, "%v, and whether there is a GPU is not known either", err)
	case len(pci) > 0 && !slices.ContainsFunc(pci, func(d PCIDevice) bool { return d.Driver == nvidiaModule }):
		return node.Bad(name, where, "%v; none of %s is bound to the kernel driver %q", err, english.Count(len(pci), "GPU"), nvidiaModule)
	default:
		return node.Failed(name, where, err)
	}
}

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
