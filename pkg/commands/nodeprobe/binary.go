// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"debug/elf"
	"fmt"
	"os"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// binaryFor returns the file to run on a node: the given one, or this program if it can run
// there.
func binaryFor(target *corev1.Node, given string) (string, error) {
	system, arch := target.Status.NodeInfo.OperatingSystem, target.Status.NodeInfo.Architecture
	if system != "linux" {
		return "", cli.Usagef("DRA drivers are for Linux.", "run on node %s: its kubelet reports the operating system %q", target.Name, system)
	}
	if given == "" {
		if runtime.GOOS != system || runtime.GOARCH != arch {
			return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+" with --binary.",
				"run on node %s: this program is for %s/%s, and the node is %s/%s", target.Name, runtime.GOOS, runtime.GOARCH, system, arch)
		}
		own, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the file of this program: %w", err)
		}
		return own, nil
	}
	file, err := elf.Open(given)
	if err != nil {
		return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+".", "read --binary: %w", err)
	}
	defer func() { _ = file.Close() }()
	if machine := machineOf(arch); machine != elf.EM_NONE && file.Machine != machine {
		return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+".",
			"read --binary: %s is for %s, and node %s is %s", given, file.Machine, target.Name, arch)
	}
	return given, nil
}

// machineOf returns an architecture in the words of ELF, none if it is unknown: then the
// file is tried.
func machineOf(arch string) elf.Machine {
	switch arch {
	case "amd64":
		return elf.EM_X86_64
	case "arm64":
		return elf.EM_AARCH64
	case "arm":
		return elf.EM_ARM
	case "ppc64le":
		return elf.EM_PPC64
	case "s390x":
		return elf.EM_S390
	case "riscv64":
		return elf.EM_RISCV
	default:
		return elf.EM_NONE
	}
}
