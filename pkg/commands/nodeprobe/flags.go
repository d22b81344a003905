// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// probeFlags are the flags of node-probe and of all commands below it. They can stand
// before the name of a command, too.
type probeFlags struct {
	reading       *cli.ReadingFlags
	output        *cli.OutputFlags
	remote        *remoteFlags
	name          string
	root, kubelet string
	cdi           []string
	// version is the version of the program.
	version string
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
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("node", cli.CompleteWith(f.reading, cli.Propose("node")))
}

// check refuses paths with which something else than the node would be looked at, and seem
// OK.
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

// checkTimeout refuses a timeout of zero.
func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return cli.Usagef("Give a time such as 5s.", "read --timeout: %s is not a valid timeout", timeout)
	}
	return nil
}

// host returns the node that the flags name.
func (f *probeFlags) host() *node.Host {
	host := node.NewHost(f.root, f.kubelet, f.cdi)
	host.Name = f.name
	return host
}

// clusterReads returns the resources that a node is compared with.
func clusterReads() []string {
	return []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClaims, snapshot.ResourceSlices}
}

// namespace returns the namespace of the arguments: of -n, else of the context if a cluster
// is read. It is empty if a file is read, where names may have any namespace.
func (f *probeFlags) namespace(config *genericclioptions.ConfigFlags) (string, error) {
	if *config.Namespace != "" || len(f.reading.Paths) > 0 {
		return *config.Namespace, nil
	}
	namespace, _, err := collect.Kubeconfig(config).Namespace()
	if err != nil {
		return "", cli.Usagef("Check --kubeconfig and --context, or give -n.", "find the namespace: %w", err)
	}
	return namespace, nil
}

// cluster reads the cluster to compare with. Without a cluster it returns nil and says so:
// a node can be looked at all the same.
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

// noteUncompared notes the gaps in the cluster. A file for a node seldom has everything,
// and relevant gaps are among the findings.
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

// print prints findings and turns their checks into the exit code.
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

// remoteFlags say how to reach a node.
type remoteFlags struct {
	node      string
	namespace string
	image     string
	binary    string
	lifetime  time.Duration
	dryRun    string
}

const (
	// DefaultImage is the image of the Kubernetes tests, so that clusters that can pull
	// Kubernetes can pull it. It has a shell and the commands to copy a file.
	DefaultImage = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
	// defaultLifetime is for a pod that nobody could delete.
	defaultLifetime = 15 * time.Minute
)

func (f *remoteFlags) addTo(cmd *cobra.Command) {
	cli.AddFlags(cmd.Flags(), cli.GroupRemote, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.node, "node", "", "Run on this `NODE` of the cluster, in a privileged pod.")
		flags.StringVar(&f.namespace, "pod-namespace", "", "`NAMESPACE` of the pod; it has to allow privileged pods. Without it, that of -n or of the context.")
		flags.StringVar(&f.image, "image", DefaultImage, "`IMAGE` of the pod. It needs sh, cat, wc, chmod and sleep. Without it, the busybox of the tests of Kubernetes (registry.k8s.io).")
		// The name is longer than a line of the help.
		flags.Lookup("image").DefValue = ""
		flags.StringVar(&f.binary, "binary", "", "Run this `FILE`, a kubectl-dra for Linux and the architecture of the node. Without it, this program itself.")
		flags.DurationVar(&f.lifetime, "pod-lifetime", defaultLifetime, "The node stops the pod after this `DURATION`, even if it is not deleted.")
		flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "`MODE`: client prints the pod and starts nothing, none starts it.")
	})
}

// given returns the first of the flags that was given without --node.
func (f *remoteFlags) given(cmd *cobra.Command) string {
	for _, flag := range []string{"image", "binary", "pod-namespace", "pod-lifetime"} {
		if cmd.Flags().Changed(flag) {
			return flag
		}
	}
	if f.dryRun != cli.DryRunNone {
		return "dry-run"
	}
	return ""
}
