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

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Diagnose makes the checks. The allocator has to be for the snapshot. An error means that
// a check failed, not that the cluster has a problem.
func Diagnose(ctx context.Context, c *facts.Cluster, opts Options) (*api.Diagnosis, error) {
	in := newCluster(c, &opts)
	made, err := in.makeChecks(ctx)
	if err != nil {
		return nil, err
	}
	return in.diagnosis(made, opts.Namespace, maxObjects), nil
}

func newCluster(c *facts.Cluster, opts *Options) *cluster {
	in := &cluster{opts: opts, cluster: c, inventory: inventory.New(c)}
	in.claims = sync.OnceValue(in.inventory.Claims)
	in.blocked = sync.OnceValue(func() []lifecycle.BlockedPod { return lifecycle.NewStages(in.cluster).BlockedPods() })
	in.classes = once(func(ctx context.Context) ([]api.Class, error) {
		classes, err := in.inventory.Classes(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the classes: %w", err)
		}
		return classes, nil
	})
	in.explained = once(func(ctx context.Context) ([]explain.Answer, error) { return explainWaiting(ctx, c) })
	return in
}

// made has the codes of the checks that were made, and what they found.
type made struct {
	checks   []string
	findings []api.Finding
}

// makeChecks makes the checks of the options.
func (in *cluster) makeChecks(ctx context.Context) (made, error) {
	m := made{checks: []string{}}
	for _, check := range Checks() {
		if !in.opts.Makes(check.Code) || check.given != nil && !check.given(in.opts) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return made{}, fmt.Errorf("make check %s: %w", check.Code, err)
		}
		m.checks = append(m.checks, check.Code)
		found, err := check.run(ctx, in)
		if err != nil {
			return made{}, fmt.Errorf("make check %s: %w", check.Code, err)
		}
		m.findings = append(m.findings, found...)
	}
	return m, nil
}

// diagnosis returns the findings that matter in a namespace, or all if that is empty, each with so
// many objects at most.
func (in *cluster) diagnosis(m made, namespace string, most int) *api.Diagnosis {
	c := in.cluster
	out := &api.Diagnosis{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Diagnosis"},
		Source:   c.Snapshot.Source, Namespace: namespace, KubernetesVersion: c.Snapshot.ServerVersion, Findings: []api.Finding{}, Checks: m.checks,
	}
	ignored := ignoring(c.Snapshot)
	for _, finding := range m.findings {
		if !in.opts.Shows(finding.Severity) || !concerns(&finding, namespace) {
			continue
		}
		if ignored.all(finding) {
			out.Ignored++
			continue
		}
		finding.ObjectCount = len(finding.Objects)
		finding.Objects = finding.Objects[:min(len(finding.Objects), most)]
		finding.Evidence = finding.Evidence[:min(len(finding.Evidence), most)]
		checks.Count(&out.Counts, finding.Severity)
		out.Findings = append(out.Findings, finding)
	}
	return out
}

// concerns reports whether a finding matters in a namespace: its object is in the namespace, has
// no namespace, or belongs to a component that serves all.
func concerns(f *api.Finding, namespace string) bool {
	return namespace == "" || inventory.Concerns(f, namespace) ||
		slices.ContainsFunc(servingAll(), func(group string) bool { return strings.HasPrefix(f.Code, "DRA"+group) })
}

// ignores has, by object, the codes in its annotation.
type ignores map[api.ObjectRef][]string

func ignoring(snap *snapshot.Snapshot) ignores {
	found := ignores{}
	add := func(kind string, o metav1.Object) {
		if codes := checks.Ignored(o.GetAnnotations()[checks.IgnoreAnnotation]); len(codes) > 0 {
			found[api.RefTo(kind, o)] = append(found[api.RefTo(kind, o)], codes...)
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
	for _, o := range snap.Templates {
		add(api.KindTemplate, o)
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
	return len(f.Objects) > 0 && !slices.ContainsFunc(f.Objects, func(o api.ObjectRef) bool { return !slices.Contains(i[o], f.Code) })
}
