// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestComparison runs the commands of the comparison with kubectl in
// examples/README.md, in a shell and on a real cluster of one node, as a reader
// would, and compares what they print, but for times. With -update that is
// written again.
func TestComparison(t *testing.T) {
	const begin, end = "<!-- comparison -->\n\n```text\n", "```\n"
	path := filepath.Join("..", "examples", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	have, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no comparison", path)
	}

	c := startCluster(t, controlplane.Options{})
	mustDo(t, func() error {
		room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
		_, err := c.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		}, metav1.CreateOptions{})
		return err
	})
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shell := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "COLUMNS=100", "NO_COLOR=1",
			"PATH="+strings.Join([]string{builtProgram(t), binaries, os.Getenv("PATH")}, string(filepath.ListSeparator)))
		// The exit code of why says that it does not fit.
		out, _ := cmd.CombinedOutput()
		return string(out)
	}

	var got strings.Builder
	for line := range strings.Lines(have) {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			continue
		}
		got.WriteString(line)
		got.WriteString(shell(command))
		if strings.Contains(command, "live/pod.yaml") {
			// The scheduler has its say before the next command, and the pod has an age.
			if err := poll(t.Context(), func() bool {
				return strings.Contains(shell("kubectl get events"), "FailedScheduling") && !strings.Contains(shell("kubectl get pod train"), " 0s")
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if timeless(got.String()) == timeless(have) {
		return
	}
	if !golden.FlagUpdate() {
		t.Fatalf("the commands print something else (run: go test ./test -run TestComparison -update), -document +cluster:\n%s", cmp.Diff(timeless(have), timeless(got.String())))
	}
	if err := os.WriteFile(path, []byte(before+begin+got.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// timeless removes times, ages, the gaps that depend on their width, and how often the
// scheduler said the same.
func timeless(text string) string {
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z|\b(\d+[hms])+\b|<unknown>`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`TIME( \(x\d+ over TIME\))? +`).ReplaceAllString(text, "TIME ")
}
