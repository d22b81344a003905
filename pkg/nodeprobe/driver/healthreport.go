// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Health lists what the drivers of a node report about their devices.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Health struct {
	metav1.TypeMeta `json:",inline"`

	// Drivers are the drivers that register with the kubelet.
	Drivers []DriverHealth `json:"drivers"`
	Checks  []node.Check   `json:"checks"`
}

// DriverHealth is the report of one driver.
type DriverHealth struct {
	Driver string `json:"driver"`
	// Endpoint is the socket that was asked.
	Endpoint string `json:"endpoint"`
	// Service is the version of the API, empty if the driver has none.
	Service string `json:"service,omitempty"`
	// NoService means that the driver does not report health, which it need not.
	NoService bool `json:"noService,omitempty"`
	// ReportedAt is the time of the last report, nil if there is none.
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
	// Devices are the reported devices, by pool and name.
	Devices []DeviceHealth `json:"devices,omitempty"`
	// Error says why there is no report, or why there are no more.
	Error string `json:"error,omitempty"`
}

// DeviceHealth is the health of one device.
type DeviceHealth struct {
	Pool   string `json:"pool"`
	Device string `json:"device"`
	// Health is Healthy, Unhealthy or Unknown.
	Health HealthStatus `json:"health"`
	// Message is the driver's message.
	Message string `json:"message,omitempty"`
	// UpdatedAt is when the driver noticed the health, nil if it does not say.
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// TimeoutSeconds is the time without a report after which the kubelet takes the health
	// to be unknown.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// Pods lists what the status of pods says about the device.
	Pods []PodHealth `json:"pods,omitempty"`
}

// HealthStatus is the health of a device in the words of the pod's status.
type HealthStatus string

// The health that drivers report.
const (
	Healthy       HealthStatus = "Healthy"
	Unhealthy     HealthStatus = "Unhealthy"
	UnknownHealth HealthStatus = "Unknown"
)

// Names of checks.
const (
	checkStream  = "health/stream"
	checkHealth  = "health/devices"
	checkPodSays = "health/pods"
)

// Reports reports whether any driver reports health, or did.
func (h *Health) Reports() bool {
	return slices.ContainsFunc(h.Drivers, func(d DriverHealth) bool { return !d.NoService })
}

// HealthChange is a change of a device's health.
//
// +k8s:deepcopy-gen=false
type HealthChange struct {
	Driver string
	DeviceHealth
	// From is the previous health, empty for a device that was not reported before.
	From HealthStatus
}

// Since lists the changes since before.
func (h *Health) Since(before *Health) []HealthChange {
	known := map[[3]string]DeviceHealth{}
	for _, d := range before.Drivers {
		for _, device := range d.Devices {
			known[[3]string{d.Endpoint, device.Pool, device.Device}] = device
		}
	}
	var changes []HealthChange
	for _, d := range h.Drivers {
		for _, device := range d.Devices {
			old := known[[3]string{d.Endpoint, device.Pool, device.Device}]
			if old.Health != device.Health || old.Message != device.Message {
				changes = append(changes, HealthChange{Driver: d.Driver, DeviceHealth: device, From: old.Health})
			}
		}
	}
	return changes
}

// PodHealth is the health of a device in the status of a pod (allocatedResourcesStatus,
// KEP-4680).
type PodHealth struct {
	Namespace string       `json:"namespace"`
	Pod       string       `json:"pod"`
	Container string       `json:"container"`
	Claim     string       `json:"claim"`
	Health    HealthStatus `json:"health"`
	Message   string       `json:"message,omitempty"`
}

