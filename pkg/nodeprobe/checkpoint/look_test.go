// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

const (
	kubeletPath = "/var/lib/kubelet/dra_manager_state"
	driverPath  = "/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json"
	// fixture is a node with faults, see its README.md.
	fixture = "../../../test/testdata/nodeprobe"
)

// written returns a file as the kubelet or the driver wrote it.
func written(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixture, "host", path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// nodeFiles is a node under a temporary root.
type nodeFiles struct {
	*node.Host

	t *testing.T
}

func newNodeFiles(t *testing.T) *nodeFiles {
	t.Helper()
	return &nodeFiles{node.NewHost(t.TempDir(), "", nil), t}
}

func (s *nodeFiles) at(path string) string {
	s.t.Helper()
	here := filepath.Join(s.Root, path)
	if err := os.MkdirAll(filepath.Dir(here), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return here
}

// file writes a file that is an hour old.
func (s *nodeFiles) file(path string, content []byte) *nodeFiles {
	s.t.Helper()
	here, old := s.at(path), time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(here, content, 0o600), os.Chtimes(here, old, old)); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// link makes a link at a path.
func (s *nodeFiles) link(target, path string) *nodeFiles {
	s.t.Helper()
	if err := os.Symlink(target, s.at(path)); err != nil {
		s.t.Fatal(err)
	}
	return s
}

func (s *nodeFiles) look() *Findings {
	s.t.Helper()
	return Look(s.t.Context(), s.Host, nil)
}

// found returns the first check of that name and state whose message has text.
func found(f *Findings, state node.State, name, text string) *node.Check {
	for i := range f.Checks {
		if c := &f.Checks[i]; c.State == state && c.Name == name && strings.Contains(c.Message, text) {
			return c
		}
	}
	return nil
}

// TestReal reads what the programs themselves wrote.
func TestReal(t *testing.T) {
	s := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).file(driverPath, written(t, driverPath))
	f := s.look()
	if f.Kubelet == nil || f.Kubelet.Error != "" || len(f.Kubelet.Claims) != 4 {
		t.Fatalf("the kubelet's: %+v", f.Kubelet)
	}
	claim := f.Kubelet.Claims[0]
	if claim.Name != "train-0-gpu" || claim.State != PrepareCompleted || len(claim.Devices) != 1 ||
		!slices.Equal(claim.Devices[0].CDIDevices, []string{"k8s.gpu.nvidia.com/claim=" + claim.UID + "-gpu-0"}) {
		t.Errorf("the first claim of the kubelet: %+v", claim)
	}
	if f.Kubelet.Claims[2].State != NoDevices {
		t.Errorf("a claim without devices: %+v", f.Kubelet.Claims[2])
	}
	if len(f.Drivers) != 1 || f.Drivers[0].Driver != "gpu.nvidia.com" || len(f.Drivers[0].Claims) != 2 || f.Drivers[0].BootID == "" {
		t.Fatalf("the driver's: %+v", f.Drivers)
	}
	if check := found(f, node.OK, checkSum, "3 checksums"); check == nil || found(f, node.Problem, checkSum, "") != nil {
		t.Errorf("right checksums: %+v", f.Checks)
	}
	if found(f, node.Problem, checkPrepare, "ml/eval-0-mig") == nil {
		t.Errorf("a preparation left over from an hour ago: %+v", f.Checks)
	}
	if found(f, node.Problem, checkBoth, "ml/serve-0-gpu") == nil {
		t.Errorf("a claim that the driver has lost: %+v", f.Checks)
	}
	handed := f.Handed()
	if ids, ok := handed[f.Kubelet.Claims[2].UID]; !ok || ids != nil {
		t.Errorf("nothing is handed out yet, and that is known: %v, %t", ids, ok)
	}
	if ids := handed[claim.UID]; len(ids) != 1 {
		t.Errorf("handed out: %v", ids)
	}
}

// TestUnderway does not call a crash what may still be going on.
func TestUnderway(t *testing.T) {
	s := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).file(driverPath, written(t, driverPath))
	now := time.Now()
	if err := os.Chtimes(s.at(driverPath), now, now); err != nil {
		t.Fatal(err)
	}
	f := s.look()
	for _, name := range []string{checkPrepare, checkBoth} {
		if found(f, node.Unknown, name, "") == nil || found(f, node.Problem, name, "") != nil {
			t.Errorf("%s: %+v", name, f.Checks)
		}
	}
}

