// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// draModule is the library whose allocator this program embeds.
const draModule = "k8s.io/dynamic-resource-allocation"

// Build is the version stamped into a release. Empty parts are taken from the Go
// toolchain's record.
type Build struct {
	// Version is a tag like v1.2.3, Commit a revision, Date when that was made.
	Version, Commit, Date string
}

// Sources of a version, for users who wonder whether to trust it.
const (
	fromRelease   = "release"
	fromToolchain = "go build"
	fromFlag      = "flag"
)

// Version is the output of `version -o json`.
type Version struct {
	metav1.TypeMeta `json:",inline"`

	// Version is the version of this program, (devel) if it was built from a work tree;
	// VersionSource names its source: the release, or go build.
	Version       string `json:"version"`
	VersionSource string `json:"versionSource"`
	// Commit is the revision it was built from, Date the time of the build; empty if
	// unknown.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
	// Allocator is the version of k8s.io/dynamic-resource-allocation.
	Allocator string `json:"allocator"`
	// Go is the version of the toolchain, Platform the operating system and architecture.
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// NVML is true for a build that can use the library of NVIDIA's driver.
	NVML bool `json:"nvml"`
	// Libraries are the libraries that decide answers, as go build recorded them.
	Libraries []LibraryVersion `json:"libraries"`
	// Server is missing if no server was asked.
	Server *ServerVersion `json:"server,omitempty"`
	// FeatureGates are the gates of the server; missing if it could not be asked.
	FeatureGates []GateSetting `json:"featureGates,omitempty"`
}

// LibraryVersion is a Go module and its version.
type LibraryVersion struct {
	// Module is the path of the module.
	Module string `json:"module"`
	// Version is a semantic version.
	Version string `json:"version"`
}

// ServerVersion is the version of the API server, or of the server that a file is from.
type ServerVersion struct {
	// Version is empty if it is unknown.
	Version string `json:"version,omitempty"`
	// Source names the source: the cluster, a file, or the flag --kubernetes-version.
	Source string `json:"source,omitempty"`
	// Problem says why the version, or a part of it, is not known.
	Problem string `json:"problem,omitempty"`
}

// GateSetting is a feature gate of the server.
type GateSetting struct {
	// Name is the name of the gate, Enabled reports whether it is on.
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	// Source is flag, metrics, or default: the default of the server's version.
	Source string `json:"source"`
}

// libraries returns the modules whose version an answer can depend on.
func libraries() []string {
	return []string{
		draModule, "k8s.io/api", "k8s.io/client-go", "github.com/google/cel-go",
		"github.com/NVIDIA/go-nvml", "tags.cncf.io/container-device-interface",
	}
}

// clientVersion returns the version of this program.
func clientVersion(stamped Build) Version {
	info := Version{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Version"},
		Version:  stamped.Version, VersionSource: fromRelease, Commit: stamped.Commit, Date: stamped.Date,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Libraries: []LibraryVersion{},
	}
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version, info.VersionSource = recorded.Main.Version, fromToolchain
	}
	for _, module := range recorded.Deps {
		if module.Path == draModule {
			info.Allocator = module.Version
		}
		if slices.Contains(libraries(), module.Path) {
			info.Libraries = append(info.Libraries, LibraryVersion{Module: module.Path, Version: module.Version})
		}
	}
	for _, setting := range recorded.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = cmp.Or(info.Commit, setting.Value)
		case "vcs.time":
			info.Date = cmp.Or(info.Date, setting.Value)
		case "-tags":
			info.NVML = slices.Contains(strings.Split(setting.Value, ","), "nvml")
		}
	}
	return info
}

