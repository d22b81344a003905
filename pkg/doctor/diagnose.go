// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// IgnoreAnnotation is the annotation of an object with the codes of the checks that
// have nothing to say about it, separated by commas.
const IgnoreAnnotation = "dra.kubectl.dev/ignore"

// Options say which checks to make, and what to leave out.
type Options struct {
	// Only and Skip choose checks by the beginning of their codes: "DRA12" is all
	// of the group. Without Only, all checks are made.
	Only, Skip []string
	// MinSeverity leaves out what is less severe; empty leaves out nothing. Checks
	// that could not be made are never left out.
	MinSeverity api.Severity
}

// Diagnose makes the checks. The allocator has to be one for the snapshot. An error
// means that a check failed, which is none of the cluster's faults.
func Diagnose(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, opts Options) (*api.Diagnosis, error) {
	in := &cluster{snap: snap, alloc: alloc, facts: alloc.Facts, inventory: inventory.New(alloc, snap)}
	in.claims = sync.OnceValue(in.inventory.Claims)
	in.classes = once(func(ctx context.Context) ([]api.Class, error) {
		classes, err := in.inventory.Classes(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the classes: %w", err)
		}
		return classes, nil
	})
	in.answers = once(func(ctx context.Context) ([]*api.Explanation, error) { return explainWaiting(ctx, in) })
	out := &api.Diagnosis{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Diagnosis"},
		Source:   snap.Source, KubernetesVersion: snap.ServerVersion, Findings: []api.Finding{}, Checks: []string{},
	}
	ignored := ignoring(snap)
	for _, check := range Checks() {
		if !chosen(check.Code, opts) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("make check %s: %w", check.Code, err)
		}
		out.Checks = append(out.Checks, check.Code)
		found, err := check.run(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("make check %s: %w", check.Code, err)
		}
		for _, finding := range found {
			if finding.Severity != api.SeverityUnknown && lessSevere(finding.Severity, opts.MinSeverity) {
				continue
			}
			if ignored.all(finding) {
				out.Ignored++
				continue
			}
			finding.ObjectCount = len(finding.Objects)
			finding.Objects = finding.Objects[:min(len(finding.Objects), maxObjects)]
			finding.Evidence = finding.Evidence[:min(len(finding.Evidence), maxObjects)]
			*countOf(&out.Counts, finding.Severity)++
			out.Findings = append(out.Findings, finding)
		}
	}
	return out, nil
}

func chosen(code string, opts Options) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(code, strings.ToUpper(prefix)) }
	return (len(opts.Only) == 0 || slices.ContainsFunc(opts.Only, begins)) && !slices.ContainsFunc(opts.Skip, begins)
}

// Severities lists them, the worst first.
func Severities() []api.Severity {
	return []api.Severity{api.SeverityError, api.SeverityWarning, api.SeverityInfo}
}

func lessSevere(s, than api.Severity) bool {
	return than != "" && slices.Index(Severities(), s) > slices.Index(Severities(), than)
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

// ignores has, by object, the codes in its annotation.
type ignores map[string][]string

func ignoring(snap *snapshot.Snapshot) ignores {
	found := ignores{}
	add := func(kind string, o metav1.Object) {
		for _, code := range strings.Split(o.GetAnnotations()[IgnoreAnnotation], ",") {
			if code = strings.TrimSpace(code); code != "" {
				found[object(kind, o)] = append(found[object(kind, o)], code)
			}
		}
	}
	for _, o := range snap.Nodes {
		add(api.KindNode, o)
	}
	for _, o := range snap.Pods {
		add(api.KindPod, o)
	}
	for _, o := range snap.Slices {
		add(kindSlice, o)
	}
	for _, o := range snap.Classes {
		add(kindClass, o)
	}
	for _, o := range snap.Claims {
		add(api.KindClaim, o)
	}
	for _, o := range snap.TaintRules {
		add(kindRule, o)
	}
	for _, o := range snap.Workloads {
		add(o.Kind, o)
	}
	for _, o := range snap.Quotas {
		add(kindQuota, o)
	}
	return found
}

// all reports whether all objects of a finding ignore its code.
func (i ignores) all(f api.Finding) bool {
	return len(f.Objects) > 0 && !slices.ContainsFunc(f.Objects, func(o string) bool { return !slices.Contains(i[o], f.Code) })
}
