// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BinariesVariable and NodeBinariesVariable are the environment variables that
// name a directory with the binaries, for those who have them already.
const (
	BinariesVariable     = "KUBECTL_DRA_CONTROLPLANE"
	NodeBinariesVariable = "KUBECTL_DRA_NODE"
)

// Binaries returns the directory that has the binaries. Unless
// [BinariesVariable] names one it runs test/controlplane/build.sh of this
// module, which takes minutes the first time.
func Binaries(ctx context.Context) (string, error) {
	return binaries(ctx, BinariesVariable, "controlplane")
}

// ReleaseBinaries is like [Binaries], for another release than the newest: "1.35", one of
// test/controlplane/releases. There is no kubectl.
func ReleaseBinaries(ctx context.Context, release string) (string, error) {
	return binaries(ctx, BinariesVariable+"_"+strings.ReplaceAll(release, ".", "_"), "controlplane", release)
}

// NodeBinaries returns the directory that has kubelet and containerd, in the
// same way: built by test/node/build.sh.
func NodeBinaries(ctx context.Context) (string, error) {
	return binaries(ctx, NodeBinariesVariable, "node")
}

func binaries(ctx context.Context, variable, what string, arguments ...string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return dir, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	script := filepath.Join(root, "test", what, "build.sh")
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, script, arguments...)
	cmd.Stdout = &stdout
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build what the tests start with %s: %w", script, err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// moduleRoot returns the nearest directory above the current one with a go.mod.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: no go.mod in %s or above", start)
		}
	}
}
