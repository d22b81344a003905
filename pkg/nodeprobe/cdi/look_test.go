// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cdi

import (
	"context"
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
)

// fixture is a node under a temporary root.
type fixture struct {
	*node.Host

	t *testing.T
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{node.NewHost(t.TempDir(), "", nil), t}
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// at returns where a path of the node is, with its directory made.
func (s *fixture) at(path string) string {
	s.t.Helper()
	here := filepath.Join(s.Root, path)
	s.must(os.MkdirAll(filepath.Dir(here), 0o755))
	return here
}

func (s *fixture) file(path, content string) *fixture {
	s.t.Helper()
	s.must(os.WriteFile(s.at(path), []byte(content), 0o600))
	return s
}

// link makes a link at a path.
func (s *fixture) link(target, path string) *fixture {
	s.t.Helper()
	s.must(os.Symlink(target, s.at(path)))
	return s
}

// spec makes one with devices that set a variable.
func (s *fixture) spec(path, kind string, devices ...string) *fixture {
	s.t.Helper()
	content := "cdiVersion: 0.5.0\nkind: " + kind + "\ndevices:\n"
	for _, d := range devices {
		content += "- {name: " + d + ", containerEdits: {env: [A=" + path + "]}}\n"
	}
	return s.file(path, content)
}

func (s *fixture) look(handed Handed) *Findings {
	s.t.Helper()
	return Look(s.t.Context(), s.Host, nil, handed)
}

// found returns the check of that name and state.
func found(f *Findings, state node.State, name string) *node.Check {
	for i := range f.Checks {
		if f.Checks[i].State == state && f.Checks[i].Name == name {
			return &f.Checks[i]
		}
	}
	return nil
}

// TestHostile covers files that must not crash a runtime or the probe: each is one finding,
// and the good spec beside them is still read.
func TestHostile(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for name, test := range map[string]struct {
		make func(s *fixture, path string)
		want string
	}{
		"a gigabyte": {func(s *fixture, path string) { s.file(path, ""); s.must(os.Truncate(s.at(path), 1<<30)) }, "larger than"},
		"a loop of links": {func(s *fixture, path string) {
			s.must(os.Symlink(filepath.Base(path), s.at(path)))
		}, "too many"},
		"a link out of the node": {func(s *fixture, path string) {
			outside := filepath.Join(s.t.TempDir(), "secret.json")
			s.must(os.WriteFile(outside, []byte("{}"), 0o600))
			s.must(os.Symlink(strings.Repeat("../", 30)+outside, s.at(path)))
		}, "no such file"},
		"a pipe":                 {func(s *fixture, path string) { s.must(syscall.Mkfifo(s.at(path), 0o600)) }, "not a regular file"},
		"half of it":             {func(s *fixture, path string) { s.file(path, `{"cdiVersion": "0.5.0", "devices": [`) }, "cannot be parsed as JSON or YAML, see line 1"},
		"nothing":                {func(s *fixture, path string) { s.file(path, "  \n") }, "empty"},
		"null":                   {func(s *fixture, path string) { s.file(path, "null") }, "not a CDI spec"},
		"null for a node":        {func(s *fixture, path string) { s.file(path, spec(`{"deviceNodes": [null]}`)) }, "null"},
		"an unknown field":       {func(s *fixture, path string) { s.file(path, spec(`{"magic": 1}`)) }, "magic"},
		"an unknown version":     {func(s *fixture, path string) { s.file(path, `{"cdiVersion":"9.0.0","kind":"a.b/c","devices":[]}`) }, "invalid version"},
		"no vendor":              {func(s *fixture, path string) { s.file(path, `{"cdiVersion":"0.5.0","kind":"c","devices":[]}`) }, "vendor"},
		"a device for nothing":   {func(s *fixture, path string) { s.file(path, spec(`{}`)) }, "does nothing"},
		"a wrong hook":           {func(s *fixture, path string) { s.file(path, spec(`{"hooks":[{"hookName":"x","path":"/x"}]}`)) }, "invalid hook name"},
		"nested without end":     {func(s *fixture, path string) { s.file(path, strings.Repeat("[", 200000)) }, "cannot be parsed"},
		"aliases without end":    {func(s *fixture, path string) { s.file(path, bomb+"kind: [*i]\n") }, "cannot be parsed"},
		"bytes that are no text": {func(s *fixture, path string) { s.file(path, "\x00\xff\xfe\x01") }, "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t).spec("/etc/cdi/good.yaml", "example.com/nic", "good")
			test.make(s, "/etc/cdi/bad.json")
			f := s.look(nil)
			state := node.Problem
			if name == "a gigabyte" {
				state = node.Unknown
			}
			check := found(f, state, checkSpecs)
			if check == nil || check.Path != "/etc/cdi/bad.json" || !strings.Contains(check.Message, test.want) {
				t.Errorf("want %s of bad.json with %q, got %+v", state, test.want, f.Checks)
			}
			if check != nil && strings.Contains(check.Message, "\n") {
				t.Errorf("a message of several lines: %q", check.Message)
			}
			// What was not read may have the device, too.
			if _, err := f.Resolve("example.com/nic=good"); err != nil && (state != node.Unknown || !errors.Is(err, node.ErrNotRead) || !strings.Contains(err.Error(), "is in /etc/cdi/good.yaml")) {
				t.Errorf("the good spec is not read: %v", err)
			}
		})
	}
}

