// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// reach makes a command and its subcommands run on another node if --node says so.
func (f *probeFlags) reach(cmd *cobra.Command, streams genericiooptions.IOStreams) {
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.remote.node == "" {
			if flag := f.remote.given(cmd); flag != "" {
				return cli.Usagef("Say on which node with --node.", "--%s is for another node", flag)
			}
			if err := f.check(); err != nil {
				return err
			}
			return here(cmd, args)
		}
		remote, err := f.toRemote(cmd, args, streams)
		if err != nil {
			return err
		}
		if f.remote.dryRun == cli.DryRunClient {
			return remote.printPod(f.output)
		}
		return remote.run(cmd.Context())
	}
	for _, child := range cmd.Commands() {
		f.reach(child, streams)
	}
}

func (f *probeFlags) toRemote(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*remoteRun, error) {
	r := f.remote
	switch {
	case r.dryRun != cli.DryRunNone && r.dryRun != cli.DryRunClient:
		return nil, cli.NotAllowed("dry-run", r.dryRun, []string{cli.DryRunNone, cli.DryRunClient})
	case cmd.Flags().Changed("node-root"), cmd.Flags().Changed("node-name"):
		return nil, cli.Usagef("Leave them out.", "--node-root and --node-name are for a program that runs on the node; --node replaces both")
	case r.image == "":
		return nil, cli.Usagef("Leave it out for "+DefaultImage+".", "read --image: it is empty")
	case r.lifetime < time.Second:
		return nil, cli.Usagef("A minute is enough for most.", "read --pod-lifetime: %s is too short", r.lifetime)
	case len(validation.IsDNS1123Subdomain(r.node)) > 0:
		return nil, cli.Usagef("List them: kubectl get nodes", "read --node: %q is not a valid node name", r.node)
	}
	if _, err := f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	color, err := cli.UseColor(f.output.Color, streams.Out)
	if err != nil {
		return nil, err
	}
	home, _, err := collect.Kubeconfig(reader.Config).Namespace()
	if err != nil {
		return nil, cli.Usagef("Check --kubeconfig and --context.", "read namespace from kubeconfig: %w", err)
	}
	namespace := r.namespace
	if namespace == "" {
		namespace = home
	}
	run := &remoteRun{
		reader:  reader,
		streams: streams,
		node:    r.node,
		binary:  r.binary,
		pod:     probePod(r.node, namespace, r.image, r.lifetime),
		command: commandNames(cmd),
		flags:   forwarded(cmd),
		args:    args,
		color:   color,
	}
	if width := cli.OutputWidth(streams.Out); width != cli.WidthWithoutTerminal {
		run.columns = fmt.Sprint(width)
	}
	if reader.Namespace != "" || len(args) > 0 {
		// Names in the arguments are in this namespace.
		run.flags = append(run.flags, "--namespace="+home)
	}
	choice := cli.ColorNever
	if color {
		choice = cli.ColorAlways
	}
	run.flags = append(run.flags, "--color="+choice, "--node-root="+probeHost, "--node-name="+r.node)
	return run, nil
}

// commandNames returns the names from the root to a command, without the root.
func commandNames(cmd *cobra.Command) []string {
	var names []string
	for c := cmd; c.HasParent(); c = c.Parent() {
		names = append(names, c.Name())
	}
	slices.Reverse(names)
	return names
}

// forwarded returns the flags for the program on the node.
func forwarded(cmd *cobra.Command) []string {
	var flags []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if localOnly(flag) {
			return
		}
		values := []string{flag.Value.String()}
		if flag.Value.Type() == "stringToString" {
			// It prints itself in brackets, and does not parse them.
			values[0] = strings.Trim(values[0], "[]")
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			flags = append(flags, "--"+flag.Name+"="+value)
		}
	})
	return flags
}

// localOnly reports whether a flag is not passed to the program on the node: it says how to
// get there, and what to bring.
func localOnly(flag *pflag.Flag) bool {
	if of := cli.GroupOf(flag); of == cli.GroupCluster || of == cli.GroupRemote {
		return true
	}
	return slices.Contains([]string{"snapshot", "node-root", "node-name", "color", "help"}, flag.Name)
}

// remoteRun is one run of this program on a node.
type remoteRun struct {
	reader  *cli.Reader
	streams genericiooptions.IOStreams
	node    string
	pod     *corev1.Pod
	// binary is the file to run, empty for this program itself.
	binary string
	// command is the name of the command below the root, flags and args are for
	// the program on the node.
	command, flags, args []string
	color                bool
	columns              string
}

