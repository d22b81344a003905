// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// gateMetric is the gauge of k8s.io/component-base/metrics/prometheus/feature:
	// kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1
	gateMetric = "kubernetes_feature_enabled"

	// A busy API server has tens of megabytes of metrics. These bound what a
	// hostile or broken one costs.
	maxMetricsBytes = 256 << 20
	maxMetricLine   = 4 << 10
	metricsTimeout  = 15 * time.Second
)

// errNoGateMetric is the answer of servers that hide their gates.
var errNoGateMetric = errors.New("the metrics of the API server do not include " + gateMetric)

// readGates asks the API server for its feature gates: for the one metric that
// has them. Servers that cannot choose send megabytes of others all the
// same.
func readGates(ctx context.Context, clients Clients) (map[string]snapshot.Gate, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	body, err := clients.Discovery.RESTClient().Get().AbsPath("/metrics").Param("name[]", gateMetric).SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return scanGates(io.LimitReader(body, maxMetricsBytes))
}

// KubeletGates asks the kubelet of a node, through the API server, for its feature gates
// that are known here. It takes the right to get nodes/proxy.
func KubeletGates(ctx context.Context, clients Clients, node string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	body, err := clients.Discovery.RESTClient().Get().AbsPath("/api/v1").Resource("nodes").Name(node).SubResource("proxy", "metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil, errors.New("this user may not get nodes/proxy")
	case err != nil:
		return nil, errors.New(describe(err))
	}
	defer func() { _ = body.Close() }()
	read, err := scanGates(io.LimitReader(body, maxMetricsBytes))
	switch {
	case errors.Is(err, errNoGateMetric):
		return nil, errors.New("the metrics of the kubelet do not include " + gateMetric)
	case err != nil:
		return nil, errors.New(describe(err))
	}
	gates := map[string]bool{}
	for name, gate := range read {
		gates[name] = gate.Enabled
	}
	return gates, nil
}

// scanGates picks the known feature gates out of Prometheus metrics in the
// text format. It reads up to the end of the one metric that has them and
// passes over lines that are malformed. It fails if there are no gates at all.
func scanGates(metrics io.Reader) (map[string]snapshot.Gate, error) {
	known := snapshot.KnownGates()
	gates := map[string]snapshot.Gate{}
	lines := bufio.NewReaderSize(metrics, maxMetricLine)
	seen := false
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		// One metric's lines stand together, so what follows is of no interest.
		relevant := bytes.HasPrefix(line, []byte(gateMetric+"{"))
		if seen && !relevant {
			break
		}
		seen = seen || relevant
		if relevant && !tooLong {
			if name, enabled, ok := parseGateLine(line); ok && slices.Contains(known, name) {
				gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromMetrics}
			}
		}
		for tooLong {
			_, err = lines.ReadSlice('\n')
			tooLong = errors.Is(err, bufio.ErrBufferFull)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(gates) == 0 {
		return nil, errNoGateMetric
	}
	return gates, nil
}

// parseGateLine reads one line of the text format. Each line is parsed on its
// own, because the parser gives up at the first malformed line.
func parseGateLine(line []byte) (name string, enabled, ok bool) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.MultiReader(bytes.NewReader(bytes.TrimRight(line, "\n")), bytes.NewReader([]byte("\n"))))
	if err != nil {
		return "", false, false
	}
	for _, metric := range families[gateMetric].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "name" {
				name = label.GetValue()
			}
		}
		// Without a TYPE line in front the parser calls it untyped.
		switch metric.GetUntyped().GetValue() {
		case 0:
			return name, false, true
		case 1:
			return name, true, true
		}
	}
	return "", false, false
}

// metricsGapReason says why the gates are not known.
func metricsGapReason(err error) string {
	switch {
	case errors.Is(err, errNoGateMetric):
		return err.Error()
	case apierrors.IsForbidden(err):
		return "this user may not get the URL /metrics of the API server"
	case apierrors.IsNotFound(err):
		return "the API server has no metrics"
	default:
		return fmt.Sprintf("the metrics of the API server could not be read: %s", describe(err))
	}
}
