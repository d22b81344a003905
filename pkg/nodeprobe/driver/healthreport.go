// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
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
