// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	// metadataDir is the directory of a driver with the metadata of devices, in which each
	// request of a claim has NAMESPACE_CLAIM/REQUEST/metadata.json (metadataSubDir,
	// kubeletplugin/metadata.go of k8s.io/dynamic-resource-allocation).
	metadataDir  = "dra-device-metadata"
	metadataFile = "metadata.json"
	// metadataClass is the class of the CDI devices that mount these files.
	metadataClass = "/metadata="
	// maxMetadata limits the number of files that are read.
	maxMetadata = 10000
)

// metadataPath returns the path of the metadata for a request.
func metadataPath(plugins, driver string, claim *Claim, request string) string {
	return path.Join(plugins, driver, metadataDir, claim.Namespace+"_"+claim.Name, request, metadataFile)
}

// parse reads the first object of a file that this program knows, as containers do.
func (m *Metadata) parse(data []byte) error {
	var content metadata.DeviceMetadata
	var version schema.GroupVersionKind
	if err := devicemetadata.DecodeMetadataFromStream(json.NewDecoder(bytes.NewReader(data)), &content, devicemetadata.DecodeMetadataStoreGVKResult(&version)); err != nil {
		return fmt.Errorf("read the metadata of devices: %w", err)
	}
	m.Version, m.UID, m.Namespace, m.Name = version.Version, string(content.UID), content.Namespace, content.Name
	for i := range content.Requests {
		for _, d := range content.Requests[i].Devices {
			m.Devices = append(m.Devices, Device{Driver: d.Driver, Pool: d.Pool, Device: d.Name, Requests: []string{content.Requests[i].Name}})
		}
	}
	slices.SortStableFunc(m.Devices, compareDevices)
	return nil
}

// words returns the metadata's name in messages.
func (m *Metadata) words() string {
	return fmt.Sprintf("the metadata of driver %s for request %s of claim %s/%s", m.Driver, m.Request, m.Namespace, m.Name)
}

// metadataComparison compares the metadata of devices with the claims that the kubelet
// keeps, and with their allocations.
type metadataComparison struct {
	*Findings

	cluster *node.Cluster
	plugins string
	// files has the files by path, handed the paths that the kubelet hands to the runtime.
	files  map[string]*Metadata
	handed map[string]bool
	// dirs are the drivers with a directory for metadata, drivers the drivers with metadata.
	dirs, drivers map[string]bool
	good          int
	unknowns      node.Unknowns
}

// compareMetadata compares the metadata of devices. Without the kubelet's claims nothing can
// be compared. dirs are the drivers with a directory for it.
func (f *Findings) compareMetadata(cluster *node.Cluster, plugins string, dirs map[string]bool) {
	if f.Kubelet == nil || f.Kubelet.Error != "" {
		return
	}
	c := &metadataComparison{Findings: f, cluster: cluster, plugins: plugins, dirs: dirs, files: map[string]*Metadata{}, handed: map[string]bool{}, drivers: map[string]bool{}}
	for i := range f.Metadata {
		c.files[f.Metadata[i].Path] = &f.Metadata[i]
		c.drivers[f.Metadata[i].Driver] = true
	}
	for i := range f.Kubelet.Claims {
		for _, want := range f.Kubelet.Claims[i].requests() {
			c.request(&f.Kubelet.Claims[i], want)
		}
	}
	for i := range f.Metadata {
		if m := &f.Metadata[i]; !c.handed[m.Path] && m.Error == "" {
			c.leftOver(m)
		}
	}
	f.Checks = append(f.Checks, c.unknowns.Checks(checkMetadata)...)
	if c.good > 0 {
		f.Checks = append(f.Checks, node.Good(checkMetadata, "", "%s with the metadata of its devices", english.Count(c.good, "request")))
	}
}

// preparedRequest is a request of a claim for which a driver has prepared devices.
type preparedRequest struct {
	driver, name string
	devices      []Device
	// metadata is true if the kubelet hands its metadata to the runtime.
	metadata bool
}

