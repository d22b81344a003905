// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options configure the look.
//
// +k8s:deepcopy-gen=false
type Options struct {
	// Timeout limits one socket; 0 means DefaultTimeout.
	Timeout time.Duration
	// ListDevices asks device plugins for their devices. Some give each event to one
	// listener only, so that the kubelet may miss one.
	ListDevices bool
	// Kubelet has the kubelet's records of device plugins.
	Kubelet Records
}

// DefaultTimeout limits the answer of a socket. The kubelet gives up on a registration
// after 1 second.
const DefaultTimeout = 2 * time.Second

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, DefaultTimeout) }

// Look asks all sockets of a node for their name and services, and compares the answers
// with the slices of the cluster; snap is nil if there is none. It only fails if ctx ends.
func Look(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, opts Options) (*Findings, error) {
	f := &Findings{TypeMeta: typeMeta("NodePlugins"), Plugins: []Plugin{}}
	around := host.In(snap)
	if around != nil {
		f.Node = around.Node
	}
	registry := findSockets(ctx, host, path.Join(host.Kubelet, registryDir), checkRegistry)
	others := findSockets(ctx, host, path.Join(host.Kubelet, pluginsDir), checkOthers)
	f.Checks = slices.Concat(registry.checks, others.checks)

	f.Plugins = make([]Plugin, len(registry.paths))
	inTurn(len(registry.paths), func(i int) { f.Plugins[i] = askPlugin(ctx, host, registry.paths[i], opts) })
	named := map[string]bool{}
	for i := range f.Plugins {
		named[f.Plugins[i].Endpoint] = true
	}
	for _, path := range others.paths {
		if !named[path] {
			f.Others = append(f.Others, Socket{Path: path})
		}
	}
	inTurn(len(f.Others), func(i int) { f.Others[i].ask(ctx, host, nil, opts) })
	f.lookAtDevicePlugins(ctx, host, opts)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// An unread directory may have drivers.
	blind := len(registry.checks) > 0
	f.judge(host, blind)
	f.compare(snap, around, blind)
	f.compareDevices(snap, around, &opts.Kubelet)
	return f, nil
}

const (
	// maxDepth limits the depth of the search for sockets below a directory. The kubelet
	// looks at any depth below plugins_registry; drivers use one level.
	maxDepth = 4
	// maxSockets limits how many sockets of a directory are asked.
	maxSockets = 256
)

// found lists the entries of a directory that are, or should be, sockets.
type found struct {
	paths  []string
	checks []node.Check
}

// findSockets lists the entries below a directory of the kubelet that are sockets, links,
// or named like sockets. It skips directories with volumes.
func findSockets(ctx context.Context, host *node.Host, dir, check string) found {
	var all found
	volumes := path.Join(host.Kubelet, pluginsDir, "kubernetes.io")
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		if ctx.Err() != nil || len(all.paths) > maxSockets {
			return
		}
		entries, err := host.ReadDir(dir)
		if err != nil {
			if depth == 0 && errors.Is(err, fs.ErrNotExist) {
				all.checks = append(all.checks, node.NotKnown(check, dir, "there is no such directory: "+node.NoKubelet))
				return
			}
			all.checks = append(all.checks, node.Failed(check, dir, err))
			return
		}
		for _, entry := range entries {
			name := path.Join(dir, entry.Name())
			switch {
			case strings.HasPrefix(entry.Name(), "."):
				// The kubelet does not look at these either.
			case entry.IsDir():
				if name != volumes && depth < maxDepth {
					walk(name, depth+1)
				}
			case entry.Type() == fs.ModeSocket, entry.Type() == fs.ModeSymlink, strings.HasSuffix(entry.Name(), ".sock"):
				all.paths = append(all.paths, name)
			}
		}
	}
	walk(dir, 0)
	if len(all.paths) > maxSockets {
		all.checks = append(all.checks, node.NotKnown(check, dir, "there are more than %d sockets; the others were not asked", maxSockets))
		all.paths = all.paths[:maxSockets]
	}
	slices.Sort(all.paths)
	return all
}

