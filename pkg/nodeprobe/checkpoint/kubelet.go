// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// kubeletVersion is the supported version (pkg/kubelet/cm/dra/state/checkpoint.go), which
// kubelets write since 1.32.
const kubeletVersion = "checkpoint.dra.kubelet.k8s.io/v1"

// kubeletFile is dra_manager_state. The names of its fields have capitals.
type kubeletFile struct {
	// Data is JSON in a string, Checksum the checksum of that string.
	Data     *string
	Checksum uint64
	// Entries and Version are from kubelets before 1.32.
	Entries json.RawMessage `json:"entries"`
	Version string          `json:"version"`
}

type kubeletData struct {
	Kind               string `json:"kind"`
	APIVersion         string `json:"apiVersion"`
	ClaimInfoStateList []kubeletClaim
}

type kubeletClaim struct {
	ClaimUID    string
	ClaimName   string
	Namespace   string
	PodUIDs     map[string]struct{}
	DriverState map[string]struct {
		Devices []struct {
			PoolName     string
			DeviceName   string
			ShareID      *string
			RequestNames []string
			CDIDeviceIDs []string
		}
	}
}

// errVersion means that this program does not know the version of a file.
var errVersion = errors.New("this program does not know it")

// parseKubelet reads dra_manager_state into c. A wrong checksum is no error.
func parseKubelet(data []byte, c *Checkpoint) error {
	var file kubeletFile
	if err := json.Unmarshal(data, &file); err != nil {
		return node.JSONFault(err)
	}
	if file.Data == nil {
		if file.Entries == nil {
			return errors.New("it is no checkpoint: there is no Data in it")
		}
		c.Versions = []string{file.Version}
		return fmt.Errorf("version %q is from before Kubernetes 1.32, and %w", file.Version, errVersion)
	}
	c.Checksums = []Checksum{{Found: file.Checksum, Expected: uint64(crc32.ChecksumIEEE([]byte(*file.Data)))}}
	var content kubeletData
	if err := json.Unmarshal([]byte(*file.Data), &content); err != nil {
		return fmt.Errorf("read Data: %w", node.JSONFault(err))
	}
	c.Versions = []string{content.APIVersion}
	if content.APIVersion != kubeletVersion {
		return fmt.Errorf("version %q of %q: %w", content.APIVersion, content.Kind, errVersion)
	}
	for i := range content.ClaimInfoStateList {
		c.Claims = append(c.Claims, content.ClaimInfoStateList[i].claim())
	}
	return nil
}

func (k *kubeletClaim) claim() Claim {
	claim := Claim{UID: k.ClaimUID, Namespace: k.Namespace, Name: k.ClaimName, State: NoDevices}
	for uid := range k.PodUIDs {
		claim.PodUIDs = append(claim.PodUIDs, uid)
	}
	slices.Sort(claim.PodUIDs)
	for driver, state := range k.DriverState {
		for _, d := range state.Devices {
			device := Device{Driver: driver, Pool: d.PoolName, Device: d.DeviceName, Requests: d.RequestNames, CDIDevices: d.CDIDeviceIDs}
			if d.ShareID != nil {
				device.ShareID = *d.ShareID
			}
			claim.Devices = append(claim.Devices, device)
			claim.State = PrepareCompleted
		}
	}
	slices.SortStableFunc(claim.Devices, compareDevices)
	return claim
}
