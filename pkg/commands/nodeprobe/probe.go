// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/names"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// probeFlags are those of node-probe and all that is below it. They can stand
// before the name of a command, too.
type probeFlags struct {
	reading       *cli.ReadingFlags
	output        *cli.OutputFlags
	remote        *remoteFlags
	name          string
	root, kubelet string
	cdi           []string
}

// New makes the command node-probe, with those below it.
func New(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &probeFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(), remote: &remoteFlags{}}
	gpus := &gpuFlags{}
	cmd := &cobra.Command{
		Use:   "node-probe",
		Short: "Look at what a node really has",
		Long: `Look at everything on a node that stands between an allocated claim and a
running container: GPUs, the sockets of drivers, the kubelet's and the drivers'
checkpoints, CDI specs, what the kubelet gave to which pod, and the health that
drivers report. Each is compared with the others and with the cluster, if it
can be read.

It runs on the node, as root, or in a container that has the node's root mounted
(--node-root). With --node it does so by itself: it starts a privileged pod on
that node, copies this program into it, runs it there, and deletes the pod. The
pod sees all files of the node, read-only. 'kubectl dra node-probe --node NODE
--dry-run=client' prints it. The commands below work in the same way.

Nothing is changed on the node, unless prepare or unprepare are asked to. Each
thing looked at is marked ✓ (in order), ✗ (a problem) or ? (not known, and
why). The exit code is 0 if all is in order, 1 for a problem, 2 if something is
not known, 3 for wrong usage and 4 if the node could not be reached.`,
		Example: `  # On the node
  sudo kubectl-dra node-probe

  # From a workstation
  kubectl dra node-probe --node node-17

  # In a namespace that allows privileged pods, with an image that the node has
  kubectl dra node-probe plugins --node node-17 --pod-namespace kube-system \
    --image registry.example.com/busybox:1.37`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.probe(cmd, streams, func(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error) {
				report := nodeprobe.Probe(ctx, host, snap, nodeprobe.Options{Library: gpus.library})
				return report, report.Checks(), func(o render.Options) error { return render.NodeReport(streams.Out, report, o) }
			})
		},
	}
	gpus.addLibrary(cmd)
	for _, add := range []func(genericiooptions.IOStreams, *genericclioptions.ConfigFlags, *probeFlags) *cobra.Command{
		newGPUs, newPreview, newPlugins, newPrepare, newUnprepare, newHealth, newCDI, newPods, newState,
	} {
		cmd.AddCommand(add(streams, config, flags))
	}
	flags.addTo(cmd)
	flags.reach(cmd, streams)
	return cmd
}

// addTo adds the flags to node-probe and all that is below it.
func (f *probeFlags) addTo(cmd *cobra.Command) {
	shared := &cobra.Command{}
	cli.AddFlags(shared.Flags(), cli.GroupNode, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.root, "node-root", "", "`DIRECTORY` where the root of the node is mounted, such as /host in a container. (default /)")
		flags.StringVar(&f.kubelet, "kubelet-root", "", "Root `DIRECTORY` of the kubelet, as the node names it. (default "+node.DefaultKubelet+")")
		flags.StringArrayVar(&f.cdi, "cdi-dir", nil, "`DIRECTORY` with CDI specs, as the node names it. Can be repeated, the most important last. (default /etc/cdi and /var/run/cdi)")
		flags.StringVar(&f.name, "node-name", "", "`NAME` of the node in the cluster. (default: the node with the same boot ID, machine ID or host name)")
	})
	f.remote.addTo(shared)
	f.output.AddTo(shared)
	f.reading.AddTo(shared)
	cmd.PersistentFlags().AddFlagSet(shared.Flags())
	// It only fails if somebody registered one before.
	_ = cmd.RegisterFlagCompletionFunc("node", names.Complete(f.reading, names.Propose("node")))
}

// check refuses paths with which something else than the node would be looked at,
// and seem to be in order.
func (f *probeFlags) check() error {
	for _, flag := range []struct {
		name  string
		paths []string
	}{{"kubelet-root", []string{cmp.Or(f.kubelet, node.DefaultKubelet)}}, {"cdi-dir", f.cdi}} {
		for _, given := range flag.paths {
			if !path.IsAbs(given) {
				return cli.Usagef("Give the path on the node, starting with /.", "read --%s: %q is not an absolute path", flag.name, given)
			}
		}
	}
	if f.root == "" {
		return nil
	}
	switch info, err := os.Stat(f.root); {
	case err != nil:
		return cli.Usagef("Give the directory where the root of the node is mounted.", "read --node-root: %w", err)
	case !info.IsDir():
		return cli.Usagef("Give the directory where the root of the node is mounted.", "read --node-root: %s is not a directory", f.root)
	}
	return nil
}