// TestBroken changes the files. Whatever it is, it is a finding, and the other
// file is read.
func TestBroken(t *testing.T) {
	kubelet, driver := written(t, kubeletPath), written(t, driverPath)
	var indented bytes.Buffer
	if err := json.Indent(&indented, driver, "", "  "); err != nil {
		t.Fatal(err)
	}
	replace := func(data []byte, from, to string) []byte {
		if !bytes.Contains(data, []byte(from)) {
			t.Fatalf("%q is not in the file", from)
		}
		return bytes.Replace(data, []byte(from), []byte(to), 1)
	}
	last := func(data []byte, from, to string) []byte {
		i := bytes.LastIndex(data, []byte(from))
		return slices.Concat(data[:i], []byte(to), data[i+len(from):])
	}
	for name, test := range map[string]struct {
		path       string
		data       []byte
		state      node.State
		check, say string
	}{
		"kubelet: another name":      {kubeletPath, replace(kubelet, "train-0-gpu", "train-1-gpu"), node.Problem, checkSum, "the kubelet does not start"},
		"kubelet: half of it":        {kubeletPath, kubelet[:len(kubelet)/2], node.Problem, checkKubelet, "not JSON"},
		"kubelet: of 1.31":           {kubeletPath, []byte(`{"version":"v1","entries":[],"checksum":1}`), node.Unknown, checkKubelet, "before Kubernetes 1.32"},
		"kubelet: of a later one":    {kubeletPath, replace(kubelet, "kubelet.k8s.io/v1", "kubelet.k8s.io/v7"), node.Unknown, checkKubelet, "v7"},
		"kubelet: something else":    {kubeletPath, []byte(`[1]`), node.Problem, checkKubelet, "another type"},
		"kubelet: an empty object":   {kubeletPath, []byte(`{}`), node.Problem, checkKubelet, "no checkpoint"},
		"kubelet: its later sum":     {kubeletPath, replace(kubelet, "kubelet.k8s.io/v1", "kubelet.k8s.io/v7"), node.Unknown, checkSum, "not the one that is computed here"},
		"driver: only a later one":   {driverPath, []byte(`{"checksum":1,"v3":{}}`), node.Unknown, checkSum, "not the one that is computed here"},
		"driver: v1 changed":         {driverPath, replace(driver, "gpu-0", "gpu-9"), node.Problem, checkSum, "the checksum is wrong"},
		"driver: v2 changed":         {driverPath, last(driver, "gpu-0", "gpu-9"), node.Problem, checkSum, "the checksum of v2 is wrong"},
		"driver: its boot ID":        {driverPath, last(driver, "050403020100", "ffffffffffff"), node.Problem, checkSum, "v2"},
		"driver: indented by hand":   {driverPath, indented.Bytes(), node.OK, checkSum, "2 checksums"},
		"driver: half of it":         {driverPath, driver[:len(driver)/2], node.Problem, checkDriver, "not JSON"},
		"driver: of a later version": {driverPath, replace(driver, `,"v2"`, `,"v3":{},"v2"`), node.Unknown, checkDriver, "v3"},
		"driver: another form":       {driverPath, []byte(`{"claims":[]}`), node.Unknown, checkDriver, "not in the form"},
		"driver: a list":             {driverPath, []byte(`[]`), node.Unknown, checkDriver, "not in the form"},
		"driver: an odd checksum":    {driverPath, []byte(`{"checksum":"x"}`), node.Problem, checkDriver, "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeFiles(t).file(test.path, test.data)
			f := s.look()
			if found(f, test.state, test.check, test.say) == nil {
				t.Errorf("want %s of %s with %q, got %+v", test.state, test.check, test.say, f.Checks)
			}
		})
	}
}

// TestHostile covers paths that are not files.
func TestHostile(t *testing.T) {
	for name, do := range map[string]func(here string) error{
		"a gigabyte":     func(here string) error { return errors.Join(os.WriteFile(here, nil, 0o600), os.Truncate(here, 1<<30)) },
		"a pipe":         func(here string) error { return syscall.Mkfifo(here, 0o600) },
		"a loop":         func(here string) error { return os.Symlink(filepath.Base(here), here) },
		"a link outside": func(here string) error { return os.Symlink("/etc/passwd", here) },
		"a directory":    func(here string) error { return os.Mkdir(here, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeFiles(t).file("/etc/passwd", []byte("root"))
			if err := errors.Join(do(s.at(kubeletPath)), do(s.at(driverPath))); err != nil {
				t.Fatal(err)
			}
			f := s.look()
			of := func(check string) bool {
				return found(f, node.Problem, check, "") != nil || found(f, node.Unknown, check, "was not read") != nil
			}
			if !of(checkKubelet) || !of(checkDriver) {
				t.Errorf("want a check of each file, got %+v", f.Checks)
			}
			if f.Handed() != nil {
				t.Error("the kubelet hands out nothing that is known")
			}
		})
	}
}

