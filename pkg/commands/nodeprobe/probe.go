// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// New returns the command node-probe with its subcommands. The version is the program's.
func New(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	flags := &probeFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(), remote: &remoteFlags{}, version: version}
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
				return report, report.Checks(), func(o render.Options) error { return writeReport(streams.Out, report, o) }
			})
		},
	}
	gpus.addLibrary(cmd)
	flags.addTo(cmd)
	for _, add := range []func(genericiooptions.IOStreams, *genericclioptions.ConfigFlags, *probeFlags) *cobra.Command{
		newGPUs, newPreview, newPlugins, newPrepare, newUnprepare, newConform, newHealth, newCDI, newPods, newState,
	} {
		cmd.AddCommand(add(streams, config, flags))
	}
	flags.reach(cmd, streams)
	return cmd
}

// writeReport writes the report of a node: a line for each check, with the evidence if it
// is not OK. Where many checks of a kind are OK, only wide shows all of them.
func writeReport(w io.Writer, r *nodeprobe.Report, opts render.Options) error {
	p := newPage(opts)
	name := "This node"
	if r.Node != "" {
		name = "Node " + r.Node
	}
	p.Text(0, render.Strong, name+": "+checkCounts(r.Checks()))
	p.Text(2, render.Faint, fmt.Sprintf("root %s, kubelet %s, CDI %s", r.Paths.Root, r.Paths.Kubelet, strings.Join(r.Paths.CDI, " and ")))
	p.Blank()
	for _, section := range r.Sections() {
		p.section(section.Name, section.Checks)
	}
	return p.write(w)
}

// section draws the checks of one part beside its name.
func (p *page) section(name string, checks []node.Check) {
	if len(checks) == 0 {
		p.Row(0, render.Cell{Text: name, Width: sectionWidth, Mark: render.Strong}, render.Cell{Text: "-", Width: markWidth}, render.Cell{Text: "nothing to check"})
		return
	}
	fine := map[string]int{}
	for i := range checks {
		c := checks[i]
		if c.State == node.OK {
			fine[c.Name]++
		}
	}
	shown := map[string]int{}
	for i := range checks {
		c := checks[i]
		if c.State == node.OK && !p.Opts.Wide && fine[c.Name] > shownOfKind+1 {
			if shown[c.Name]++; shown[c.Name] > shownOfKind+1 {
				continue
			} else if shown[c.Name] > shownOfKind {
				c = node.Good(c.Name, "", "and %d more of this kind", fine[c.Name]-shownOfKind)
			}
		}
		p.check(sectionWidth+render.ColumnGap, &c, render.Cell{Text: name, Width: sectionWidth, Mark: render.Strong})
		name = ""
	}
}

// check draws one check: its mark, message, paths, and the values that prove it. before are
// cells to its left, indent is their width.
func (p *page) check(indent int, c *node.Check, before ...render.Cell) {
	text := c.Message
	if c.Path != "" && !strings.Contains(c.Message, c.Path) {
		text = c.Path + ": " + text
	}
	p.Row(0, append(before, nodeSign(c.State), render.Cell{Text: text})...)
	if c.Found != "" || c.Required != "" {
		p.Row(indent+markWidth+render.ColumnGap, render.Cell{Text: "found", Width: len("required"), Mark: render.Faint}, render.Cell{Text: cmp.Or(c.Found, "nothing")})
		if c.Required != "" {
			p.Row(indent+markWidth+render.ColumnGap, render.Cell{Text: "required", Width: len("required"), Mark: render.Faint}, render.Cell{Text: c.Required})
		}
	}
}
