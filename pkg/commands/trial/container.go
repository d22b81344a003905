// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"path"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
)

// Contents lists the parts of a container that a claim can add.
type Contents struct {
	// Env is its environment.
	Env map[string]string
	// Devices are its device files, each as "c 195:0".
	Devices map[string]string
	// Mounts are the mount points.
	Mounts map[string]bool
}

// Lines that begin the parts of [LookCommand]'s output.
const (
	markDevices = "kubectl-dra devices"
	markMounts  = "kubectl-dra mounts"
)

// LookCommand returns the command that prints a container's contents, for [ParseContents].
// paths are device files outside of /dev to look at.
func LookCommand(paths []string) []string {
	const script = `cat /proc/self/environ
echo; echo "$1"
ls -lnR /dev 2>/dev/null
echo; echo "$2"
shift 2
for path in "$@"; do ls -lnd "$path" 2>/dev/null; done
cat /proc/self/mountinfo`
	return append([]string{"sh", "-c", script, "sh", markDevices, markMounts}, paths...)
}

// ParseContents parses the output of [LookCommand]. It fails if a part is missing.
func ParseContents(text string) (*Contents, error) {
	env, rest, found := strings.Cut(text, "\n"+markDevices+"\n")
	devices, mounts, complete := strings.Cut(rest, "\n"+markMounts+"\n")
	if !found || !complete {
		return nil, fmt.Errorf("read what the container has: it ended early: %q", text[:min(len(text), 200)])
	}
	c := &Contents{Env: map[string]string{}, Devices: map[string]string{}, Mounts: map[string]bool{}}
	for entry := range strings.SplitSeq(env, "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			c.Env[name] = value
		}
	}
	dir := ""
	for line := range strings.Lines(devices) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "/") && strings.HasSuffix(line, ":") {
			dir = strings.TrimSuffix(line, ":")
			continue
		}
		c.addDevice(dir, line)
	}
	for line := range strings.Lines(mounts) {
		// See proc_pid_mountinfo(5): the fifth field is the mount point.
		if fields := strings.Fields(line); len(fields) > 6 && strings.HasPrefix(fields[4], "/") && strings.Contains(fields[2], ":") {
			c.Mounts[unescapeMount(fields[4])] = true
			continue
		}
		c.addDevice("", strings.TrimRight(line, "\n"))
	}
	return c, nil
}

// addDevice reads a line of ls -ln, if it describes a device: "crw-rw-rw- 1 0 0 1, 3 Nov 24
// 23:00 null".
func (c *Contents) addDevice(dir, line string) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[0][0] != 'c' && fields[0][0] != 'b' || !strings.HasSuffix(fields[4], ",") {
		return
	}
	c.Devices[path.Join(dir, strings.Join(fields[9:], " "))] = fmt.Sprintf("%c %s:%s", fields[0][0], strings.TrimSuffix(fields[4], ","), fields[5])
}

// unescapeMount undoes the kernel's escapes for blanks.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// Added returns the contents that another container lacks, which come from the claim: "env
// X=1", "device /dev/x", "mount /y".
func (c *Contents) Added(other *Contents) []string {
	var added []string
	for name, value := range c.Env {
		if was, ok := other.Env[name]; !ok || was != value {
			added = append(added, "env "+name+"="+value)
		}
	}
	for file := range c.Devices {
		if _, ok := other.Devices[file]; !ok {
			added = append(added, "device "+file)
		}
	}
	for mount := range c.Mounts {
		if _, isDevice := c.Devices[mount]; !isDevice && !other.Mounts[mount] {
			added = append(added, "mount "+mount)
		}
	}
	slices.Sort(added)
	return added
}

// Differences returns the edits that a container lacks. unseen lists edits that cannot be
// seen in a container.
func (c *Contents) Differences(object api.ObjectRef, all []*cdi.Edits) (lacking []api.Evidence, unseen []string) {
	lack := func(path, found, required string) {
		lacking = append(lacking, api.Evidence{Object: object, Path: path, Found: found, Required: required})
	}
	hooks := 0
	for _, edits := range all {
		for _, entry := range edits.Env {
			name, value, _ := strings.Cut(entry, "=")
			// Of several devices with the same name the last one wins.
			if have, ok := c.Env[name]; !ok {
				lack("env "+name, "none", value)
			} else if have != value && !anySets(all, entry, name, have) {
				lack("env "+name, have, value)
			}
		}
		for i := range edits.DeviceNodes {
			node := &edits.DeviceNodes[i]
			required := strings.TrimSpace(node.Type + " " + node.Number)
			have, ok := c.Devices[node.Path]
			if !ok {
				lack("device "+node.Path, "none", orPresent(required))
			} else if node.Type != "" && node.Number != "" && have != required {
				lack("device "+node.Path, have, required)
			}
		}
		for i := range edits.Mounts {
			if mount := &edits.Mounts[i]; !c.Mounts[path.Clean(mount.ContainerPath)] {
				lack("mount "+mount.ContainerPath, "none", "a mount of "+mount.HostPath)
			}
		}
		hooks += len(edits.Hooks)
		for _, device := range edits.NetDevices {
			unseen = append(unseen, "network interface "+device.Name)
		}
	}
	if hooks > 0 {
		unseen = append(unseen, "what "+english.Count(hooks, "hook")+" did")
	}
	return lacking, unseen
}

func orPresent(text string) string {
	if text == "" {
		return "present"
	}
	return text
}

// anySets reports whether another entry than one sets a variable to a value.
func anySets(all []*cdi.Edits, entry, name, value string) bool {
	return slices.ContainsFunc(all, func(edits *cdi.Edits) bool {
		return slices.ContainsFunc(edits.Env, func(other string) bool { return other != entry && other == name+"="+value })
	})
}

// Intruding returns the edits that a container has although it has no claim.
func (c *Contents) Intruding(object api.ObjectRef, all []*cdi.Edits) []api.Evidence {
	var found []api.Evidence
	add := func(path, have string) {
		found = append(found, api.Evidence{Object: object, Path: path, Found: have, Required: "none"})
	}
	for _, edits := range all {
		for _, entry := range edits.Env {
			name, value, _ := strings.Cut(entry, "=")
			if have, ok := c.Env[name]; ok && have == value {
				add("env "+name, value)
			}
		}
		for i := range edits.DeviceNodes {
			if have, ok := c.Devices[edits.DeviceNodes[i].Path]; ok {
				add("device "+edits.DeviceNodes[i].Path, have)
			}
		}
		for i := range edits.Mounts {
			if c.Mounts[path.Clean(edits.Mounts[i].ContainerPath)] {
				add("mount "+edits.Mounts[i].ContainerPath, "mounted")
			}
		}
	}
	return found
}

// DevicePaths returns the device files outside of /dev.
func DevicePaths(all []*cdi.Edits) []string {
	var paths []string
	for _, edits := range all {
		for i := range edits.DeviceNodes {
			if p := edits.DeviceNodes[i].Path; !strings.HasPrefix(p, "/dev/") {
				paths = append(paths, p)
			}
		}
	}
	return paths
}
