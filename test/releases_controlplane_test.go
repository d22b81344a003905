// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// releasesVariable is set by `make test-releases`: the releases, separated by
	// spaces. Each has to be built once, which takes minutes.
	releasesVariable = "KUBECTL_DRA_TEST_RELEASES"
	// newestRelease is the release that all other tests run.
	newestRelease = "1.37"
)

// chosenReleases returns the releases that the variable names.
func chosenReleases(t *testing.T) []string {
	t.Helper()
	list := strings.Fields(os.Getenv(releasesVariable))
	if len(list) == 0 {
		t.Skip("it builds older releases of Kubernetes; run: make test-releases")
	}
	return list
}

// TestWhyAgreesWithReleases runs [TestWhyAgreesWithScheduler] on real older releases: with
// the gates at their defaults, and with all features of Dynamic Resource Allocation that
// they have. Both select another implementation of the allocator. The newest release runs
// only the scenarios with differences.
func TestWhyAgreesWithReleases(t *testing.T) {
	for _, release := range chosenReleases(t) {
		t.Run(release, func(t *testing.T) {
			scenarios := loadScenariosIn(t, "scenarios/releases")
			if release == newestRelease {
				runRelease(t, release, controlplane.Options{}, scenarios)
				return
			}
			scenarios = append(scenarios, loadScenarios(t)...)
			t.Run("defaults", func(t *testing.T) { runRelease(t, release, releaseOptions(t, release), scenarios) })
			t.Run("everything", func(t *testing.T) { runRelease(t, release, everythingIn(t, release), loadScenarios(t)) })
		})
	}
}

// runRelease runs the scenarios that need no other gates than those that are set,
// and no newer API.
func runRelease(t *testing.T, release string, options controlplane.Options, scenarios []*scenario) {
	c := startCluster(t, options)
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios {
			if slices.ContainsFunc(s.Gates, func(gate string) bool { return !options.FeatureGates[gate] }) || s.Since > release {
				continue
			}
			for i := range s.Steps {
				s.Steps[i] = s.Steps[i].in(release)
			}
			// Rules had the same fields before they had this version.
			for _, object := range s.objects {
				if object.GetKind() == "DeviceTaintRule" {
					object.SetAPIVersion("resource.k8s.io/v1alpha3")
				}
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, s)
			})
		}
	})
}

// releaseOptions returns the options of a release with its defaults.
func releaseOptions(t *testing.T, release string) controlplane.Options {
	t.Helper()
	binaries, err := controlplane.ReleaseBinaries(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	options := controlplane.Options{Binaries: binaries}
	if releaseMinor(t, release) < 36 {
		options.WithoutControllers = []string{"resourcepoolstatusrequest-controller"}
	}
	return options
}

// everythingIn is like [everything], as far as a release has it and as far as it is
// evaluated: the API of groups of pods was another one.
func everythingIn(t *testing.T, release string) controlplane.Options {
	t.Helper()
	minor := releaseMinor(t, release)
	options := releaseOptions(t, release)
	all := everything()
	options.RuntimeConfig, options.FeatureGates = map[string]bool{}, map[string]bool{}
	for version := range all.RuntimeConfig {
		if strings.HasPrefix(version, "resource.k8s.io/") {
			options.RuntimeConfig[version] = true
		}
	}
	out := []string{"GenericWorkload", "DRAWorkloadResourceClaims"}
	for _, spec := range snapshot.GateSpecs() {
		in, exists := spec.In(minor)
		if exists && !in.Locked && all.FeatureGates[spec.Name] && !slices.Contains(out, spec.Name) {
			options.FeatureGates[spec.Name] = true
		}
	}
	return options
}

// releaseMinor returns 35 for "1.35".
func releaseMinor(t *testing.T, release string) int {
	t.Helper()
	minor, ok := snapshot.MinorVersion(release)
	if !ok {
		t.Fatalf("%s has %q, which is not a release such as 1.35", releasesVariable, release)
	}
	return minor
}

// TestSchedulerPanics lets the scheduler of 1.35.4 take all devices of a card that
// is partitioned, which ends it (kubernetes/kubernetes#138885).
func TestSchedulerPanics(t *testing.T) {
	const release = "1.35"
	if !slices.Contains(chosenReleases(t), release) {
		t.Skipf("it is about Kubernetes %s", release)
	}
	s, err := loadScenario("scenarios/counters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, everythingIn(t, release))
	for _, object := range s.objects {
		mustDo(t, func() error { return c.create(t.Context(), s.name, object) })
	}
	c.createAll(t, s.name, allOfCounters)
	mustDo(t, func() error { return c.waitForClaims(t.Context(), s.name, "all") })
	answer, err := why(t, c.kubeconfig, s.name, "all")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Verdict != api.Error || !strings.Contains(answer.Summary, "panics") {
		t.Errorf("verdict %s: %s", answer.Verdict, answer.Summary)
	}
	if found := diagnosed(t, "--kubeconfig", c.kubeconfig, "--only", "DRA1902,DRA1904", "--min-severity", "Info"); !slices.Equal(found, []string{"DRA1902", "DRA1904"}) {
		t.Errorf("doctor finds %v", found)
	}
	mustDo(t, func() error { return c.release(t.Context(), s.name, "all") })
	if err := poll(t.Context(), func() bool { return strings.Contains(c.plane.Logs(), "checkAvailableCounters") }); err != nil {
		t.Errorf("the scheduler does not panic: %v", err)
	}
}

// allOfCounters asks for all halves of the card of scenario counters.
const allOfCounters = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: all}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly:
          deviceClassName: counters
          allocationMode: All
          selectors: [{cel: {expression: "device.attributes['counters.example.com'].profile == 'whole'"}}]
---
apiVersion: v1
kind: Pod
metadata: {name: all}
spec:
  schedulingGates: [{name: example.com/wait}]
  resourceClaims: [{name: gpus, resourceClaimTemplateName: all}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]
`