// TestNoContent covers files that are not specs. Their content must not be shown to a user
// who moved or linked them there.
func TestNoContent(t *testing.T) {
	for name, content := range map[string]string{
		"shadow":       "root:$y$j9T$SECRET:19000:0:99999:7:::\nbin:*SECRET:19000::::::\n",
		"an alias":     "a: *SECRET\n",
		"text":         "SECRET",
		"a mapping":    "password: SECRET\ntoken: {SECRET: SECRET}\n",
		"a key":        "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n",
		"JSON":         `{"SECRET": ["SECRET"]}`,
		"a list":       `["SECRET"]`,
		"other types":  `{"cdiVersion": ["SECRET"], "kind": {"a": "SECRET"}}`,
		"other values": `{"cdiVersion": "SECRET", "kind": "SECRET"}`,
		"another kind": `{"cdiVersion": "0.6.0", "kind": "SECRET"}`,
		"twice":        "SECRET: 1\nSECRET: 2\n",
		"a tag":        "!SECRET a: !!binary SECRET\n",
		"a directive":  "%SECRET 1.0\n---\n",
	} {
		t.Run(name, func(t *testing.T) {
			for where, s := range map[string]*fixture{
				"a file": newFixture(t).file("/etc/cdi/a.json", content),
				"a link": newFixture(t).file("/etc/shadow", content).link("/etc/shadow", "/etc/cdi/a.json"),
			} {
				f := s.look(nil)
				f.Ask([]string{"example.com/nic=a"})
				for _, findings := range []*Findings{f, s.look(nil)} {
					text, err := json.Marshal(findings)
					s.must(err)
					if strings.Contains(string(text), "SECRET") {
						t.Errorf("%s comes out: %s", where, text)
					}
				}
			}
		})
	}
}

// TestLinks follows links within a directory only. What is in the others may be
// anything.
func TestLinks(t *testing.T) {
	s := newFixture(t).spec("/etc/cdi/near.yaml", "example.com/nic", "a").link("near.yaml", "/etc/cdi/link.json").
		spec("/opt/far.yaml", "example.com/nic", "far").link("/opt/far.yaml", "/etc/cdi/out.yaml").link("/opt/none.yaml", "/etc/cdi/gone.yaml")
	f := s.look(Handed{"uid": {"example.com/nic=far"}})
	if check := found(f, node.Unknown, checkSpecs); check == nil || check.Path != "/etc/cdi/out.yaml" || !strings.Contains(check.Message, "leads out of /etc/cdi to /opt/far.yaml") {
		t.Errorf("a link that leads out: %+v", f.Checks)
	}
	if check := found(f, node.Problem, checkSpecs); check == nil || check.Path != "/etc/cdi/gone.yaml" {
		t.Errorf("a link that leads nowhere: %+v", f.Checks)
	}
	for _, spec := range f.Specs {
		if spec.Path == "/etc/cdi/link.json" && (len(spec.Devices) != 1 || spec.Target != "/etc/cdi/near.yaml") {
			t.Errorf("a link within the directory: %+v", spec)
		}
	}
	// A runtime may find it there.
	if len(f.Claims) != 1 || f.Claims[0].State != ClaimUnknown || !strings.Contains(f.Claims[0].Reason, "/etc/cdi/out.yaml") {
		t.Errorf("a claim whose spec was perhaps not read: %+v", f.Claims)
	}
}

