// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocators

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

const allocatorModule = "k8s.io/dynamic-resource-allocation"

// compared are the newest patch releases whose allocators were compared. Where there is a newer
// one, its row of docs/compatibility.md and the table of pkg/behavior have to be looked at.
var compared = map[string]string{"1.35": "v0.35.10", "1.36": "v0.36.6", "1.37": "v0.37.2"} //nolint:gochecknoglobals // a table

// build is an allocator, and the patch releases that have the same sources.
type build struct {
	binary   string
	releases []string
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

// patchReleases lists the versions of the module that are of a release such as 1.36.
func patchReleases(t *testing.T, release string) []string {
	t.Helper()
	listed := strings.Fields(goCommand(t, t.TempDir(), nil, "list", "-m", "-versions", allocatorModule))[1:]
	of := slices.DeleteFunc(listed, func(v string) bool {
		return !strings.HasPrefix(v, "v0"+strings.TrimPrefix(release, "1")+".") || strings.Contains(v, "-")
	})
	if len(of) == 0 {
		t.Fatalf("%s has no version for Kubernetes %s", allocatorModule, release)
	}
	slices.SortFunc(of, func(a, b string) int {
		if version.MustParseGeneric(a).LessThan(version.MustParseGeneric(b)) {
			return -1
		}
		return 1
	})
	return of
}

// sourceOf is the directory of a version in the module cache.
func sourceOf(t *testing.T, v string) string {
	t.Helper()
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(goCommand(t, t.TempDir(), nil, "mod", "download", "-json", allocatorModule+"@"+v)), &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}

// fingerprint is equal for versions with the same allocators.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	hash := sha256.New()
	for _, part := range []string{"structured", "cel", "api", "resourceclaim"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "allocatortesting") {
				return err
			}
			content, err := os.ReadFile(path)
			// A hash takes all that is written.
			_, _ = fmt.Fprintf(hash, "%s %d\n%s", strings.TrimPrefix(path, dir), len(content), content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// buildAll builds the allocators of a release: one for all patch releases with equal sources.
// The other libraries are of the newest patch release, so that they are compiled once.
func buildAll(t *testing.T, release string) []*build {
	t.Helper()
	source, err := os.ReadFile("testdata/driver/main.go")
	if err != nil {
		t.Fatal(err)
	}
	patches := patchReleases(t, release)
	newest := patches[len(patches)-1]
	byFingerprint := map[string]*build{}
	var builds []*build
	for _, v := range patches {
		key := fingerprint(t, sourceOf(t, v))
		if known := byFingerprint[key]; known != nil {
			known.releases = append(known.releases, "v1"+strings.TrimPrefix(v, "v0"))
			continue
		}
		dir := t.TempDir()
		module := fmt.Sprintf("module driver\n\ngo 1.26.0\n\nrequire %s %s\n", allocatorModule, v)
		for _, name := range []string{"api", "apimachinery", "apiserver", "client-go", "component-base", "component-helpers"} {
			module += fmt.Sprintf("require k8s.io/%s %s\n", name, newest)
		}
		for name, content := range map[string][]byte{"go.mod": []byte(module), "main.go": source} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b := &build{binary: filepath.Join(dir, "driver"), releases: []string{"v1" + strings.TrimPrefix(v, "v0")}}
		goCommand(t, dir, nil, "build", "-o", b.binary, ".")
		byFingerprint[key] = b
		builds = append(builds, b)
	}
	return builds
}

// recordTable runs the table of the newest library, in a copy of its module, and returns what
// its cases ask.
func recordTable(t *testing.T, v string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "module")
	if err := os.CopyFS(dir, os.DirFS(sourceOf(t, v))); err != nil {
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
