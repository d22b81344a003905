// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// NetworkText returns the network interface of a device with its addresses, empty for none.
func NetworkText(status *api.DeviceStatus) string {
	if status == nil {
		return ""
	}
	text := status.Interface
	for _, ip := range status.IPs {
		text += " " + ip
	}
	if status.HardwareAddress != "" {
		text += " " + status.HardwareAddress
	}
	return strings.TrimSpace(text)
}

// DataText returns the driver's own data about a device, empty for none. It has at most 10
// KiB, as the API server accepts it, and is shown in full.
func DataText(status *api.DeviceStatus) string {
	if status == nil || len(status.Data) == 0 {
		return ""
	}
	return "data " + string(status.Data)
}

// OddConditions returns the unexpected conditions of a device; said writes one.
func OddConditions(status *api.DeviceStatus, said func(*metav1.Condition) string) []string {
	if status == nil {
		return nil
	}
	var texts []string
	for i := range status.Conditions {
		if c := &status.Conditions[i]; slices.Contains(status.Odd, c.Type) {
			texts = append(texts, said(c))
		}
	}
	return texts
}