// printPod prints the pod for --dry-run=client.
func (r *remoteRun) printPod(output *cli.OutputFlags) error {
	var printer printers.ResourcePrinter = &cli.YAMLPrinter{}
	if output.Output != "" && output.Output != "wide" {
		var err error
		if printer, err = output.PrintFlags.ToPrinter(output.Formats()...); err != nil {
			return err
		}
	}
	if err := printer.PrintObj(r.pod, r.streams.Out); err != nil {
		return fmt.Errorf("print the pod: %w", err)
	}
	return nil
}

// run starts the pod, runs the program in it and deletes it, whatever happens in between.
// The program's output is printed here, and its exit code is the outcome.
func (r *remoteRun) run(ctx context.Context) (err error) {
	clients, err := collect.NewClients(r.reader.Config)
	if err != nil {
		return cli.Usagef("Check --kubeconfig, --context and the other flags.", "%w", err)
	}
	if err := checkProbeRights(ctx, clients, r.pod.Namespace); err != nil {
		return err
	}
	target, err := clients.Nodes().Get(ctx, r.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return cli.NotFound("node", r.node, clients.Address())
	case err != nil:
		return fmt.Errorf("read node %s: %w", r.node, err)
	}
	binary, err := binaryFor(target, r.binary)
	if err != nil {
		return err
	}
	cluster, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	pod := &probedPod{clients: clients, object: r.pod}
	if err := pod.create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pod.delete(ctx)) }()
	if err := pod.waitRunning(ctx); err != nil {
		return err
	}
	program, snapshotFile := probeDir+"/kubectl-dra", probeDir+"/cluster.json.gz"
	file, err := os.Open(binary)
	if err != nil {
		return fmt.Errorf("open the program to run on node %s: %w", r.node, err)
	}
	defer func() { _ = file.Close() }()
	if err := pod.put(ctx, program, file); err != nil {
		return err
	}
	if err := pod.put(ctx, snapshotFile, bytes.NewReader(cluster)); err != nil {
		return err
	}
	out, errOut := render.Foreign(r.streams.Out, r.color), render.Foreign(r.streams.ErrOut, false)
	code, err := pod.exec(ctx, r.line(program, snapshotFile), out, errOut)
	if err := errors.Join(err, out.Close(), errOut.Close()); err != nil {
		return err
	}
	return r.outcome(code)
}

// line returns the command for the pod. The program is told to stop when nobody reads any
// more: the connection ends with this program, however it ends. The pod ends then, too,
// once the program's remaining output had time to get out.
func (r *remoteRun) line(program, snapshotFile string) []string {
	const script = `[ -z "$1" ] || export COLUMNS="$1"
shift
exec 3<&0
"$@" </dev/null 3<&- & program=$!
{
  cat <&3
  kill -TERM $program
  while kill -0 $program; do sleep 1; done
  sleep 2
  kill -TERM 1
} >/dev/null 2>&1 &
wait $program`
	line := append([]string{"sh", "-c", script, "sh", r.columns, program}, r.command...)
	line = append(line, r.flags...)
	line = append(line, "--snapshot="+snapshotFile)
	if len(r.args) > 0 {
		line = append(append(line, "--"), r.args...)
	}
	return line
}

// cluster returns the snapshot for the program on the node, read with the rights of the
// user: the program there has none.
func (r *remoteRun) cluster(ctx context.Context) ([]byte, error) {
	from, err := r.reader.Read(ctx, cli.Scope{AllNamespaces: true, Only: clusterReads()})
	if err != nil {
		return nil, err
	}
	if err := noteUncompared(r.reader, from.Snap, r.streams); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	packed := gzip.NewWriter(&buf)
	if err := errors.Join(files.Write(packed, from.Snap, files.JSON), packed.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// outcome returns the exit code of the program on the node as this program's.
func (r *remoteRun) outcome(code int) error {
	switch {
	case code == cli.ExitFits:
		return nil
	case code <= cli.ExitFailure:
		return &cli.OutcomeError{Code: code}
	case code == 126, code == 127:
		return &notRunnableError{node: r.node, image: r.pod.Spec.Containers[0].Image, code: code}
	default:
		return fmt.Errorf("run kubectl-dra on node %s: it ended with exit code %d; the node ends it after --pod-lifetime, or when memory runs out", r.node, code)
	}
}

// notRunnableError means that the image of the pod cannot start the program.
type notRunnableError struct {
	node, image string
	code        int
}

func (e *notRunnableError) Error() string {
	return fmt.Sprintf("run kubectl-dra on node %s: it cannot be started in image %s (exit code %d)\n"+
		"A program that was built with cgo needs an image with the C library; choose one with --image, or a static program with --binary.",
		e.node, e.image, e.code)
}

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
