// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// The directories of the kubelet with sockets, below its root.
const (
	registryDir = "plugins_registry"
	pluginsDir  = "plugins"
)

// devicePluginsDir is the same for every kubelet, whatever its root directory
// (NewManagerImpl, pkg/kubelet/cm/devicemanager).
const devicePluginsDir = devicepluginv1beta1.DevicePluginPath

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

// looked records the type of the file at a path, and reports whether everyone may connect
// to it.
func (s *Socket) looked(host *node.Host) (exposed bool) {
	info, err := host.Stat(s.Path)
	if err != nil {
		return false
	}
	s.Mode = info.Mode().String()
	if info.Mode().Type() != fs.ModeSocket || info.Mode().Perm()&0o002 == 0 {
		return false
	}
	// A process that may not enter one of the directories does not reach it.
	here, err := host.Here(s.Path)
	if err != nil {
		return false
	}
	for dir := path.Dir(here); len(dir) > len(path.Clean(host.Root)); dir = path.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

// isGone reports whether err means that a file does not exist.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
