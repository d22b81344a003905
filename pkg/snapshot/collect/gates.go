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
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
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

// readComponents reads the pods of the control plane once more, with their arguments,
// which lists of pods come without, and notes on those that are known which feature
// gates they set. It takes no other right than the list of pods. It needs the pods.
func readComponents(ctx context.Context, r *reader, s *snapshot.Snapshot) error {
	if !r.wants(snapshot.ResourcePods) || s.Gap(snapshot.ResourcePods) != nil {
		return nil
	}
	selector := snapshot.ComponentLabel + " in (" + strings.Join(snapshot.Components(), ",") + ")"
	// The dynamic client asks for JSON, of which nothing is taken out on the way.
	list, err := r.clients.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(metav1.NamespaceSystem).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return serverError(ctx, r.server, err)
	}
	noted := map[types.UID]snapshot.Component{}
	for i := range list.Items {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, pod) != nil {
			continue
		}
		delete(pod.Annotations, snapshot.ComponentAnnotation)
		kinds.Strip(pod)
		if component, ok := snapshot.ComponentOf(pod); ok {
			noted[pod.UID] = component
		}
	}
	// A watcher has the same pods.
	pods := slices.Clone(s.Pods)
	for i, pod := range pods {
		component, ok := noted[pod.UID]
		// Anybody can annotate a pod.
		if _, annotated := pod.Annotations[snapshot.ComponentAnnotation]; !ok && !annotated {
			continue
		}
		pods[i] = pod.DeepCopy()
		delete(pods[i].Annotations, snapshot.ComponentAnnotation)
		if ok {
			snapshot.NoteComponent(pods[i], &component)
		}
	}
	s.Pods = pods
	return nil
}
