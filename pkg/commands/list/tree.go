// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type treeOptions struct {
	reader        *cli.Reader
	starts        []treeStart
	allNamespaces bool
	machine       printers.ResourcePrinter
	// names prints the objects alone.
	names bool
	// limit is how many trees to print; 0 for all. text says how they are drawn, and terminal
	// whether the output is a terminal.
	limit    int
	text     render.Options
	terminal bool
	streams  genericiooptions.IOStreams
}

// treeStart is the root of a tree. Without a kind it is a claim, or a pod if there is no
// claim of that name.
type treeStart struct{ kind, name string }

// NewTree returns the verb that shows how pods, claims, devices and nodes are related.
func NewTree(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	reading := cli.NewReadingFlags(config)
	output := cli.NewOutputFlags(cli.FormatSVG, cli.FormatDOT, cli.FormatMermaid)
	allNamespaces, limit := false, 0
	cmd := &cobra.Command{
		Use:   "tree [NAME | TYPE/NAME ...]",
		Short: "Show how pods, claims, devices and nodes are related",
		Long: `Show related objects as a tree, from any starting point: pod/NAME,
claim/NAME, class/NAME, device/DRIVER/POOL/DEVICE, pool/DRIVER/POOL or
node/NAME. A NAME alone is a claim, or a pod if there is no claim of that name.
Below a pod or claim are devices, slices and nodes; below a node, a pool or a
device the claims and pods that use it. A claim that names a ComputeDomain has
its nodes below, with their cliques. 'node/' is all nodes. Of
pools for several nodes, a node has only the number of devices. A question mark
after the state of a device means that it is not certain, because you are not
permitted to list the claims of all namespaces.

A node, and a class, also show the extended resources: what a device plugin has
of each, and what a DeviceClass has of the same name. Where a node has a device
plugin for it, the scheduler uses only the device plugin.

Without a starting point, there is a tree for each pod with claims; a terminal
shows as many as there is room for, and the number of the others. -o name
lists the API objects in the trees, each once.`,
		Example: `  # The devices of a pod
  kubectl dra tree pod/ablation-0 -n research

  # Who uses the devices of a node?
  kubectl dra tree node/gpu-02

  # What do device plugins have, and what is served by DRA?
  kubectl dra tree node/

  # Who has this device?
  kubectl dra tree device/gpu.example.com/gpu-02/gpu-4

  # All pods with claims
  kubectl dra tree -A`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := &treeOptions{allNamespaces: allNamespaces, limit: limit, streams: streams}
			var err error
			if o.starts, err = parseStarts(args); err != nil {
				return err
			}
			if o.reader, err = reading.ToReader(cmd, streams); err != nil {
				return err
			}
			printer, err := output.ToPrinter(streams)
			if err != nil {
				return err
			}
			o.machine, o.names = printer.Machine, printer.Names
			if limit < 0 {
				return cli.Usagef("0 stands for all.", "read --limit: %d is negative", limit)
			}
			_, o.terminal = cli.Terminal(streams.Out)
			if o.text = printer.Text; printer.Text.Wide || cmd.Flags().Changed("limit") {
				o.text.Height = 0
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the pods of all namespaces.")
	output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.IntVar(&limit, "limit", 0, "Print only the first `N` trees, 0 for all. Without the flag, those that fit a terminal, and all elsewhere and with -o wide.")
	})
	reading.AddTo(cmd)
	cli.CompleteFlags(reading, cmd)
	cmd.ValidArgsFunction = cli.CompleteWith(reading, proposeStarts)
	return cmd
}

const whatTreesAre = "Write pod/NAME, claim/NAME, class/NAME, device/DRIVER/POOL/DEVICE, pool/DRIVER/POOL, node/NAME or node/ for all nodes."

