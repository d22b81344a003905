// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The configuration that is tested, and the document about it.
const (
	configDir = "../../config"
	document  = "../../docs/controller.md"
)

// readStrictly decodes a file. Unknown fields are errors.
func readStrictly(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

// readRules returns the alert rules, and checks that the Prometheus Operator knows each field.
func readRules(t *testing.T) *monitoringv1.PrometheusRule {
	t.Helper()
	rules := &monitoringv1.PrometheusRule{}
	readStrictly(t, filepath.Join(configDir, "prometheus", "rules.yaml"), rules)
	return rules
}

// alerts returns all alert rules.
func alerts(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	var all []monitoringv1.Rule
	for _, group := range readRules(t).Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// buildPromtool builds promtool without service discovery, which is most of it. (`go tool` has
// no build tags.)
func buildPromtool(t *testing.T) (run func(t *testing.T, args ...string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "promtool")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=remove_all_sd", "-o", path, "github.com/prometheus/prometheus/cmd/promtool")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build promtool: %v\n%s", err, out)
	}
	return func(t *testing.T, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestAlerts runs the tests of the alert rules with promtool. Each alert has a file of its
// own, in which it fires, and in which it does not.
func TestAlerts(t *testing.T) {
	spec, err := yaml.Marshal(readRules(t).Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), spec, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := buildPromtool(t)
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "rules.yaml"))
	for _, rule := range alerts(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			file := rule.Alert + ".yaml"
			text, err := os.ReadFile(filepath.Join("testdata", "alerts", file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte("exp_alerts: []")) || !bytes.Contains(text, []byte("exp_labels:")) {
				t.Errorf("%s does not test both that the alert fires and that it does not", file)
			}
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			promtool(t, "test", "rules", path)
		})
	}
	if files, err := filepath.Glob("testdata/alerts/*.yaml"); err != nil || len(files) != len(alerts(t)) {
		t.Errorf("%d files of tests for %d alerts (%v)", len(files), len(alerts(t)), err)
	}
}

// TestRunbooks checks that each alert says what it is, and leads to a heading of the document.
func TestRunbooks(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts(t) {
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, a description or a severity", rule.Alert)
		}
		if want := "https://github.com/kubectl-dra/kubectl-dra/blob/main/docs/controller.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook %s, want %s", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if !regexp.MustCompile(`(?m)^#+ ` + rule.Alert + `$`).Match(text) {
			t.Errorf("%s has no heading %s", document, rule.Alert)
		}
	}
}

// TestMonitor checks that the Prometheus Operator knows each field of the ServiceMonitor, and
// that it names the port of the Service.
func TestMonitor(t *testing.T) {
	var monitor monitoringv1.ServiceMonitor
	readStrictly(t, filepath.Join(configDir, "prometheus", "monitor.yaml"), &monitor)
	service, err := os.ReadFile(filepath.Join(configDir, "service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range monitor.Spec.Endpoints {
		if !bytes.Contains(service, []byte("{name: "+endpoint.Port+",")) {
			t.Errorf("the Service has no port %s", endpoint.Port)
		}
	}
}