// requests returns the requests of a claim of the kubelet, by driver.
func (c *Claim) requests() []preparedRequest {
	var all []preparedRequest
	for i := range c.Devices {
		d := &c.Devices[i]
		for _, name := range d.Requests {
			name = resourceclaim.BaseRequestRef(name)
			at := slices.IndexFunc(all, func(r preparedRequest) bool { return r.driver == d.Driver && r.name == name })
			if at < 0 {
				at = len(all)
				all = append(all, preparedRequest{driver: d.Driver, name: name})
			}
			all[at].devices = append(all[at].devices, *d)
			all[at].metadata = all[at].metadata || slices.Contains(d.CDIDevices, d.Driver+metadataClass+c.UID+"_"+name)
		}
	}
	return all
}

// request compares the metadata for one request.
func (c *metadataComparison) request(claim *Claim, want preparedRequest) {
	file := metadataPath(c.plugins, want.driver, claim, want.name)
	m := c.files[file]
	switch {
	case !want.metadata && !c.drivers[want.driver]:
		return
	case !want.metadata && m == nil:
		c.unknowns.Add(fmt.Sprintf("request %s of %s", want.name, claim.words()),
			fmt.Sprintf("driver %s has metadata for other requests and not here: the claim was prepared before the driver had any, or the driver could not write it, which its log says", want.driver))
		return
	case !want.metadata:
		return
	}
	c.handed[file] = true
	switch {
	case m == nil && !c.dirs[want.driver]:
		c.unknowns.Add(fmt.Sprintf("request %s of %s", want.name, claim.words()), fmt.Sprintf("driver %s has no directory %s: its metadata is elsewhere, or gone", want.driver, path.Join(c.plugins, want.driver, metadataDir)))
	case m == nil:
		c.Checks = append(c.Checks, node.Bad(checkMetadata, file, "driver %s gives containers the metadata for request %s of %s, and there is no such file: they do not start", want.driver, want.name, claim.words()))
	case m.Error != "":
		// A check says so.
	case m.UID != claim.UID:
		check := node.Bad(checkMetadata, file, "%s is of another claim of that name: containers learn of devices that they do not have", m.words())
		check.Found, check.Required = m.UID, claim.UID
		c.Checks = append(c.Checks, check)
	default:
		c.devices(m, claim, want)
	}
}

// devices compares the devices of the metadata with the prepared devices, and with the
// allocation of the claim if it is known.
func (c *metadataComparison) devices(m *Metadata, claim *Claim, want preparedRequest) {
	prepared, allowed := deviceNames(want.devices), deviceNames(want.devices)
	if known := c.cluster.Claim(claim.UID); known != nil && known.Status.Allocation != nil {
		allowed = nil
		for i := range known.Status.Allocation.Devices.Results {
			if r := &known.Status.Allocation.Devices.Results[i]; r.Driver == want.driver && resourceclaim.BaseRequestRef(r.Request) == want.name {
				allowed = append(allowed, r.Pool+"/"+r.Device)
			}
		}
	}
	found := deviceNames(m.Devices)
	wrong := slices.ContainsFunc(found, func(name string) bool { return !slices.Contains(allowed, name) }) ||
		slices.ContainsFunc(prepared, func(name string) bool { return !slices.Contains(found, name) })
	if !wrong {
		c.good++
		return
	}
	check := node.Bad(checkMetadata, m.Path, "%s has other devices than the claim", m.words())
	check.Found, check.Required = strings.Join(found, ", "), strings.Join(allowed, ", ")
	c.Checks = append(c.Checks, check)
}

func deviceNames(devices []Device) []string {
	names := make([]string, 0, len(devices))
	for i := range devices {
		if name := devices[i].Pool + "/" + devices[i].Device; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// leftOver judges metadata that the kubelet does not hand to the runtime.
func (c *metadataComparison) leftOver(m *Metadata) {
	kept := slices.ContainsFunc(c.Kubelet.Claims, func(claim Claim) bool { return claim.UID == m.UID })
	switch {
	case kept:
		c.Checks = append(c.Checks, node.NotKnown(checkMetadata, m.Path, "%s is not handed to the runtime: the claim is not prepared yet, or the driver did not name it in its reply", m.words()))
	case m.Modified != nil && time.Since(m.Modified.Time) < underway:
		c.Checks = append(c.Checks, node.NotKnown(checkMetadata, m.Path, "%s is of a claim that the kubelet does not know yet: the driver may be about to prepare it", m.words()))
	default:
		c.Checks = append(c.Checks, node.Bad(checkMetadata, m.Path, "%s is left over: the kubelet knows nothing of the claim", m.words()))
	}
}
