// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestScanGates(t *testing.T) {
	const before = `# HELP apiserver_request_total [STABLE] Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",name="DRAAdminAccess"} 1
# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
`
	on, off := snapshot.Gate{Enabled: true, Source: snapshot.GateFromMetrics}, snapshot.Gate{Source: snapshot.GateFromMetrics}
	for _, tc := range []struct {
		name    string
		metrics string
		want    map[string]snapshot.Gate
	}{
		{
			name: "as served",
			metrics: before + `kubernetes_feature_enabled{name="APIServerIdentity",stage="BETA"} 1
kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1
kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 0
# HELP process_cpu_seconds_total Total.
process_cpu_seconds_total 1
`,
			want: map[string]snapshot.Gate{"DRAAdminAccess": on, "DRADeviceTaints": off},
		},
		{
			name:    "no newline at the end, other order of labels, float and timestamp",
			metrics: before + `kubernetes_feature_enabled{stage="",name="DRAAdminAccess",} 1.0 1700000000000`,
			want:    map[string]snapshot.Gate{"DRAAdminAccess": on},
		},
		{
			name:    "what follows the metric is not read",
			metrics: before + "kubernetes_feature_enabled{name=\"DRAAdminAccess\"} 1\nother 1\nkubernetes_feature_enabled{name=\"DRADeviceTaints\"} 1\n",
			want:    map[string]snapshot.Gate{"DRAAdminAccess": on},
		},
		{
			name: "malformed lines are passed over",
			metrics: before + `kubernetes_feature_enabled{name="DRADeviceTaints} 1
kubernetes_feature_enabled{name="DRAPrioritizedList"} NaN
kubernetes_feature_enabled{name="DRAPrioritizedList"} 7
kubernetes_feature_enabled{name="DRAPrioritizedList"}
kubernetes_feature_enabled{} 1
kubernetes_feature_enabled{name="DRAPrioritizedList` + "\xff\x00" + `"} 1
kubernetes_feature_enabled{name="` + strings.Repeat("x", 3*maxMetricLine) + `"} 1
kubernetes_feature_enabled{name="DRAAdminAccess"} 1
`,
			want: map[string]snapshot.Gate{"DRAAdminAccess": on},
		},
		{
			name:    "long lines in front",
			metrics: "a{b=\"" + strings.Repeat("kubernetes_feature_enabled{", maxMetricLine) + "\"} 1\n" + before + "kubernetes_feature_enabled{name=\"DRAAdminAccess\"} 0\n",
			want:    map[string]snapshot.Gate{"DRAAdminAccess": off},
		},
		{name: "no gates", metrics: "up 1\n"},
		{name: "gates of no interest", metrics: before + "kubernetes_feature_enabled{name=\"APIServerIdentity\"} 1\n"},
		{name: "a web page", metrics: "<html><body>Sign in</body></html>"},
		{name: "nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := scanGates(strings.NewReader(tc.metrics))
			if (err == nil) != (tc.want != nil) {
				t.Fatalf("got error %v, want gates %v", err, tc.want)
			}
			if err != nil && !errors.Is(err, errNoGateMetric) {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestScanGatesReportsBrokenConnection(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("up 1\n"), brokenReader{})
	if _, err := scanGates(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got error %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzScanGates(f *testing.F) {
	f.Add("kubernetes_feature_enabled{name=\"DRAAdminAccess\",stage=\"\"} 1\n")
	f.Add("kubernetes_feature_enabled{\n")
	f.Fuzz(func(t *testing.T, metrics string) {
		gates, err := scanGates(strings.NewReader(metrics))
		for name := range gates {
			if !slices.Contains(snapshot.KnownGates(), name) {
				t.Errorf("%s is not a known gate", name)
			}
		}
		if (err == nil) != (len(gates) > 0) {
			t.Errorf("%d gates and error %v", len(gates), err)
		}
	})
}

// TestKubeletGates asks a kubelet through the API server.
func TestKubeletGates(t *testing.T) {
	clients := start(t, apiServer{
		"/api/v1/nodes/a/proxy/metrics": text("kubernetes_feature_enabled{name=\"DRAAdminAccess\",stage=\"\"} 1\nkubernetes_feature_enabled{name=\"DRAExtendedResource\",stage=\"BETA\"} 0\n"),
		"/api/v1/nodes/b/proxy/metrics": forbid(),
		"/api/v1/nodes/c/proxy/metrics": text("up 1\n"),
	})
	for node, want := range map[string]string{
		"a": "map[DRAAdminAccess:true DRAExtendedResource:false] <nil>",
		"b": "map[] this user may not get nodes/proxy",
		"c": "map[] the metrics of the kubelet do not include kubernetes_feature_enabled",
	} {
		gates, err := KubeletGates(t.Context(), clients, node)
		if got := fmt.Sprint(gates, err); got != want {
			t.Errorf("%s: got %q, want %q", node, got, want)
		}
	}
}
