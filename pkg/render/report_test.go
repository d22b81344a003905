// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gotest.tools/v3/golden"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// hostileName is a name with characters that XML, JSON or a terminal would obey.
const hostileName = "a]]>b<c>\"&'\x1b[31m\u202e\x00\xffend"

func findingsForReports() *Report {
	return &Report{
		Verb: "doctor", Version: "v1.2.3", Source: "file cluster.yaml", FailOn: api.SeverityWarning,
		Rules: []Rule{
			{Code: "DRA1201", Title: "incomplete pool", About: "Fewer slices.", Advice: "Read the log.", Page: "docs/checks/DRA1201.md", Severity: api.SeverityError},
			{Code: "DRA1301", Title: "class that selects no device", Severity: api.SeverityWarning},
			{Code: "DRA1306", Title: "driver without a class", Severity: api.SeverityInfo},
			{Code: "DRA1401", Title: "claim reserved for a pod that is gone", Severity: api.SeverityWarning},
			{Code: "DRA1901", Title: "kubelet that loses idle drivers", Severity: api.SeverityWarning},
		},
		Findings: []api.Finding{
			{
				Code: "DRA1201", Title: "incomplete pool", Severity: api.SeverityError, Message: "pool p is incomplete", Objects: []api.ObjectRef{api.Ref("Pool", "", "gpu.example.com/p")},
				Evidence: []api.Evidence{{Object: api.Ref("Pool", "", "gpu.example.com/p"), Path: "spec.pool.resourceSliceCount", Found: "1", Required: "2"}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "read the log of the driver", Commands: []string{"kubectl logs driver"}},
			},
			{Code: "DRA1301", Title: "class that selects no device", Severity: api.SeverityWarning, Message: hostileName, Objects: []api.ObjectRef{{Kind: hostileName}}, Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: hostileName}, Found: hostileName}}},
			{Code: "DRA1301", Title: "class that selects no device", Severity: api.SeverityWarning, Message: "class typo selects no device", File: "some dir/a:b#c.yaml", Line: 7, Column: 3},
			{Code: "DRA1306", Title: "driver without a class", Severity: api.SeverityInfo, Message: "no class", File: "/abs/é.yaml"},
			{Code: "DRA1401", Title: "claim reserved for a pod that is gone", Severity: api.SeverityUnknown, Message: "not checked: not permitted to list pods"},
		},
	}
}

// TestSARIF holds the log against the schema of OASIS
// (github.com/oasis-tcs/sarif-spec, sarif-2.1/schema), which takes no property that it
// does not know.
func TestSARIF(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "sarif-schema-2.1.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sarif.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, report := range map[string]*Report{"report.sarif": findingsForReports(), "empty.sarif": {Verb: "doctor"}} {
		var out bytes.Buffer
		if err := SARIF(&out, report); err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, out.String(), name)
		assertPrintable(t, out.String())
		log, err := jsonschema.UnmarshalJSON(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJUnit reads the report as its readers do.
func TestJUnit(t *testing.T) {
	var out bytes.Buffer
	if err := JUnit(&out, findingsForReports()); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, out.String(), "report.junit.xml")
	assertPrintable(t, out.String())
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	suite := suites.Suites[0]
	if suite.Tests != 6 || suite.Failures != 3 || suite.Skipped != 1 {
		t.Errorf("%d tests, %d failures, %d skipped", suite.Tests, suite.Failures, suite.Skipped)
	}
	if got := suite.Cases[1].Failure.Message; got != Escape(hostileName) {
		t.Errorf("message %q", got)
	}
}

// assertPrintable fails for a text that a terminal would obey.
func assertPrintable(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.Split(strings.ReplaceAll(text, "\t", " "), "\n") {
		if line != Escape(line) {
			t.Errorf("a terminal obeys %q", line)
		}
	}
}
