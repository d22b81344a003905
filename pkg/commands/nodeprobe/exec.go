// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// lastWords is the grace period of a program on a node, which may have to undo its changes.
const lastWords = 10 * time.Second

// exec runs a program in the pod until it ends, and returns its exit code. When ctx ends,
// the program's input ends, which tells it to stop; its further output is printed, and its
// exit code counts if it ends in time.
func (p *probedPod) exec(ctx context.Context, command []string, out, errOut io.Writer) (code int, err error) {
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	input, open := io.Pipe()
	defer func() { _ = open.Close() }()
	stop := context.AfterFunc(ctx, func() {
		_ = open.Close()
		timer := time.AfterFunc(lastWords, cancel)
		context.AfterFunc(streaming, func() { timer.Stop() })
	})
	defer stop()
	code, err = p.stream(streaming, command, input, out, errOut)
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	default:
		return 0, fmt.Errorf("run kubectl-dra in pod %s: %w", p, err)
	}
}

// stream runs a command in the pod. An exit code is no error.
func (p *probedPod) stream(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (code int, err error) {
	executor, err := p.clients.Executor(p.object.Namespace, p.object.Name, &corev1.PodExecOptions{
		Container: probeContainer, Command: command, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return 0, err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	return 0, err
}

// put copies a file into the pod, which can be run there.
func (p *probedPod) put(ctx context.Context, path string, content io.Reader) error {
	counted := &countingReader{Reader: content}
	const script = `umask 077; cat >"$1" && chmod 700 "$1" && wc -c <"$1"`
	var out, errOut limitedBuffer
	code, err := p.stream(ctx, []string{"sh", "-c", script, "sh", path}, counted, &out, &errOut)
	switch {
	case err != nil:
		return fmt.Errorf("copy to %s in pod %s: %w", path, p, err)
	case code != 0:
		return fmt.Errorf("copy to %s in pod %s: exit code %d: %s", path, p, code, strings.TrimSpace(errOut.String()))
	case strings.TrimSpace(out.String()) != fmt.Sprint(counted.n):
		return fmt.Errorf("copy to %s in pod %s: %d bytes were sent and %q arrived", path, p, counted.n, strings.TrimSpace(out.String()))
	}
	return nil
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(data []byte) (int, error) {
	n, err := r.Reader.Read(data)
	r.n += int64(n)
	return n, err
}

// limitedBuffer keeps the beginning of the text written to it: an answering server may be
// anybody.
type limitedBuffer struct{ strings.Builder }

func (b *limitedBuffer) Write(data []byte) (int, error) {
	const most = 4096
	b.Builder.Write(data[:min(len(data), max(most-b.Len(), 0))])
	return len(data), nil
}
