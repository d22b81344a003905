// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// The part of the Static Analysis Results Interchange Format 2.1.0 that a report
// needs (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string           `json:"id"`
		ShortDescription     sarifText        `json:"shortDescription"`
		FullDescription      *sarifText       `json:"fullDescription,omitempty"`
		Help                 *sarifText       `json:"help,omitempty"`
		HelpURI              string           `json:"helpUri,omitempty"`
		DefaultConfiguration sarifRuleDefault `json:"defaultConfiguration"`
	}
	sarifRuleDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	// sarifNotification reports a check that could not be made.
	sarifNotification struct {
		AssociatedRule sarifRuleReference `json:"associatedRule"`
		Level          string             `json:"level"`
		Message        sarifText          `json:"message"`
	}
	sarifRuleReference struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID     string          `json:"ruleId"`
		RuleIndex  int             `json:"ruleIndex"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations,omitempty"`
		Properties sarifProperties `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	// sarifProperties is the rest of a finding, as in -o json.
	sarifProperties struct {
		Severity api.Severity   `json:"severity"`
		Evidence []api.Evidence `json:"evidence,omitempty"`
		Remedy   *api.NextStep  `json:"remedy,omitempty"`
	}
)

// SARIF writes a report as a log of SARIF 2.1.0. Objects are logical locations; a
// finding in a file has the position in it. What could not be checked is no result
// but a notification.
func SARIF(w io.Writer, r *Report) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "kubectl-dra " + r.Verb, Version: r.Version, InformationURI: homepage, Rules: []sarifRule{},
		}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}},
		Results:     []sarifResult{},
	}
	for i := range r.Rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, ruleInSARIF(&r.Rules[i]))
	}
	invocation := &run.Invocations[0]
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == api.SeverityUnknown {
			invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, sarifNotification{
				AssociatedRule: sarifRuleReference{f.Code}, Level: "warning", Message: sarifText{f.Message},
			})
			continue
		}
		at := slices.IndexFunc(r.Rules, func(rule Rule) bool { return rule.Code == f.Code })
		run.Results = append(run.Results, resultInSARIF(f, at))
	}
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}); err != nil {
		return fmt.Errorf("encode SARIF: %w", err)
	}
	if _, err := w.Write(EscapeJSON(text.Bytes())); err != nil {
		return fmt.Errorf("print SARIF: %w", err)
	}
	return nil
}

func ruleInSARIF(rule *Rule) sarifRule {
	out := sarifRule{
		ID: rule.Code, ShortDescription: sarifText{rule.Title}, DefaultConfiguration: sarifRuleDefault{sarifLevel(rule.Severity)},
	}
	if rule.About != "" {
		out.FullDescription = &sarifText{rule.About}
	}
	if rule.Advice != "" {
		out.Help = &sarifText{rule.Advice}
	}
	if rule.Page != "" {
		out.HelpURI = homepage + "/blob/main/" + rule.Page
	}
	return out
}

func resultInSARIF(f *api.Finding, rule int) sarifResult {
	out := sarifResult{
		RuleID: f.Code, RuleIndex: rule, Level: sarifLevel(f.Severity),
		Message:    sarifText{strings.Join(append([]string{f.Message}, remedyLines(f.Remedy)...), "\n")},
		Properties: sarifProperties{f.Severity, f.Evidence, f.Remedy},
	}
	where := sarifLocation{}
	if f.File != "" {
		where.Physical = &sarifPhysical{Artifact: sarifArtifact{fileURI(f.File)}}
		if f.Line > 0 {
			where.Physical.Region = &sarifRegion{f.Line, f.Column}
		}
	}
	for _, o := range f.Objects {
		where.Logical = append(where.Logical, sarifLogical{FullyQualifiedName: o.String(), Kind: "resource"})
	}
	if where.Physical != nil || len(where.Logical) > 0 {
		out.Locations = []sarifLocation{where}
	}
	return out
}

func sarifLevel(severity api.Severity) string {
	switch severity {
	case api.SeverityError:
		return "error"
	case api.SeverityWarning:
		return "warning"
	default:
		return "note"
	}
}

// fileURI returns a path as a reference: relative to where the program runs, if the path
// is.
func fileURI(path string) string {
	slashed := filepath.ToSlash(path)
	if !filepath.IsAbs(path) {
		// A first part with a colon would be a scheme.
		return (&url.URL{Path: slashed}).String()
	}
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}).String()
}