func parseStarts(args []string) ([]treeStart, error) {
	starts := make([]treeStart, 0, len(args))
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok && arg != "" && !cli.IsType(arg) {
			starts = append(starts, treeStart{name: arg})
			continue
		}
		if !ok {
			return nil, cli.Usagef(whatTreesAre, "parse %q: not of the form TYPE/NAME", arg)
		}
		start, err := parseStart(kind, name)
		if err != nil {
			return nil, err
		}
		if start.name == "" && start.kind != "node" {
			return nil, cli.Usagef(whatTreesAre, "parse %q: not of the form TYPE/NAME", arg)
		}
		starts = append(starts, start)
	}
	return starts, nil
}

// parseStart parses the type, in all its forms.
func parseStart(kind, name string) (treeStart, error) {
	switch strings.ToLower(kind) {
	case "pod", "pods", "po":
		return treeStart{"pod", name}, nil
	case "claim", "claims", "resourceclaim", "resourceclaims":
		return treeStart{"claim", name}, nil
	case "class", "classes", "deviceclass", "deviceclasses":
		return treeStart{"class", name}, nil
	case "device", "devices":
		return treeStart{"device", name}, nil
	case "pool", "pools":
		return treeStart{"pool", name}, nil
	case "node", "nodes", "no":
		return treeStart{"node", name}, nil
	default:
		return treeStart{}, cli.Usagef(whatTreesAre, "parse %q: a tree cannot start with a %s", kind+"/"+name, kind)
	}
}

// treeReads returns the resources of trees.
func treeReads() []string {
	return inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourcePodGroups, snapshot.ResourceClasses, snapshot.ResourceTemplates,
		snapshot.ResourceComputeDomains, snapshot.ResourceCliques)
}

func (o *treeOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: o.allNamespaces, Only: treeReads()})
	if err != nil {
		return err
	}
	have := newListed(from, nil)
	var trees []api.Branch
	for _, start := range o.starts {
		if start.kind == "node" && start.name == "" {
			for _, node := range have.inventory.NodeNames() {
				tree, err := have.inventory.Trees().Node(ctx, node)
				if err != nil {
					return err
				}
				trees = append(trees, tree)
			}
			continue
		}
		if start.kind == "" {
			if start.kind = map[string]string{api.KindPod: "pod"}[cli.BareKind(from.Snap, from.Namespace, start.name)]; start.kind == "" {
				start.kind = "claim"
			}
			if start.kind == "pod" && from.Snap.Gap(snapshot.ResourceClaims) == nil {
				have.notes = append(have.notes, cli.TookPod(start.name))
			}
		}
		tree, err := have.tree(ctx, start)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	if len(o.starts) == 0 {
		for _, pod := range from.Snap.Pods {
			if (o.allNamespaces || from.Namespace == "" || pod.Namespace == from.Namespace) && usesClaims(pod) {
				trees = append(trees, have.inventory.Trees().Pod(pod))
			}
		}
		if len(trees) == 0 && len(o.gapsIn(have)) == 0 {
			if err := from.AbsentNamespace(ctx, from.Namespace); err != nil && !o.allNamespaces {
				return err
			}
			if _, err := fmt.Fprintln(o.streams.ErrOut, "No pods with claims found in "+render.Escape(from.Snap.Source)+"."); err != nil {
				return fmt.Errorf("print tree: %w", err)
			}
		}
	}
	shown := trees
	if o.limit > 0 {
		shown = trees[:min(o.limit, len(trees))]
	}
	total := len(trees)
	if n := total - len(shown); n > 0 && (o.machine != nil || o.names || !o.terminal) {
		have.notes, total = append(have.notes, english.Thousands(n)+" more (--limit 0 shows all)"), len(shown)
	}
	if err := o.print(shown, total); err != nil {
		return err
	}
	var gapErr *cli.GapError
	if gaps := o.gapsIn(have); len(gaps) > 0 {
		gapErr = &cli.GapError{Doing: "show trees", Gaps: gaps, Live: o.reader.Live(), Partial: len(trees) > 0}
		if !o.allNamespaces {
			gapErr.Namespace = o.namespaceOf(gaps, from.Namespace)
		}
	}
	notes := slices.Concat(have.notes, snapshot.PreviewAssumptions(from.Snap), cli.GapNotes(from.Snap, gapErr))
	if o.machine == nil && slices.ContainsFunc(trees, inventory.UncertainTree) {
		notes = append(notes, have.inventory.NotRead()...)
	}
	if err := cli.PrintNotes(o.streams, notes...); err != nil {
		return err
	}
	if gapErr != nil {
		return gapErr
	}
	return nil
}

