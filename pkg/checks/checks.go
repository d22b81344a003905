// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks has the common parts of the checks of a cluster and of manifests: how they
// are chosen by their codes, how severe findings are, and how they are counted.
//
// It knows no check. pkg/doctor, pkg/lint and pkg/commands import it.
package checks

import (
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// IgnoreAnnotation is the annotation of an object with the codes of the checks that
// have nothing to say about it, separated by commas.
const IgnoreAnnotation = "dra.kubectl.dev/ignore"

// Group is the subject of some checks.
type Group struct {
	// Number is the beginning of the codes of its checks: 12 of DRA1201.
	Number string
	// Title names the subject of the checks.
	Title string
}

// Description describes a check.
type Description struct {
	// Code is stable: "DRA", the number of the group, and the number of the check in it.
	Code string
	// Title names the problem in a few words.
	Title string
	// Severity is the severity of its findings, unless they have their own.
	Severity api.Severity
	// About says what it means, Advice what can be done.
	About, Advice string
	// Needs are the resources without which the check cannot be made, by the names
	// that gaps have.
	Needs []string
}

// Codes lists the codes of checks.
func Codes(list []Description) []string {
	var codes []string
	for i := range list {
		codes = append(codes, list[i].Code)
	}
	return codes
}

// Choice says which checks to make, and which findings to show.
type Choice struct {
	// Only and Skip choose checks by the beginning of their codes: "DRA12" is all
	// of the group. Without Only, all checks are made.
	Only, Skip []string
	// MinSeverity leaves out less severe findings; empty leaves out nothing. Checks that
	// could not be made are never left out.
	MinSeverity api.Severity
}

// Makes reports whether the check with that code is to be made.
func (c *Choice) Makes(code string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(code, strings.ToUpper(prefix)) }
	return (len(c.Only) == 0 || slices.ContainsFunc(c.Only, begins)) && !slices.ContainsFunc(c.Skip, begins)
}

// All reports whether all checks are made and all findings shown.
func (c *Choice) All() bool {
	return len(c.Only)+len(c.Skip) == 0 && c.Shows(api.SeverityInfo)
}

// Shows reports whether a finding of that severity is to be shown.
func (c *Choice) Shows(severity api.Severity) bool {
	return severity == api.SeverityUnknown || c.MinSeverity == "" ||
		slices.Index(Severities(), severity) <= slices.Index(Severities(), c.MinSeverity)
}

// Ignored lists the codes in the value of [IgnoreAnnotation].
func Ignored(annotation string) []string {
	var codes []string
	for code := range strings.SplitSeq(annotation, ",") {
		if code = strings.TrimSpace(code); code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}

// Severities lists them, the worst first.
func Severities() []api.Severity {
	return []api.Severity{api.SeverityError, api.SeverityWarning, api.SeverityInfo}
}

// Reaches reports whether there is a finding as severe as that, or worse.
func Reaches(counts api.FindingCounts, severity api.Severity) bool {
	for _, s := range Severities() {
		if *countOf(&counts, s) > 0 {
			return true
		}
		if s == severity {
			return false
		}
	}
	return false
}

// Count adds a finding of that severity.
func Count(counts *api.FindingCounts, severity api.Severity) { *countOf(counts, severity)++ }

func countOf(counts *api.FindingCounts, severity api.Severity) *int {
	switch severity {
	case api.SeverityError:
		return &counts.Error
	case api.SeverityWarning:
		return &counts.Warning
	case api.SeverityInfo:
		return &counts.Info
	case api.SeverityUnknown:
		return &counts.Unknown
	default:
		panic("severity " + severity)
	}
}
