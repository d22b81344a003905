// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
)

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
