// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

// draModule is the library whose allocator this program embeds.
const draModule = "k8s.io/dynamic-resource-allocation"

// versionInfo is what `version -o json` prints.
type versionInfo struct {
	// Version is that of this program, (devel) for one built from a work tree.
	Version string `json:"version"`
	// Commit is the revision it was built from, empty if unknown.
	Commit string `json:"commit,omitempty"`
	// Allocator is the version of k8s.io/dynamic-resource-allocation.
	Allocator string `json:"allocator"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
}

// buildInfo reads what the Go toolchain recorded. The version comes from the
// tag that was built, or from -ldflags "-X main.version=…" through main.
func buildInfo(version string) versionInfo {
	info := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	for _, module := range build.Deps {
		if module.Path == draModule {
			info.Allocator = module.Version
		}
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			info.Commit = setting.Value
		}
	}
	return info
}

func newVersion(streams genericiooptions.IOStreams, version string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and of the allocator in it",
		Long: `Show the version of this program and of the scheduler's allocator that is
embedded in it. No cluster is asked.`,
		Example: `  # Which release of the Kubernetes library answers?
  kubectl dra version

  # For a bug report
  kubectl dra version -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printVersion(streams, buildInfo(version), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FORMAT` of the output, json or yaml.")
	// It only fails if somebody registered one before.
	_ = cmd.RegisterFlagCompletionFunc("output", fixed("json", "yaml"))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func printVersion(streams genericiooptions.IOStreams, info versionInfo, output string) error {
	var text []byte
	var err error
	switch output {
	case "":
		text = fmt.Appendf(nil, "kubectl dra %s (%s, %s)\nallocator   %s %s\n",
			info.Version, info.Go, info.Platform, draModule, info.Allocator)
	case "json":
		if text, err = json.MarshalIndent(info, "", "    "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(info)
	default:
		return usagef("Use json or yaml.", "unknown output format %q", output)
	}
	if err != nil {
		return fmt.Errorf("encode version: %w", err)
	}
	if _, err := streams.Out.Write(text); err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return nil
}
