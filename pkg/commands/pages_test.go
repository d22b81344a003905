// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gotest.tools/v3/golden"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// clusterPage has kubectl's own flags, which every verb accepts.
const clusterPage = "cluster-flags.md"

// TestPages compares docs/cli, a page for each command, with what the commands
// say of themselves. With -update it is written again.
func TestPages(t *testing.T) {
	// The default of --cache-dir depends on who asks, and where.
	t.Setenv("HOME", "$HOME")
	t.Setenv("KUBECACHEDIR", "")
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := NewRoot(streams, Build{})
	pages := map[string]string{clusterPage: pageOfClusterFlags(root)}
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		pages[pageName(all[i])] = page(all[i])
		for _, child := range all[i].Commands() {
			if hasPage(child) {
				all = append(all, child)
			}
		}
	}
	comparePages(t, "cli", "command", pages)
}

// comparePages compares a folder of docs with the pages that it has to have, one for
// each of something. With -update it is written again.
func comparePages(t *testing.T, folder, of string, pages map[string]string) {
	t.Helper()
	dir := filepath.Join("..", "..", "docs", folder)
	have, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if pages[filepath.Base(path)] != "" {
			continue
		}
		if !golden.FlagUpdate() {
			t.Errorf("%s is of no %s (run: make docs)", path, of)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range pages {
		path := filepath.Join(dir, name)
		if golden.FlagUpdate() {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil {
			t.Errorf("%v (run: make docs)", err)
		} else if string(have) != text {
			t.Errorf("%s is out of date (run: make docs), -have +want:\n%s", path, cmp.Diff(string(have), text))
		}
	}
}

// hasPage reports whether a command is described. help is not: it is what --help
// does.
func hasPage(cmd *cobra.Command) bool { return cmd.IsAvailableCommand() && cmd.Name() != "help" }

// pageName returns taints-add.md for kubectl dra taints add.
func pageName(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "README.md"
	}
	words := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
	return strings.ReplaceAll(words, " ", "-") + ".md"
}

func page(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Written by `make docs`, from the command. -->\n\n# %s\n\n", cmd.CommandPath())
	if cmd.Long == "" {
		fmt.Fprintf(&b, "%s.\n", plain(cmd.Short))
	} else {
		b.WriteString(prose(cmd.Long))
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", cmd.UseLine())
	}
	pageCommands(&b, cmd)
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\n## Examples\n\n```sh\n%s\n```\n", outdent(cmd.Example))
	}
	for _, name := range []string{"", cli.GroupNode, cli.GroupRemote, cli.GroupOutput, cli.GroupReading} {
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
			if cli.GroupOf(flag) == name && flag.Name != "help" {
				flags.AddFlag(flag)
			}
		})
		if flags.HasAvailableFlags() {
			title := name
			if title == "" {
				title = "Flags"
			}
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", title, flags.FlagUsagesWrapped(cli.HelpWidth))
		}
	}
	pageLinks(&b, cmd)
	return b.String()
}

func pageCommands(b *strings.Builder, cmd *cobra.Command) {
	groups := []*cobra.Group{{Title: "Commands"}}
	for _, g := range append(groups, cmd.Groups()...) {
		first := true
		for _, child := range cmd.Commands() {
			if !hasPage(child) || child.GroupID != g.ID {
				continue
			}
			if first {
				fmt.Fprintf(b, "\n## %s\n\n| command | |\n|---|---|\n", g.Title)
				first = false
			}
			fmt.Fprintf(b, "| [%s](%s) | %s |\n", child.CommandPath(), pageName(child), plain(child.Short))
		}
	}
}

// pageLinks names the flags that the page leaves out because others have them,
// and the command above.
func pageLinks(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString("\n## See also\n\n")
	if cmd.Flags().Lookup("snapshot") != nil || !cmd.HasParent() {
		fmt.Fprintf(b, "- [how to reach the cluster](%s): flags that kubectl has, too\n", clusterPage)
	}
	if parent := cmd.Parent(); parent != nil {
		also := ""
		if parent.HasParent() && parent.PersistentFlags().HasAvailableFlags() {
			also = ": its flags work here, too"
		}
		fmt.Fprintf(b, "- [%s](%s)%s\n", parent.CommandPath(), pageName(parent), also)
	} else {
		b.WriteString("- [the documents](..)\n")
	}
}

func pageOfClusterFlags(root *cobra.Command) string {
	flags := pflag.NewFlagSet(cli.GroupCluster, pflag.ContinueOnError)
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		// Only this page shows all of them.
		shown := *flag
		shown.Hidden = false
		flags.AddFlag(&shown)
	})
	return fmt.Sprintf("<!-- Written by `make docs`, from the commands. -->\n\n# %s\n\n"+
		"Every verb that reads a cluster has these flags of kubectl. With\n`--snapshot`, only `--namespace` matters.\n\n```\n%s```\n\n## See also\n\n- [%s](%s)\n",
		cli.GroupCluster, flags.FlagUsagesWrapped(cli.HelpWidth), root.CommandPath(), pageName(root))
}

// prose makes Markdown of a long description, where indented lines are what
// somebody types or sees.
func prose(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if strings.HasPrefix(paragraph, "  ") || strings.HasPrefix(paragraph, "\t") {
			fmt.Fprintf(&b, "```\n%s\n```\n", outdent(paragraph))
		} else {
			b.WriteString(plain(paragraph) + "\n")
		}
	}
	return b.String()
}

// plain returns text without a meaning in Markdown.
func plain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "<", `\<`, "`", "\\`", "|", `\|`).Replace(text)
}

// outdent removes the indentation of examples in a help: two blanks or, in cobra's, a tab.
func outdent(text string) string {
	return strings.NewReplacer("\n  ", "\n", "\n\t", "\n").Replace("\n" + text)[1:]
}
