// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package checkpoint

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	metadataDriver = "nic.example.com"
	metadataUID    = "3b0e7a51-5b0f-4f1e-9d8e-2f8c54a0c6d1"
	metadataAt     = "/var/lib/kubelet/plugins/" + metadataDriver + "/dra-device-metadata/ml_train/nics/metadata.json"
)

// keptDevice returns a device in the kubelet's checkpoint, with CDI devices.
func keptDevice(device, request string, cdi ...string) map[string]any {
	return map[string]any{"PoolName": "node-1", "DeviceName": device, "RequestNames": []string{request}, "CDIDeviceIDs": cdi}
}

// kept returns the kubelet's checkpoint with claim ml/train.
func kept(t *testing.T, devices ...map[string]any) []byte {
	t.Helper()
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	data := encode(map[string]any{
		"kind": "DRACheckpoint", "apiVersion": kubeletVersion,
		"ClaimInfoStateList": []any{map[string]any{
			"ClaimUID": metadataUID, "ClaimName": "train", "Namespace": "ml", "PodUIDs": map[string]any{"pod-1": map[string]any{}},
			"DriverState": map[string]any{metadataDriver: map[string]any{"Devices": devices}},
		}},
	})
	return []byte(encode(map[string]any{"Data": data, "Checksum": crc32.ChecksumIEEE([]byte(data))}))
}

// metadataFor returns a file as the upstream helper writes it.
func metadataFor(version, uid string, devices ...string) string {
	var list []string
	for _, device := range devices {
		list = append(list, fmt.Sprintf(`{"driver": %q, "pool": "node-1", "name": %q, "attributes": {"mtu": {"int": 9000}}}`, metadataDriver, device))
	}
	return fmt.Sprintf(`{"kind": "DeviceMetadata", "apiVersion": "metadata.resource.k8s.io/%s", "metadata": {"name": "train", "namespace": "ml", "uid": %q, "generation": 1},
		"requests": [{"name": "nics/fast", "devices": [%s]}]}`, version, uid, strings.Join(list, ","))
}

// TestMetadata holds the files for containers against the claims of the kubelet.
func TestMetadata(t *testing.T) {
	const handed = metadataDriver + "/metadata=" + metadataUID + "_nics"
	v1beta1 := func(uid string, devices ...string) string { return metadataFor("v1beta1", uid, devices...) }
	with, without := keptDevice("eth0", "nics", handed), keptDevice("eth0", "nics")
	for name, test := range map[string]struct {
		kept    map[string]any
		file    string
		newly   bool
		cluster []string
		state   node.State
		say     string
	}{
		"as it should be":              {with, v1beta1(metadataUID, "eth0"), false, nil, node.OK, "1 request with"},
		"as the claim":                 {with, v1beta1(metadataUID, "eth0"), false, []string{"eth0"}, node.OK, "1 request with"},
		"of an older driver":           {with, metadataFor("v1alpha1", metadataUID, "eth0"), false, nil, node.OK, "1 request with"},
		"a later version first":        {with, metadataFor("v2", metadataUID, "eth9") + v1beta1(metadataUID, "eth0"), false, nil, node.OK, "1 request with"},
		"only a later version":         {with, metadataFor("v2", metadataUID, "eth0"), false, nil, node.Problem, "v2"},
		"half of it":                   {with, v1beta1(metadataUID, "eth0")[:100], false, nil, node.Problem, "unexpected EOF"},
		"another device":               {with, v1beta1(metadataUID, "eth1"), false, nil, node.Problem, "other devices than the claim"},
		"a device is missing":          {with, v1beta1(metadataUID), false, nil, node.Problem, "other devices than the claim"},
		"a device that is not its own": {with, v1beta1(metadataUID, "eth0", "eth1"), false, nil, node.Problem, "other devices than the claim"},
		"not what is allocated":        {with, v1beta1(metadataUID, "eth0"), false, []string{"eth1"}, node.Problem, "other devices than the claim"},
		"of an earlier claim":          {with, v1beta1("old", "eth0"), false, nil, node.Problem, "of another claim of that name"},
		"no directory":                 {with, "", false, nil, node.Unknown, "has no directory"},
		"not handed to the runtime":    {without, v1beta1(metadataUID, "eth0"), false, nil, node.Unknown, "not handed to the runtime"},
		"left over":                    {without, v1beta1("old", "eth0"), false, nil, node.Problem, "left over"},
		"perhaps under way":            {without, v1beta1("new", "eth0"), true, nil, node.Unknown, "about to prepare it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeFiles(t).file(kubeletPath, kept(t, test.kept))
			if test.file != "" {
				s.file(metadataAt, []byte(test.file))
			}
			if now := time.Now(); test.newly {
				if err := os.Chtimes(s.at(metadataAt), now, now); err != nil {
					t.Fatal(err)
				}
			}
			f := Look(t.Context(), s.Host, allocatedNICs(test.cluster))
			if found(f, test.state, checkMetadata, test.say) == nil {
				t.Errorf("want %s with %q, got %+v", test.state, test.say, f.Checks)
			}
			if test.state == node.OK && (len(f.Metadata) != 1 || f.Metadata[0].Path != metadataAt || f.Metadata[0].UID != metadataUID || f.Metadata[0].Request != "nics") {
				t.Errorf("%+v", f.Metadata)
			}
		})
	}
	t.Run("none for a request", func(t *testing.T) {
		s := newNodeFiles(t).file(kubeletPath, kept(t, with, keptDevice("eth1", "others"))).file(metadataAt, []byte(v1beta1(metadataUID, "eth0")))
		f := s.look()
		if found(f, node.Unknown, checkMetadata, "request others of claim ml/train: driver nic.example.com has metadata for other requests and not here") == nil || found(f, node.OK, checkMetadata, "") == nil {
			t.Errorf("%+v", f.Checks)
		}
	})
	t.Run("the file is gone", func(t *testing.T) {
		other := strings.Replace(metadataAt, "ml_train", "ml_other", 1)
		s := newNodeFiles(t).file(kubeletPath, kept(t, with)).file(other, []byte(v1beta1("other", "eth0")))
		if check := found(s.look(), node.Problem, checkMetadata, "there is no such file"); check == nil || check.Path != metadataAt {
			t.Errorf("%+v", check)
		}
	})
	t.Run("a driver without metadata", func(t *testing.T) {
		f := newNodeFiles(t).file(kubeletPath, kept(t, without)).look()
		for _, state := range []node.State{node.OK, node.Problem, node.Unknown} {
			if check := found(f, state, checkMetadata, ""); check != nil {
				t.Errorf("%+v", check)
			}
		}
	})
}

// allocatedNICs returns a cluster in which claim ml/train has devices; nil for none.
func allocatedNICs(devices []string) *snapshot.Snapshot {
	if devices == nil {
		return nil
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: types.UID(metadataUID)}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "nics/fast", Driver: metadataDriver, Pool: "node-1", Device: device,
		})
	}
	return &snapshot.Snapshot{Claims: []*resourceapi.ResourceClaim{claim}}
}
