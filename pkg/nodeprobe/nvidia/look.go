// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// patience is how long NVML has to answer. Asking a machine with eight GPUs takes
// a second or two; a GPU that hangs can block it forever.
const patience = 30 * time.Second

// libraryName is what the library is called on every node.
const libraryName = "libnvidia-ml.so.1"

// Options say what to look at.
type Options struct {
	// Library is the path of the NVML library on the node. Empty for the places
	// where the NVIDIA DRA driver looks.
	Library string
	// Simulate is one of [SimulatedMachines], to be looked at in place of the
	// node.
	Simulate string
}

// Look finds out about the GPUs of a node. It always has findings; what went
// wrong is among the checks. The error is one of the options: an unknown machine.
func Look(ctx context.Context, host *node.Host, options Options) (*Findings, error) {
	f := &Findings{}
	if options.Simulate != "" {
		var err error
		if f, err = simulate(options.Simulate); err != nil {
			return nil, err
		}
		f.check(node.Good("gpus/nvml", "", "simulated: %s", node.Counted(len(f.GPUs), "GPU")))
	} else {
		f = lookAt(ctx, host, options.Library)
	}
	f.TypeMeta = metav1.TypeMeta{APIVersion: APIVersion, Kind: "GPUFindings"}
	for i := range f.GPUs {
		f.check(gpuChecks(&f.GPUs[i])...)
	}
	return f, nil
}

func (f *Findings) check(checks ...node.Check) { f.Checks = append(f.Checks, checks...) }

// lookAt asks a real node: the PCI bus, then NVML, then the kernel log.
func lookAt(ctx context.Context, host *node.Host, library string) *Findings {
	pci, pciErr := pciGPUs(host)
	where, f, err := askNVML(ctx, host, library)
	if err != nil {
		f = &Findings{GPUs: []GPU{}}
		f.check(notAsked(where, err, pci, pciErr))
	} else {
		f.Library = where
		f.check(node.Good("gpus/nvml", where, "%s, driver %s", node.Counted(len(f.GPUs), "GPU"), f.DriverVersion))
	}
	f.PCI = pci
	switch {
	case errors.Is(pciErr, fs.ErrNotExist):
		f.check(node.Unseen("gpus/pci", pciDevices, "there is no such directory: sysfs is not to be seen"))
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
	return f
}

// askNVML loads the library and asks it. where is its path on the node, empty if
// it is up to the dynamic linker.
func askNVML(ctx context.Context, host *node.Host, library string) (where string, f *Findings, err error) {
	where, here, err := findLibrary(host, library)
	if err != nil {
		return where, nil, err
	}
	type answer struct {
		findings *Findings
		err      error
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Nothing can interrupt NVML. If it hangs, it is left behind.
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

// errNoLibrary is a node without NVML.
var errNoLibrary = errors.New("there is no " + libraryName)

// findLibrary looks where the NVIDIA DRA driver looks
// (cmd/gpu-kubelet-plugin/root.go), below the roots that it is told about in
// common set-ups: the node's own, that of the driver container of the GPU
// operator, and that of GKE.
func findLibrary(host *node.Host, library string) (where, here string, err error) {
	if !hasNVML {
		_, err := openNVML("")
		return "", "", err
	}
	if library != "" {
		here, err = host.Here(library)
		if err == nil {
			_, err = host.Stat(library)
		}
		return library, here, err
	}
	for _, root := range []string{"/", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"} {
		for _, dir := range []string{"/", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"} {
			where = path.Join(root, dir, libraryName)
			if info, err := host.Stat(where); err != nil || !info.Mode().IsRegular() {
				continue
			}
			here, err = host.Here(where)
			return where, here, err
		}
	}
	if host.Root != node.DefaultRoot {
		return "", "", errNoLibrary
	}
	return "", "", nil
}

// notAsked is the check for NVML that gave no answer. That is as it should be
// only on a node that has no GPU.
func notAsked(where string, err error, pci []PCIDevice, pciErr error) node.Check {
	const name = "gpus/nvml"
	switch {
	case pciErr == nil && len(pci) == 0 && (!hasNVML || errors.Is(err, errNoLibrary) || noLibrary(err)):
		return node.Good(name, where, "no NVIDIA GPU on the PCI bus")
	case !hasNVML, errors.Is(err, context.DeadlineExceeded) && len(pci) == 0, errors.Is(err, context.Canceled):
		return node.Unseen(name, where, "%v", err)
	case pciErr != nil:
		return node.Unseen(name, where, "%v, and whether there is a GPU is not known either", err)
	case !slices.ContainsFunc(pci, func(d PCIDevice) bool { return d.Driver == nvidiaModule }):
		return node.Bad(name, where, "%v; none of %s is bound to the kernel driver %q", err, node.Counted(len(pci), "GPU"), nvidiaModule)
	default:
		return node.Failed(name, where, err)
	}
}
