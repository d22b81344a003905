// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

// fieldCase is a question to a fixture, and what the answer has to be.
type fieldCase struct {
	ask     string
	target  explain.Options
	verdict api.Verdict
	stage   api.Stage
	code    api.Code
	// says is in the text output, and not is not in it.
	says, not []string
	// hurried is a question that takes long, so that it is given a limited time.
	hurried bool
}

// TestFieldCases asks about the situations that users meet. Each file in
// fieldcases is a snapshot of one of them. Comments at its start have one or
// several questions, each with what is to be answered:
//
//	# ask: pod/train-0 -n ml
//	# verdict: Allocated
//	# stage: Preparation
//	# code: DeviceTainted
//	# says: words that are in the output
//	# not: words that are not
//	# hurried: true
//
// All but the first may be left out; says and not may be there several times.
// They are looked for in the text for a terminal without an edge, where no
// sentence is broken. What is hurried takes longer than a test can wait. Other
// comments are for people.
func TestFieldCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("fieldcases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("there are no field cases")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			cases, err := readFieldCases(path)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := files.Load(t.Context(), []string{path}, files.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				e, err := c.explained(t, snap, c.target)
				if err != nil {
					t.Errorf("%s: %v", c.ask, err)
					continue
				}
				c.check(t, e)
				checkBrief(t, e)
				c.checkRedacted(t, snap, e)
			}
		})
	}
}

func (c *fieldCase) explained(t *testing.T, snap *snapshot.Snapshot, target explain.Options) (*api.Explanation, error) {
	t.Helper()
	if c.hurried {
		return inTime(t, snap, target)
	}
	return unhurried(t, snap, target)
}

func (c *fieldCase) check(t *testing.T, e *api.Explanation) {
	t.Helper()
	text := drawn(t, e, 0)
	var wrong []string
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	expect(c.verdict == "" || e.Verdict == c.verdict, "the verdict is %s, want %s", e.Verdict, c.verdict)
	expect(c.stage == "" || e.Stage == c.stage, "the stage is %q, want %q", e.Stage, c.stage)
	expect(c.code == "" || slices.Contains(codesOf(e), c.code), "the codes are %q, want %s among them", codesOf(e), c.code)
	for _, words := range c.says {
		expect(strings.Contains(text, words), "it does not say %q", words)
	}
	for _, words := range c.not {
		expect(!strings.Contains(text, words), "it says %q", words)
	}
	if len(wrong) > 0 {
		t.Errorf("%s: %s\n%s", c.ask, strings.Join(wrong, "\n"), drawn(t, e, 100))
	}
}

// checkRedacted asks about the same object under its pseudonym. A redacted
// snapshot has to lead to the same cause.
func (c *fieldCase) checkRedacted(t *testing.T, snap *snapshot.Snapshot, plain *api.Explanation) {
	t.Helper()
	redacted := redact.Snapshot(snap)
	target := c.target
	switch target.Object.Kind {
	case api.KindPod:
		i := slices.IndexFunc(snap.Pods, func(p *corev1.Pod) bool {
			return p.Namespace == target.Object.Namespace && p.Name == target.Object.Name
		})
		target.Object.Namespace, target.Object.Name = redacted.Pods[i].Namespace, redacted.Pods[i].Name
	case api.KindClaim:
		i := slices.IndexFunc(snap.Claims, func(c *resourceapi.ResourceClaim) bool {
			return c.Namespace == target.Object.Namespace && c.Name == target.Object.Name
		})
		target.Object.Namespace, target.Object.Name = redacted.Claims[i].Namespace, redacted.Claims[i].Name
	default:
		return
	}
	e, err := c.explained(t, redacted, target)
	if err != nil {
		t.Errorf("%s: redacted: %v", c.ask, err)
		return
	}
	if e.Verdict != plain.Verdict || e.Stage != plain.Stage || (len(e.StageEvidence) > 0) != (len(plain.StageEvidence) > 0) || len(e.NextSteps) != len(plain.NextSteps) {
		t.Errorf("%s: redacted, the answer is another one:\n%s\nand not\n%s", c.ask, drawn(t, e, 100), drawn(t, plain, 100))
	}
}

func drawn(t *testing.T, e *api.Explanation, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := explanation.Full(&out, e, render.Options{Width: width}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// readFieldCases reads the comments at the start of a fixture.
func readFieldCases(path string) ([]fieldCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read field case: %w", err)
	}
	var cases []fieldCase
	for line := range strings.Lines(string(data)) {
		comment, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			break
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
		if key == "ask" {
			target, err := parseAsk(value)
			if err != nil {
				return nil, fmt.Errorf("read field case: %w", err)
			}
			cases = append(cases, fieldCase{ask: value, target: target})
			continue
		}
		if !slices.Contains([]string{"verdict", "stage", "code", "says", "not", "hurried"}, key) {
			continue
		}
		if len(cases) == 0 {
			return nil, fmt.Errorf("read field case: %q comes before the question", strings.TrimSpace(line))
		}
		c := &cases[len(cases)-1]
		switch key {
		case "verdict":
			c.verdict = api.Verdict(value)
		case "stage":
			c.stage = api.Stage(value)
		case "code":
			c.code = api.Code(value)
		case "says":
			c.says = append(c.says, value)
		case "not":
			c.not = append(c.not, value)
		case "hurried":
			c.hurried = value == "true"
		}
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("read field case: no line begins with %q", "# ask: ")
	}
	return cases, nil
}

// parseAsk reads "pod/train-0 -n ml". Kinds other than pod, claim and template
// are written as they are: "Deployment/web".
func parseAsk(ask string) (explain.Options, error) {
	words := strings.Fields(ask)
	if len(words) != 3 || words[1] != "-n" || !strings.Contains(words[0], "/") {
		return explain.Options{}, fmt.Errorf("%q is not of the form TYPE/NAME -n NAMESPACE", ask)
	}
	kind, name, _ := strings.Cut(words[0], "/")
	switch kind {
	case "pod":
		kind = api.KindPod
	case "claim":
		kind = api.KindClaim
	case "template":
		kind = api.KindTemplate
	}
	return explain.Options{Object: api.Ref(kind, words[2], name)}, nil
}