// checkTimeout refuses not to wait at all.
func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return cli.Usagef("Give a time such as 5s.", "read --timeout: %s is not a valid timeout", timeout)
	}
	return nil
}

// host is the node that the flags name.
func (f *probeFlags) host() *node.Host {
	host := node.NewHost(f.root, f.kubelet, f.cdi)
	host.Name = f.name
	return host
}

// clusterReads are the resources that something on a node is compared with.
func clusterReads() []string {
	return []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClaims, snapshot.ResourceSlices}
}

// namespace is that of what the arguments name: of -n, else of the context if a cluster
// is read. It is empty if a file is, which may have it in any.
func (f *probeFlags) namespace(config *genericclioptions.ConfigFlags) (string, error) {
	if *config.Namespace != "" || len(f.reading.Paths) > 0 {
		return *config.Namespace, nil
	}
	namespace, _, err := snapshot.Kubeconfig(config).Namespace()
	if err != nil {
		return "", cli.Usagef("Check --kubeconfig and --context, or give -n.", "find the namespace: %w", err)
	}
	return namespace, nil
}

// cluster reads what nodes are compared with. Without a cluster it returns nil
// and says so: what a node has can be looked at all the same.
func (f *probeFlags) cluster(cmd *cobra.Command, streams genericiooptions.IOStreams) (*snapshot.Snapshot, error) {
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	from, err := reader.Read(cmd.Context(), cli.Scope{
		AllNamespaces: true,
		Only:          clusterReads(),
	})
	if err == nil {
		return from.Snap, noteUncompared(reader, from.Snap, streams)
	}
	if !reader.Live() || cmd.Context().Err() != nil {
		return nil, err
	}
	return nil, cli.PrintNotes(streams, "no cluster to compare with: "+err.Error()) //nolint:nilnil // no cluster is one of the answers
}

// noteUncompared says what of a cluster could not be read. A file for a node
// seldom has everything, and what matters of that is among the findings.
func noteUncompared(reader *cli.Reader, snap *snapshot.Snapshot, streams genericiooptions.IOStreams) error {
	if !reader.Live() {
		return nil
	}
	for _, gap := range snap.Gaps {
		if err := cli.PrintNotes(streams, "not all can be compared: "+gap.Reason); err != nil {
			return err
		}
	}
	return nil
}

// print gives findings out and turns their checks into the exit code.
func (f *probeFlags) print(streams genericiooptions.IOStreams, findings runtime.Object, checks []node.Check, draw func(render.Options) error) error {
	printer, err := f.output.ToPrinter(streams)
	if err != nil {
		return err
	}
	if printer.Names {
		return cli.Usagef("Allowed are wide, json, yaml and templates.", "-o name: findings on a node have no name")
	}
	if printer.Machine != nil {
		err = printer.Machine.PrintObj(findings, streams.Out)
	} else {
		err = draw(printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print what was found: %w", err)
	}
	switch node.Worst(checks) {
	case node.Problem:
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case node.Unknown:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	case node.OK:
		return nil
	default:
		return nil
	}
}

// probe runs one of the commands: it reads the cluster, looks and prints.
func (f *probeFlags) probe(cmd *cobra.Command, streams genericiooptions.IOStreams,
	look func(context.Context, *node.Host, *snapshot.Snapshot) (runtime.Object, []node.Check, func(render.Options) error),
) error {
	if _, err := f.output.ToPrinter(streams); err != nil {
		return err
	}
	snap, err := f.cluster(cmd, streams)
	if err != nil {
		return err
	}
	findings, checks, draw := look(cmd.Context(), f.host(), snap)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return f.print(streams, findings, checks, draw)
}

// localOnly are the flags that have done their part when the program runs on
// the node: they say how to get there, and what to bring.
func localOnly(flag *pflag.Flag) bool {
	if of := cli.GroupOf(flag); of == cli.GroupCluster || of == cli.GroupRemote {
		return true
	}
	return slices.Contains([]string{"snapshot", "node-root", "node-name", "color", "help"}, flag.Name)
}
