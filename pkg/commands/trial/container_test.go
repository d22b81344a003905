// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
)

// contents returns what busybox and the kernel print in a container. The device, the
// variable and the mount are those that a claim brings.
func contents(t *testing.T, env, device, mount string) *trial.Contents {
	t.Helper()
	text := "PATH=/bin\x00HOSTNAME=case-1-1\x00" + env + "\nkubectl-dra devices\n" + `/dev:
total 0
crw-rw-rw-    1 0        0           1,   7 Nov 24 23:00 full
lrwxrwxrwx    1 0        0              13 Nov 24 23:00 fd -> /proc/self/fd
drwxrwxrwt    2 0        0              40 Nov 24 23:00 shm
` + device + `
/dev/shm:
total 0

kubectl-dra mounts
624 545 0:57 / / rw,relatime master:230 - overlay overlay rw,lowerdir=/var/lib
625 624 0:60 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
` + mount
	c, err := trial.ParseContents(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	gpuLine   = "crw-rw-rw-    1 0        0         195,   0 Nov 24 23:00 nvidia0\n"
	mountLine = `630 624 8:1 /usr/lib/x /usr/lib/lib\040x.so ro,nosuid - ext4 /dev/sda1 rw` + "\n"
)

func gpuEdits() []*cdi.Edits {
	return []*cdi.Edits{{
		Env:         []string{"GPU=0"},
		DeviceNodes: []cdi.DeviceNode{{Path: "/dev/nvidia0", HostPath: "/dev/nvidia0", Type: "c", Number: "195:0"}},
		Mounts:      []cdi.Mount{{HostPath: "/usr/lib/x", ContainerPath: "/usr/lib/lib x.so"}},
	}}
}

func TestContents(t *testing.T) {
	with, without := contents(t, "GPU=0\x00", gpuLine, mountLine), contents(t, "", "", "")
	if got, want := strings.Join(with.Added(without), "; "), "device /dev/nvidia0; env GPU=0; mount /usr/lib/lib x.so"; got != want {
		t.Errorf("the claim adds %s, want %s", got, want)
	}
	if added := without.Added(with); len(added) != 0 {
		t.Errorf("the other container has %v besides", added)
	}
	for _, text := range []string{"", "PATH=/bin\x00", "PATH=/bin\x00\nkubectl-dra devices\n/dev:\n"} {
		if _, err := trial.ParseContents(text); err == nil {
			t.Errorf("%q is read as if it were complete", text)
		}
	}
}

// TestLookCommand runs the command here.
func TestLookCommand(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	command := trial.LookCommand([]string{"/dev/null"})
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TEST_DEVICE=gpu-0\nx"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c, err := trial.ParseContents(string(out))
	if err != nil {
		t.Fatal(err)
	}
	if c.Env["TEST_DEVICE"] != "gpu-0\nx" || c.Devices["/dev/null"] != "c 1:3" || !c.Mounts["/proc"] {
		t.Errorf("env %q, /dev/null %q, /proc mounted: %t", c.Env["TEST_DEVICE"], c.Devices["/dev/null"], c.Mounts["/proc"])
	}
}

func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		env, device, mount string
		want               string
	}{
		"all there":         {"GPU=0\x00", gpuLine, mountLine, ""},
		"no device":         {"GPU=0\x00", "", mountLine, "device /dev/nvidia0: none, must be c 195:0"},
		"another device":    {"GPU=0\x00", strings.Replace(gpuLine, "195,   0", "195,   1", 1), mountLine, "device /dev/nvidia0: c 195:1, must be c 195:0"},
		"another variable":  {"GPU=1\x00", gpuLine, mountLine, "env GPU: 1, must be 0"},
		"no variable":       {"", gpuLine, mountLine, "env GPU: none, must be 0"},
		"nothing mounted":   {"GPU=0\x00", gpuLine, "", "mount /usr/lib/lib x.so: none, must be a mount of /usr/lib/x"},
		"nothing at all is": {"", "", "", "env GPU: none, must be 0; device /dev/nvidia0: none, must be c 195:0; mount /usr/lib/lib x.so: none, must be a mount of /usr/lib/x"},
	} {
		t.Run(name, func(t *testing.T) {
			lacking, _ := contents(t, test.env, test.device, test.mount).Differences(api.Ref("Pod", "test", "p"), gpuEdits())
			var texts []string
			for _, e := range lacking {
				texts = append(texts, e.Path+": "+e.Found+", must be "+e.Required)
			}
			if got := strings.Join(texts, "; "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	// Two devices set the same variable: the runtime keeps one of the values.
	two := []*cdi.Edits{{Env: []string{"GPU=0"}}, {Env: []string{"GPU=1"}}}
	if lacking, _ := contents(t, "GPU=1\x00", "", "").Differences(api.Ref("Pod", "test", "p"), two); len(lacking) != 0 {
		t.Errorf("one of two values is not there: %+v", lacking)
	}
}

// TestInContainer checks the container with and without a look at the node.
func TestInContainer(t *testing.T) {
	r := trial.NewRecord("case-1-1", begin)
	r.SeePod(trialPod(bound, running), false, after(1))
	full, bare := contents(t, "GPU=0\x00", gpuLine, mountLine), contents(t, "", "", "")
	for name, test := range map[string]struct {
		with, without        *trial.Contents
		edits                *trial.NodeEdits
		container, isolation api.TestResult
		says                 string
	}{
		"in order":              {full, bare, &trial.NodeEdits{Edits: gpuEdits()}, api.TestPassed, api.TestPassed, "has what the CDI specs"},
		"it lacks the device":   {bare, bare, &trial.NodeEdits{Edits: gpuEdits()}, api.TestFailed, api.TestPassed, "lacks"},
		"the other has it, too": {full, full, &trial.NodeEdits{Edits: gpuEdits()}, api.TestPassed, api.TestFailed, "does not name the claim has env GPU"},
		"not on the node":       {full, bare, nil, api.TestUnknown, api.TestUnknown, "--node-probe"},
		"it brings something":   {full, bare, nil, api.TestUnknown, api.TestUnknown, "the claim brings device /dev/nvidia0"},
		"not resolved":          {full, bare, &trial.NodeEdits{Problem: "device x is in no spec", Broken: true}, api.TestFailed, api.TestUnknown, "in no spec"},
		"not read":              {full, bare, &trial.NodeEdits{Problem: "no permission"}, api.TestUnknown, api.TestUnknown, "no permission"},
		"no CDI devices":        {bare, bare, &trial.NodeEdits{}, api.TestPassed, api.TestPassed, "no CDI devices"},
	} {
		t.Run(name, func(t *testing.T) {
			checks := trial.InContainer(r, test.with, test.without, test.edits)
			if len(checks) != 2 || checks[0].Result != test.container || checks[1].Result != test.isolation {
				t.Errorf("got %+v, want %s and %s", checks, test.container, test.isolation)
			}
			if !slices.ContainsFunc(checks, func(c api.TrialCheck) bool { return strings.Contains(c.Message, test.says) }) {
				t.Errorf("none says %q: %+v", test.says, checks)
			}
		})
	}
}
