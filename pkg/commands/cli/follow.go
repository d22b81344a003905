// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// lostTimeout is how long the program tries to restore a lost connection: longer than an API
// server takes to restart.
const lostTimeout = 2 * time.Minute

// Follower looks at a cluster each time that it has changed.
type Follower struct {
	Watcher *collect.Watcher
	// Kind names the watched objects.
	Kind string
	// Beside is where lost connections are reported.
	Beside io.Writer
	// Pause is how long changes are collected before the next look, at least.
	Pause time.Duration
	lost  bool
}

// Watch reads the cluster of the flags, and follows it until the context is done.
func (r *Reader) Watch(ctx context.Context, what Scope) (*collect.Watcher, collect.Clients, error) {
	clients, err := collect.NewClients(r.Config)
	if err != nil {
		return nil, clients, Usagef("Check --kubeconfig, --context and the other flags.", "%w", err)
	}
	watcher, err := collect.Watch(ctx, clients, collect.Options{
		Gates: r.Options.Gates, KubernetesVersion: r.Options.KubernetesVersion,
		Namespace: clients.Namespace, AllNamespaces: what.AllNamespaces, Only: what.Only, ComputeDomains: what.ComputeDomains, Evicts: what.Evicts, Ends: what.Ends,
	})
	return watcher, clients, err
}

// Follow looks at the cluster, and again after each change, until the context is done. About a
// fifth of the time goes into looking. A lost connection is reported once, and again when it is
// back; it is an error if it stays lost.
func (f *Follower) Follow(ctx context.Context, look func(context.Context) error) error {
	const (
		share   = 4
		longest = 15 * time.Second
	)
	for {
		if err := f.connection(); err != nil {
			return err
		}
		began := time.Now()
		if err := look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		pause := max(f.Pause, min(longest, share*time.Since(began)))
		if err := f.changed(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// changed waits for a change, or for the end of the context. It fails if a lost connection does
// not come back.
func (f *Follower) changed(ctx context.Context) error {
	var late <-chan time.Time
	since, trouble := f.Watcher.Trouble()
	if trouble != nil {
		timer := time.NewTimer(lostTimeout - time.Since(since))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ctx.Done():
		return nil
	case <-f.Watcher.Changed():
		return nil
	case <-late:
		return fmt.Errorf("watch %s: no connection for %s: %w", f.Kind, duration.HumanDuration(lostTimeout), trouble)
	}
}

// connection reports that the connection is lost, or back.
func (f *Follower) connection() error {
	_, trouble := f.Watcher.Trouble()
	lost := trouble != nil
	if lost == f.lost {
		return nil
	}
	f.lost = lost
	text := "Connected again."
	if lost {
		text = fmt.Sprintf("%v\nTrying again for up to %s; what was printed is the last that is known.", trouble, duration.HumanDuration(lostTimeout))
	}
	if _, err := fmt.Fprintln(f.Beside, render.EscapeLines(text)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
