// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command peak runs a program and writes to standard error, as a last line of
// JSON, what it took. Linux counts what the starting process has in memory as
// the peak of the one that it starts, so the one that measures must be small.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	command := exec.Command(os.Args[1], os.Args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	start := time.Now()
	err := command.Run()
	took := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		log.Fatal(err)
	}
	state := command.ProcessState
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		log.Fatal("no resource usage")
	}
	err = json.NewEncoder(os.Stderr).Encode(map[string]float64{
		"exit":    float64(state.ExitCode()),
		"seconds": took.Seconds(),
		"cpu":     (state.UserTime() + state.SystemTime()).Seconds(),
		"peakMiB": float64(usage.Maxrss) / 1024,
	})
	if err != nil {
		log.Fatal(err)
	}
}
