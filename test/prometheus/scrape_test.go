// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/teststorage"
)

// scrapeConfig is the configuration that the Prometheus Operator makes of the ServiceMonitor, as
// far as it matters to the labels.
const scrapeConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: dra-controller
  honor_labels: true
`

// prometheusOf is a Prometheus with the metrics of a program.
type prometheusOf struct {
	engine  *promql.Engine
	storage *teststorage.TestStorage
}

// scraped returns a Prometheus whose scraper has read the metrics of a registry.
func scraped(t *testing.T, registry client.Gatherer) *prometheusOf {
	t.Helper()
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheusOf{storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)}
	cfg, err := config.Load(scrapeConfig, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: model.Duration(time.Millisecond)}, nil, nil, nil, p.storage, client.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.ApplyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	targets := make(chan map[string][]*targetgroup.Group, 1)
	targets <- map[string][]*targetgroup.Group{"dra-controller": {{
		Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address.Host)}},
		Labels:  model.LabelSet{"namespace": "kubectl-dra", "pod": "dra-controller-0", "service": "dra-controller", "endpoint": "metrics"},
	}}}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(targets) }()
	t.Cleanup(func() {
		manager.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for len(p.query(ctx, t, `up{job="dra-controller"} == 1`)) == 0 {
		for _, target := range manager.TargetsActive()["dra-controller"] {
			if err := target.LastError(); err != nil {
				t.Fatalf("scrape: %v", err)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("nothing was scraped in a minute")
		}
	}
	return p
}

// query returns the value of an expression now.
func (p *prometheusOf) query(ctx context.Context, t *testing.T, expr string) promql.Vector {
	t.Helper()
	q, err := p.engine.NewInstantQuery(ctx, p.storage, nil, expr, time.Now())
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	value, err := q.Exec(ctx).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(value)
}

// TestScrape evaluates each expression of the alerts and of the dashboard in a Prometheus that
// has scraped the metrics of the example cluster.
func TestScrape(t *testing.T) {
	p := scraped(t, registry(t))
	for _, q := range queries(t) {
		value := p.query(t.Context(), t, q.expr)
		// The others are true in an alert, take two scrapes, or are of things that are not there.
		if strings.HasPrefix(q.from, "panel") && len(value) == 0 && !strings.Contains(q.expr, "rate(") && !strings.Contains(q.expr, "increase(") && !strings.Contains(q.expr, "dra_blocked_pods") {
			t.Errorf("%s: %s has no value", q.from, q.expr)
		}
	}
	for expr, want := range map[string]float64{
		`sum(dra_class_devices{class="gpu.example.com"})`:                  60,
		`sum(dra_class_devices{class="gpu.example.com", state="free"})`:    25,
		`max(dra_class_placeable_devices{class="gpu.example.com"})`:        13,
		`sum(dra_pods{state=~"waiting|starting"})`:                         10,
		`sum(dra_pools{driver="gpu.example.com", state="incomplete"})`:     1,
		`sum(dra_namespace_devices{namespace="storage"})`:                  7,
		`count(dra_waiting_pod_seconds{namespace!="kubectl-dra"})`:         3,
		`count({__name__=~"dra_.*", exported_namespace!=""}) or vector(0)`: 0,
		`count(dra_pods{namespace="kubectl-dra", pod="dra-controller-0"})`: 3,
		// This API server has no metrics, which tell the feature gates.
		`max(dra_gaps)`: 1,
	} {
		if value := p.query(t.Context(), t, expr); len(value) != 1 || value[0].F != want {
			t.Errorf("%s is %s, want %v", expr, value, want)
		}
	}
}
