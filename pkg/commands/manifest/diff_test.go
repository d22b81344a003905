// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const claimYAML = `# Two at once.
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train}   # in ml
spec:
  devices:
    requests:
    - name: gpu   # the big ones
      exactly:
        deviceClassName: "gpu"
        # as many as there are
        count: 8  # eight
        selectors:
        - cel: {expression: 'a == "b"'}
        - cel:
            expression: >-
              device.driver
              == "x"
        capacity:
          requests: {memory: 80Gi, bandwidth: 1G}
    constraints:
    # all on one root
    - matchAttribute: a/root
    - distinctAttribute: "a/slot"
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  nodeSelector:
    zone: a
    disk: ssd
  containers: []
`

const claimJSON = `{
  "apiVersion": "resource.k8s.io/v1",
  "kind": "List",
  "items": [
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "train", "namespace": "ml"},
     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 8}}],
       "constraints": [{"matchAttribute": "a/root"}]}}}
  ]
}
`

func TestDiff(t *testing.T) {
	claim := func(op, path string, value any) api.Edit {
		return anEdit(t, api.Ref(api.KindClaim, "ml", "train"), op, path, value)
	}
	pod := func(op, path string, value any) api.Edit {
		return anEdit(t, api.Ref(api.KindPod, "ml", "p"), op, path, value)
	}
	toleration := map[string]string{"key": "xid", "operator": "Exists"}
	exactly := "/spec/devices/requests/0/exactly"
	tests := map[string]struct {
		text  string
		edits []api.Edit
		// want has the changed lines.
		want []string
	}{
		"a number keeps its comment": {
			edits: []api.Edit{claim("replace", exactly+"/count", 4)},
			want:  []string{"-        count: 8  # eight", "+        count: 4  # eight"},
		},
		"a quoted text": {
			edits: []api.Edit{claim("replace", exactly+"/deviceClassName", "big")},
			want:  []string{`-        deviceClassName: "gpu"`, `+        deviceClassName: "big"`},
		},
		"a text in single quotes": {
			edits: []api.Edit{claim("replace", exactly+"/selectors/0/cel/expression", `it's`)},
			want:  []string{`-        - cel: {expression: 'a == "b"'}`, `+        - cel: {expression: 'it''s'}`},
		},
		"a block of text": {
			edits: []api.Edit{claim("replace", exactly+"/selectors/1/cel/expression", `device.driver == "y"`)},
			want:  []string{`-              device.driver`, `-              == "x"`, `+              device.driver == "y"`},
		},
		"a value in braces": {
			edits: []api.Edit{claim("replace", exactly+"/capacity/requests/memory", "40Gi")},
			want:  []string{"-          requests: {memory: 80Gi, bandwidth: 1G}", "+          requests: {memory: 40Gi, bandwidth: 1G}"},
		},
		"out of braces": {
			edits: []api.Edit{claim("remove", exactly+"/capacity/requests/bandwidth", nil)},
			want:  []string{"-          requests: {memory: 80Gi, bandwidth: 1G}", "+          requests: {memory: 80Gi}"},
		},
		"an item of a list": {
			edits: []api.Edit{claim("remove", "/spec/devices/constraints/0", nil)},
			want:  []string{"-    - matchAttribute: a/root"},
		},
		"a whole list": {
			edits: []api.Edit{claim("remove", "/spec/devices/constraints", nil)},
			want:  []string{"-    constraints:", "-    # all on one root", "-    - matchAttribute: a/root", `-    - distinctAttribute: "a/slot"`},
		},
		"a new list": {
			edits: []api.Edit{claim("add", exactly+"/tolerations", []any{toleration})},
			want:  []string{"+        tolerations:", "+          - key: xid", "+            operator: Exists"},
		},
		"two edits": {
			edits: []api.Edit{claim("add", exactly+"/tolerations", []any{toleration}), claim("replace", exactly+"/count", 1)},
			want: []string{
				"-        count: 8  # eight", "+        count: 1  # eight",
				"+        tolerations:", "+          - key: xid", "+            operator: Exists",
			},
		},
		"the other document": {
			edits: []api.Edit{pod("remove", "/spec/nodeSelector/zone", nil)},
			want:  []string{"-    zone: a"},
		},
		"both documents": {
			edits: []api.Edit{pod("remove", "/spec/nodeSelector", nil), claim("replace", exactly+"/count", 4)},
			want:  []string{"-        count: 8  # eight", "+        count: 4  # eight", "-  nodeSelector:", "-    zone: a", "-    disk: ssd"},
		},
		"JSON in a List": {
			text:  claimJSON,
			edits: []api.Edit{claim("replace", exactly+"/count", 4), claim("add", exactly+"/tolerations", []any{toleration})},
			want: []string{
				`-     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 8}}],`,
				`+     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 4, "tolerations": [{"key":"xid","operator":"Exists"}]}}],`,
			},
		},
		"a flat request of v1beta1": {
			text:  "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: train, namespace: ml}\nspec:\n  devices:\n    requests:\n    - name: gpu\n      count: 8\n",
			edits: []api.Edit{claim("replace", exactly+"/count", 4)},
			want:  []string{"-      count: 8", "+      count: 4"},
		},
		"an alias is not followed": {
			text:  "kind: ResourceClaim\nmetadata: {name: train}\nx: &spec {devices: {requests: [{exactly: {count: 8}}]}}\nspec: *spec\n",
			edits: []api.Edit{claim("replace", exactly+"/count", 4)},
		},
		"what is not there": {
			edits: []api.Edit{claim("replace", exactly+"/nothing/count", 4)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := test.text
			if text == "" {
				text = claimYAML
			}
			texts := &fileTexts{paths: []string{"f.yaml"}, texts: map[string][]byte{"f.yaml": []byte(text)}, namespace: "ml"}
			diff := texts.diff(test.edits)
			var changed []string
			for line := range strings.Lines(diff) {
				line = strings.TrimSuffix(line, "\n")
				if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "@@") && !strings.HasPrefix(line, " ") {
					changed = append(changed, line)
				}
			}
			if d := cmp.Diff(test.want, changed); d != "" {
				t.Errorf("-want +got:\n%s\n%s", d, diff)
			}
		})
	}
}

