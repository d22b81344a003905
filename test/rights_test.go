// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// rightsDocument is docs/rbac.md: the roles that it has, and what it says about
// each right.
type rightsDocument struct {
	// objects are the roles as they are applied.
	objects []*unstructured.Unstructured
	// roles by kind and name, as in "ClusterRole a".
	roles map[string][]rbacv1.PolicyRule
	// uses are the rights that a verb uses, with their marks.
	uses map[string]map[string]string
	// says has the possible outputs without a right.
	says map[string][]string
}

// The marks in the table: what the verb is asked for, what makes the answer less,
// and what matters sometimes.
const (
	markAsked  = "◆"
	markLess   = "●"
	markMinor  = "○"
	markUnused = ""
)

// readRights reads the document.
func readRights(t *testing.T) rightsDocument {
	t.Helper()
	content, err := os.ReadFile("../docs/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	d := rightsDocument{roles: map[string][]rbacv1.PolicyRule{}, uses: map[string]map[string]string{}, says: map[string][]string{}}
	for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n").FindAllSubmatch(content, -1) {
		for document := range bytes.SplitSeq(block[1], []byte("\n---\n")) {
			object, err := parseObject(document)
			if err != nil {
				t.Fatal(err)
			}
			var role rbacv1.ClusterRole
			if err := yaml.UnmarshalStrict(document, &role); err != nil {
				t.Fatal(err)
			}
			d.objects = append(d.objects, object)
			d.roles[role.Kind+" "+role.Name] = role.Rules
		}
	}
	for _, row := range tableRows(string(content), "right") {
		for i, mark := range row.cells {
			for _, verb := range codeSpans(row.header[i]) {
				if d.uses[verb] == nil {
					d.uses[verb] = map[string]string{}
				}
				switch mark {
				case markAsked, markLess, markMinor:
					for _, right := range codeSpans(row.name) {
						d.uses[verb][right] = mark
					}
				case markUnused:
				default:
					t.Fatalf("right %s, verb %s: the mark %q is not known", row.name, verb, mark)
				}
			}
		}
	}
	for _, row := range tableRows(string(content), "without") {
		for _, right := range codeSpans(row.name) {
			d.says[right] = codeSpans(row.cells[1])
			if len(d.says[right]) == 0 {
				// The document says so above the table.
				d.says[right] = []string{"this user may not list " + right + " at the cluster scope"}
			}
		}
	}
	return d
}

// rules returns the rules of a role that give one of some rights.
func (d rightsDocument) rules(t *testing.T, role string, wanted func(right string) bool) []rbacv1.PolicyRule {
	t.Helper()
	all, ok := d.roles[role]
	if !ok {
		t.Fatalf("the document has no role %s", role)
	}
	return slices.DeleteFunc(slices.Clone(all), func(rule rbacv1.PolicyRule) bool { return !wanted(rightOf(rule)) })
}

// rightOf returns how the tables of the document call a rule.
func rightOf(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return rule.NonResourceURLs[0]
	}
	return strings.TrimSuffix(rule.Resources[0]+"."+rule.APIGroups[0], ".")
}

// tableRow is a row of a table in a document.
type tableRow struct {
	name          string
	header, cells []string
}

// tableRows returns the rows of the table with the given first header.
func tableRows(document, first string) []tableRow {
	var rows []tableRow
	var header []string
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == nil && cells[0] == first:
			header = cells
		case header == nil, strings.HasPrefix(cells[0], "--"):
		default:
			rows = append(rows, tableRow{name: cells[0], header: header[1:], cells: cells[1:]})
		}
	}
	return rows
}

// codeSpans returns the texts between backticks.
func codeSpans(text string) []string {
	var spans []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		spans = append(spans, match[1])
	}
	return spans
}