// TestNoContent covers files that are not checkpoints. Their content must not be shown to a
// user who linked them there.
func TestNoContent(t *testing.T) {
	for name, content := range map[string]string{
		"shadow":         "root:$y$j9T$SECRET:19000:0:99999:7:::\n",
		"JSON":           `{"SECRET": "SECRET"}`,
		"a number":       `{"Data": 41414141, "checksum": 41414141.5}`,
		"a checksum":     `{"checksum": "SECRET", "v1": {"SECRET": 1}}`,
		"in Data":        `{"Data": "SECRET"}`,
		"in v2":          `{"checksum": 1, "v2": "SECRET"}`,
		"what is there":  `{"checksum": 1, "v1": {"preparedClaims": "SECRET"}}`,
		"half an object": `{"SECRET`,
	} {
		t.Run(name, func(t *testing.T) {
			for where, s := range map[string]*nodeFiles{
				"files": newNodeFiles(t).file(kubeletPath, []byte(content)).file(driverPath, []byte(content)),
				"links": newNodeFiles(t).file("/etc/shadow", []byte(content)).link("/etc/shadow", kubeletPath).link("/etc/shadow", driverPath),
			} {
				text, err := json.Marshal(s.look())
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "41414141") {
					t.Errorf("of %s comes out: %s", where, text)
				}
			}
		})
	}
}

// TestLinks follows no link out of the directory: what the kubelet has beside it are
// the secrets of pods and its own keys.
func TestLinks(t *testing.T) {
	s := newNodeFiles(t).file("/var/lib/kubelet/pods/x/checkpoint.json", written(t, driverPath)).
		link("../../pods/x/checkpoint.json", driverPath).
		link("../pods/x", "/var/lib/kubelet/plugins/other.example.com").
		file("/etc/state", written(t, kubeletPath)).link("/etc/state", kubeletPath)
	f := s.look()
	for i := range f.Drivers {
		if c := &f.Drivers[i]; len(c.Claims) > 0 || !strings.Contains(c.Error, "leads out of /var/lib/kubelet/plugins to ") {
			t.Errorf("%s was read: %+v", c.Path, c)
		}
	}
	if len(f.Drivers) != 2 || found(f, node.Unknown, checkDriver, "leads out") == nil {
		t.Errorf("want both links of drivers, got %+v", f.Checks)
	}
	if found(f, node.Unknown, checkKubelet, "leads out of /var/lib/kubelet to /etc/state") == nil || f.Handed() != nil {
		t.Errorf("want the link of the kubelet's file, got %+v", f.Checks)
	}
	s = newNodeFiles(t).file("/var/lib/kubelet/plugins/gpu.nvidia.com/v2.json", written(t, driverPath)).link("v2.json", driverPath)
	if f := s.look(); len(f.Drivers) != 1 || f.Drivers[0].Error != "" {
		t.Errorf("a link beside it is followed: %+v", f.Drivers)
	}
}

// TestTooMuch stops after so many bytes in all, and says so.
func TestTooMuch(t *testing.T) {
	s := newNodeFiles(t)
	for i := range maxFiles/maxFile + 1 {
		path := fmt.Sprintf("/var/lib/kubelet/plugins/%02d.example.com/checkpoint.json", i)
		s.file(path, nil)
		if err := os.Truncate(s.at(path), maxFile); err != nil {
			t.Fatal(err)
		}
	}
	f := s.look()
	last := f.Drivers[len(f.Drivers)-1]
	if !strings.Contains(last.Error, "was not read: the checkpoints before it have") || found(f, node.Unknown, checkDriver, "the checkpoints before it") == nil {
		t.Errorf("the last file was read: %s", last.Error)
	}
}

func TestNothing(t *testing.T) {
	f := newNodeFiles(t).look()
	if found(f, node.Unknown, checkKubelet, "no such file") == nil || f.Kubelet != nil {
		t.Errorf("a node without checkpoints: %+v", f.Checks)
	}
}