func newVersion(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, build Build) *cobra.Command {
	var output string
	var clientOnly bool
	reading := cli.NewReadingFlags(config)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of program, libraries and cluster",
		Long: `Show the version of this program, those of the libraries that its answers depend
on (above all the scheduler's allocator that is embedded in it), that of the
cluster, and the cluster's feature gates for devices, each with where it comes
from: metrics is what the API server reports, default is the default of its
version, flag is the command line.

If the cluster cannot be reached, the output says so, and the exit code is 0.`,
		Example: `  # Which release of the Kubernetes library answers, for which cluster?
  kubectl dra version

  # This program alone; no cluster is asked
  kubectl dra version --client

  # For a bug report
  kubectl dra version -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, output) {
				return cli.NotAllowed("output", output, []string{"json", "yaml"})
			}
			info := clientVersion(build)
			if !clientOnly {
				reader, err := reading.ToReader(cmd, streams)
				if err != nil {
					return err
				}
				if err := info.ask(cmd.Context(), reader); err != nil {
					return err
				}
			}
			return printVersion(streams, &info, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FORMAT` of the output, json or yaml.")
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Only tell about this program, without asking the cluster.")
	reading.AddTo(cmd)
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("output", cli.Fixed("json", "yaml"))
	cli.CompleteFlags(reading, cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// ask reads the versions of the cluster, or of the cluster that a file is from. Only a file
// that cannot be read is an error.
func (v *Version) ask(ctx context.Context, from *cli.Reader) error {
	v.Server = &ServerVersion{}
	source, err := from.Read(ctx, cli.Scope{Only: []string{snapshot.ResourceMetrics}})
	switch {
	case err != nil && (!from.Live() || ctx.Err() != nil):
		return err
	case err != nil:
		v.Server.Problem = err.Error()
		return nil
	}
	snap := source.Snap
	v.Server.Version, v.Server.Source = snap.ServerVersion, snap.Source
	if from.Options.KubernetesVersion != "" {
		v.Server.Source = fromFlag
	}
	switch gap := snap.Gap(snapshot.ResourceMetrics); {
	case snap.ServerVersion == "" && snap.Skew.From > 0:
		v.Server.Problem = fmt.Sprintf("the version is not known; the defaults of feature gates are those of 1.%d, the release of the newest kubelet", snap.Skew.From)
	case snap.ServerVersion == "":
		v.Server.Problem = "the version is not known; the defaults of feature gates are those of the newest one that this program knows"
	case snap.VersionNote() != "":
		v.Server.Problem = snap.VersionNote()
	case gap != nil:
		v.Server.Problem = "feature gates could not be read: " + gap.Reason
	}
	for _, name := range snapshot.KnownGates() {
		if snap.HasGate(name) {
			gate := snap.Gate(name)
			v.FeatureGates = append(v.FeatureGates, GateSetting{Name: name, Enabled: gate.Enabled, Source: string(gate.Source)})
		}
	}
	return nil
}

func printVersion(streams genericiooptions.IOStreams, info *Version, output string) error {
	var text []byte
	var err error
	switch output {
	case "json":
		if text, err = json.MarshalIndent(info, "", "    "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(info)
	default:
		text = []byte(info.text())
	}
	if err != nil {
		return fmt.Errorf("encode version: %w", err)
	}
	if _, err := streams.Out.Write(text); err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return nil
}

// text returns the version with its sources, for people.
func (v *Version) text() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	// Writing to a strings.Builder does not fail.
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = render.Escape(cell)
		}
		_, _ = fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	row("kubectl dra", v.Version, v.VersionSource)
	if v.Commit != "" {
		row("commit", v.Commit, v.Date)
	}
	row("built with", v.Go+" for "+v.Platform, nvmlText(v.NVML))
	row("allocator", draModule+" "+v.Allocator)
	for _, library := range v.Libraries {
		if library.Module != draModule {
			row("library", library.Module+" "+library.Version)
		}
	}
	if v.Server != nil {
		row("server", cmp.Or(v.Server.Version, "unknown"), v.Server.Source)
		for line := range strings.Lines(v.Server.Problem) {
			row("", strings.TrimRight(line, "\n"))
		}
	}
	for _, gate := range v.FeatureGates {
		row(onOff(gate.Enabled), gate.Name, gate.Source)
	}
	_ = table.Flush()
	return text.String()
}

func nvmlText(has bool) string {
	if has {
		return "with NVML"
	}
	return "without NVML"
}

func onOff(on bool) string {
	if on {
		return "gate on"
	}
	return "gate off"
}
