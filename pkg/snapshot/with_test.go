// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// podsNamed returns pods with these names, which are in the order of a snapshot.
func podsNamed(names ...string) []*corev1.Pod {
	list := make([]*corev1.Pod, 0, len(names))
	for _, name := range names {
		list = append(list, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

func TestChanges(t *testing.T) {
	before := podsNamed("b", "c", "d", "f")
	changed := podsNamed("c")[0]
	for name, test := range map[string]struct {
		after []*corev1.Pod
		want  []string
	}{
		"nothing":       {before, nil},
		"a copied list": {slices.Clone(before), nil},
		"one came":      {slices.Concat(podsNamed("a"), before), []string{"+a"}},
		"the last came": {append(slices.Clone(before), podsNamed("g")...), []string{"+g"}},
		"one went":      {slices.Concat(before[:2], before[3:]), []string{"-d"}},
		"one changed":   {slices.Concat(before[:1], []*corev1.Pod{changed}, before[2:]), []string{"c"}},
		"all went":      {nil, []string{"-b", "-c", "-d", "-f"}},
		"much":          {slices.Concat(podsNamed("a"), []*corev1.Pod{changed}, podsNamed("e")), []string{"+a", "-b", "c", "-d", "+e", "-f"}},
	} {
		var got []string
		for was, is := range snapshot.Changes(before, test.after) {
			switch {
			case was == nil:
				got = append(got, "+"+is.Name)
			case is == nil:
				got = append(got, "-"+was.Name)
			default:
				got = append(got, is.Name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// BenchmarkChanges compares a list of 40,000 pods with one in which a pod has changed.
func BenchmarkChanges(b *testing.B) {
	names := make([]string, 40_000)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%05d", i)
	}
	before := podsNamed(names...)
	after := slices.Clone(before)
	after[20_000] = podsNamed(names[20_000])[0]
	b.ReportAllocs()
	for b.Loop() {
		for range snapshot.Changes(before, after) {
		}
	}
}
