// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
)

// metrics returns the names of all metrics and their labels.
func metrics(*testing.T) map[string][]string {
	return map[string][]string{
		"dra_class_devices":                  {"class", "state"},
		"dra_driver_devices":                 {"driver", "state"},
		"dra_class_placeable_devices":        {"class"},
		"dra_class_placeable_nodes":          {"class", "size"},
		"dra_pods":                           {"state"},
		"dra_waiting_pods":                   {"class", "code"},
		"dra_longest_wait_seconds":           {"class"},
		"dra_blocked_pods":                   {"code"},
		"dra_causes":                         {"code", "severity"},
		"dra_cause_pods":                     {"code", "severity"},
		"dra_cause_devices":                  {"code", "severity"},
		"dra_namespace_devices":              {"namespace", "class"},
		"dra_namespace_idle_devices":         {"namespace", "class"},
		"dra_namespace_device_seconds_total": {"namespace", "class"},
		"dra_pools":                          {"driver", "state"},
		"dra_evictions_due":                  nil,
		"dra_unread":                         nil,
		"dra_picture_timestamp_seconds":      nil,
		"dra_looks_total":                    {"result"},
		"dra_look_duration_seconds_bucket":   {"le"},
		"dra_look_duration_seconds_sum":      nil,
		"dra_look_duration_seconds_count":    nil,
		"dra_look_delay_seconds":             nil,
		"dra_events_total":                   {"result"},
		"dra_waiting_pod_seconds":            {"namespace", "pod", "code"},
		"process_cpu_seconds_total":          nil,
		"process_resident_memory_bytes":      nil,
	}
}

func registry(t *testing.T) *client.Registry {
	r := client.NewRegistry()
	for name, labels := range metrics(t) {
		vec := client.NewGaugeVec(client.GaugeOpts{Name: name, Help: name}, labels)
		r.MustRegister(vec)
		values := make([]string, len(labels))
		for i := range values {
			values[i] = "1"
		}
		vec.WithLabelValues(values...).Set(1)
	}
	return r
}
