// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoEcho turns the echo of a terminal off and on again, and leaves its interrupts.
func TestNoEcho(t *testing.T) {
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = control.Close() }()
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	flags := func() uint32 {
		settings, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return settings.Lflag & (unix.ECHO | unix.ISIG)
	}
	restore := NoEcho(terminal)
	if got := flags(); got != unix.ISIG {
		t.Errorf("echo and interrupts are %#x", got)
	}
	if restore(); flags() != unix.ECHO|unix.ISIG {
		t.Error("the echo stays off")
	}
	// A file is left alone.
	NoEcho(os.Stdin)()
}
