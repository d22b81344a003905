// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth limits the width of help.
const HelpWidth = 100

// Groups of flags in the help. Flags without a group come first.
const (
	GroupOutput  = "Output"
	GroupReading = "What to read"
	GroupNode    = "Where things are on the node"
	GroupRemote  = "How to reach the node"
	GroupCluster = "How to reach the cluster"
)

// groupAnnotation is the annotation with the group of a flag.
const groupAnnotation = "kubectl-dra/group"

// AddFlags adds flags to a set and records their group.
func AddFlags(flags *pflag.FlagSet, name string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	add(set)
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[groupAnnotation] = []string{name}
		reword(flag)
		if name == GroupCluster {
			flag.Hidden = !isCommonClusterFlag(flag.Name)
		}
	})
	flags.AddFlagSet(set)
}

// isCommonClusterFlag reports whether the help shows this flag of kubectl's own. All others
// work too.
func isCommonClusterFlag(name string) bool {
	return slices.Contains([]string{"kubeconfig", "context", "namespace", "all-namespaces", "as", "request-timeout"}, name)
}

// briefExamples limits the examples of brief help.
const briefExamples = 4

// SetHelp replaces cobra's help with help in groups of flags: brief with -h, and all of it
// with --help.
func SetHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// Cobra passes the whole command line, unless a command asks for its own help.
		brief := len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--help") })
		// Nobody can be told that the help could not be written.
		_, _ = io.WriteString(cmd.OutOrStdout(), help(cmd, brief))
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.ErrOrStderr(), help(cmd, true))
		return err
	})
}

// help returns the help of a command: how to use it, examples, prose and flags. Brief help
// has the first examples, the command's own flags with a sentence each, and no prose.
func help(cmd *cobra.Command, brief bool) string {
	var b strings.Builder
	width := OutputWidth(cmd.OutOrStdout())
	if width == WidthWithoutTerminal {
		width = HelpWidth
	}
	width = min(width, HelpWidth)
	fmt.Fprintf(&b, "%s.\n\nUsage:\n", strings.TrimSuffix(cmd.Short, "."))
	if cmd.HasParent() && cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	writeCommands(&b, cmd)
	examples := strings.Split(cmd.Example, "\n\n")
	if brief {
		examples = examples[:min(len(examples), briefExamples)]
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.Join(examples, "\n\n"))
	}
	if !brief && cmd.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(cmd.Long))
	}
	// Only verbs that read use a cluster.
	reads := !brief && cmd.Flags().Lookup("snapshot") != nil
	for _, name := range []string{"", GroupNode, GroupRemote, GroupOutput, GroupReading, GroupCluster} {
		if name == GroupCluster && !reads {
			continue
		}
		if flags := flagsOf(cmd, name, brief); flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", cmp.Or(name, "Flags"), flags.FlagUsagesWrapped(width))
		}
	}
	if reads {
		b.WriteString("\nkubectl's other flags that say how to connect, such as --server and --token,\nwork too.\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nSee '%s COMMAND --help' for more about a command.\n", cmd.CommandPath())
	}
	if brief {
		fmt.Fprintf(&b, "\n'%s --help' explains more.\n", cmd.CommandPath())
	}
	return b.String()
}

// writeCommands lists the subcommands of a command, by their groups if they have any.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	titles := map[string]string{"": "Commands"}
	groups := []string{""}
	for _, g := range cmd.Groups() {
		titles[g.ID] = g.Title
		groups = append(groups, g.ID)
	}
	for _, id := range groups {
		first := true
		for _, child := range cmd.Commands() {
			if !child.IsAvailableCommand() || child.GroupID != id {
				continue
			}
			if first {
				fmt.Fprintf(b, "\n%s:\n", titles[id])
				first = false
			}
			fmt.Fprintf(b, "  %-*s  %s\n", cmd.NamePadding(), child.Name(), child.Short)
		}
	}
}

// AddCommands adds commands that the help lists under a title of their own.
func AddCommands(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

// DescribeCompletion describes how kubectl finds the completion of a plugin, which does not
// use the scripts that the command writes.
func DescribeCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Set up the completion of a shell"
		cmd.Long = `Complete verbs, flags and names with the key Tab.

For "kubectl dra", kubectl's own completion has to be set up (see
'kubectl completion --help'), and a link to this program has to be on the PATH:

  ln -s "$(command -v kubectl-dra)" /usr/local/bin/kubectl_complete-dra

The commands below write scripts for those who call the program kubectl-dra.`
		for _, script := range cmd.Commands() {
			if script.Name() == "fish" {
				quoteForFish(script)
			}
		}
	}
}

// quoteForFish corrects the script for fish, which evaluates the words of the line after
// removing their quotes: names of files in it would be run as commands. Words that run
// nothing stay, for their variables and the ~ of a home.
func quoteForFish(cmd *cobra.Command) {
	const (
		evaluated = "    set -l args (commandline -opc)\n"
		quoted    = `    set -l args
    for word in (commandline -opc)
        string match -qr -- '^[~\w$@%+=:,./-]+$' $word; or set word (string escape -- $word)
        set -a args $word
    end
`
	)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		bare, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return fmt.Errorf("write the script: %w", err)
		}
		var script bytes.Buffer
		if err := cmd.Root().GenFishCompletion(&script, !bare); err != nil {
			return fmt.Errorf("write the script: %w", err)
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), strings.Replace(script.String(), evaluated, quoted, 1)); err != nil {
			return fmt.Errorf("write the script: %w", err)
		}
		return nil
	}
}

// reword describes some of kubectl's flags in the words of this program, within the width
// of a terminal.
func reword(flag *pflag.Flag) {
	words := map[string]string{
		"as":              "`USER` to impersonate; can be a service account.",
		"context":         "`CONTEXT` of the kubeconfig to use.",
		"kubeconfig":      "Kubeconfig `FILE` with the clusters and credentials.",
		"namespace":       "`NAMESPACE` to use instead of the one of the context.",
		"request-timeout": "Give up on a single request after this `TIME`, such as 30s; 0, the default, means never.",
	}
	if usage, ok := words[flag.Name]; ok {
		flag.Usage = usage
	}
}

// flagsOf returns the flags of one group that a command accepts; brief ones have only the
// first sentence of their description.
func flagsOf(cmd *cobra.Command, name string, brief bool) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if GroupOf(flag) != name {
			return
		}
		shown := *flag
		if flag.Name == "help" {
			shown.Usage = "Explain this command; -h is shorter."
		}
		if brief {
			first, _, more := strings.Cut(shown.Usage, ". ")
			if shown.Usage = first; more {
				shown.Usage += "."
			}
		}
		set.AddFlag(&shown)
	})
	return set
}

// GroupOf returns the group that a flag was added to, empty for none.
func GroupOf(flag *pflag.Flag) string {
	if values := flag.Annotations[groupAnnotation]; len(values) > 0 {
		return values[0]
	}
	return ""
}
