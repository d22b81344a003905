// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Run executes one command line, prints what failed, if anything did, and
// returns the exit code: 0 Allocated, Fits or done, 1 DoesNotFit or Error,
// 2 Undetermined, 3 wrong usage or unreadable input, 4 a failure of the
// cluster, a node or I/O. Of several targets the worst counts, in the order
// 4, 3, 1, 2, 0. When ctx is cancelled, it stops as soon as it can.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, version string) int {
	if os.Getenv("GOGC") == "" {
		// Most of the memory is one snapshot that stays: collecting more often
		// costs little, and saves a quarter of the peak for a large cluster.
		debug.SetGCPercent(40)
	}
	root := NewRoot(streams, version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	printError(streams.ErrOut, err)
	return exitCode(err)
}

// NewRoot builds the command tree; version is that of the program, empty for
// what the Go toolchain recorded. Nothing is shared between two trees.
func NewRoot(streams genericiooptions.IOStreams, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-dra",
		Short: "See why Kubernetes cannot allocate your devices",
		Long: `kubectl dra explains Dynamic Resource Allocation (DRA, resource.k8s.io).

It asks the allocator of the scheduler itself whether a claim, a pod or a
workload can get its devices, and says which devices were turned down by what.
It reads from a cluster or from a snapshot file, and changes nothing unless it is
told to add or remove a taint rule.`,
		Example: `  # Why is this pod pending?
  kubectl dra why pod/train-0

  # Would this manifest fit, before it is applied?
  kubectl dra why -f train.yaml

  # Save what is needed to ask the same questions elsewhere, without the names
  kubectl dra snapshot --redact -o cluster.yaml.gz`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl dra"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		out := "Run 'kubectl dra --help' for the list of commands."
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			out = "Did you mean " + strings.Join(similar, " or ") + "?"
		}
		return usagef(out, "unknown command %q", args[0])
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef(helpHint(cmd), "%w", err)
	})

	config := newConfigFlags()
	group(root.PersistentFlags(), groupCluster, config.AddFlags)

	root.AddCommand(
		newWhy(streams, config),
		newSlices(streams, config),
		newPools(streams, config),
		newDevices(streams, config),
		newClaims(streams, config),
		newClasses(streams, config),
		newTaints(streams, config),
		newTree(streams, config),
		newSnapshot(streams, config),
		newVersion(streams, version),
	)
	// It only fails if somebody registered one before.
	_ = root.RegisterFlagCompletionFunc("namespace", newReadingFlags(config).complete("namespace", ""))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	setHelp(root)
	checkUsage(root)
	return root
}

// newConfigFlags has kubectl's own flags, without those that only matter to
// programs that write or that log in with a password.
func newConfigFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(50).WithDiscoveryBurst(300)
}

// checkUsage makes what cobra says about wrong arguments a usage error, for
// each command of the tree.
func checkUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var usage *usageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return usagef(helpHint(cmd), "%w", err)
		}
	}
	for _, child := range cmd.Commands() {
		checkUsage(child)
	}
}

func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("See '%s --help'.", cmd.CommandPath())
}
