// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// maxProcFile is far more than the size of the files of a process that are read here.
const maxProcFile = 64 << 10

// nameProcesses looks up the names and pods of processes in the node's /proc. A process
// that has ended meanwhile, or that only another PID namespace has, stays a number.
func nameProcesses(gpus []GPU, host *node.Host) {
	pod := regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:[./]|$)`)
	for i := range gpus {
		for j := range gpus[i].Operation.Processes {
			process := &gpus[i].Operation.Processes[j]
			dir := fmt.Sprintf("/proc/%d", process.PID)
			name, err := host.ReadFile(dir+"/comm", maxProcFile)
			if err != nil {
				continue
			}
			process.Name = strings.TrimSpace(string(name))
			groups, err := host.ReadFile(dir+"/cgroup", maxProcFile)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(groups)) {
				// The systemd driver writes the UID with underscores.
				if found := pod.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
					process.PodUID = strings.ReplaceAll(found[1], "_", "-")
					break
				}
			}
		}
	}
}