// inTurn calls do n times, a few at once.
func inTurn(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	// None of them fails.
	_ = group.Wait()
}

// askPlugin asks a registration socket for its plugin, and the endpoint of a DRA driver for
// its services.
func askPlugin(ctx context.Context, host *node.Host, socket string, opts Options) Plugin {
	p := Plugin{Registration: Socket{Path: socket}}
	info, err := p.Registration.register(ctx, host, opts)
	if err != nil {
		return p
	}
	p.Type, p.Name = clip(info.GetType()), clip(info.GetName())
	p.Endpoint = cmp.Or(clip(info.GetEndpoint()), socket)
	p.Versions = info.GetSupportedVersions()
	if len(p.Versions) > maxVersions {
		p.Versions = p.Versions[:maxVersions]
	}
	for i := range p.Versions {
		p.Versions[i] = clip(p.Versions[i])
	}
	if !p.IsDRA() {
		return p
	}
	p.Service = &Socket{Path: p.Endpoint}
	if !path.IsAbs(p.Endpoint) {
		p.Service.Answer, p.Service.Message = node.NotAsked, "the endpoint is no absolute path"
		return p
	}
	p.Service.ask(ctx, host, p.Versions, opts)
	return p
}

// register makes the call that the kubelet makes when it finds the socket. It does not tell
// the plugin that it is registered: only the kubelet knows.
func (s *Socket) register(ctx context.Context, host *node.Host, opts Options) (*registerv1.PluginInfo, error) {
	s.looked(host)
	ctx, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	started := time.Now()
	c, err := dial(ctx, host, s.Path, host.Kubelet)
	if err != nil {
		s.outcome(0, err)
		return nil, err
	}
	defer c.close()
	info, err := registerv1.NewRegistrationClient(c).GetInfo(ctx, &registerv1.InfoRequest{})
	if err != nil {
		err = c.failed(err)
	}
	s.outcome(time.Since(started), err)
	return info, err
}

// ask connects to the endpoint of a driver. An endpoint in the directory of the kubelet
// must not lead out of it.
func (s *Socket) ask(ctx context.Context, host *node.Host, advertised []string, opts Options) {
	s.looked(host)
	ctx, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	c, err := dial(ctx, host, s.Path, inside(host, s.Path))
	if err != nil {
		s.outcome(0, err)
		return
	}
	defer c.close()
	s.askServices(ctx, c, advertised)
}

// inside returns the directory that a link must not lead out of: the kubelet's directory
// for a path in it, none for a path elsewhere, which a driver may use.
func inside(host *node.Host, socket string) string {
	if strings.HasPrefix(path.Clean(socket), path.Clean(host.Kubelet)+"/") {
		return host.Kubelet
	}
	return ""
}

// lookAtDevicePlugins lists the device plugins and asks them.
func (f *Findings) lookAtDevicePlugins(ctx context.Context, host *node.Host, opts Options) {
	dir := path.Clean(devicePluginsDir)
	entries, err := host.ReadDir(dir)
	switch {
	case err != nil && isGone(err):
		f.notKnown(checkDevices, dir, "there is no such directory, which every kubelet has: no kubelet runs here")
		return
	case err != nil:
		f.Checks = append(f.Checks, node.Failed(checkDevices, dir, err))
		return
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".sock") && name != "kubelet.sock" {
			f.DevicePlugins = append(f.DevicePlugins, DevicePlugin{Socket: Socket{Path: path.Join(dir, name)}})
		}
	}
	if len(f.DevicePlugins) > maxSockets {
		f.notKnown(checkDevices, dir, "there are more than %d sockets; the others were not asked", maxSockets)
		f.DevicePlugins = f.DevicePlugins[:maxSockets]
	}
	inTurn(len(f.DevicePlugins), func(i int) { f.DevicePlugins[i].ask(ctx, host, dir, opts.timeout(), opts.ListDevices) })
}

// isGone reports whether err means that a file does not exist.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
