// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// applied makes the edits of a remedy in a snapshot by a JSON patch of each
// object, and nothing else.
func applied(t *testing.T, snap *snapshot.Snapshot, r *Remedy) *snapshot.Snapshot {
	t.Helper()
	amended := *snap
	if r.FeatureGate != "" {
		gate(r.FeatureGate, true)(&amended)
	}
	for _, e := range r.Edits {
		kind, rest, _ := strings.Cut(e.Object, "/")
		namespace, name, ok := strings.Cut(rest, "/")
		if !ok {
			namespace, name = "", rest
		}
		switch kind {
		case KindClaim:
			applyTo(t, &amended.Claims, namespace, name, e)
		case KindTemplate:
			applyTo(t, &amended.Templates, namespace, name, e)
		case KindPod:
			applyTo(t, &amended.Pods, namespace, name, e)
		case "DeviceClass":
			applyTo(t, &amended.Classes, namespace, name, e)
		case "DeviceTaintRule":
			applyTo(t, &amended.TaintRules, namespace, name, e)
		case "Namespace":
			applyTo(t, &amended.Namespaces, namespace, name, e)
		case "ResourceSlice":
			applyTo(t, &amended.Slices, namespace, name, e)
		default:
			at := slices.IndexFunc(amended.Workloads, func(w *snapshot.Workload) bool { return w.Kind == kind && w.Name == name })
			w := *amended.Workloads[at]
			e.Path = strings.TrimPrefix(e.Path, "/spec/template/spec")
			w.Template.Spec = *patched(t, &w.Template.Spec, e)
			amended.Workloads = slices.Clone(amended.Workloads)
			amended.Workloads[at] = &w
		}
	}
	return &amended
}

func applyTo[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, list *[]P, namespace, name string, e Edit,
) {
	t.Helper()
	*list = slices.Clone(*list)
	for i, o := range *list {
		switch {
		case o.GetNamespace() != namespace || o.GetName() != name:
		case e.Path == "":
			*list = slices.Delete(*list, i, i+1)
			return
		default:
			(*list)[i] = patched(t, (*T)(o), e)
			return
		}
	}
	t.Fatalf("there is no %s", e.Object)
}

func patched[T any](t *testing.T, from *T, e Edit) *T {
	t.Helper()
	before, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	operation := map[string]any{"op": e.Op, "path": e.Path}
	if e.Value != nil {
		operation["value"] = e.Value
	}
	text, err := json.Marshal([]any{operation})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("%s %s %s: %v\n%s", e.Object, e.Op, e.Path, err, before)
	}
	to := new(T)
	if err := json.Unmarshal(after, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// checkRemedies asks again with each remedy applied: it has to fit, on as many
// nodes as it says, with these devices.
func checkRemedies(t *testing.T, snap *snapshot.Snapshot, opts Options, e *Explanation) {
	t.Helper()
	for i := range e.Remedies {
		r := &e.Remedies[i]
		again, err := Explain(t.Context(), applied(t, snap, r), opts)
		if err != nil {
			t.Fatal(err)
		}
		if again.Verdict != Fits && again.Verdict != Allocated {
			t.Errorf("%s: it does not fit: %s\n%s", r.Change, again.Summary, asJSON(r))
			continue
		}
		fitting, found := 0, false
		for _, group := range again.Nodes {
			if group.Verdict == Fits {
				fitting += group.Count
				found = found || slices.Contains(group.Names, r.Node)
			}
		}
		if !r.Verified || fitting != r.Nodes || !found {
			t.Errorf("%s: fits on %d nodes, not on %d, or not on %s", r.Change, fitting, r.Nodes, r.Node)
		}
	}
}

// TestRemediesAreTrue holds the remedies in random clusters against the
// allocator.
func TestRemediesAreTrue(t *testing.T) {
	cases := 1500
	if testing.Short() {
		cases = 150
	}
	counts := map[string]int{}
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		snap := randomCluster(t, random)
		crowd(snap, random)
		opts := Options{Kind: KindClaim, Namespace: namespace, Name: waiting, AllRemedies: true}
		e, err := Explain(t.Context(), snap, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Remedies {
			word, _, _ := strings.Cut(r.Change, " ")
			counts[r.Actor+" "+word]++
		}
		checkRemedies(t, snap, opts, e)
		if t.Failed() {
			t.Fatalf("seed %d\nclaims %s\nslices %s", seed, asJSON(snap.Claims), asJSON(snap.Slices))
		}
	}
	t.Log(counts)
	if len(counts) < 5 {
		t.Errorf("only these: %v", counts)
	}
}
