// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocators

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// releasesVariable is set by `make test-releases`: the releases, separated by spaces.
	releasesVariable = "KUBECTL_DRA_TEST_RELEASES"
	// clustersVariable is how many random clusters each release is asked about.
	clustersVariable = "CLUSTERS"
	// clusters is the default of that number.
	clusters = 3000
	// orders is how often an allocator that tries pools in no certain order is asked.
	orders = 60
)

// TestAllocators asks the allocators of all patch releases what upstream's table and random
// clusters ask, and compares with what this program says about that release.
func TestAllocators(t *testing.T) {
	releases, random := asked(t)
	rows := recordTable(t, cluster.Library)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			if patches := patchReleases(t, release); patches[len(patches)-1] != compared[release] {
				t.Errorf("there is %s, and what was compared ends with %s: add it to compared, and to docs/compatibility.md", patches[len(patches)-1], compared[release])
			}
			questions := tableQuestions(t, rows, release)
			for seed := range random {
				questions = append(questions, randomQuestion(uint64(seed), release)) //nolint:gosec // small
			}
			p := allocatorsPart()
			for _, b := range p.buildAll(t, release) {
				for _, patch := range b.apart() {
					t.Run(patch, func(t *testing.T) { compare(t, b, patch, questions) })
				}
			}
		})
	}
}

// asked returns the releases to ask, and the number of random clusters.
func asked(t *testing.T) (releases []string, random int) {
	t.Helper()
	releases = strings.Fields(os.Getenv(releasesVariable))
	if len(releases) == 0 {
		t.Skip("it builds parts of all patch releases; run: make test-releases")
	}
	if number, err := strconv.Atoi(os.Getenv(clustersVariable)); err == nil {
		return releases, number
	}
	return releases, clusters
}

// nodeQuestion is a question about one node, with the gates of a release.
type nodeQuestion struct {
	name  string
	facts *cluster.Cluster
	node  *corev1.Node
	*question
}

// answer is an allocator's answer.
type answer struct {
	Outcome, Error string
	Devices        [][]string
}

func compare(t *testing.T, b *build, patch string, questions []*question) {
	var all []nodeQuestion
	for _, q := range questions {
		for name, gates := range gateSets(t, patch, q) {
			snap := *q.snap
			snap.ServerVersion, snap.Gates = "v"+patch, gates
			facts := cluster.New(&snap)
			if !facts.Gates.Enabled(cluster.GateListTypeAttributes) && hasLists(&snap) {
				continue
			}
			for _, node := range snap.Nodes {
				all = append(all, nodeQuestion{fmt.Sprintf("%s, %s gates, node %s", q.name, name, node.Name), facts, node, q})
			}
		}
	}
	requests := make([]any, len(all))
	for i, a := range all {
		requests[i] = a.request()
	}
	theirs := ask[[]answer](t, b, requests)
	differences, outcomes := 0, map[string]int{}
	for i, a := range all {
		said := theirs[i]
		if slices.ContainsFunc(said, func(s answer) bool { return s.Outcome == "TimedOut" }) {
			outcomes["TimedOut"]++
			continue
		}
		ours := verdict(t, a)
		outcomes[ours.Outcome]++
		unordered := a.facts.Gates.Channel() == cluster.ChannelStable || a.facts.Behaves(cluster.UnsortedPools)
		agrees := slices.ContainsFunc(said, func(s answer) bool {
			return s.Outcome == ours.Outcome && (unordered || ours.Outcome != "Fits" || fmt.Sprint(s.Devices) == fmt.Sprint(ours.Devices))
		})
		if agrees {
			continue
		}
		if differences++; differences <= 10 {
			t.Errorf("%s (%s):\n the allocator says %s %s %v\n the program says %s %s %v", a.name, a.facts.Gates.Channel(), said[0].Outcome, said[0].Error, said[0].Devices, ours.Outcome, ours.Error, ours.Devices)
		}
	}
	t.Logf("%s: %d questions, %d differences, %v", strings.Join(b.releases, " "), len(all), differences, outcomes)
}

// gateSets returns the sets of gates with which a question is asked. A release has not all
// gates.
func gateSets(t *testing.T, release string, q *question) map[string]map[string]snapshot.Gate {
	t.Helper()
	minor, ok := snapshot.MinorVersion(release)
	if !ok {
		t.Fatalf("%s is not a release such as 1.36", release)
	}
	with := func(on func(string) bool) map[string]snapshot.Gate {
		gates := map[string]snapshot.Gate{}
		for _, spec := range snapshot.GateSpecs() {
			in, exists := spec.In(minor)
			if exists && strings.HasPrefix(spec.Name, "DRA") {
				gates[spec.Name] = snapshot.Gate{Enabled: in.Locked || on(spec.Name), Source: snapshot.GateFromFlag}
			}
		}
		return gates
	}
	if q.features != nil {
		needed := map[string]bool{}
		for feature, on := range q.features {
			for _, gate := range gateOf()[feature] {
				needed[gate] = on
			}
		}
		gates := with(func(gate string) bool { return needed[gate] })
		for gate, on := range needed {
			if on && !gates[gate].Enabled {
				return nil
			}
		}
		return map[string]map[string]snapshot.Gate{"its": gates}
	}
	return map[string]map[string]snapshot.Gate{
		"default": {},
		"all":     with(func(string) bool { return true }),
		"few": with(func(gate string) bool {
			return slices.Contains([]string{"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"}, gate)
		}),
	}
}

// request returns the question as the program of the allocators reads it.
func (a nodeQuestion) request() any {
	features := map[string]bool{}
	for feature, gates := range gateOf() {
		features[feature] = !slices.ContainsFunc(gates, func(gate string) bool { return !a.facts.Gates.Enabled(gate) })
	}
	features["ListTypeAttributes"] = a.facts.Gates.ListsCompared()
	request := map[string]any{
		"Features": features, "Selectors": a.facts.Gates.CEL(), "Node": a.node, "Classes": a.snap.Classes,
		"Slices": allSlices(a.facts), "Claims": a.claims, "Allocated": a.snap.Claims,
	}
	if a.facts.Gates.Channel() == cluster.ChannelStable || a.facts.Behaves(cluster.UnsortedPools) {
		request["Times"] = orders
	}
	return request
}

// allSlices lists the slices of all pools, with the taints of rules, by name.
func allSlices(facts *cluster.Cluster) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, pool := range facts.Pools.All() {
		all = append(all, facts.Pools.SlicesOf(pool)...)
	}
	slices.SortFunc(all, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// verdict returns what this program says.
func verdict(t *testing.T, a nodeQuestion) answer {
	t.Helper()
	c := a.facts
	v := allocator.Of(c).Check(t.Context(), a.node, a.claims)
	out := answer{Outcome: string(v.Outcome), Error: fmt.Sprint(v.Err)}
	var panics *allocator.ReleasePanicError
	switch {
	case v.Outcome == allocator.NodeError:
		out.Outcome = string(allocator.DoesNotFit)
	case errors.As(v.Err, &panics):
		out.Outcome = "Panics"
	}
	for i := range v.Allocations {
		devices := []string{}
		for _, d := range v.Allocations[i].Devices.Results {
			text := fmt.Sprintf("%s %s/%s/%s", d.Request, d.Driver, d.Pool, d.Device)
			for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
				amount := d.ConsumedCapacity[name]
				text += fmt.Sprintf(" %s=%s", name, amount.String())
			}
			devices = append(devices, text)
		}
		out.Devices = append(out.Devices, devices)
	}
	return out
}
