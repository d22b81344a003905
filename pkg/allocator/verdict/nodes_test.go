// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
)

// TestEquivalentNames asserts that names make no difference, and what does.
func TestEquivalentNames(t *testing.T) {
	waits := tc.Claim("waiting", tc.GPUs("gpu", 2)).Matching("gpu.example.com/root")
	rooted := func(values ...string) []tc.DeviceWrapper {
		var list []tc.DeviceWrapper
		for i, value := range values {
			list = append(list, tc.Device(fmt.Sprintf("gpu-%d", i), "root="+value))
		}
		return list
	}
	far := tc.Pool("far", rooted("x")...).Change(func(s *resourceapi.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true) })
	for _, tt := range []struct {
		name       string
		parts      []any
		equivalent bool
	}{
		{"other values, the same of them equal", []any{tc.Pool("a", rooted("x", "y", "x")...), tc.Pool("b", rooted("1", "2", "1")...)}, true},
		{"others are equal", []any{tc.Pool("a", rooted("x", "y", "x")...), tc.Pool("b", rooted("x", "y", "y")...)}, false},
		{"a value is missing", []any{tc.Pool("a", rooted("x", "y")...), tc.Pool("b", append(rooted("x"), tc.Device("gpu-1"))...)}, false},
		{"equal to a device that all nodes reach", []any{far, tc.Pool("a", rooted("x", "y")...), tc.Pool("b", rooted("y", "z")...)}, false},
		{"none equal to a device that all nodes reach", []any{far, tc.Pool("a", rooted("u", "v")...), tc.Pool("b", rooted("y", "z")...)}, true},
		{"another device is held", []any{tc.Pool("a", rooted("x", "y")...), tc.Pool("b", rooted("x", "y")...), tc.Serving("h", "b", "gpu-0")}, false},
		{"others hold the same", []any{tc.Pool("a", rooted("x", "y")...), tc.Pool("b", rooted("x", "y")...), tc.Serving("g", "a", "gpu-0"), tc.Serving("h", "b", "gpu-0")}, true},
		{"the pool is incomplete on both", []any{tc.Pool("a", rooted("x")...).Of(2), tc.Pool("b", rooted("x")...).Of(2)}, true},
		{"the pool is incomplete on one", []any{tc.Pool("a", rooted("x")...).Of(2), tc.Pool("b", rooted("x")...)}, false},
		{"no devices at all", nil, true},
		{"a node selector that cannot be parsed", []any{tc.Pool("a", rooted("x")...).Change(func(s *resourceapi.ResourceSlice) {
			s.Spec.NodeName = nil
			s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: "Nonsense"}},
			}}}
		})}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := testquestion.Of(t, tc.Cluster(append(tt.parts, tc.Nodes("a", "b"), waits)...), nil)
			want := []int{0, 1}
			if tt.equivalent {
				want = []int{0, 0}
			}
			if got := verdict.NewNodeSignatures(q).Equivalent(t.Context(), q.Reach.Candidates); !slices.Equal(got, want) {
				t.Errorf("the first node equivalent: %v, want %v", got, want)
			}
		})
	}
}

// TestGroups covers two nodes that are grouped by what they have, by who has it, or not at
// all.
func TestGroups(t *testing.T) {
	plain, older := tc.Claim("waiting", tc.GPUs("gpu", 2)), tc.Claim("waiting", tc.GPUs("gpu", 2, `device.attributes["gpu.example.com"].model == "A"`))
	for name, test := range map[string]struct {
		parts      []any
		same, used string
	}{
		"the same devices": {[]any{plain, tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(2)...)}, "a+b", "a+b"},
		"one more":         {[]any{plain, tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(3)...)}, "a b", "a b"},
		"an attribute that nobody looks at": {
			[]any{plain, tc.Pool("a", tc.Devices(2, "model=A")...), tc.Pool("b", tc.Devices(2, "model=B")...)}, "a+b", "a+b",
		},
		"an attribute that a selector looks at": {
			[]any{older, tc.Pool("a", tc.Devices(2, "model=A")...), tc.Pool("b", tc.Devices(2, "model=B")...)}, "a b", "a b",
		},
		"a tainted device": {
			[]any{plain, tc.Pool("a", tc.Device("gpu-0").Tainted("x", resourceapi.DeviceTaintEffectNoSchedule)), tc.Pool("b", tc.Device("gpu-0"))}, "a b", "a b",
		},
		"two claims have on one node what one has on the other": {
			[]any{
				plain, tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(2)...),
				tc.Serving("one", "a", "gpu-0", "gpu-1"), tc.Serving("two", "b", "gpu-0"), tc.Serving("three", "b", "gpu-1"),
			}, "a+b", "a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := testquestion.Of(t, tc.Cluster(append(test.parts, tc.Nodes("a", "b"))...), nil)
			contents := verdict.NewNodeContents()
			if got := groupText(contents.Groups(q, q.Reach.Candidates)); got != test.same {
				t.Errorf("groups by contents: %s, want %s", got, test.same)
			}
			if got := groupText(contents.GroupsByUse(q, q.Reach.Candidates)); got != test.used {
				t.Errorf("groups by use: %s, want %s", got, test.used)
			}
		})
	}
}

func groupText(groups [][]*corev1.Node) string {
	var texts []string
	for _, group := range groups {
		var names []string
		for _, node := range group {
			names = append(names, node.Name)
		}
		texts = append(texts, strings.Join(names, "+"))
	}
	return strings.Join(texts, " ")
}

// TestAvailable expects the same for nodes that offer the same, whatever else they have.
func TestAvailable(t *testing.T) {
	q := testquestion.Of(t, tc.Cluster(
		tc.Nodes("a", "b", "c"), tc.Claim("waiting", tc.GPUs("gpu", 2, `device.attributes["gpu.example.com"].model == "A"`)),
		tc.Pool("a", tc.Device("gpu-0", "model=A")), tc.Pool("b", tc.Device("gpu-0", "model=A"), tc.Device("gpu-1", "model=B")),
		tc.Pool("c", tc.Devices(2, "model=A")...),
	), nil)
	signatures := verdict.NewNodeSignatures(q)
	var offers []string
	for _, node := range q.Reach.Candidates {
		offers = append(offers, signatures.Available(t.Context(), node))
	}
	if offers[0] != offers[1] || offers[0] == offers[2] {
		t.Errorf("a offers %q, b %q, c %q: want the first two equal", offers[0], offers[1], offers[2])
	}
}
