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
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// IgnoreAnnotation is the annotation of an object with the codes of the checks that
// have nothing to say about it, separated by commas.
const IgnoreAnnotation = "dra.kubectl.dev/ignore"

// maxObjects is how many objects, and how many pieces of evidence, a finding names.
const maxObjects = 10

// Options say which checks to make, and what to leave out.
type Options struct {
	// Only and Skip choose checks by the beginning of their codes: "DRA12" is all
	// of the group. Without Only, all checks are made.
	Only, Skip []string
	// MinSeverity leaves out what is less severe; empty leaves out nothing. Checks
	// that could not be made are never left out.
	MinSeverity api.Severity
}

// cluster is what checks look at.
type cluster struct {
	snap      *snapshot.Snapshot
	alloc     *allocator.Allocator
	facts     *facts.Cluster
	inventory *inventory.Inventory
	// claims, classes and answers are worked out once: what the inventory says, and
	// the explanations of the pods that wait for devices.
	claims  func() []api.Claim
	classes func(context.Context) ([]api.Class, error)
	answers func(context.Context) ([]*api.Explanation, error)
}

// once keeps the first result that is no error.
func once[T any](find func(context.Context) (T, error)) func(context.Context) (T, error) {
	var found T
	known := false
	return func(ctx context.Context) (T, error) {
		if known {
			return found, nil
		}
		var err error
		found, err = find(ctx)
		known = err == nil
		return found, err
	}
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

// run makes one check. What it needs and cannot see is a finding of its own.
func (c *Check) run(ctx context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	var missing []string
	for _, resource := range c.Needs {
		if gap := in.snap.Gap(resource); gap != nil && !slices.Contains(missing, gap.Reason) {
			missing = append(missing, gap.Reason)
		}
	}
	if len(missing) > 0 {
		found = []api.Finding{{Severity: api.SeverityUnknown, Message: "not checked: " + strings.Join(missing, "; ")}}
	} else {
		var err error
		if found, err = c.find(ctx, in); err != nil {
			return nil, err
		}
	}
	for i := range found {
		found[i].Code, found[i].Title = c.Code, c.Title
		if found[i].Severity == "" {
			found[i].Severity = c.Severity
		}
	}
	return found, nil
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

// The kinds of objects that findings are about, besides those of pkg/api.
const (
	kindSlice = "ResourceSlice"
	kindClass = "DeviceClass"
	kindRule  = "DeviceTaintRule"
	kindQuota = "ResourceQuota"
)

// object names an object as evidence does.
func object(kind string, o metav1.Object) string {
	if o.GetNamespace() == "" {
		return kind + "/" + o.GetName()
	}
	return kind + "/" + naming.Qualified(o)
}
