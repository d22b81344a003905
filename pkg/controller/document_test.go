// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const metricsDocument = `# Metrics of dra-controller

[dra-controller](controller.md) exports these metrics, besides the usual ones of its process
(` + "`process_*`, `go_*`" + `) and of leader election (` + "`leader_election_master_status`" + `). They describe a
snapshot of the cluster at one moment. Only the replica that leads has these metrics, so that nothing
counts twice.

Codes are the reason codes and the codes of the checks that ` + "`kubectl dra status -o json`" + ` has;
states and severities are in lower case. Labels that are names from the cluster (` + "`class`, `driver`,\n`namespace`" + `) have at most %d values each: further names are ` + "`%s`" + `.

| metric | type | labels | meaning |
|---|---|---|---|
`

// TestMetricsDocument checks docs/metrics.md, which is written with -update.
func TestMetricsDocument(t *testing.T) {
	c, found := example(t)
	m := NewMetrics(1)
	m.publish(c, found, c.Snapshot.Now())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := Families()
	for _, family := range gathered {
		if slices.ContainsFunc(families, func(f Family) bool { return f.Name == family.GetName() }) {
			continue
		}
		f := Family{Name: family.GetName(), Help: family.GetHelp(), Type: prometheus.CounterValue}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			f.Type = prometheus.UntypedValue
		}
		for _, label := range family.GetMetric()[0].GetLabel() {
			f.Labels = append(f.Labels, label.GetName())
		}
		families = append(families, f)
	}
	slices.SortFunc(families, func(a, b Family) int { return cmp.Compare(a.Name, b.Name) })
	var text bytes.Buffer
	fmt.Fprintf(&text, metricsDocument, maxNames, otherNames)
	types := map[prometheus.ValueType]string{prometheus.GaugeValue: "gauge", prometheus.CounterValue: "counter", prometheus.UntypedValue: "histogram"}
	for _, f := range families {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", f.Name, types[f.Type], labels, strings.ReplaceAll(f.Help, "'", "`"))
	}
	same(t, "../../docs/metrics.md", text.Bytes())
}
