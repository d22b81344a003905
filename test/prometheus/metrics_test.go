// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubectl-dra/kubectl-dra/pkg/controller"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// described are the names and labels in the text of a [client.Desc].
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", .*variableLabels: \{([^}]*)\}\}$`)

// metrics returns the names of all metrics that the controller describes, as Prometheus has
// them, and their labels.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	descs := make(chan *client.Desc)
	go func() {
		defer close(descs)
		controller.NewMetrics(0).Describe(descs)
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}).Describe(descs)
	}()
	all := map[string][]string{}
	for desc := range descs {
		found := described.FindStringSubmatch(desc.String())
		if found == nil {
			t.Fatalf("cannot read %s", desc)
		}
		var labels []string
		if found[2] != "" {
			labels = strings.Split(found[2], ",")
		}
		all[found[1]] = labels
	}
	const histogram = "dra_evaluation_duration_seconds"
	all[histogram+"_bucket"] = slices.Concat(all[histogram], []string{"le"})
	all[histogram+"_sum"], all[histogram+"_count"] = all[histogram], all[histogram]
	delete(all, histogram)
	return all
}

// registry returns the metrics of a controller that has evaluated the example cluster.
func registry(t *testing.T) *client.Registry {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	flags, address := genericclioptions.NewConfigFlags(true), exampleServer(t)
	flags.APIServer, flags.CacheDir = &address, new(t.TempDir())
	clients, err := collect.NewClients(flags)
	if err != nil {
		t.Fatal(err)
	}
	logger, ctx := ktesting.NewTestContext(t)
	follower := &controller.Follower{Clients: clients, Metrics: controller.NewMetrics(3), Log: logger, Every: 100 * time.Millisecond}
	r := client.NewRegistry()
	r.MustRegister(follower.Metrics, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	awaitMetric(t, r, "dra_snapshot_timestamp_seconds")
	return r
}

// awaitMetric waits until a registry has a metric.
func awaitMetric(t *testing.T, r client.Gatherer, name string) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-again.C {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == name && family.GetType() != dto.MetricType_UNTYPED {
				return
			}
		}
	}
	t.Fatalf("there was no %s in a minute", name)
}
