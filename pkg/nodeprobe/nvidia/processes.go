// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// maxProcFile is far more than the size of the files in /proc that are read here.
const maxProcFile = 64 << 10

// nameProcesses looks up the names and pods of processes in the node's /proc. A process
// that has ended meanwhile, or that only another PID namespace has, stays a number.
func nameProcesses(gpus []GPU, host *node.Host) {
	for i := range gpus {
		for j := range gpus[i].Operation.Processes {
			process := &gpus[i].Operation.Processes[j]
			name, err := host.ReadFile(fmt.Sprintf("/proc/%d/comm", process.PID), maxProcFile)
			if err != nil {
				continue
			}
			process.Name = strings.TrimSpace(string(name))
			process.PodUID = host.PodOf(process.PID)
		}
	}
}
