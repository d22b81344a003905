// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is an expression of an alert or of the dashboard.
type query struct {
	// from says where it is.
	from, expr string
}

// queries returns all expressions, with variables of Grafana replaced as it does.
func queries(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, rule := range alerts(t) {
		all = append(all, query{from: "alert " + rule.Alert, expr: rule.Expr.String()})
	}
	board := readDashboard(t)
	replace := []string{"$__rate_interval", "2m", "$__range", "1h"}
	for _, variable := range board.Templating.List {
		replace = append(replace, "$"+variable.Name, ".*")
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, query{from: "panel " + p.Title, expr: strings.NewReplacer(replace...).Replace(target.Expr)})
		}
	}
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, variable := range board.Templating.List {
		if variable.Type == "datasource" {
			continue
		}
		found := values.FindStringSubmatch(variable.Definition)
		if found == nil {
			t.Fatalf("variable %s: %q is no label_values(METRIC, LABEL)", variable.Name, variable.Definition)
		}
		all = append(all, query{from: "variable " + variable.Name, expr: "count by (" + found[2] + ") (" + found[1] + ")"})
	}
	return all
}

// TestQueries parses all expressions, and checks that they name only metrics that the
// controller has, and labels that these have, and that they count nothing twice.
func TestQueries(t *testing.T) {
	known := metrics(t)
	used := map[string]bool{}
	for _, q := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %s: %v", q.from, q.expr, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			used[selector.Name] = true
			has, ok := known[selector.Name]
			if !ok {
				t.Errorf("%s: there is no metric %s", q.from, selector.Name)
				return nil
			}
			// Prometheus adds these.
			has = append(slices.Clone(has), "job", "instance")
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name != model.MetricNameLabel && !slices.Contains(has, matcher.Name) {
					t.Errorf("%s: %s has no label %s", q.from, selector.Name, matcher.Name)
				}
			}
			for _, above := range path {
				if aggregate, ok := above.(*parser.AggregateExpr); ok && !aggregate.Without {
					// A device, and a pod, may be of several classes.
					if aggregate.Op == parser.SUM && strings.HasPrefix(selector.Name, "dra_class_") && !slices.Contains(aggregate.Grouping, "class") {
						t.Errorf("%s: the sum of %s over classes counts things of several classes twice", q.from, selector.Name)
					}
					for _, label := range aggregate.Grouping {
						if !slices.Contains(has, label) {
							t.Errorf("%s: %s has no label %s", q.from, selector.Name, label)
						}
					}
				}
			}
			return nil
		})
	}
	for name := range known {
		// Only with a flag, and for a program rather than for a reader.
		if strings.HasPrefix(name, "dra_") && !used[name] && name != "dra_waiting_pod_seconds" && name != "dra_evaluation_duration_seconds_sum" && name != "dra_evaluation_duration_seconds_count" {
			t.Errorf("neither the dashboard nor an alert shows %s", name)
		}
	}
}