// asks returns the resources that the trees need: the resources of their roots, and the
// resources between these and devices.
func (o *treeOptions) asks() []string {
	if len(o.starts) == 0 {
		return []string{snapshot.ResourcePods, snapshot.ResourceClaims}
	}
	var asked []string
	for _, start := range o.starts {
		switch start.kind {
		case "pod", "":
			asked = append(asked, snapshot.ResourcePods, snapshot.ResourceClaims)
		case "claim":
			asked = append(asked, snapshot.ResourceClaims)
		case "class":
			asked = append(asked, snapshot.ResourceClasses)
		case "node":
			asked = append(asked, snapshot.ResourceSlices)
			if start.name == "" {
				asked = append(asked, snapshot.ResourceNodes)
			}
		default:
			asked = append(asked, snapshot.ResourceSlices)
		}
	}
	return asked
}

// gapsIn returns the gaps in the needed resources.
func (o *treeOptions) gapsIn(from *listed) []snapshot.Gap {
	return cli.GapsIn(from.Snap, o.asks(), from.Namespace, o.allNamespaces)
}

// namespaceOf returns the namespace with the missing right, if all gaps are in namespaces.
func (o *treeOptions) namespaceOf(gaps []snapshot.Gap, namespace string) string {
	for _, gap := range gaps {
		if gap.Resource != snapshot.ResourcePods && gap.Resource != snapshot.ResourceClaims {
			return ""
		}
	}
	return namespace
}

func usesClaims(pod *corev1.Pod) bool {
	for range resourceclaim.PodClaims(pod) {
		return true
	}
	return false
}

// print prints trees, which may be the first of more.
func (o *treeOptions) print(trees []api.Branch, total int) error {
	if o.names {
		return o.printNames(trees, map[string]bool{})
	}
	if o.machine != nil {
		items := pointers(slices.Clone(trees))
		for _, tree := range items {
			tree.TypeMeta = cli.TypeMeta("Branch")
		}
		if err := o.machine.PrintObj(cli.NewList("Branch", items), o.streams.Out); err != nil {
			return fmt.Errorf("print tree: %w", err)
		}
		return nil
	}
	return render.Trees(o.streams.Out, trees, total, o.text)
}

// printNames prints API objects as kubectl names them. Requests, devices and
// pools are none.
func (o *treeOptions) printNames(branches []api.Branch, printed map[string]bool) error {
	for i := range branches {
		b := &branches[i]
		name := ""
		switch b.Of {
		case "Pod", "Node":
			name = strings.ToLower(b.Of) + "/" + b.Name
		case "ResourceClaim", "ResourceSlice", "DeviceClass":
			if b.Of == "ResourceClaim" && len(b.Branches) == 0 {
				break // A pod refers to it, but it does not exist.
			}
			name = strings.ToLower(b.Of) + ".resource.k8s.io/" + b.Name
		}
		if id := b.Namespace + " " + name; name != "" && !printed[id] {
			printed[id] = true
			if _, err := fmt.Fprintln(o.streams.Out, render.Escape(name)); err != nil {
				return fmt.Errorf("print tree: %w", err)
			}
		}
		if err := o.printNames(b.Branches, printed); err != nil {
			return err
		}
	}
	return nil
}

