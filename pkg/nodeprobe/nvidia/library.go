// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// errNoLibrary means that a node has no NVML.
var errNoLibrary = errors.New("there is no " + libraryName)

// notNVMLError means that the given path is not NVML.
type notNVMLError struct{ reason string }

func (e *notNVMLError) Error() string { return e.reason }

// initSymbol is a function that only NVML has.
const initSymbol = "nvmlInitWithFlags"

// findLibrary looks where the NVIDIA DRA driver looks (cmd/gpu-kubelet-plugin/root.go),
// below the roots of common set-ups: the node's own, the driver container of the GPU
// operator, and GKE. A given path is examined before it is loaded.
func findLibrary(host *node.Host, library string) (where, here string, err error) {
	if library != "" {
		here, err := givenLibrary(host, library)
		return library, here, err
	}
	if !hasNVML {
		return "", "", nil
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

// givenLibrary returns the path from here of a library of the node. If it is certainly not
// NVML, the error is a [*notNVMLError].
func givenLibrary(host *node.Host, library string) (here string, err error) {
	here, err = host.Here(library)
	if err != nil {
		return "", &notNVMLError{err.Error()}
	}
	info, err := host.Stat(library)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &notNVMLError{"there is no such file"}
	case errors.Is(err, fs.ErrPermission):
		return "", err
	case err != nil:
		return "", &notNVMLError{err.Error()}
	case !info.Mode().IsRegular():
		return "", &notNVMLError{"it " + node.ErrNotRegular.Error()}
	}
	file, err := os.Open(here)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", library, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	content, err := elf.NewFile(file)
	if err != nil || content.Type != elf.ET_DYN {
		return "", &notNVMLError{"it is not a shared library"}
	}
	symbols, err := content.DynamicSymbols()
	if err != nil || !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == initSymbol && s.Section != elf.SHN_UNDEF }) {
		return "", &notNVMLError{"it is not NVML: it has no " + initSymbol}
	}
	return here, nil
}

// libraryName is the file name of the library on every node.
const libraryName = "libnvidia-ml.so.1"
