// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Family is a metric with its labels.
type Family struct {
	Name, Help string
	Labels     []string
	Type       prometheus.ValueType
}

// The metrics of a snapshot, which is a cluster at one moment.
const (
	classDevices       = "dra_class_devices"
	driverDevices      = "dra_driver_devices"
	placeableDevices   = "dra_class_placeable_devices"
	placeableNodes     = "dra_class_placeable_nodes"
	pods               = "dra_pods"
	waitingPods        = "dra_waiting_pods"
	classWaitingPods   = "dra_class_waiting_pods"
	longestWait        = "dra_longest_wait_seconds"
	blockedPods        = "dra_blocked_pods"
	causes             = "dra_causes"
	causePods          = "dra_cause_pods"
	causeDevices       = "dra_cause_devices"
	causeNodes         = "dra_cause_nodes"
	namespaceDevices   = "dra_namespace_devices"
	namespaceIdle      = "dra_namespace_idle_devices"
	namespaceSeconds   = "dra_namespace_device_seconds_total"
	pools              = "dra_pools"
	evictionsDue       = "dra_evictions_due"
	gaps               = "dra_gaps"
	snapshotTime       = "dra_snapshot_timestamp_seconds"
	waitingPodSeconds  = "dra_waiting_pod_seconds"
	evaluationDelay    = "dra_evaluation_delay_seconds"
	evaluationsTotal   = "dra_evaluations_total"
	evaluationDuration = "dra_evaluation_duration_seconds"
	eventsTotal        = "dra_events_total"
)

// Families returns the metrics of a snapshot.
func Families() []Family {
	gauge := func(name, help string, labels ...string) Family {
		return Family{Name: name, Help: help, Labels: labels, Type: prometheus.GaugeValue}
	}
	return []Family{
		gauge(classDevices, "Devices of a DeviceClass by state, as 'kubectl dra classes' counts them. A device may be of several classes.", "class", "state"),
		gauge(driverDevices, "Devices of a driver by state, as 'kubectl dra pools' counts them.", "driver", "state"),
		gauge(placeableDevices, "Claims for one device of the class that the allocator can place now, each beside the others, for pods without tolerations.", "class"),
		gauge(placeableNodes, "Nodes that take at least so many claims for one device of the class.", "class", "size"),
		gauge(pods, "Pods that wait for devices and do not start now (waiting), that wait and fit now (starting), or that have devices and cannot work with them (blocked).", "state"),
		gauge(waitingPods, "Pods that wait for devices by reason code.", "code"),
		gauge(classWaitingPods, "Pods that wait for devices of a class by reason code. A pod that asks for several classes counts for each of them; (none) stands for a class that is not known yet.", "class", "code"),
		gauge(longestWait, "Age of the oldest pod that waits for devices of the class.", "class"),
		gauge(blockedPods, "Pods that have devices and cannot work with them, by reason code.", "code"),
		gauge(causes, "Causes behind pods that do not run and behind findings of 'kubectl dra doctor'. The actor is the user of a pod, an admin of the cluster, nobody if it only takes time, or unknown.", "code", "severity", "actor"),
		gauge(causePods, "Pods that suffer from causes. A pod may suffer from several.", "code", "severity", "actor"),
		gauge(causeDevices, "Devices that nobody can use because of causes.", "code", "severity", "actor"),
		gauge(causeNodes, "Nodes that nobody can use because of causes.", "code", "severity", "actor"),
		gauge(namespaceDevices, "Devices that claims of a namespace have.", "namespace", "class"),
		gauge(namespaceIdle, "Devices of claims that no existing pod uses.", "namespace", "class"),
		{Name: namespaceSeconds, Help: "Time for which claims of a namespace had devices, each device counted by itself. Time in which the controller did not know the cluster does not count.", Labels: []string{"namespace", "class"}, Type: prometheus.CounterValue},
		gauge(pools, "Pools of a driver by state, as 'kubectl dra pools' prints them.", "driver", "state"),
		gauge(evictionsDue, "Pods that are going to be evicted because of taints of devices."),
		gauge(gaps, "Resources that the controller could not read, so that the metrics may be incomplete."),
		gauge(snapshotTime, "Unix time of the snapshot of the cluster that the metrics describe."),
		gauge(waitingPodSeconds, "Age of a pod that waits for devices, of the oldest ones; only with --pod-metrics.", "namespace", "pod", "code"),
		gauge(evaluationDelay, "Time by which the next evaluation of the cluster is put off, to bound the cost; 0 while the budget does not matter."),
	}
}

