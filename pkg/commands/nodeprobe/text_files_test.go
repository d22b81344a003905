// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestNodeEscaped puts what would move the cursor everywhere that a node has a
// say.
func TestNodeEscaped(t *testing.T) {
	const evil = "a\x1b[2Jb\u202ec\r\nd"
	checks := []node.Check{{State: node.Problem, Message: evil, Path: evil, Found: evil, Required: evil}}
	edits := cdi.Edits{
		DeviceNodes: []cdi.DeviceNode{{Path: evil, HostPath: evil + "x", Type: evil, State: cdi.Different, Found: evil}},
		Mounts:      []cdi.Mount{{HostPath: evil, ContainerPath: evil, Options: []string{evil}, State: cdi.Present}},
		Hooks:       []cdi.Hook{{Name: evil, Path: evil, Args: []string{evil, evil}, State: cdi.NotSeen, Found: evil}},
		NetDevices:  []cdi.NetDevice{{HostInterface: evil, Name: "x"}}, Env: []string{evil}, IntelRDT: evil,
	}
	var out bytes.Buffer
	opts := render.Options{Width: 80, Wide: true}
	for _, err := range []error{
		writeCDI(&out, &cdi.Findings{
			Node: evil, Checks: checks, Directories: []cdi.Directory{{Path: evil}},
			Specs:  []cdi.Spec{{Path: evil, Devices: []cdi.Device{{ID: evil, ClaimUID: evil, Edits: edits}}}},
			Claims: []cdi.Claim{{UID: evil, Namespace: evil, Name: evil}},
		}, opts),
		writeCDI(&out, &cdi.Findings{Resolved: []cdi.Resolution{{ID: evil, Error: evil}, {ID: evil, Edits: &edits}}}, opts),
		writePods(&out, &kubelet.Findings{Node: evil, Socket: evil, Checks: checks, Pods: []kubelet.Pod{{Namespace: evil, Name: evil, Containers: []kubelet.Container{{
			Name: evil, Claims: []kubelet.Claim{{Name: evil, Devices: []kubelet.Device{{Driver: evil, Pool: evil, Device: evil, CDIDevices: []string{evil}}}}},
			Devices: []kubelet.Resource{{Name: evil, IDs: []string{evil}}}, Memory: []kubelet.Memory{{Type: evil}},
		}}}}, Allocatable: []kubelet.Resource{{Name: evil, IDs: []string{evil}}}}, opts),
		writeState(&out, &checkpoint.Findings{Node: evil, BootID: evil, Checks: checks, Devices: &checkpoint.DeviceCheckpoint{
			Path: evil, Resources: []checkpoint.DeviceResource{{Name: evil, IDs: []string{evil}}},
			Containers: []checkpoint.DeviceContainer{{PodUID: evil, Namespace: evil, Pod: evil, Container: evil, Resource: evil, Devices: []checkpoint.NUMADevice{{ID: evil}}}},
		}, Metadata: []checkpoint.Metadata{{
			Path: evil, Driver: evil, Namespace: evil, Name: evil, UID: evil, Request: evil, Version: evil, Devices: []checkpoint.Device{{Pool: evil, Device: evil}},
		}}, Drivers: []checkpoint.Checkpoint{{
			Path: evil, Driver: evil, Versions: []string{evil},
			Claims: []checkpoint.Claim{{UID: evil, Namespace: evil, Name: evil, State: evil, PodUIDs: []string{evil}, Devices: []checkpoint.Device{{Driver: evil, CDIDevices: []string{evil}}}}},
		}}}, opts),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\r\u202e") {
		t.Errorf("what a node says reaches the terminal as it is: %q", out.String())
	}
}