// tree finds the root of a tree.
func (l *listed) tree(ctx context.Context, start treeStart) (api.Branch, error) {
	snap := l.Snap
	missing := func(resource string) error {
		if gaps := cli.GapsIn(snap, []string{resource}, l.Namespace, l.Namespace == ""); len(gaps) > 0 {
			return &cli.GapError{Doing: fmt.Sprintf("find %s %s", start.kind, start.name), Gaps: gaps, Live: l.Clients != nil}
		}
		return cli.Missing(snap, l.Namespace, start.kind, start.name)
	}
	switch start.kind {
	case "pod":
		pod, err := cli.OnlyOneIn(snap.Pods, start.kind, l.Namespace, start.name)
		switch {
		case err != nil:
			return api.Branch{}, err
		case pod == nil:
			return api.Branch{}, missing(snapshot.ResourcePods)
		}
		return l.inventory.Trees().Pod(pod), nil
	case "claim":
		claim, err := cli.OnlyOneIn(snap.Claims, start.kind, l.Namespace, start.name)
		switch {
		case err != nil:
			return api.Branch{}, err
		case claim == nil:
			return api.Branch{}, missing(snapshot.ResourceClaims)
		}
		return l.inventory.Trees().Claim(claim), nil
	case "class":
		if class := snap.Class(start.name); class != nil {
			return l.inventory.Trees().Class(ctx, class)
		}
		return api.Branch{}, missing(snapshot.ResourceClasses)
	case "node":
		if slices.Contains(l.inventory.NodeNames(), start.name) {
			return l.inventory.Trees().Node(ctx, start.name)
		}
		return api.Branch{}, missing(snapshot.ResourceNodes)
	case "pool":
		var pools []*cluster.Pool
		for _, pool := range l.cluster.Pools.All() {
			if poolName(pool) == start.name || pool.Name == start.name {
				pools = append(pools, pool)
			}
		}
		pool, err := cli.OnlyOne(start.kind, start.name, cli.FullNames[*cluster.Pool]{Of: poolName, There: "as", Choose: "Write pool/DRIVER/POOL."}, pools)
		switch {
		case err != nil:
			return api.Branch{}, err
		case pool == nil:
			return api.Branch{}, missing(snapshot.ResourceSlices)
		}
		return l.inventory.Trees().Pool(*pool, nil), nil
	default:
		var devices []cluster.Device
		for _, d := range l.cluster.Pools.Devices() {
			if d.ID.String() == start.name || d.ID.Pool+"/"+d.ID.Device == start.name {
				devices = append(devices, d)
			}
		}
		device, err := cli.OnlyOne(start.kind, start.name, cli.FullNames[cluster.Device]{
			Of: func(d cluster.Device) string { return d.ID.String() }, There: "as", Choose: "Write device/DRIVER/POOL/DEVICE.",
		}, devices)
		switch {
		case err != nil:
			return api.Branch{}, err
		case device == nil:
			return api.Branch{}, missing(snapshot.ResourceSlices)
		}
		return l.inventory.Trees().Device(device), nil
	}
}

func poolName(pool *cluster.Pool) string { return pool.Driver + "/" + pool.Name }

// proposeStarts proposes roots of a tree.
func proposeStarts(ctx context.Context, c *cli.Completion) ([]string, error) {
	kind, rest, slashed := strings.Cut(c.Typed, "/")
	if !slashed {
		return []string{"pod/", "claim/", "class/", "device/", "pool/", "node/"}, nil
	}
	start, err := parseStart(kind, "x")
	if err != nil {
		return nil, err
	}
	propose := cli.Propose(start.kind)
	switch start.kind {
	case "device":
		propose = cli.ProposeDevices
	case "pool":
		propose = cli.ProposePools
	}
	return cli.WithType(ctx, &cli.Completion{Cmd: c.Cmd, Args: c.Args, Typed: rest, Reader: c.Reader}, kind, propose)
}
