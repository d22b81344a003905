// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// enableVariable is set by `make release-check`: it takes minutes, and writes
// dist/.
const enableVariable = "KUBECTL_DRA_TEST_RELEASE"

var update = flag.Bool("update", false, "write plugins.yaml anew")

// TestRelease builds a snapshot of the release from a commit, looks at what came
// out, builds it again elsewhere, and installs it with krew.
func TestRelease(t *testing.T) {
	if os.Getenv(enableVariable) == "" {
		t.Skip("it builds for all platforms; run: make release-check")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if dirty := must(t, root, nil, "git", "status", "--porcelain"); dirty != "" && !*update {
		t.Fatalf("a release is made from a commit; commit or remove these first:\n%s", dirty)
	}
	tools := buildTools(t, root)
	env, nvml := compilers(t)
	// goreleaser does not tell the commit of a repository that has no remote.
	env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=remote.origin.url", "GIT_CONFIG_VALUE_0=https://github.com/kubectl-dra/kubectl-dra")

	must(t, root, nil, filepath.Join(tools, "goreleaser"), "check")
	snapshot := []string{filepath.Join(tools, "goreleaser"), "release", "--snapshot", "--clean", "--skip=sign,ko", "--timeout=2h"}
	must(t, root, env, snapshot...)
	dist := filepath.Join(root, "dist")

	t.Run("archives", func(t *testing.T) { checkArchives(t, dist, nvml) })
	t.Run("controller", func(t *testing.T) { checkController(t, dist) })
	t.Run("versions", func(t *testing.T) { checkVersions(t, root, dist, nvml) })
	t.Run("manifest", func(t *testing.T) { checkManifest(t, root, tools) })
	t.Run("krew", func(t *testing.T) { checkKrew(t, root, tools) })
	t.Run("reproducible", func(t *testing.T) {
		clone := filepath.Join(t.TempDir(), "elsewhere")
		must(t, root, nil, "git", "clone", "--quiet", root, clone)
		must(t, clone, env, append(snapshot, "--skip=sbom")...)
		if diff := cmp.Diff(archiveSums(t, dist), archiveSums(t, filepath.Join(clone, "dist"))); diff != "" {
			t.Errorf("the same commit gave other archives in another directory (-first +second):\n%s", diff)
		}
	})
}

// checkArchives compares the archives with the expected ones, and their checksums with
// checksums.txt.
func checkArchives(t *testing.T, dist string, nvml []string) {
	want := map[string][]string{}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		want["kubectl-dra_"+platform+".tar.gz"] = []string{"LICENSE", "README.md", "THIRD_PARTY_LICENSES", "kubectl-dra"}
	}
	for _, platform := range []string{"windows_amd64", "windows_arm64"} {
		want["kubectl-dra_"+platform+".zip"] = []string{"LICENSE", "README.md", "THIRD_PARTY_LICENSES", "kubectl-dra.exe"}
	}
	for _, arch := range nvml {
		want["kubectl-dra-nvml_linux_"+arch+".tar.gz"] = []string{"LICENSE", "README.md", "THIRD_PARTY_LICENSES", "kubectl-dra"}
	}
	got := map[string][]string{}
	sums := archiveSums(t, dist)
	for name, sum := range sums {
		path := filepath.Join(dist, name)
		files := unpack(t, path)
		for _, file := range files {
			got[name] = append(got[name], file.name)
			// Go records the time of the commit, so that it is the same for all.
			if !file.modified.Equal(files[0].modified) {
				t.Errorf("%s: %s is of %s, and %s of %s", name, files[0].name, files[0].modified, file.name, file.modified)
			}
			if file.name == "THIRD_PARTY_LICENSES" && !bytes.Contains(file.content, []byte("\nk8s.io/dynamic-resource-allocation v")) {
				t.Errorf("%s: %s lacks the licence of k8s.io/dynamic-resource-allocation", name, file.name)
			}
		}
		slices.Sort(got[name])
		if content, err := os.ReadFile(path); err != nil {
			t.Error(err)
		} else if actual := sha256.Sum256(content); hex.EncodeToString(actual[:]) != sum {
			t.Errorf("%s: its checksum is not that of checksums.txt", name)
		}
		checkBill(t, filepath.Join(dist, strings.TrimSuffix(strings.TrimSuffix(name, ".zip"), ".tar.gz")+".cdx.json"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
}

// checkController looks at the programs that the image is made of.
func checkController(t *testing.T, dist string) {
	programs, err := filepath.Glob(filepath.Join(dist, "controller_linux_*", "dra-controller"))
	if err != nil || len(programs) != 2 {
		t.Fatalf("programs %q, want dra-controller for two platforms (%v)", programs, err)
	}
	for _, path := range programs {
		if libraries := neededLibraries(t, path); len(libraries) > 0 {
			t.Errorf("%s is not static, and the image has no libraries: it needs %s", path, strings.Join(libraries, ", "))
		}
	}
}

// checkBill looks into a bill of materials for the library that matters most.
func checkBill(t *testing.T, path string) {
	t.Helper()
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &bill)
	}
	if err != nil {
		t.Errorf("read bill of materials: %v", err)
		return
	}
	for _, component := range bill.Components {
		if bill.BOMFormat == "CycloneDX" && component.Name == "k8s.io/dynamic-resource-allocation" && component.Version != "" {
			return
		}
	}
	t.Errorf("%s does not list k8s.io/dynamic-resource-allocation among %d components", path, len(bill.Components))
}

// checkVersions runs what can run here, and looks at the rest.
func checkVersions(t *testing.T, root, dist string, nvml []string) {
	commit := strings.TrimSpace(must(t, root, nil, "git", "rev-parse", "HEAD"))
	for name := range archiveSums(t, dist) {
		portable := !strings.Contains(name, "nvml")
		if portable && strings.Contains(name, "linux") {
			if libraries := neededLibraries(t, program(t, filepath.Join(dist, name))); len(libraries) > 0 {
				t.Errorf("%s is not static: it needs %s", name, strings.Join(libraries, ", "))
			}
		}
		if !portable {
			checkNVML(t, program(t, filepath.Join(dist, name)))
		}
		if !strings.Contains(name, "_"+runtime.GOOS+"_"+runtime.GOARCH+".") {
			continue
		}
		var info struct {
			Version, VersionSource, Commit, Date string
			NVML                                 bool
		}
		out := must(t, t.TempDir(), nil, program(t, filepath.Join(dist, name)), "version", "--client", "-o", "json")
		if err := json.Unmarshal([]byte(out), &info); err != nil {
			t.Fatalf("%s: version -o json: %v", name, err)
		}
		if !strings.HasPrefix(info.Version, "v") || info.VersionSource != "release" || info.Commit != commit || info.Date == "" || info.NVML == portable {
			t.Errorf("%s: version tells %+v, at commit %s", name, info, commit)
		}
	}
	if !slices.Contains(nvml, runtime.GOARCH) {
		t.Log("no program with NVML could be run here")
	}
}

// checkManifest validates the manifest with krew's validator, and compares it with
// plugins.yaml, which is the same apart from the values that only a release knows.
func checkManifest(t *testing.T, root, tools string) {
	path := filepath.Join(root, "dist", "krew", "dra.yaml")
	must(t, root, nil, filepath.Join(tools, "validate-krew-manifest"), "-skip-install", "-manifest", path)
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, content, _ := strings.Cut(string(manifest), "\n")
	for pattern, replacement := range map[string]string{
		`(?m)^(  version: ).*`:      "${1}v0.0.0",
		`/releases/download/[^/]+/`: "/releases/download/v0.0.0/",
		`(?m)^(\s*sha256: ).*`:      `${1}"` + strings.Repeat("0", 64) + `"`,
	} {
		content = regexp.MustCompile(pattern).ReplaceAllString(content, replacement)
	}
	content = `# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# The manifest for krew as .goreleaser.yaml makes it. Version and checksums are
# filled in by a release. Written by make krew-manifest.
` + content
	kept := filepath.Join(root, "plugins.yaml")
	if *update {
		if err := os.WriteFile(kept, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(old), content); diff != "" {
		t.Errorf("plugins.yaml is out of date, run: make krew-manifest (-kept +goreleaser's)\n%s", diff)
	}
}

// checkKrew does what docs/install.md says, with a krew and a kubectl of their
// own.
func checkKrew(t *testing.T, root, tools string) {
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home, path := t.TempDir(), t.TempDir()
	krewRoot := filepath.Join(home, ".krew")
	bin := filepath.Join(krewRoot, "bin")
	if err := os.Symlink(filepath.Join(tools, "krew"), filepath.Join(path, "kubectl-krew")); err != nil {
		t.Fatal(err)
	}
	// krew uninstalls nothing before it has an index, which would come from the
	// network. An empty one is enough.
	must(t, root, nil, "git", "init", "--quiet", filepath.Join(krewRoot, "index", "default"))
	env := []string{
		"HOME=" + home, "KREW_ROOT=" + krewRoot, "KREW_NO_UPGRADE_CHECK=1",
		"KUBECONFIG=" + filepath.Join(home, "kubeconfig"), "COLUMNS=100", "NO_COLOR=1",
		"PATH=" + strings.Join([]string{bin, path, binaries, os.Getenv("PATH")}, string(filepath.ListSeparator)),
	}
	kubectl := func(args ...string) outcome {
		return run(t, root, env, append([]string{filepath.Join(binaries, "kubectl")}, args...)...)
	}
	archive := filepath.Join(root, "dist", fmt.Sprintf("kubectl-dra_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH))
	if got := kubectl("krew", "install", "--manifest="+filepath.Join(root, "dist", "krew", "dra.yaml"), "--archive="+archive); got.code != 0 {
		t.Fatalf("kubectl krew install: %s", got)
	}
	if got := kubectl("dra", "version"); got.code != 0 || !strings.Contains(got.stdout, "k8s.io/dynamic-resource-allocation v0.") {
		t.Errorf("kubectl dra version: %s", got)
	}
	// The code of the answer "does not fit" is 1.
	if got := kubectl("dra", "why", "pod/pretrain-0", "-n", "research", "--snapshot", "examples/cluster"); got.code != 1 ||
		!strings.HasPrefix(got.stdout, "✗ Pod research/pretrain-0 does not fit on any of 14 nodes") {
		t.Errorf("kubectl dra why: %s", got)
	}
	// krew installs one program; the caveats of the manifest give the line for
	// completion.
	link := filepath.Join(bin, "kubectl_complete-dra")
	if err := os.Symlink("kubectl-dra", link); err != nil {
		t.Fatal(err)
	}
	if got := kubectl("__complete", "dra", "why", "-n", "research", "--snapshot", "examples/cluster", "pod/pre"); !strings.HasPrefix(got.stdout, "pod/pretrain-0\n") {
		t.Errorf("kubectl completes: %s", got)
	}
	if got := kubectl("krew", "uninstall", "dra"); got.code != 0 {
		t.Errorf("kubectl krew uninstall: %s", got)
	}
	if got := kubectl("dra", "version"); got.code == 0 {
		t.Errorf("kubectl dra is still there after it was uninstalled: %s", got)
	}
}