// Metrics are the metrics of the controller. They are a collector of Prometheus, and are safe for
// concurrent use.
type Metrics struct {
	families    map[string]Family
	descs       map[string]*prometheus.Desc
	evaluations *prometheus.CounterVec
	duration    prometheus.Histogram
	events      *prometheus.CounterVec
	podsMost    int

	mu sync.Mutex
	// current has the metrics of the last snapshot, nil before the first.
	current []prometheus.Metric
	// delay is by how much the next evaluation is put off.
	delay   time.Duration
	seconds deviceSeconds
	names   names
}

// NewMetrics makes metrics of no snapshot. With podsMost, there is a metric for each of so many
// waiting pods.
func NewMetrics(podsMost int) *Metrics {
	m := &Metrics{
		families: map[string]Family{}, descs: map[string]*prometheus.Desc{}, podsMost: podsMost,
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: evaluationsTotal, Help: "Evaluations of the cluster: ok, or error if it could not be read."}, []string{"result"}),
		duration:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: evaluationDuration, Help: "Time that evaluations of the cluster take.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 7)}),
		events:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: eventsTotal, Help: "Events on pods: published, removed, delayed by the limit of events per second, or failed."}, []string{"result"}),
		seconds:     deviceSeconds{of: map[usageKey]*usageTime{}}, names: names{},
	}
	for _, f := range Families() {
		m.families[f.Name], m.descs[f.Name] = f, prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	for _, result := range []string{"ok", "error"} {
		m.evaluations.WithLabelValues(result)
	}
	for _, result := range []string{eventPublished, eventRemoved, eventDelayed, eventFailed} {
		m.events.WithLabelValues(result)
	}
	return m
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range m.descs {
		to <- desc
	}
	m.evaluations.Describe(to)
	m.duration.Describe(to)
	m.events.Describe(to)
}

// Collect sends all metrics. Before the first snapshot, as on a replica that does not lead, there is
// none of a snapshot.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	current, delay := m.current, m.delay
	m.mu.Unlock()
	for _, metric := range current {
		to <- metric
	}
	if current != nil {
		to <- m.metric(sample{evaluationDelay, delay.Seconds(), nil})
	}
	m.evaluations.Collect(to)
	m.duration.Collect(to)
	m.events.Collect(to)
}

// publish replaces the metrics of the snapshot, which is of the given time.
func (m *Metrics) publish(c *cluster.Cluster, found *cause.Found, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	samples := describe(c, found, at, m.podsMost)
	samples = append(samples, m.seconds.add(found.Examination.Inventory.Teams(), at)...)
	m.current = make([]prometheus.Metric, 0, len(samples))
	for _, s := range m.names.bound(samples, m.families, at) {
		m.current = append(m.current, m.metric(s))
	}
}

func (m *Metrics) metric(s sample) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.descs[s.name], m.families[s.name].Type, s.value, s.labels...)
}

// evaluated counts an evaluation.
func (m *Metrics) evaluated(took time.Duration) {
	m.evaluations.WithLabelValues("ok").Inc()
	m.duration.Observe(took.Seconds())
}

// failed counts an evaluation that failed.
func (m *Metrics) failed() { m.evaluations.WithLabelValues("error").Inc() }

// delayed notes by how much the next evaluation is put off.
func (m *Metrics) delayed(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = by
}