// judge turns the reports of drivers into checks, and adds the health from the pods of the
// snapshot.
func (h *Health) judge(snap *snapshot.Snapshot) {
	for i := range h.Drivers {
		d := &h.Drivers[i]
		switch {
		case d.NoService:
			h.Checks = append(h.Checks, node.Good(checkStream, d.Endpoint, "driver %s does not report the health of its devices, which is optional: nothing is known of it", d.Driver))
			continue
		case d.Error != "":
			h.Checks = append(h.Checks, node.Bad(checkStream, d.Endpoint, "driver %s: %s", d.Driver, d.Error))
		case d.ReportedAt != nil:
			h.Checks = append(h.Checks, node.Good(checkStream, d.Endpoint, "driver %s reports %s by %s", d.Driver, english.Count(len(d.Devices), "device"), d.Service))
		default:
			h.Checks = append(h.Checks, node.NotKnown(checkStream, d.Endpoint, "driver %s has not sent a report yet", d.Driver))
		}
		for j := range d.Devices {
			h.judgeDevice(d, &d.Devices[j], snap)
		}
	}
	if snap == nil {
		h.Checks = append(h.Checks, node.NotKnown(checkPodSays, "", "no cluster and no snapshot was read: what the pods say was not compared"))
	} else if gap := snap.Gap(snapshot.ResourcePods); gap != nil {
		h.Checks = append(h.Checks, node.NotKnown(checkPodSays, "", "what all pods say is not known: %s", gap.Reason))
	}
}

func (h *Health) judgeDevice(d *DriverHealth, device *DeviceHealth, snap *snapshot.Snapshot) {
	name := d.Driver + "/" + device.Pool + "/" + device.Device
	said := ""
	if device.Message != "" {
		said = ": " + device.Message
	}
	switch device.Health {
	case Healthy:
	case Unhealthy:
		h.Checks = append(h.Checks, node.Bad(checkHealth, "", "%s is unhealthy%s", name, said))
	case UnknownHealth:
		h.Checks = append(h.Checks, node.NotKnown(checkHealth, "", "%s is neither healthy nor unhealthy%s", name, said))
	}
	if snap == nil {
		return
	}
	device.Pods = podsSay(snap, d.Driver, device)
	for _, pod := range device.Pods {
		if pod.Health == device.Health {
			continue
		}
		check := node.NotKnown(checkPodSays, "", "pod %s/%s says that %s is %s, the driver that it is %s", pod.Namespace, pod.Pod, name, pod.Health, device.Health)
		check.Found, check.Required = string(pod.Health), string(device.Health)
		if device.UpdatedAt != nil && !snap.TakenAt.IsZero() && snap.TakenAt.After(device.UpdatedAt.Time) {
			// The pod was read after the report.
			check.State = node.Problem
		}
		h.Checks = append(h.Checks, check)
	}
}

// podsSay returns the health of a device in the status of pods. If a request has several
// devices, the kubelet names one only if the driver gives it no CDI name: then nothing is
// known.
func podsSay(snap *snapshot.Snapshot, driver string, device *DeviceHealth) []PodHealth {
	var said []PodHealth
	id := driver + "/" + device.Pool + "/" + device.Device
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			if r := &results[i]; r.Driver != driver || r.Pool != device.Pool || r.Device != device.Device {
				continue
			}
			for _, user := range claim.Status.ReservedFor {
				pod := snap.Pod(claim.Namespace, user.Name)
				if user.Resource != "pods" || pod == nil || pod.UID != user.UID {
					continue
				}
				for _, s := range podSays(pod, claim, &results[i], id) {
					if !slices.Contains(said, s) {
						said = append(said, s)
					}
				}
			}
		}
	}
	return said
}

// podSays returns the entries of one pod for an allocated device.
func podSays(pod *corev1.Pod, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult, id string) []PodHealth {
	results := claim.Status.Allocation.Devices.Results
	request := resourceclaim.BaseRequestRef(result.Request)
	sameRequest := 0
	for i := range results {
		if resourceclaim.BaseRequestRef(results[i].Request) == request {
			sameRequest++
		}
	}
	// among counts the devices of each entry that has the device.
	among := map[corev1.ResourceName]int{}
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil || *name != claim.Name {
			continue
		}
		entry := "claim:" + pod.Spec.ResourceClaims[i].Name
		among[corev1.ResourceName(entry)] = len(results)
		among[corev1.ResourceName(entry+"/"+request)] = sameRequest
	}
	var said []PodHealth
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, entry := range status.AllocatedResourcesStatus {
			devices, ours := among[entry.Name]
			for _, health := range entry.Resources {
				if !ours || devices != 1 && string(health.ResourceID) != id {
					continue
				}
				s := PodHealth{Namespace: pod.Namespace, Pod: pod.Name, Container: status.Name, Claim: claim.Name, Health: HealthStatus(health.Health)}
				if health.Message != nil {
					s.Message = *health.Message
				}
				said = append(said, s)
			}
		}
	}
	return said
}
