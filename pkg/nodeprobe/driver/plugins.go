// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Findings are the plugins of a node and whether they answer.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name that the node has in the cluster, empty if unknown.
	Node string `json:"node,omitempty"`
	// Plugins are those that register with the kubelet, by socket.
	Plugins []Plugin `json:"plugins"`
	// Others are the sockets in the directory for plugins that no registration
	// names.
	Others []Socket `json:"others,omitempty"`
	// DevicePlugins are the sockets of plugins of the older kind.
	DevicePlugins []Socket     `json:"devicePlugins,omitempty"`
	Checks        []node.Check `json:"checks"`
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: api.APIVersion, Kind: kind}
}

// Plugin is something that registers with the kubelet.
type Plugin struct {
	// Registration is the socket in plugins_registry.
	Registration Socket `json:"registration"`
	// Type is DRAPlugin, CSIPlugin or DevicePlugin. It is empty, as all that
	// follows, if the socket did not answer.
	Type string `json:"type,omitempty"`
	// Name is that of the driver.
	Name string `json:"name,omitempty"`
	// Endpoint is where the kubelet calls it.
	Endpoint string `json:"endpoint,omitempty"`
	// Versions are the services that it advertises, such as v1.DRAPlugin.
	Versions []string `json:"versions,omitempty"`
	// Service is the socket at the endpoint of a DRA driver.
	Service *Socket `json:"service,omitempty"`
}

// IsDRA reports whether it is a DRA driver.
func (p *Plugin) IsDRA() bool { return p.Type == registerv1.DRAPlugin }

// Options say how to look.
//
// +k8s:deepcopy-gen=false
type Options struct {
	// Timeout is how long one socket may take; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is how long a socket may take to answer. The kubelet gives
// up on a registration after 1 second.
const DefaultTimeout = 2 * time.Second

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, DefaultTimeout) }

const (
	// parallel is how many sockets are asked at the same time.
	parallel = 8
	// maxVersions is how many services a plugin may advertise before the rest is
	// left out, and maxName how long its name may be.
	maxVersions = 32
	maxName     = 253
)

// The names of the checks.
const (
	checkRegistry   = "plugins/registry"
	checkRegistered = "plugins/registration"
	checkEndpoint   = "plugins/endpoint"
	checkVersions   = "plugins/versions"
	checkDuplicates = "plugins/duplicates"
	checkOthers     = "plugins/unregistered"
	checkAccess     = "plugins/permissions"
	checkSlices     = "plugins/slices"
	checkDevices    = "plugins/device-plugins"
)

// Look asks all sockets of a node who they are and whether they answer, and
// holds it against the slices of the cluster; snap is nil if there is none. It
// only fails if ctx ends.
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
	// A directory that was not read has drivers, or has not.
	blind := len(registry.checks) > 0
	f.judge(host, blind)
	f.compare(snap, around, blind)
	return f, nil
}

// inTurn does something n times, a few at once.
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

// askPlugin asks a registration socket who is behind it, and a DRA driver at its
// endpoint which services it has.
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

// register makes the call that the kubelet makes when it finds the socket. It
// does not tell the plugin that it is registered: only the kubelet knows.
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

// ask connects to the endpoint of a driver. One in the directory of the kubelet
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

// inside is the directory that a link must not lead out of: that of the kubelet
// for a path in it, none for one elsewhere, which a driver may use.
func inside(host *node.Host, socket string) string {
	if strings.HasPrefix(path.Clean(socket), path.Clean(host.Kubelet)+"/") {
		return host.Kubelet
	}
	return ""
}

// lookAtDevicePlugins lists the plugins of the older kind. They are asked for
// their options and not for their devices: a second listener can take an event
// away from the kubelet.
func (f *Findings) lookAtDevicePlugins(ctx context.Context, host *node.Host, opts Options) {
	dir := path.Clean(devicePluginsDir)
	entries, err := host.ReadDir(dir)
	switch {
	case err != nil && isGone(err):
		f.Checks = append(f.Checks, node.Unseen(checkDevices, dir, "there is no such directory, which every kubelet has: no kubelet runs here"))
		return
	case err != nil:
		f.Checks = append(f.Checks, node.Failed(checkDevices, dir, err))
		return
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".sock") && name != "kubelet.sock" {
			f.DevicePlugins = append(f.DevicePlugins, Socket{Path: path.Join(dir, name)})
		}
	}
	if len(f.DevicePlugins) > maxSockets {
		f.Checks = append(f.Checks, node.Unseen(checkDevices, dir, "there are more than %d sockets; the others were not asked", maxSockets))
		f.DevicePlugins = f.DevicePlugins[:maxSockets]
	}
	inTurn(len(f.DevicePlugins), func(i int) {
		s := &f.DevicePlugins[i]
		s.looked(host)
		ctx, cancel := context.WithTimeout(ctx, opts.timeout())
		defer cancel()
		started := time.Now()
		c, err := dial(ctx, host, s.Path, dir)
		if err == nil {
			defer c.close()
			if _, err = devicepluginv1beta1.NewDevicePluginClient(c).GetDevicePluginOptions(ctx, &devicepluginv1beta1.Empty{}); err != nil {
				err = c.failed(err)
			}
		}
		s.outcome(time.Since(started), err)
	})
}

// drivers are the plugins that are DRA drivers, by name.
func (f *Findings) drivers() map[string][]*Plugin {
	byName := map[string][]*Plugin{}
	for i := range f.Plugins {
		if p := &f.Plugins[i]; p.IsDRA() {
			byName[p.Name] = append(byName[p.Name], p)
		}
	}
	return byName
}

// sorted are the keys of a map, in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// speed says how fast something answered.
func speed(s *Socket) string { return fmt.Sprintf("answers in %.0f ms", max(s.AnswerMillis, 1)) }