// TestNoSpec says that there is none only where there is none.
func TestNoSpec(t *testing.T) {
	empty := newFixture(t).file("/etc/cdi/README", "no spec")
	if check := found(empty.look(nil), node.OK, checkDirectories); check == nil || check.Message != "no spec in /etc/cdi" {
		t.Errorf("a directory without specs: %+v", empty.look(nil).Checks)
	}
	for name, s := range map[string]*fixture{
		"a broken spec": newFixture(t).file("/etc/cdi/a.json", "{"),
		"one elsewhere": newFixture(t).file("/x", "").link("/x", "/etc/cdi/a.json"),
	} {
		if check := found(s.look(nil), node.OK, checkDirectories); check != nil {
			t.Errorf("%s: %+v", name, check)
		}
	}
}

// TestUnread distinguishes devices in no spec from devices in no spec that could be read.
func TestUnread(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(s *fixture)
		state node.State
		want  string
	}{
		"all was read":    {func(*fixture) {}, node.Problem, "is in no CDI spec that runtimes use"},
		"a broken spec":   {func(s *fixture) { s.file("/etc/cdi/b.json", "{") }, node.Problem, "/etc/cdi/b.json cannot be read"},
		"one too large":   {func(s *fixture) { s.file("/etc/cdi/b.json", ""); s.must(os.Truncate(s.at("/etc/cdi/b.json"), 1<<30)) }, node.Unknown, "/etc/cdi/b.json may have it: "},
		"a link out":      {func(s *fixture) { s.file("/x", "").link("/x", "/etc/cdi/b.json") }, node.Unknown, "/etc/cdi/b.json may have it: it leads out"},
		"a loop of links": {func(s *fixture) { s.CDI = append(s.CDI, "/opt"); s.must(os.Symlink("opt", s.at("/opt"))) }, node.Problem, "is in no CDI spec"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t).spec("/etc/cdi/a.yaml", "example.com/nic", "a")
			test.make(s)
			f := s.look(nil)
			if found(f, node.OK, checkDirectories) != nil {
				t.Errorf("there are specs: %+v", f.Checks)
			}
			f.Ask([]string{"example.com/nic=b"})
			check := found(f, test.state, checkResolve)
			if check == nil || !strings.Contains(check.Message, test.want) {
				t.Errorf("want %s with %q, got %+v", test.state, test.want, f.Checks)
			}
			if f.Resolved[0].Unknown != (test.state == node.Unknown) || f.Resolved[0].Error == "" {
				t.Errorf("the resolution: %+v", f.Resolved[0])
			}
		})
	}
}

// TestUnreadBeside does not vouch for a device that a spec which was not read may
// replace or rule out: one in the same directory or in a later one.
func TestUnreadBeside(t *testing.T) {
	for _, test := range []struct {
		spec, notRead string
		sure          bool
	}{
		{"/etc/cdi/a.yaml", "/etc/cdi/b.json", false},
		{"/etc/cdi/a.yaml", "/var/run/cdi/b.json", false},
		{"/var/run/cdi/a.yaml", "/etc/cdi/b.json", true},
	} {
		t.Run(test.spec+" and "+test.notRead, func(t *testing.T) {
			s := newFixture(t).spec(test.spec, "example.com/nic", "a").file("/x", "").link("/x", test.notRead)
			s.CDI = []string{"/etc/cdi", "/var/run/cdi"}
			f := s.look(Handed{"uid": {"example.com/nic=a"}})
			f.Ask([]string{"example.com/nic=a"})
			if unknown := f.Resolved[0].Unknown; unknown == test.sure || !test.sure && !strings.Contains(f.Resolved[0].Error, "is in "+test.spec+", and "+test.notRead+" may have it: ") {
				t.Errorf("the resolution: %+v", f.Resolved[0])
			}
			if state := f.Claims[0].State; (state == ClaimUnknown) == test.sure || !test.sure && !strings.Contains(f.Claims[0].Reason, test.notRead) {
				t.Errorf("the claim: %+v", f.Claims[0])
			}
		})
	}
}

func spec(edits string) string {
	return `{"cdiVersion":"0.5.0","kind":"a.b/c","devices":[{"name":"x","containerEdits":` + edits + `}]}`
}

// TestTooMuch stops after so many bytes in all, and says so.
func TestTooMuch(t *testing.T) {
	s := newFixture(t)
	for i := range maxSpecs/maxSpec + 1 {
		path := fmt.Sprintf("/etc/cdi/%02d.yaml", i)
		// A file without blocks on the disk; zeros are no YAML.
		s.file(path, "")
		s.must(os.Truncate(s.at(path), maxSpec))
	}
	f := s.look(nil)
	last := f.Specs[len(f.Specs)-1]
	if !strings.Contains(last.Error, "not read") {
		t.Errorf("the last file was read: %s", last.Error)
	}
}

