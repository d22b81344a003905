// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestWrap breaks a command only where a shell and a reader of JSON take blanks.
func TestWrap(t *testing.T) {
	command := `kubectl -n research patch resourceclaimtemplate eight-gpus --type=json -p '[{"op": "replace", "path": "/spec/x", "value": 4}]' --dry-run "a b" c\ d`
	lines := Wrap(command, 40)
	if len(lines) < 5 {
		t.Fatalf("only %q", lines)
	}
	for _, line := range lines {
		if len(line) > 40 {
			t.Errorf("too long: %q", line)
		}
	}
	if got, want := shellWords(t, strings.Join(lines, "\n")), shellWords(t, command); !slices.Equal(got, want) {
		t.Errorf("pasted it is %q, want %q", got, want)
	}
}

// TestIndented gives room of the margin to the long part of a command.
func TestIndented(t *testing.T) {
	command := `kubectl patch -p '[{"path":"/spec/devices/requests/0/exactly/count"}]'`
	const long = `  "/spec/devices/requests/0/exactly/count"}]'`
	for width, want := range map[int]string{50: "    " + long, 46: " " + long, 30: long} {
		got := Indented(command, 4, width)
		if got[0] != `    kubectl patch -p \` || got[len(got)-1] != want {
			t.Errorf("for a width of %d it is %q, want %q last", width, got, want)
		}
	}
}

// shellWords returns the words of a command as a shell takes them, with JSON in its shortest form.
func shellWords(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(out), "\x00")
	for i, word := range words {
		var short bytes.Buffer
		if json.Compact(&short, []byte(word)) == nil {
			words[i] = short.String()
		}
	}
	return words
}

// TestLines draws bars that are as long as their shares, on any width.
func TestLines(t *testing.T) {
	e := &api.Explanation{
		Summary: "Request gpus needs 8 devices.", Outlook: &api.Outlook{Message: "Never on these nodes."},
		Claims: []api.ClaimExplanation{{Requests: []api.RequestExplanation{{
			Name: "gpus", DeviceClass: "gpu.example.com", Needs: 8, Considered: 100, Eligible: 10, MostOnOneNode: 4, BestNode: "gpu-03",
			EligibleDevices: []string{"many"},
			Rejected: []api.Rejection{
				{Code: api.ClassSelectorFalse, Count: 40},
				{Code: api.DeviceAllocated, Label: "allocated", Count: 30, Where: "3 nodes", Devices: []string{"many"}},
				{Code: api.DeviceTainted, Label: "tainted\x1b[2J", Count: 20},
			},
		}}}},
		Remedies: []api.Remedy{{Actor: api.ActorUser, Change: "request 4 devices", Node: "gpu-03", Commands: []string{"kubectl -n research patch resourceclaimtemplate eight-gpus --type=json"}}},
	}
	l := NewLook(func(string) string { return "" })
	lines := BriefLines(&l, Trim(e), 48)
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
	}
	want := []string{
		"Request gpus needs 8 devices.",
		"",
		"What would make it fit",
		"1 you   request 4 devices (fits on gpu-03)",
		`    kubectl -n research patch \`,
		`      resourceclaimtemplate eight-gpus \`,
		"      --type=json",
		"",
		"Outlook: Never on these nodes.",
		"",
		"Request gpus: 8 devices of gpu.example.com",
		" 60 ████████████ devices of the class",
		"-30 ██████       allocated (3 nodes)",
		"-20 ████         tainted\\x1b[2J",
		" 10 ██           available, at most 4 on one",
		"                 node (gpu-03)",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("it is\n%s", strings.Join(lines, "\n"))
	}
	for _, width := range []int{10, 20, 44, 80} {
		for _, line := range BriefLines(&l, Trim(e), width) {
			if got := ansi.StringWidth(line); got > max(width, 44) {
				t.Errorf("a line is %d wide of %d: %q", got, width, line)
			}
		}
	}
}

// TestLongNumbers writes the numbers of a fleet with commas, below each other.
func TestLongNumbers(t *testing.T) {
	e := &api.Explanation{Claims: []api.ClaimExplanation{{Requests: []api.RequestExplanation{{
		Name: "gpu", DeviceClass: "gpu.example.com", Needs: 1, Considered: 2550, Eligible: 1524,
		Rejected: []api.Rejection{{Code: api.DeviceAllocated, Label: "allocated", Message: "by 4 claims", Count: 1026}},
	}}}}}
	l := NewLook(func(string) string { return "" })
	text := ansi.Strip(strings.Join(BriefLines(&l, Trim(e), 44), "\n"))
	for _, want := range []string{"\n 2,550 █", "\n-1,026 █", "\n 1,524 █"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// TestRowsOfOneCheck covers two rows of the same check: they are one bar.
func TestRowsOfOneCheck(t *testing.T) {
	e := &api.Explanation{Claims: []api.ClaimExplanation{{Requests: []api.RequestExplanation{{
		Name: "part", DeviceClass: "part.example.com", Needs: 1, Considered: 30,
		Rejected: []api.Rejection{
			{Code: api.CountersExhausted, Label: "counters", Message: "1 of 7 available in counter slices", Count: 20, Where: "2 nodes"},
			{Code: api.DeviceAllocated, Label: "allocated", Message: "by 4 claims", Count: 4},
			{Code: api.CountersExhausted, Label: "counters", Message: "0 of 8 available in counter memory", Count: 6, Where: "gpu-01"},
		},
	}}}}}
	l := NewLook(func(string) string { return "" })
	var rows []string
	for _, line := range BriefLines(&l, Trim(e), 80) {
		if line = strings.Join(strings.Fields(strings.ReplaceAll(ansi.Strip(line), "█", "")), " "); strings.HasPrefix(line, "-") {
			rows = append(rows, line)
		}
	}
	if want := []string{"-26 counters (2 nodes, gpu-01)", "-4 allocated"}; !slices.Equal(rows, want) {
		t.Errorf("rows are %q, want %q", rows, want)
	}
}