// TestCluster holds the files against what the cluster says.
func TestCluster(t *testing.T) {
	snap, err := files.Load(t.Context(), []string{filepath.Join(fixture, "cluster.yaml")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).file(driverPath, written(t, driverPath)).
		file("/proc/sys/kernel/random/boot_id", []byte("11111111-0b0a-4908-8706-050403020100\n"))
	f := Look(t.Context(), s.Host, snap)
	if f.Node != "node-b" {
		t.Errorf("the boot ID is that of node-b, not %q", f.Node)
	}
	if check := found(f, node.Problem, checkBoot, "has not started since"); check == nil || check.Required != f.BootID {
		t.Errorf("the node was booted since: %+v", f.Checks)
	}
	if found(f, node.Problem, checkClaims, "ml/old-0-gpu, which does not exist") == nil {
		t.Errorf("a claim that is gone: %+v", f.Checks)
	}
	s.Name = "node-c"
	if f := Look(t.Context(), s.Host, snap); f.Node != "" {
		t.Errorf("there is no node-c, but the node is %q", f.Node)
	}
}

func FuzzKubelet(f *testing.F) {
	f.Add(written(f, kubeletPath))
	f.Add([]byte(`{"version":"v1","entries":[],"checksum":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Checkpoint{}
		if err := parseKubelet(data, c); err == nil && len(c.Checksums) != 1 {
			t.Fatalf("a checkpoint without a checksum: %+v", c)
		}
	})
}

func FuzzDriver(f *testing.F) {
	f.Add(written(f, driverPath))
	f.Add([]byte(`{"checksum":1,"v1":{"preparedClaims":{"a":[{"deviceName":"x"}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Checkpoint{Driver: "gpu.nvidia.com"}
		if err := parseDriver(data, c); err == nil && len(c.Checksums) == 0 {
			t.Fatalf("a checkpoint without a checksum: %+v", c)
		}
	})
}

// TestOtherForms covers files of drivers that only share the name of the file with
// NVIDIA's: nothing is wrong with them.
func TestOtherForms(t *testing.T) {
	driver := written(t, driverPath)
	for name, content := range map[string]string{
		"an object of its own":        `{"apiVersion":"checkpoint.example.com/v1","kind":"Checkpoint","preparedClaims":[]}`,
		"another checksum":            strings.Replace(string(driver), `"checksum":`, `"checksum":1`, 1),
		"a version that is not known": strings.Replace(string(driver), `"v1":`, `"v9":{},"v1":`, 1),
		"no JSON":                     "gpu-0 uid-1\n",
	} {
		t.Run(name, func(t *testing.T) {
			const path = "/var/lib/kubelet/plugins/gpu.example.com/checkpoint.json"
			f := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).file(path, []byte(content)).look()
			if found(f, node.OK, checkDriver, "driver gpu.example.com has a form of its own") == nil {
				t.Errorf("%+v", f.Checks)
			}
			for _, check := range f.Checks {
				if check.Path == path && check.State != node.OK {
					t.Errorf("not neutral: %+v", check)
				}
			}
			if c := f.Drivers[0]; !c.OwnForm || len(c.Claims) > 0 || c.Error != "" {
				t.Errorf("%+v", c)
			}
		})
	}
	// The same of a driver whose form this is.
	f := newNodeFiles(t).file(driverPath, []byte("gpu-0 uid-1\n")).look()
	if found(f, node.Problem, checkDriver, "not JSON") == nil {
		t.Errorf("%+v", f.Checks)
	}
}

// TestClaimsAreNamed covers a file of the first version, which has no names: the kubelet
// knows them.
func TestClaimsAreNamed(t *testing.T) {
	const file = `{"checksum":0,"v1":{"preparedClaims":{"%s":{"status":{},"preparedDevices":[{"devices":[{"gpu":{"device":{"PoolName":"node-1","DeviceName":"gpu-10"}}},{"gpu":{"device":{"PoolName":"node-1","DeviceName":"gpu-9"}}}]}]},"gone":{"status":{}}}}}`
	uid := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).look().Kubelet.Claims[0].UID
	f := newNodeFiles(t).file(kubeletPath, written(t, kubeletPath)).file(driverPath, fmt.Appendf(nil, file, uid)).look()
	claim := f.Drivers[0].Claims[1]
	if claim.UID != uid {
		claim = f.Drivers[0].Claims[0]
	}
	if claim.Name != "train-0-gpu" || claim.Namespace == "" {
		t.Errorf("%+v", claim)
	}
	if len(claim.Devices) != 2 || claim.Devices[0].Device != "gpu-9" {
		t.Errorf("devices are in the order of their numbers: %+v", claim.Devices)
	}
}
