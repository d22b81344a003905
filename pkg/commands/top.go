// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

type topFlags struct {
	reading *cli.ReadingFlags
	once    bool
	mouse   bool
	changes bool
	bell    bool
	// plain is true to read no file of settings.
	plain  bool
	output *cli.OutputFlags
}

type topOptions struct {
	reader   *cli.Reader
	printer  *cli.Printer
	once     bool
	mouse    bool
	bell     bool
	settings tui.Settings
	// changes is true if changes of the cluster may be asked for; same are the flags of
	// commands for the same cluster.
	changes bool
	same    []string
	streams genericiooptions.IOStreams
}

// sameCluster returns the flags that say which cluster and user are meant. A token is left
// out: commands are shown.
func sameCluster(cmd *cobra.Command) []string {
	var words []string
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "as", "as-uid"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			words = append(words, "--"+name+"="+shell.Quote(flag.Value.String()))
		}
	}
	return words
}

// newTop returns the verb that opens the dashboard.
func newTop(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &topFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch devices and claims on a dashboard",
		Long: `Show a dashboard that follows the cluster: what is used, the causes behind the
pods that do not run, as 'kubectl dra status' finds them, and what waits. From
a class you can go on to its pools, devices, claims and pods.

Keys 1 to 9 and 0 choose a view: overview, nodes, pools, devices, claims,
pending, classes, taints, causes, teams. Enter opens the selected
row, or explains what waits, and Esc goes back. f finds anything by name and
/ filters; w explains a claim, and ? has all keys of a view.

It shows the claims of all namespaces that you are permitted to read; -n selects
one. If the output is not a terminal, or with --once, the overview is printed as
text; with -o json or another format for programs, it is printed as data.

With a recording, ] and [ go to the next change and the one before, } and { to
the next cause that begins or ends, and back.

The file kubectl-dra/config.yaml in the directory for settings of the user has
the view to begin with, colors, columns and keys, if it is there.`,
		Example: `  # The dashboard
  kubectl dra top

  # Look around in a file
  kubectl dra top --snapshot cluster.yaml.gz

  # Be asked before devices are tainted, nodes uncordoned or claims deleted
  kubectl dra top --allow-changes

  # Print the overview and exit
  kubectl dra top --once

  # How many pods wait, for a script
  kubectl dra top -o jsonpath='{.issues[?(@.code=="PodsWaiting")].count}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&f.once, "once", false, "Print the overview and exit.")
	cmd.Flags().BoolVar(&f.mouse, "mouse", false, "Begin with the mouse on; the key m turns it on and off.")
	cmd.Flags().BoolVar(&f.plain, "no-config", false, "Read no file of settings (kubectl-dra/config.yaml in the user's directory of settings).")
	cmd.Flags().BoolVar(&f.bell, "bell", false, "Ring when a pool breaks, a pod has waited for 30 seconds, or a pod is evicted.")
	cmd.Flags().BoolVar(&f.changes, "allow-changes", false, "Let the key x taint devices, remove taint rules, uncordon nodes and delete claims, each after a question.")
	f.output.AddTo(cmd)
	f.reading.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

// settings returns the settings in the user's file. Flags go before it.
func (f *topFlags) settings(cmd *cobra.Command) (tui.Settings, error) {
	path := tui.SettingsPath()
	if f.plain || path == "" {
		return tui.Settings{}, nil
	}
	c, err := tui.ReadSettings(path)
	if err != nil {
		return tui.Settings{}, cli.Usagef("Correct the file, or leave it out with --no-config. docs/top.md has all fields.", "%w", err)
	}
	for name, set := range map[string]struct{ file, flag *bool }{"mouse": {c.Mouse, &f.mouse}, "bell": {c.Bell, &f.bell}} {
		if set.file != nil && !cmd.Flags().Changed(name) {
			*set.flag = *set.file
		}
	}
	return c, nil
}

func (f *topFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*topOptions, error) {
	printer, err := f.output.ToPrinter(streams)
	switch {
	case err != nil:
		return nil, err
	case printer.Text.Wide:
		return nil, cli.Usagef("-o json has all there is.", "-o wide: the overview is as wide as the terminal")
	case printer.Names:
		return nil, cli.Usagef("Print names with -o jsonpath='{.stuck[*].name}'.", "-o name: an overview has no name")
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	settings, err := f.settings(cmd)
	if err != nil {
		return nil, err
	}
	_, isTerminal := cli.Terminal(streams.Out)
	_, canType := cli.Terminal(streams.In)
	once := f.once || printer.Machine != nil || !isTerminal || !canType || os.Getenv("TERM") == "dumb"
	return &topOptions{reader: reader, printer: printer, once: once, settings: settings, mouse: f.mouse, bell: f.bell, changes: f.changes, same: sameCluster(cmd), streams: streams}, nil
}

func (o *topOptions) run(ctx context.Context) error {
	opts := tui.Options{Namespace: o.reader.Only, Env: os.Getenv, Mouse: o.mouse, Color: o.printer.Text.Color, Bell: o.bell, Settings: o.settings}
	if !o.once {
		// Keys typed while a large file is read are for the dashboard.
		defer cli.NoEcho(o.streams.In)()
		if recorded, err := o.reader.Recording(ctx); recorded != nil || err != nil {
			return o.play(ctx, opts, recorded, err)
		}
	}
	if o.once || !o.reader.Live() {
		scope := cli.Scope{}
		if o.printer.Machine == nil {
			scope = scope.WithCauses()
		}
		from, err := o.reader.Read(ctx, scope)
		if err != nil {
			return err
		}
		opts.Name = from.Snap.Source
		if o.once {
			return o.printOnce(ctx, opts, from)
		}
		opts.Source, opts.Fixed = live.NewFixed(from.Snap), true
		return tui.Run(ctx, opts, o.streams.In, o.streams.Out)
	}
	// It ends when another cluster is chosen on the dashboard, and with it.
	following, leave := context.WithCancel(ctx)
	defer leave()
	others := &contexts{reader: o.reader, changes: o.changes}
	bar := cli.NewProgress(o.streams.ErrOut, "Connecting")
	connection, err := connectDashboard(following, o.reader.Config, o.reader, bar, others.changer(o.same))
	bar.Done()
	if err != nil {
		return err
	}
	opts.Source, opts.Name, opts.Changer = connection.Source, connection.Name, connection.Changer
	opts.Context, opts.Contexts, opts.Leave = collect.ContextOf(o.reader.Config), others, leave
	return tui.Run(ctx, opts, o.streams.In, o.streams.Out)
}

// play shows a recording.
func (o *topOptions) play(ctx context.Context, opts tui.Options, from *cli.Recorded, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	moments := func(ctx context.Context, t time.Time) iter.Seq2[recording.Moment, error] {
		return from.From(ctx, t, from.Options)
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Reading "+from.Name)
	past, err := live.NewPast(ctx, moments, from.Begins, from.At)
	bar.Done()
	if err != nil {
		return err
	}
	opts.Source, opts.Past, opts.Fixed, opts.Name = past, past, true, "recording "+from.Name
	return tui.Run(ctx, opts, o.streams.In, o.streams.Out)
}

// topAsks returns the resources that an overview cannot do without.
func topAsks() []string {
	return []string{snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims}
}

// printOnce prints the overview. It shows the claims of all namespaces that may
// be read, so that one namespace is enough.
func (o *topOptions) printOnce(ctx context.Context, opts tui.Options, from *cli.Source) error {
	gaps := cli.GapsIn(from.Snap, topAsks(), o.reader.Only, false)
	gapErr := &cli.GapError{Doing: "show the overview", Gaps: gaps, Live: o.reader.Live(), Partial: len(gaps) < len(topAsks())}
	if len(gaps) > 0 && !gapErr.Partial {
		return gapErr
	}
	var found *inventory.Overview
	var err error
	c := cluster.New(from.Snap)
	if o.printer.Machine == nil {
		found, err = tui.Once(ctx, opts, from.Snap, o.printer.Text.Width, o.streams.Out)
	} else if found, err = doctor.Overview(ctx, c, o.reader.Only); err == nil {
		if err = forecast.AddPlaceableTo(ctx, c, found.Capacity); err != nil {
			return err
		}
		if err = o.printer.Machine.PrintObj(&found.Overview, o.streams.Out); err != nil {
			err = fmt.Errorf("print the overview: %w", err)
		}
	}
	switch {
	case err != nil:
		return err
	case len(gaps) > 0:
		return gapErr
	case found.Unending != "":
		return &cli.UnendingError{Doing: "show the overview", Reason: found.Unending}
	default:
		return nil
	}
}

// contexts are the contexts of the kubeconfig.
type contexts struct {
	reader *cli.Reader
	// changes is true if changes may be asked for there, too.
	changes bool
}

// Names returns the names of all contexts.
func (c *contexts) Names() ([]string, error) {
	config, err := collect.Kubeconfig(c.reader.Config).RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(config.Contexts) == 0 {
		return nil, fmt.Errorf("read kubeconfig: it has no contexts")
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

// Connect connects to the cluster of a context. Flags that say which cluster and which
// user the first one was stay behind.
func (c *contexts) Connect(ctx context.Context, name string) (tui.Connection, error) {
	first := c.reader.Config
	flags := genericclioptions.NewConfigFlags(true)
	flags.Context = &name
	flags.KubeConfig, flags.CacheDir, flags.Timeout = first.KubeConfig, first.CacheDir, first.Timeout
	same := []string{"--context=" + shell.Quote(name)}
	if path := flags.KubeConfig; path != nil && *path != "" {
		same = append(same, "--kubeconfig="+shell.Quote(*path))
	}
	return connectDashboard(ctx, flags, c.reader, nil, c.changer(same))
}

// changer makes the changer of a connection; nil where no changes may be asked for.
func (c *contexts) changer(same []string) func(collect.Clients) *changer {
	if !c.changes {
		return nil
	}
	return func(clients collect.Clients) *changer { return &changer{clients: clients, flags: same} }
}

// connectDashboard reads a cluster and follows it until ctx is done.
func connectDashboard(ctx context.Context, flags *genericclioptions.ConfigFlags, reader *cli.Reader, progress *cli.Progress, changes func(collect.Clients) *changer) (tui.Connection, error) {
	clients, err := collect.NewClientsUntil(ctx, flags)
	if err != nil {
		return tui.Connection{}, cli.Usagef("Check --kubeconfig, --context and the other flags, or read a saved cluster with --snapshot.", "%w", err)
	}
	options := collect.Options{
		Gates: reader.Options.Gates, KubernetesVersion: reader.Options.KubernetesVersion,
		Namespace: clients.Namespace, ComputeDomains: true,
	}
	if progress != nil {
		progress.Say("Asking API server " + clients.Address())
		options.Progress = progress.Report
	}
	watcher, err := collect.Watch(ctx, clients, options)
	if err != nil {
		return tui.Connection{}, err
	}
	connection := tui.Connection{Source: watcher, Name: clients.Address()}
	if changes != nil {
		connection.Changer = changes(clients)
	}
	return connection, nil
}
