// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/dump"

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

// errForm means that a file is not in the format of the NVIDIA driver.
var errForm = errors.New("it is not in the form of the NVIDIA driver's checkpoint")

// member is a member of a JSON object. Their order matters for checksums.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf splits a JSON object, one level deep.
func membersOf(data []byte) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil {
		return nil, node.JSONFault(err)
	} else if token != json.Delim('{') {
		return nil, errForm
	}
	var members []member
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, node.JSONFault(err)
		}
		name, isString := token.(string)
		if !isString {
			return nil, errForm
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, node.JSONFault(err)
		}
		members = append(members, member{name, value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, node.JSONFault(err)
	}
	return members, nil
}

func find(members []member, name string) json.RawMessage {
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// checksumOf returns the checksum that the kubelet's checkpointmanager computes for bytes
// (pkg/kubelet/checkpointmanager/checksum), as drivers use it, too.
func checksumOf(members []member) (uint64, error) {
	var object bytes.Buffer
	object.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			object.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return 0, err
		}
		object.Write(name)
		object.WriteByte(':')
		// The checksum is zero while it is computed.
		if m.name == "checksum" {
			object.WriteByte('0')
		} else if err := json.Compact(&object, m.value); err != nil {
			return 0, err
		}
	}
	object.WriteByte('}')
	hash := fnv.New32a()
	// Writing to a hash does not fail.
	_, _ = hash.Write([]byte(dump.ForHash(object.Bytes())))
	return uint64(hash.Sum32()), nil
}

// checksum returns the checksum of a part of a file, nil if it has none.
func checksum(of string, members []member) (*Checksum, error) {
	raw := find(members, "checksum")
	if raw == nil {
		return nil, nil //nolint:nilnil // a part without one is not at fault
	}
	found, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return nil, errors.New("the checksum is not a number")
	}
	wanted, err := checksumOf(members)
	if err != nil {
		return nil, fmt.Errorf("compute the checksum: %w", err)
	}
	return &Checksum{Of: of, Found: found, Expected: wanted}, nil
}

// parseDriver reads checkpoint.json into c. The checksum of the file is made
// without v2, which has one of its own (cmd/gpu-kubelet-plugin/checkpoint.go).
// A wrong one is no error.
func parseDriver(data []byte, c *Checkpoint) error {
	members, err := membersOf(data)
	if err != nil {
		return err
	}
	var first, unknown []member
	for _, m := range members {
		switch {
		case m.name == "checksum" || m.name == "v1":
			first = append(first, m)
		case m.name != "v2":
			unknown = append(unknown, m)
		}
		if isVersion(m.name) {
			c.Versions = append(c.Versions, m.name)
		}
	}
	if find(members, "checksum") == nil {
		return errForm
	}
	sum, err := checksum("", first)
	if err != nil {
		return err
	}
	c.Checksums = append(c.Checksums, *sum)
	newest := find(members, "v1")
	if second := find(members, "v2"); second != nil {
		newest = second
		parts, err := membersOf(second)
		if err != nil {
			return fmt.Errorf("v2: %w", err)
		}
		if sum, err = checksum("v2", parts); err != nil {
			return fmt.Errorf("v2: %w", err)
		}
		if sum != nil {
			c.Checksums = append(c.Checksums, *sum)
		}
	}
	if err := c.content(newest); err != nil {
		return err
	}
	for _, m := range unknown {
		if isVersion(m.name) {
			return fmt.Errorf("version %q: %w; what older versions have is shown", m.name, errVersion)
		}
	}
	return nil
}

// isVersion reports whether a member has the content of the file in one version.
func isVersion(name string) bool {
	number, ok := strings.CutPrefix(name, "v")
	_, err := strconv.Atoi(number)
	return ok && err == nil
}

// driverContent is the content of v1 and v2; v1 has no state and no names.
type driverContent struct {
	PreparedClaims map[string]json.RawMessage `json:"preparedClaims"`
	NodeBootID     string                     `json:"nodeBootID"`
}

type driverClaim struct {
	CheckpointState ClaimState                      `json:"checkpointState"`
	Status          resourceapi.ResourceClaimStatus `json:"status"`
	PreparedDevices json.RawMessage                 `json:"preparedDevices"`
	Name            string                          `json:"name"`
	Namespace       string                          `json:"namespace"`
}

// driverDevice is the driver's answer to the kubelet about a device.
type driverDevice struct {
	Requests     []string
	PoolName     string
	DeviceName   string
	ShareID      string
	CDIDeviceIDs []string
}

func (c *Checkpoint) content(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var content driverContent
	if err := json.Unmarshal(raw, &content); err != nil {
		return fmt.Errorf("read what is prepared: %w", node.JSONFault(err))
	}
	c.BootID = content.NodeBootID
	for uid, raw := range content.PreparedClaims {
		c.Claims = append(c.Claims, claimFrom(c.Driver, uid, raw))
	}
	slices.SortFunc(c.Claims, func(a, b Claim) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	return nil
}

// claimFrom reads a prepared claim. Other drivers may have other content; that the claim
// exists is known all the same.
func claimFrom(driver, uid string, raw json.RawMessage) Claim {
	claim := Claim{UID: uid, State: PrepareCompleted}
	var content driverClaim
	if err := json.Unmarshal(raw, &content); err != nil {
		return claim
	}
	claim.Name, claim.Namespace = content.Name, content.Namespace
	claim.State = cmp.Or(content.CheckpointState, PrepareCompleted)
	claim.Devices = devicesFrom(driver, content.PreparedDevices)
	if len(claim.Devices) > 0 || content.Status.Allocation == nil {
		return claim
	}
	// Nothing is prepared yet: these devices are to be prepared.
	for i := range content.Status.Allocation.Devices.Results {
		if r := &content.Status.Allocation.Devices.Results[i]; r.Driver == driver {
			claim.Devices = append(claim.Devices, Device{Driver: r.Driver, Pool: r.Pool, Device: r.Device, Requests: []string{r.Request}})
		}
	}
	return claim
}

// devicesFrom reads groups of devices, each of which has the driver's data under the name
// of its type (cmd/gpu-kubelet-plugin/prepared.go).
func devicesFrom(driver string, raw json.RawMessage) []Device {
	var groups []struct {
		Devices []map[string]*struct {
			Device *driverDevice `json:"device"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		return nil
	}
	var devices []Device
	for _, group := range groups {
		for _, types := range group.Devices {
			for _, typed := range types {
				if typed == nil || typed.Device == nil {
					continue
				}
				d := typed.Device
				devices = append(devices, Device{
					Driver: driver, Pool: d.PoolName, Device: d.DeviceName, ShareID: d.ShareID,
					Requests: d.Requests, CDIDevices: d.CDIDeviceIDs,
				})
			}
		}
	}
	slices.SortStableFunc(devices, compareDevices)
	return devices
}
