// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	kernelLogPath = "/dev/kmsg"
	// maxKernelLog bounds the records to read; the kernel keeps fewer unless it is
	// configured to keep very many.
	maxKernelLog = 200_000
	// kernelRecord is the largest record of the kernel.
	kernelRecord = 8192
)

// kernelLog reads the kernel log without waiting for more.
func kernelLog(host *node.Host) ([]string, error) {
	here, err := host.Here(kernelLogPath)
	if err != nil {
		return nil, err
	}
	// Package os would wait for the next record at the end.
	fd, err := syscall.Open(here, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: kernelLogPath, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	var lines []string
	record := make([]byte, kernelRecord)
	for range maxKernelLog {
		n, err := syscall.Read(fd, record)
		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EINTR):
			// The record was overwritten in the meantime: continue with the next one.
			continue
		case errors.Is(err, syscall.EAGAIN), err == nil && n == 0:
			return lines, nil
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: kernelLogPath, Err: err}
		}
		// Level, number and time come before the text, keys and values after it.
		_, text, _ := strings.Cut(string(record[:n]), ";")
		text, _, _ = strings.Cut(text, "\n")
		if strings.Contains(text, "NVRM: Xid") {
			lines = append(lines, text)
		}
	}
	return lines, nil
}
