// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/report"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

const (
	// servePause is how long changes are collected before the page is made again.
	servePause = 2 * time.Second
	// headerTimeout bounds how long a browser takes to say what it wants.
	headerTimeout = 10 * time.Second
)

// checkServe checks the address of --serve: a port of this machine that nobody else reaches.
func checkServe(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Usagef("Write 127.0.0.1:PORT, or 127.0.0.1:0 for any port.", "read --serve: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("Use 127.0.0.1, [::1] or localhost; others reach it with 'kubectl port-forward' or ssh -L.",
			"read --serve: %q is not an address of this machine alone", host)
	}
	return nil
}

// serveUntil serves the page until the context is done. The page of a cluster follows its changes.
func (o *reportOptions) serveUntil(ctx context.Context) error {
	var from *cli.Source
	var watcher *collect.Watcher
	var err error
	if o.reader.Live() {
		watcher, _, err = o.reader.Watch(ctx, cli.Scope{AllNamespaces: true, ComputeDomains: true, Evicts: true, Ends: true})
	} else {
		from, err = o.reader.Read(ctx, reportScope())
	}
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.serve)
	if err != nil {
		return fmt.Errorf("serve the report: %w", err)
	}
	site := report.NewServer(rand.Text())
	server := &http.Server{Handler: site, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		err := server.Serve(listener)
		cancel()
		failed <- err
	}()
	options := report.Options{Namespace: o.reader.Only, Version: o.version, Follows: watcher != nil}
	announced := false
	show := func(ctx context.Context, snap *snapshot.Snapshot) error {
		if err := site.Show(ctx, cluster.New(snap), options); err != nil || announced {
			return err
		}
		announced = true
		_, err := fmt.Fprintf(o.streams.Out, "http://%s%s\n", listener.Addr(), site.Path())
		return err
	}
	if watcher != nil {
		err = o.followPage(ctx, watcher, site, show)
	} else if err = show(ctx, from.Snap); err == nil {
		<-ctx.Done()
	}
	if closing := server.Close(); err == nil && closing != nil {
		err = fmt.Errorf("serve the report: %w", closing)
	}
	if serving := <-failed; err == nil && !errors.Is(serving, http.ErrServerClosed) {
		err = fmt.Errorf("serve the report: %w", serving)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// followPage makes the page again after changes.
func (o *reportOptions) followPage(ctx context.Context, watcher *collect.Watcher, site *report.Server, show func(context.Context, *snapshot.Snapshot) error) error {
	following := &cli.Follower{Watcher: watcher, Kind: "the cluster", Beside: o.streams.ErrOut, Pause: servePause}
	return following.Follow(ctx, func(ctx context.Context) error {
		if _, trouble := watcher.Trouble(); trouble != nil {
			site.Lost("The connection to the cluster is lost; this is the last that is known.")
			return nil
		}
		snap, err := watcher.Problems(ctx)
		if err != nil {
			return err
		}
		return show(ctx, snap)
	})
}
