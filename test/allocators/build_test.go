// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocators

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// compared are the newest patch releases that were compared. Where there is a newer one, its row
// of docs/compatibility.md and the table of pkg/cluster have to be looked at.
var compared = map[string]string{"1.35": "1.35.10", "1.36": "1.36.6", "1.37": "1.37.2"} //nolint:gochecknoglobals // a table

// The modules of upstream, and what the version of a release begins with in each.
const (
	libraryModule    = "k8s.io/dynamic-resource-allocation"
	kubernetesModule = "k8s.io/kubernetes"
)

// part is a part of upstream that is built for each release.
type part struct {
	// name is the directory of its program in testdata.
	name string
	// module has it.
	module string
	// copied is the package that is compiled into the program, which asks what it does not
	// export. It is empty if the program imports all.
	copied string
	// sources are the directories of modules that decide whether releases are equal.
	sources map[string][]string
}

func allocatorsPart() part {
	return part{"allocator", libraryModule, "", map[string][]string{libraryModule: {"structured", "cel", "api", "resourceclaim"}}}
}

func trackerPart() part {
	return part{"tracker", libraryModule, "resourceslice/tracker", map[string][]string{libraryModule: {"resourceslice/tracker"}}}
}

func evictionPart() part {
	const controller = "pkg/controller/devicetainteviction"
	return part{"eviction", kubernetesModule, controller, map[string][]string{kubernetesModule: {controller}, libraryModule: {"resourceclaim"}}}
}

// build is a program, and the patch releases that have the same sources.
type build struct {
	binary   string
	releases []string
}

// apart returns one release of a build for each behavior that pkg/cluster has for it.
func (b *build) apart() []string {
	var all []string
	for _, patch := range b.releases {
		if !slices.ContainsFunc(all, func(other string) bool { return maps.Equal(cluster.BehaviorsOf(other), cluster.BehaviorsOf(patch)) }) {
			all = append(all, patch)
		}
	}
	return all
}

// goCommand runs the go command in a directory, and returns what it writes.
func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = dir, append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod"), env...)
	command.Stderr = &strings.Builder{}
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, command.Stderr)
	}
	return strings.TrimSpace(string(out))
}

// patchReleases lists the patch releases of a release such as 1.36.
func patchReleases(t *testing.T, release string) []string {
	t.Helper()
	// A proxy may list less than it has.
	newest := -1
	for _, v := range strings.Fields(goCommand(t, t.TempDir(), nil, "list", "-m", "-versions", libraryModule)) {
		if patch, err := strconv.Atoi(strings.TrimPrefix(v, moduleVersion(libraryModule, release)+".")); err == nil {
			newest = max(newest, patch)
		}
	}
	if newest < 0 {
		t.Fatalf("%s has no version for Kubernetes %s", libraryModule, release)
	}
	var all []string
	for patch := range newest + 1 {
		all = append(all, fmt.Sprintf("%s.%d", release, patch))
	}
	return all
}

// moduleVersion returns the version of a module that is of a release such as 1.36 or
// 1.36.3.
func moduleVersion(module, release string) string {
	if module == kubernetesModule {
		return "v" + release
	}
	return "v0" + strings.TrimPrefix(release, "1")
}

// sourceOf returns the directory of a version in the module cache, empty if it cannot be
// had.
func sourceOf(t *testing.T, module, v string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module+"@"+v)
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, failed := command.Output()
	var found struct{ Dir, Error string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("go mod download %s@%s: %v", module, v, failed)
	}
	if found.Error != "" {
		t.Logf("not compared, because it cannot be had: %s@%s: %s", module, v, found.Error)
	}
	return found.Dir
}