// TestManyDeviceNodes takes a second: what a spec lists is not searched for each
// line of it, which would take a minute here.
func TestManyDeviceNodes(t *testing.T) {
	var nodes strings.Builder
	const many = 100000
	for i := range many {
		if i > 0 {
			nodes.WriteByte(',')
		}
		fmt.Fprintf(&nodes, `{"path":"/dev/%d"}`, i)
	}
	s := newFixture(t).file("/etc/cdi/a.json", spec(`{"deviceNodes":[`+nodes.String()+`]}`))
	begun := time.Now()
	f := s.look(nil)
	if check := found(f, node.Problem, checkDeviceNodes); check == nil || !strings.Contains(check.Message, "100,000 device nodes") || !strings.Contains(check.Message, "99,997 more") {
		t.Errorf("want a problem with %d device nodes, got %+v", many, f.Checks)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestInterrupted(t *testing.T) {
	s := newFixture(t).spec("/etc/cdi/a.yaml", "example.com/nic", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := Look(ctx, s.Host, nil, nil); found(f, node.Unknown, checkDirectories) == nil {
		t.Errorf("an interrupted look is no complete one: %+v", f.Checks)
	}
}

func TestConflicts(t *testing.T) {
	s := newFixture(t).
		spec("/etc/cdi/a.yaml", "example.com/nic", "twice", "above").
		spec("/etc/cdi/b.json", "example.com/nic", "twice").
		spec("/var/run/cdi/c.yaml", "example.com/nic", "above").
		file("/etc/cdi/README", "no spec").
		file("/etc/cdi/sub/d.yaml", "not looked at")
	f := s.look(nil)
	if check := found(f, node.Problem, checkConflicts); check == nil || !strings.Contains(check.Message, "example.com/nic=twice") ||
		check.Found != "/etc/cdi/b.json" || check.Required != "/etc/cdi/a.yaml" {
		t.Errorf("two specs in one directory: %+v", f.Checks)
	}
	if _, err := f.Resolve("example.com/nic=twice"); err == nil || !strings.Contains(err.Error(), "/etc/cdi/b.json") {
		t.Errorf("a device that is twice in a directory cannot be had: %v", err)
	}
	edits, err := f.Resolve("example.com/nic=above")
	if err != nil || edits.Spec != "/var/run/cdi/c.yaml" || !slices.Equal(edits.Env, []string{"A=/var/run/cdi/c.yaml"}) {
		t.Errorf("the last directory counts: %+v, %v", edits, err)
	}
	if _, err := f.Resolve("example.com/nic=none"); err == nil || err.Error() != "device example.com/nic=none is in no CDI spec that runtimes use" {
		t.Errorf("a device that is nowhere: %v", err)
	}
	if len(f.Specs) != 3 {
		t.Errorf("%d specs, want 3", len(f.Specs))
	}
}

// TestEdits holds what a spec names against the node.
func TestEdits(t *testing.T) {
	s := newFixture(t).file("/usr/lib/lib.so", "").file("/usr/bin/hook", "").file("/dev/file", "")
	s.must(os.Chmod(s.at("/usr/bin/hook"), 0o755))
	s.must(os.Symlink("/usr/lib", s.at("/lib")))
	s.file("/etc/cdi/a.json", spec(`{
		"deviceNodes": [{"path": "/dev/gone"}, {"path": "/dev/made", "type": "c", "major": 9, "minor": 1}, {"path": "/dev/x", "hostPath": "/dev/file"}],
		"mounts": [{"hostPath": "/lib/lib.so", "containerPath": "/a"}, {"hostPath": "/gone.so", "containerPath": "/b", "options": ["bind"]}, {"hostPath": "tmpfs", "containerPath": "/c", "type": "tmpfs"}],
		"hooks": [{"hookName": "createContainer", "path": "/usr/bin/hook"}, {"hookName": "createContainer", "path": "/usr/lib/lib.so"}]}`))
	f := s.look(nil)
	edits, err := f.Resolve("a.b/c=x")
	if err != nil {
		t.Fatal(err)
	}
	var states []Presence
	for _, d := range edits.DeviceNodes {
		states = append(states, d.State)
	}
	for _, m := range edits.Mounts {
		states = append(states, m.State)
	}
	for _, h := range edits.Hooks {
		states = append(states, h.State)
	}
	want := []Presence{Absent, NotNeeded, Different, Present, Absent, NotNeeded, Present, Different}
	if !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	for _, name := range []string{checkDeviceNodes, checkMounts, checkHooks} {
		if found(f, node.Problem, name) == nil {
			t.Errorf("no problem of %s: %+v", name, f.Checks)
		}
	}
	f.Ask([]string{"a.b/c=x", "a.b/c=y"})
	if found(f, node.Problem, checkResolve) == nil || found(f, node.Problem, checkMounts) == nil || found(f, node.OK, checkSpecs) != nil {
		t.Errorf("what was asked for is not what is checked: %+v", f.Checks)
	}
}

// TestClaims tells from the kubelet's word alone what has a spec.
func TestClaims(t *testing.T) {
	const a, b, c = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000", "33333333-0000-4000-8000-000000000000"
	s := newFixture(t).spec("/var/run/cdi/k8s.example.com-claim_"+a+".yaml", "k8s.example.com/claim", a+"-gpu-0")
	f := s.look(Handed{a: {"k8s.example.com/claim=" + a + "-gpu-0"}, b: {"k8s.example.com/claim=" + b + "-gpu-1"}, c: {}})
	want := map[string]ClaimState{a: ClaimHasSpec, b: ClaimLacksSpec, c: ClaimNeedsNone}
	for _, claim := range f.Claims {
		if claim.State != want[claim.UID] {
			t.Errorf("%s is %s (%s), want %s", claim.UID, claim.State, claim.Reason, want[claim.UID])
		}
	}
	if len(f.Claims) != len(want) {
		t.Errorf("%d claims, want %d", len(f.Claims), len(want))
	}
	if f := s.look(nil); len(f.Claims) != 1 || f.Claims[0].State != ClaimUnknown {
		t.Errorf("without kubelet and cluster nothing is known: %+v", f.Claims)
	}
}

func TestClaimUID(t *testing.T) {
	const uid = "dab5ab50-d59a-42a6-af16-cfd4628c0f7a"
	for _, test := range []struct{ file, class, name, want string }{
		{"k8s.gpu.nvidia.com-claim_" + uid + ".yaml", "claim", uid + "-gpu-0", uid},
		{"gpu.example.com_metadata_" + uid + "_gpu.json", "metadata", uid + "_gpu", uid},
		{"vendor-gpu_" + uid + ".json", "gpu", uid + "-0", uid},
		{"vendor-mdev.json", "mdev", uid, ""},
		{"nvidia.yaml", "gpu", "GPU-" + uid, ""},
		{"x.yaml", "claim", uid + "x", ""},
		{"x.yaml", "claim", strings.ToUpper(uid) + "-gpu-0", ""},
		{"x.yaml", "claim", "gpu", ""},
	} {
		if got := claimUID("/var/run/cdi/"+test.file, test.class, test.name); got != test.want {
			t.Errorf("%s in %s: %q, want %q", test.name, test.file, got, test.want)
		}
	}
}

// TestNumbers compares with device files that every Linux has.
func TestNumbers(t *testing.T) {
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Skip("there is no /dev/null here")
	}
	dir := t.TempDir()
	content := spec(`{"deviceNodes": [{"path": "/dev/null"}, {"path": "/dev/null", "type": "c", "major": 1, "minor": 3}, {"path": "/dev/null", "type": "c", "major": 1, "minor": 99}, {"path": "/dev/null", "type": "b", "major": 1, "minor": 3}]}`)
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	edits, err := Look(t.Context(), node.NewHost("/", "", []string{dir}), nil, nil).Resolve("a.b/c=x")
	if err != nil {
		t.Fatal(err)
	}
	want := []Presence{Present, Present, Different, Different}
	if number := edits.DeviceNodes[2].Found; number != "1:3" {
		t.Skipf("/dev/null is %s here", number)
	}
	for i, d := range edits.DeviceNodes {
		if d.State != want[i] {
			t.Errorf("node %d is %s (%s), want %s", i, d.State, d.Found, want[i])
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(spec(`{"deviceNodes": [{"path": "/dev/null"}], "mounts": [{"hostPath": "/a", "containerPath": "/b"}]}`)))
	f.Add([]byte("cdiVersion: 0.5.0\nkind: a.b/c\ndevices: [{name: x, containerEdits: {env: [A=b]}}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := parse(data)
		if (raw == nil) == (err == nil) {
			t.Fatalf("parse: %v, %v", raw, err)
		}
		if raw == nil {
			return
		}
		l := looker{host: node.NewHost(t.TempDir(), "", nil), seen: map[string]look{}}
		_ = l.edits(&raw.ContainerEdits)
		for i := range raw.Devices {
			_ = l.edits(&raw.Devices[i].ContainerEdits)
			_ = claimUID("/x.json", "claim", raw.Devices[i].Name)
		}
	})
}
