// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// gpuFlags choose real or simulated GPUs.
type gpuFlags struct {
	library  string
	simulate string
}

func (f *gpuFlags) addLibrary(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.library, "nvml-library", "", "`PATH` of libnvidia-ml.so.1, as the node names it. (default: where the NVIDIA DRA driver looks)")
}

func (f *gpuFlags) addTo(cmd *cobra.Command) {
	f.addLibrary(cmd)
	cmd.Flags().StringVar(&f.simulate, "simulate", "",
		"Look at a simulated `MACHINE` instead: "+strings.Join(nvidia.SimulatedMachines(), ", ")+". The values are those of NVIDIA's mocks.")
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("simulate", cobra.FixedCompletions(nvidia.SimulatedMachines(), cobra.ShellCompDirectiveNoFileComp))
}

// look reads the GPUs.
func (f *gpuFlags) look(ctx context.Context, host *node.Host) (*nvidia.Findings, error) {
	found, err := nvidia.Look(ctx, host, nvidia.Options{Library: f.library, Simulate: f.simulate})
	if err != nil {
		return nil, cli.Usagef("There are "+strings.Join(nvidia.SimulatedMachines(), ", ")+".", "%w", err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return found, nil
}

func newGPUs(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	gpus := &gpuFlags{}
	cmd := &cobra.Command{
		Use:   "gpus",
		Short: "Show the NVIDIA GPUs of a node as NVML and sysfs report them",
		Long: `Show the NVIDIA GPUs of the node on which this runs: what NVML reports,
where it is on the PCI bus (from sysfs), its errors in the kernel log, whether
it is divided (MIG) and how it could be. What NVML lacks or refuses is shown as
such. GPUs on the bus that NVML does not know are found too.

NVML takes a build for it (make build-nvml). Other builds show what is on the
PCI bus. Nothing is changed, and no cluster is asked.

With -o wide there are all MIG profiles with their placements.

The exit code is 0 if all is in order, 1 for a problem, 2 if something is not
known.`,
		Example: `  # On a node
  kubectl dra node-probe gpus

  # In a container that has the root of the node at /host
  kubectl dra node-probe gpus --node-root /host

  # What a DGX H100 looks like
  kubectl dra node-probe gpus --simulate dgx-h100 -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			found, err := gpus.look(cmd.Context(), flags.host())
			if err != nil {
				return err
			}
			return flags.print(streams, found, found.Checks, func(options render.Options) error {
				return writeGPUs(streams.Out, found, options)
			})
		},
	}
	gpus.addTo(cmd)
	return cmd
}
