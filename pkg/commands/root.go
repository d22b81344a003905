// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/check"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/list"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/mcp"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/garbage"
)

// Main is like Run, for a process that does nothing else: it also sets how often the
// process collects garbage.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams, build Build) int {
	ctx, done := context.WithCancel(ctx)
	defer done()
	root := NewRoot(streams, build)
	defer garbage.Limit(ctx, goesOn(root, args))()
	return run(ctx, root, args, streams)
}

// goesOn reports whether a command stays open, like a dashboard, a recorder or a server.
func goesOn(root *cobra.Command, args []string) bool {
	cmd, _, err := root.Find(args)
	return err == nil && (cmd.Name() == "record" || cmd.Name() == "mcp" || cmd.Name() == "top" && !slices.Contains(args, "--once"))
}

// Run executes one command line, prints errors, and returns the exit code: 0 Allocated,
// Fits or done, 1 DoesNotFit, Blocked or Error, 2 Undetermined, 3 wrong usage or unreadable
// input, 4 a failure of the cluster, a node or I/O. Of several targets the worst counts, in
// the order 4, 3, 1, 2, 0. When ctx is cancelled, it stops as soon as it can, and soon
// after that in any case.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, build Build) int {
	return run(ctx, NewRoot(streams, build), args, streams)
}

// run is like Run, on a command tree.
func run(ctx context.Context, root *cobra.Command, args []string, streams genericiooptions.IOStreams) int {
	ctx, done := context.WithCancel(ctx)
	defer done()
	root.SetArgs(args)
	// The help functions ignore errors.
	help := &cli.CheckedWriter{To: streams.Out}
	root.SetOut(help)
	err := runUntil(ctx, graceOf(root, args), func() error {
		cmd, err := root.ExecuteContextC(ctx)
		return cli.WithFlags(cmd, err)
	})
	if err == nil && help.Err != nil {
		err = fmt.Errorf("print: %w", help.Err)
	}
	cli.PrintError(streams.ErrOut, err)
	return cli.ExitCode(err)
}

// Grace periods of a command that was interrupted.
const (
	// readingGrace is for commands that only have to stop.
	readingGrace = 2 * time.Second
	// undoingGrace is for commands that may have to undo changes in a cluster or on a node,
	// or to remove a file: longer than any limit of theirs.
	undoingGrace = time.Minute
)

// graceOf returns the grace period of the command in a command line.
func graceOf(root *cobra.Command, args []string) time.Duration {
	cmd, _, err := root.Find(args)
	if err != nil {
		return readingGrace
	}
	for cmd.HasParent() && cmd.Parent() != root {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "node-probe", "pools", "snapshot", "taints", "test":
		return undoingGrace
	default:
		return readingGrace
	}
}

// runUntil runs a command until it ends or, if it ignores the context, until some time
// after the context is done.
func runUntil(ctx context.Context, grace time.Duration, command func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- command() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return ctx.Err()
	}
}

// NewRoot builds the command tree; build is the release stamped into the program. Two trees
// share nothing.
func NewRoot(streams genericiooptions.IOStreams, build Build) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-dra",
		Short: "See why Kubernetes cannot allocate your devices",
		Long: `kubectl dra explains Dynamic Resource Allocation (DRA, resource.k8s.io).

It asks the scheduler's own allocator whether a claim, a pod or a workload can
get its devices, and shows which devices are rejected by which check. It reads
from a cluster or from a snapshot file, and changes nothing unless it is told to
(taints add and remove, top --allow-changes, test, node-probe prepare).`,
		Example: `  # Why is this pod pending?
  kubectl dra why pod/pretrain-0 -n research

  # What is wrong in the cluster, and what mends it?
  kubectl dra status

  # Would this manifest fit, before it is applied?
  kubectl dra why -f train.yaml

  # What is free? By node, by pool, and one by one
  kubectl dra nodes
  kubectl dra pools
  kubectl dra devices --free

  # Which pods wait for devices, and why?
  kubectl dra why -A

  # Which namespace uses how many devices, and what is idle?
  kubectl dra usage -A

  # Who has the devices of a node?
  kubectl dra devices --node gpu-02

  # Which addresses do network devices have?
  kubectl dra claims -A -o wide

  # Which resources come from device plugins instead of DRA?
  kubectl dra classes -o wide

  # What is broken?
  kubectl dra slices --field-selector state!=Current -o wide
  kubectl dra claims -A --pending

  # Which pods would a taint evict?
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoExecute \
    --dry-run=client

  # Which devices does a class select, and which class has how many free?
  kubectl dra devices --class gpu.example.com
  kubectl dra classes

  # Save what is needed to ask the same questions elsewhere, without the names
  kubectl dra snapshot --redact -o cluster.yaml.gz`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl dra"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.HelpFunc()(cmd, []string{"-h"})
			return nil
		},
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownVerb(cmd, args[0])
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root && cmd.Flags().NArg() > 0 {
			// The flag belongs to an unknown command.
			return cmd.Args(cmd, cmd.Flags().Args())
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) && wrong(invalid) != "" {
			return cli.Usagef(cli.HelpHint(cmd), "read --%s: %q %s", invalid.GetFlag().Name, invalid.GetValue(), wrong(invalid))
		}
		near, unknown := "", (*pflag.NotExistError)(nil)
		if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
			var names []string
			cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
			near = english.DidYouMean("--"+unknown.GetSpecifiedName(), names)
		}
		return cli.Usagef(cli.HelpHint(cmd), "%w%s", err, near)
	})

	config := newConfigFlags()
	cli.AddFlags(root.PersistentFlags(), cli.GroupCluster, config.AddFlags)
	limit := root.PersistentFlags().Lookup("request-timeout")
	limit.Value = &requestTimeout{limit.Value}

	cli.AddCommands(root, "Explain",
		newWhy(streams, config),
		newStatus(streams, config),
		newDiff(streams, config),
		newFit(streams, config),
		check.NewDoctor(streams, config, build.Version),
		check.NewLint(streams, config, build.Version),
	)
	cli.AddCommands(root, "Plan",
		newImpact(streams, config),
		newPlan(streams, config),
		newMigrate(streams, config),
	)
	cli.AddCommands(root, "Write claims",
		list.NewAttributes(streams, config),
		newSharing(streams, config),
		newCEL(streams, config),
	)
	cli.AddCommands(root, "List what there is",
		list.NewNodes(streams, config),
		list.NewSlices(streams, config),
		list.NewPools(streams, config),
		list.NewDevices(streams, config),
		list.NewClaims(streams, config),
		list.NewClasses(streams, config),
		list.NewTaints(streams, config),
		list.NewUsage(streams, config),
		list.NewTree(streams, config),
		newTop(streams, config),
	)
	cli.AddCommands(root, "Look at a node",
		nodeprobe.New(streams, config, clientVersion(build).Version),
	)
	cli.AddCommands(root, "Try it out",
		newLearn(streams),
		trial.New(streams, config),
	)
	cli.AddCommands(root, "Other",
		newReport(streams, config, build.Version),
		newSnapshot(streams, config),
		newRecord(streams, config),
		mcp.New(streams, config, build.Version, func(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
			return Run(ctx, args, streams, build)
		}),
		newVersion(streams, config, build),
	)
	root.SetHelpCommandGroupID("Other")
	root.SetCompletionCommandGroupID("Other")
	cli.CompleteClusterFlags(cli.NewReadingFlags(config), root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	helpOf(root)
	cli.DescribeCompletion(root)
	cli.SetHelp(root)
	checkUsage(root)
	return root
}

