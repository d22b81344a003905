// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

type treeOptions struct {
	reader        *reader
	starts        []treeStart
	allNamespaces bool
	machine       printers.ResourcePrinter
	streams       genericiooptions.IOStreams
}

// treeStart is an object that a tree begins with.
type treeStart struct{ kind, name string }

func newTree(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	reading := newReadingFlags(config)
	output := newOutputFlags()
	allNamespaces := false
	cmd := &cobra.Command{
		Use:   "tree [TYPE/NAME ...]",
		Short: "Show what belongs together: pods, claims, requests, devices, slices, nodes",
		Long: `Show what belongs together as a tree, from any starting point: pod/NAME,
claim/NAME, class/NAME, device/DRIVER/POOL/DEVICE, pool/DRIVER/POOL or node/NAME.
From a pod or claim it leads down to devices, slices and nodes; from a node, a
pool or a device up to the claims and pods that use it.

Without a starting point, there is a tree for each pod with claims.`,
		Example: `  # The devices of a pod
  kubectl dra tree pod/train-0

  # Who uses the devices of a node?
  kubectl dra tree node/node-17

  # Who has this device?
  kubectl dra tree device/gpu.nvidia.com/node-17/gpu-3

  # All pods with claims
  kubectl dra tree -A`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := &treeOptions{allNamespaces: allNamespaces, streams: streams}
			var err error
			if o.starts, err = parseStarts(args); err != nil {
				return err
			}
			if o.reader, err = reading.toReader(cmd, streams); err != nil {
				return err
			}
			printer, err := output.toPrinter(streams)
			if err != nil {
				return err
			}
			o.machine = printer.machine
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the pods of all namespaces.")
	output.addTo(cmd)
	reading.addTo(cmd)
	cmd.ValidArgsFunction = reading.completeTargets("pod", "claim", "class", "device", "pool", "node")
	return cmd
}

const whatTreesAre = "Write pod/NAME, claim/NAME, class/NAME, device/DRIVER/POOL/DEVICE, pool/DRIVER/POOL or node/NAME."

func parseStarts(args []string) ([]treeStart, error) {
	starts := make([]treeStart, 0, len(args))
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok || name == "" {
			return nil, usagef(whatTreesAre, "parse %q: not of the form TYPE/NAME", arg)
		}
		switch strings.ToLower(kind) {
		case "pod", "pods", "po":
			kind = "pod"
		case "claim", "claims", "resourceclaim", "resourceclaims":
			kind = "claim"
		case "class", "classes", "deviceclass", "deviceclasses":
			kind = "class"
		case "device", "devices":
			kind = "device"
		case "pool", "pools":
			kind = "pool"
		case "node", "nodes", "no":
			kind = "node"
		default:
			return nil, usagef(whatTreesAre, "parse %q: a tree cannot start with a %s", arg, kind)
		}
		starts = append(starts, treeStart{kind, name})
	}
	return starts, nil
}

func (o *treeOptions) run(ctx context.Context) error {
	from, err := o.reader.read(ctx, scope{allNamespaces: o.allNamespaces})
	if err != nil {
		return err
	}
	alloc, err := allocator.New(ctx, from.snap)
	if err != nil {
		return fmt.Errorf("set up the allocator: %w", err)
	}
	have := &listed{source: from, alloc: alloc, inventory: inventory.New(alloc, from.snap)}
	var trees []inventory.Branch
	for _, start := range o.starts {
		tree, err := have.tree(start)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	if len(o.starts) == 0 {
		for _, pod := range from.snap.Pods {
			if (o.allNamespaces || from.namespace == "" || pod.Namespace == from.namespace) && usesClaims(pod) {
				trees = append(trees, have.inventory.PodTree(pod))
			}
		}
		if len(trees) == 0 {
			if _, err := fmt.Fprintln(o.streams.ErrOut, "No pods with claims found in "+render.Escape(from.snap.Source)+"."); err != nil {
				return fmt.Errorf("print tree: %w", err)
			}
		}
	}
	return o.print(trees)
}

func usesClaims(pod *corev1.Pod) bool {
	for range resourceclaim.PodClaims(pod) {
		return true
	}
	return false
}

func (o *treeOptions) print(trees []inventory.Branch) error {
	if o.machine != nil {
		items := make([]inventory.Branch, len(trees))
		copy(items, trees)
		if err := o.machine.PrintObj(inventory.NewForest(items), o.streams.Out); err != nil {
			return fmt.Errorf("print tree: %w", err)
		}
		return nil
	}
	for i := range trees {
		if err := render.Tree(o.streams.Out, &trees[i]); err != nil {
			return err
		}
	}
	return nil
}

// tree finds the object that a tree begins with.
func (l *listed) tree(start treeStart) (inventory.Branch, error) {
	snap, namespace := l.snap, l.namespace
	missing := func(what string) error {
		return usagef("List what there is: kubectl dra "+what+"s", "find %s %s: not found in %s", start.kind, start.name, snap.Source)
	}
	switch start.kind {
	case "pod":
		for _, pod := range snap.Pods {
			if pod.Name == start.name && (namespace == "" || pod.Namespace == namespace) {
				return l.inventory.PodTree(pod), nil
			}
		}
		return inventory.Branch{}, usagef("Choose a namespace with -n.", "find pod %s: not found in %s", start.name, snap.Source)
	case "claim":
		for _, claim := range snap.Claims {
			if claim.Name == start.name && (namespace == "" || claim.Namespace == namespace) {
				return l.inventory.ClaimTree(claim), nil
			}
		}
		return inventory.Branch{}, missing("claim")
	case "class":
		if class := snap.Class(start.name); class != nil {
			return l.inventory.ClassTree(class), nil
		}
		return inventory.Branch{}, usagef("List what there is: kubectl dra classes", "find class %s: not found in %s", start.name, snap.Source)
	case "node":
		if snap.Node(start.name) != nil {
			return l.inventory.NodeTree(start.name), nil
		}
		return inventory.Branch{}, usagef("List what there is: kubectl get nodes", "find node %s: not found in %s", start.name, snap.Source)
	case "pool":
		for _, pool := range l.alloc.Pools() {
			if pool.Driver+"/"+pool.Name == start.name || pool.Name == start.name {
				return l.inventory.PoolTree(pool, nil), nil
			}
		}
		return inventory.Branch{}, missing("pool")
	default:
		for _, d := range l.alloc.Devices() {
			if d.ID.String() == start.name || d.ID.Pool+"/"+d.ID.Device == start.name {
				return l.inventory.DeviceTree(&d), nil
			}
		}
		return inventory.Branch{}, missing("device")
	}
}
