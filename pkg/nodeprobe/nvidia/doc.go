// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package nvidia knows the NVIDIA GPUs of a node: what NVML and sysfs tell of
// them, and which ResourceSlices the NVIDIA DRA driver
// (kubernetes-sigs/dra-driver-nvidia-gpu) would make of that.
//
// It has three steps with plain data between them. [Look] reads: through NVML,
// or from the values of a simulated machine. [Preview]
// computes the slices from what was read. [Compare] holds them against published
// ones. The last two need no GPU and work in every build.
//
// NVML takes Linux, cgo and the build tag nvml. The tag is there because go-nvml
// leaves the functions of the library open until they are called, and Go's linker
// binds all at the start in a program with package plugin, which kustomize brings
// along with kubectl's libraries: it would not start. 'make build-nvml' has the
// option for the linker that goes with the tag.
//
// It changes nothing on a GPU, and never asks the API server. What NVML does not
// tell is listed as missing with the reason, and is never a zero. Only
// pkg/nodeprobe and what stands above it may import it.
package nvidia