// wrong describes the fault in the value of a flag. It is empty for types whose own errors say it.
func wrong(invalid *pflag.InvalidValueError) string {
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		return "is neither true nor false"
	case "duration":
		return "is not a duration such as 90s or 5m"
	case "int", "int64":
		if errors.Is(invalid, strconv.ErrRange) {
			return "is out of range"
		}
		return "is not a whole number"
	default:
		return ""
	}
}

// unknownVerb returns the error for a word that is no verb: kubectl's verbs and the names of
// objects stand for the verbs that show them here.
func unknownVerb(root *cobra.Command, word string) error {
	out := ""
	switch strings.ToLower(word) {
	case "pod", "pods", "po":
		out = "Write 'kubectl dra why pod/NAME' to explain a pod, 'kubectl dra tree pod/NAME' for its devices."
	case "free":
		out = "Write 'kubectl dra pools' or 'kubectl dra devices --free'."
	case "get", "list", "ls":
		out = "Write what to list: kubectl dra nodes, slices, pools, devices, claims, classes, taints or usage."
	case "describe", "explain", "show":
		out = "Write 'kubectl dra why TYPE/NAME' to explain a claim, a pod or a workload, 'kubectl dra tree TYPE/NAME' for what belongs to it."
	default:
		return unknownCommand(root, word)
	}
	return cli.Usagef(out, "unknown command %q", word)
}

// unknownCommand returns the error for a word that is no command of a parent.
func unknownCommand(parent *cobra.Command, word string) error {
	var names []string
	for _, cmd := range parent.Commands() {
		names = append(names, cmd.Name())
		for _, sub := range cmd.Commands() {
			if strings.EqualFold(sub.Name(), word) {
				return cli.Usagef(cli.HelpHint(sub), "unknown command %q%s", word, english.Suggestion(cmd.Name()+" "+sub.Name()))
			}
		}
	}
	return cli.Usagef(cli.HelpHint(parent), "unknown command %q%s", word, english.DidYouMean(word, names))
}

// helpOf makes the verb help fail for unknown commands.
func helpOf(root *cobra.Command) {
	help, _, _ := root.Find([]string{"help"})
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		found, _, _ := root.Find(args)
		if found == root && len(args) > 0 {
			return unknownVerb(root, args[0])
		}
		found.InitDefaultHelpFlag()
		return found.Help()
	}
}

// newConfigFlags returns kubectl's own flags, without the flags for programs that write or
// log in with a password.
func newConfigFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(50).WithDiscoveryBurst(300)
}

// requestTimeout is the value of --request-timeout, which kubectl checks only when it asks a server.
type requestTimeout struct{ pflag.Value }

// Set sets the value if it is a time.
func (t *requestTimeout) Set(text string) error {
	if _, err := clientcmd.ParseTimeout(text); err != nil {
		return fmt.Errorf("parse time: %w", err)
	}
	return t.Value.Set(text) //nolint:wrapcheck // pflag names the flag
}

// Type returns the type whose values are expected.
func (*requestTimeout) Type() string { return "duration" }

// checkUsage turns cobra's errors about arguments into usage errors, for each command of
// the tree.
func checkUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var usage *cli.UsageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			if cmd.HasAvailableSubCommands() {
				return unknownCommand(cmd, args[0])
			}
			return cli.Usagef(cli.HelpHint(cmd), "%w", err)
		}
	}
	for _, child := range cmd.Commands() {
		checkUsage(child)
	}
}