// goFiles calls visit with the sources below a directory.
func goFiles(t *testing.T, dir string, visit func(path string, content []byte)) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "allocatortesting") {
			return err
		}
		content, err := os.ReadFile(path)
		visit(strings.TrimPrefix(path, dir), content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// fingerprint returns a text that is equal for releases with the same sources of a part,
// and empty if they cannot be downloaded.
func (p *part) fingerprint(t *testing.T, release string) string {
	t.Helper()
	hash := sha256.New()
	for _, module := range slices.Sorted(maps.Keys(p.sources)) {
		source := sourceOf(t, module, moduleVersion(module, release))
		if source == "" {
			return ""
		}
		for _, dir := range p.sources[module] {
			goFiles(t, filepath.Join(source, dir), func(path string, content []byte) {
				// A hash takes all that is written.
				_, _ = fmt.Fprintf(hash, "%s%s %d\n%s", dir, path, len(content), content)
			})
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// buildAll builds the programs of a part for a release: one for all patch releases with equal
// sources.
func (p *part) buildAll(t *testing.T, release string) []*build {
	t.Helper()
	patches := patchReleases(t, release)
	byFingerprint := map[string]*build{}
	var builds []*build
	for _, patch := range patches {
		key := p.fingerprint(t, patch)
		switch known := byFingerprint[key]; {
		case key == "":
		case known != nil:
			known.releases = append(known.releases, patch)
		default:
			byFingerprint[key] = p.build(t, patch, patches[len(patches)-1])
			builds = append(builds, byFingerprint[key])
		}
	}
	return builds
}

// build builds the program of a part for a patch release. The other libraries are of the newest
// patch release, so that they are compiled once.
func (p *part) build(t *testing.T, patch, newest string) *build {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(filepath.Join("testdata", p.name, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	write("main.go", program)
	source := sourceOf(t, p.module, moduleVersion(p.module, patch))
	if p.copied != "" {
		goFiles(t, filepath.Join(source, p.copied), func(path string, content []byte) {
			if name := strings.TrimPrefix(path, "/"); !strings.Contains(name, "/") {
				write(name, regexp.MustCompile(`(?m)^package \w+`).ReplaceAll(content, []byte("package main")))
			}
		})
	}
	required, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	module := fmt.Sprintf("module program\n\ngo 1.26.0\n\nrequire %s %s\n", p.module, moduleVersion(p.module, patch))
	// The libraries that are released together with it.
	for _, match := range regexp.MustCompile(`(?m)^\s(k8s\.io/\S+) v0\.(0\.0|`+strings.TrimPrefix(patch, "1.")+`)(?: |$)`).FindAllStringSubmatch(string(required), -1) {
		of := newest
		if match[1] == libraryModule {
			of = patch
		}
		module += fmt.Sprintf("replace %[1]s => %[1]s %s\n", match[1], moduleVersion(match[1], of))
	}
	write("go.mod", []byte(module))
	b := &build{binary: filepath.Join(dir, "program"), releases: []string{patch}}
	goCommand(t, dir, nil, "build", "-o", b.binary, ".")
	return b
}

// ask runs a program, with one JSON object for each question.
func ask[Answer any](t *testing.T, b *build, questions []any) []Answer {
	t.Helper()
	var in bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, q := range questions {
		if err := encoder.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), b.binary)
	command.Stdin, command.Stderr = &in, os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]Answer, len(questions))
	decoder := json.NewDecoder(bytes.NewReader(out))
	for i := range answers {
		if err := decoder.Decode(&answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// recordTable runs the table of the newest library, in a copy of its module, and returns what
// its cases ask.
func recordTable(t *testing.T, v string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "module")
	if err := os.CopyFS(dir, os.DirFS(sourceOf(t, libraryModule, v))); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o700) //nolint:gosec // a copy that is built
	}); err != nil {
		t.Fatal(err)
	}
	recorder, err := os.ReadFile("testdata/table/record_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "structured/internal/experimental/record_test.go"), recorder, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "rows")
	goCommand(t, dir, []string{"RECORD_TO=" + to}, "test", "-count", "1", "-run", "TestRecord", "./structured/internal/experimental")
	rows, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
