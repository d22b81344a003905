// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is how wide help gets at most.
const helpWidth = 100

// The groups of flags in the help. Flags without a group come first.
const (
	groupOutput  = "Output"
	groupReading = "What to read"
	groupCluster = "How to reach the cluster"
)

// groupAnnotation is where a flag keeps its group.
const groupAnnotation = "kubectl-dra/group"

// group adds flags to a set and notes to which group they belong.
func group(flags *pflag.FlagSet, name string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	add(set)
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[groupAnnotation] = []string{name}
		if name == groupCluster {
			flag.Hidden = !isCommonClusterFlag(flag.Name)
		}
	})
	flags.AddFlagSet(set)
}

// isCommonClusterFlag tells which of kubectl's own flags the help shows. All
// others work too.
func isCommonClusterFlag(name string) bool {
	return slices.Contains([]string{"kubeconfig", "context", "namespace", "as", "request-timeout"}, name)
}

// setHelp replaces cobra's help by one with grouped flags.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		var b strings.Builder
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		b.WriteString(strings.TrimSpace(about))
		b.WriteString("\n\n")
		writeUsage(&b, cmd)
		// There is nobody to tell that the help could not be written.
		_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		var b strings.Builder
		writeUsage(&b, cmd)
		_, err := io.WriteString(cmd.ErrOrStderr(), b.String())
		return err
	})
}

func writeUsage(b *strings.Builder, cmd *cobra.Command) {
	width := outputWidth(cmd.OutOrStdout())
	if width == widthWithoutTerminal {
		width = helpWidth
	}
	width = min(width, helpWidth)
	if !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "Usage:\n  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(b, "Usage:\n  %s COMMAND [flags]\n\nCommands:\n", cmd.CommandPath())
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				fmt.Fprintf(b, "  %-*s  %s\n", cmd.NamePadding(), child.Name(), child.Short)
			}
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(b, "\nExamples:\n%s\n", cmd.Example)
	}
	// Only the verbs that read have anything to do with a cluster.
	reads := cmd.Flags().Lookup("snapshot") != nil
	for _, name := range []string{"", groupOutput, groupReading, groupCluster} {
		if name == groupCluster && !reads {
			continue
		}
		if flags := flagsOf(cmd, name); flags.HasAvailableFlags() {
			title := name
			if title == "" {
				title = "Flags"
			}
			fmt.Fprintf(b, "\n%s:\n%s", title, flags.FlagUsagesWrapped(width))
		}
	}
	if reads {
		b.WriteString("\nkubectl's other flags that say how to connect, such as --server and --token, work too.\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\nSee '%s COMMAND --help' for more about a command.\n", cmd.CommandPath())
	}
}

// flagsOf returns the flags of one group that a command accepts.
func flagsOf(cmd *cobra.Command, name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		of := ""
		if values := flag.Annotations[groupAnnotation]; len(values) > 0 {
			of = values[0]
		}
		if of == name {
			set.AddFlag(flag)
		}
	})
	return set
}
