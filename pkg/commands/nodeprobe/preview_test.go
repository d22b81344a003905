// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

func TestNodeProbePreviewNames(t *testing.T) {
	preview := func(args ...string) (out, said string, code int) {
		var stdout, stderr bytes.Buffer
		args = append([]string{"node-probe", "preview", "--simulate", "dgx-h100", "-o", "name"}, args...)
		code = commands.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, commands.Build{})
		return stdout.String(), stderr.String(), code
	}
	if out, said, code := preview(); code != 0 || out != "resourceslice.resource.k8s.io/dgx-h100-gpu.nvidia.com-0\n" {
		t.Errorf("exit code %d, %s%s", code, out, said)
	}
	if out, said, code := preview("--diff"); code != cli.ExitUsage || out != "" || !strings.Contains(said, "differences have no name") {
		t.Errorf("exit code %d, %s%s", code, out, said)
	}
}
