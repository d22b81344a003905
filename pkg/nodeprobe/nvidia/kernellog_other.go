// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nvidia

import (
	"errors"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

func kernelLog(*node.Host) ([]string, error) {
	return nil, errors.New("only Linux has one")
}
