// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
)

// driverNode is a node with a driver on the upstream helper, beside the cluster of
// testdata/contract/node.yaml, whose claim it can prepare.
type driverNode struct {
	program *program
	driver  *testdriver.Driver
	claim   *resourceapi.ResourceClaim
	root    string
}

func startDriverNode(t *testing.T) *driverNode {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster := filepath.Join("testdata", "contract", "node.yaml")
	n := &driverNode{program: programFor(t, "none")}
	var claims []*resourceapi.ResourceClaim
	n.driver, claims, n.root = startDriver(t, cluster)
	n.claim = claims[0]
	// The device file of its devices.
	must(os.Mkdir(filepath.Join(n.root, "dev"), 0o755))
	must(syscall.Mkfifo(filepath.Join(n.root, "dev", "null"), 0o600))
	n.program.flags = []string{"--node-root", n.root, "--node-name", "node-1", "--snapshot", cluster, "-n", "ml"}
	return n
}

// specs returns the directory with its CDI specs.
func (n *driverNode) specs() string { return filepath.Join(n.root, "etc", "cdi") }

// command returns one of node-probe about the claim.
func (n *driverNode) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	verb := append([]string{"node-probe", args[0], "train"}, args[1:]...)
	cmd := exec.CommandContext(t.Context(), n.program.path, slices.Concat(verb, n.program.flags)...)
	cmd.Env = n.program.env
	return cmd
}

// works runs a command that has to end well and soon.
func (n *driverNode) works(t *testing.T, args ...string) {
	t.Helper()
	cmd := n.command(t, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
}

// killed runs a command and kills it when the driver is at a call, before or after it
// carried it out. It returns when the driver is done with that call.
func (n *driverNode) killed(t *testing.T, method string, after bool, args ...string) {
	t.Helper()
	cmd := n.command(t, args...)
	died, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.driver.OnCall(func(called string, done bool) {
		if called != method {
			return
		}
		if done == after {
			once.Do(func() {
				_ = cmd.Process.Kill()
				<-died
			})
		}
		if done {
			select {
			case <-over:
			default:
				close(over)
			}
		}
	})
	defer n.driver.OnCall(nil)
	err := cmd.Run()
	close(died)
	if err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("%s was not killed at %s: %v", strings.Join(args, " "), method, err)
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatalf("the driver never ends %s", method)
	}
}

// prepared reports whether the driver has the claim prepared. It must have a spec
// then, and none else.
func (n *driverNode) prepared(t *testing.T) bool {
	t.Helper()
	specs, err := os.ReadDir(n.specs())
	if err != nil {
		t.Fatal(err)
	}
	prepared := n.driver.Prepared(n.claim.UID) > 0
	if want := map[bool]int{true: 1}[prepared]; len(specs) != want {
		t.Errorf("the driver has the claim prepared: %t; specs are %v", prepared, specs)
	}
	return prepared
}

// TestKilled kills prepare and unprepare at each call that they make, with the
// signal that nothing can catch. Nothing may be left that keeps anybody from
// preparing or unpreparing the claim.
func TestKilled(t *testing.T) {
	const getInfo, prepare, unprepare = "GetInfo", "NodePrepareResources", "NodeUnprepareResources"
	for name, test := range map[string]struct {
		args   []string
		method string
		after  bool
		// before is true if the claim is prepared at the start, left if it is when the
		// driver is done.
		before, left bool
	}{
		"prepare looks for drivers":            {[]string{"prepare"}, getInfo, false, false, false},
		"prepare has found the driver":         {[]string{"prepare"}, getInfo, true, false, false},
		"prepare begins":                       {[]string{"prepare"}, prepare, false, false, true},
		"prepare is done":                      {[]string{"prepare"}, prepare, true, false, true},
		"prepare --cleanup begins":             {[]string{"prepare", "--cleanup"}, prepare, false, false, true},
		"prepare --cleanup is done":            {[]string{"prepare", "--cleanup"}, prepare, true, false, true},
		"prepare --cleanup begins to clean up": {[]string{"prepare", "--cleanup"}, unprepare, false, false, false},
		"prepare --cleanup has cleaned up":     {[]string{"prepare", "--cleanup"}, unprepare, true, false, false},
		"prepare again is done":                {[]string{"prepare"}, prepare, true, true, true},
		"unprepare looks for drivers":          {[]string{"unprepare"}, getInfo, false, true, true},
		"unprepare begins":                     {[]string{"unprepare"}, unprepare, false, true, false},
		"unprepare is done":                    {[]string{"unprepare"}, unprepare, true, true, false},
		"unprepare of what is not prepared":    {[]string{"unprepare"}, unprepare, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := startDriverNode(t)
			if test.before {
				n.works(t, "prepare")
			}
			n.killed(t, test.method, test.after, test.args...)
			if got := n.prepared(t); got != test.left {
				t.Errorf("the claim is prepared: %t, want %t", got, test.left)
			}
			n.works(t, "prepare", "--twice")
			if !n.prepared(t) {
				t.Error("a second prepare prepares nothing")
			}
			n.works(t, "unprepare", "--twice")
			if n.prepared(t) {
				t.Error("unprepare leaves the claim prepared")
			}
			n.works(t, "prepare", "--twice", "--cleanup")
			if n.prepared(t) {
				t.Error("--cleanup leaves the claim prepared")
			}
		})
	}
}