func anEdit(t *testing.T, object api.ObjectRef, op, path string, value any) api.Edit {
	t.Helper()
	edit := api.Edit{Object: object, Op: op, Path: path}
	if value != nil {
		var err error
		if edit.Value, err = json.Marshal(value); err != nil {
			t.Fatal(err)
		}
	}
	return edit
}

// TestEditsOfRandomTexts edits documents in all kinds of layout: either the
// edit is made and all comments stay, or none is made. That nothing else changes
// is what the edit itself makes sure of.
func TestEditsOfRandomTexts(t *testing.T) {
	const cases = 3000
	made := 0
	for seed := range cases {
		random := rand.New(rand.NewPCG(uint64(seed), 9))
		text := "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata:\n  name: train\n" + randomYAML(random, "spec", 0, 3)
		path := "/spec"
		for range 1 + random.IntN(3) {
			path += fmt.Sprintf("/%c", 'a'+random.IntN(3))
		}
		edit := anEdit(t, api.Ref(api.KindClaim, "ml", "train"), []string{"add", "remove", "replace"}[random.IntN(3)], path, []any{4, "x: y", `it's "so"`, []any{map[string]any{"k": "v", "l": 1}}}[random.IntN(4)])
		if edit.Op == "remove" {
			edit.Value = nil
		}
		texts := &fileTexts{namespace: "ml"}
		after, err := texts.edit([]byte(text), edit)
		if err != nil {
			continue
		}
		made++
		if edit.Op == "remove" {
			continue
		}
		for _, comment := range []string{"# comment", "# near"} {
			if strings.Count(text, comment) != strings.Count(string(after), comment) {
				t.Fatalf("seed %d: %s %s lost a comment of\n%s\nin\n%s", seed, edit.Op, path, text, after)
			}
		}
	}
	t.Logf("%d edits made", made)
	if made < cases/10 {
		t.Errorf("only %d edits of %d were made", made, cases)
	}
}

func randomYAML(random *rand.Rand, key string, indent, depth int) string {
	margin := strings.Repeat(" ", indent)
	scalars := []string{"1", "text", `"quoted: # no"`, `'it''s'`, "|-\n" + margin + "  line\n" + margin + "  more", ">-\n" + margin + "  folded", "{}", "[]", "{a: 1, b: [x, 'y, z']}"}
	if depth == 0 || random.IntN(4) == 0 {
		value := scalars[random.IntN(len(scalars))]
		if random.IntN(3) == 0 && !strings.Contains(value, "\n") {
			value += "  # near"
		}
		return margin + key + ": " + value + "\n"
	}
	out := margin + key + ":\n"
	for i := range 1 + random.IntN(3) {
		if random.IntN(4) == 0 {
			out += margin + "  # comment\n"
		}
		out += randomYAML(random, string(rune('a'+i)), indent+2, depth-1)
	}
	return out
}

// TestNameInDiff covers the names of files that git quotes.
func TestNameInDiff(t *testing.T) {
	for path, want := range map[string]string{
		"a/é.yaml":          "a/é.yaml",
		"e f.yaml":          `"e f.yaml"`,
		"c\n+++ d.yaml":     `"c\012+++ d.yaml"`,
		"b\x1b[2J\"\\.yaml": `"b\033[2J\"\\.yaml"`,
	} {
		if got := nameInDiff(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
