// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
)

// LookOptions choose a node and the way to it. The fields are the values of the flags.
type LookOptions struct {
	Node, Namespace, Image, Binary, KubeletRoot string
	CDIDirs                                     []string
}

// maxLook limits the size of a report.
const maxLook = 64 << 20

// Look does 'node-probe --node' for other verbs: it runs the program on a node, in a
// privileged pod, and returns its report.
func Look(ctx context.Context, reader *cli.Reader, o *LookOptions) (*nodeprobe.Report, error) {
	out := &boundedBuffer{most: maxLook}
	run := &remoteRun{
		reader: reader, streams: genericiooptions.IOStreams{In: bytes.NewReader(nil), Out: out, ErrOut: io.Discard},
		node: o.Node, binary: o.Binary, pod: probePod(o.Node, o.Namespace, o.Image, defaultLifetime),
		command: []string{"node-probe"},
		flags:   []string{"--output=json", "--color=" + cli.ColorNever, "--node-root=" + probeHost, "--node-name=" + o.Node},
	}
	if o.KubeletRoot != "" {
		run.flags = append(run.flags, "--kubelet-root="+o.KubeletRoot)
	}
	for _, dir := range o.CDIDirs {
		run.flags = append(run.flags, "--cdi-dir="+dir)
	}
	var outcome *cli.OutcomeError
	if err := run.run(ctx); err != nil && !errors.As(err, &outcome) {
		return nil, err
	}
	report := &nodeprobe.Report{}
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		return nil, fmt.Errorf("read what node-probe found on node %s: %w", o.Node, err)
	}
	return report, nil
}

// boundedBuffer fails when too much is written to it.
type boundedBuffer struct {
	bytes.Buffer
	most int
}

func (b *boundedBuffer) Write(data []byte) (int, error) {
	if b.Len()+len(data) > b.most {
		return 0, fmt.Errorf("expected at most %d MiB", b.most>>20)
	}
	return b.Buffer.Write(data)
}
