// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// reportQuestion is a question about a file in reports, and what the answer has to say.
type reportQuestion struct {
	// Ask is the command line without the program.
	Ask string `json:"ask"`
	// Says and Never are regular expressions that are found in the output, and are not.
	Says  []string `json:"says"`
	Never []string `json:"never"`
	// Exit are the exit codes that are right; any is if there are none.
	Exit []int `json:"exit"`
}

// TestReports asks about clusters and manifests of public bug reports.
func TestReports(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("reports", "questions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var questions map[string]reportQuestion
	if err := yaml.UnmarshalStrict(text, &questions); err != nil {
		t.Fatal(err)
	}
	program := programFor(t, os.DevNull)
	for name, question := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program.path, strings.Fields(question.Ask)...)
			cmd.Dir, cmd.Env = "reports", append(slices.Clone(program.env), "COLUMNS=")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); len(question.Exit) > 0 && !slices.Contains(question.Exit, code) {
				t.Errorf("exit code %d, want one of %v", code, question.Exit)
			}
			for _, want := range question.Says {
				if !regexp.MustCompile("(?m)" + want).Match(out) {
					t.Errorf("it does not say %s", want)
				}
			}
			for _, never := range question.Never {
				if found := regexp.MustCompile("(?m)" + never).Find(out); found != nil {
					t.Errorf("it says %q (%s)", found, never)
				}
			}
			if t.Failed() {
				t.Logf("kubectl dra %s\n%s", question.Ask, out)
			}
		})
	}
}
