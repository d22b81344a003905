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
	return newCluster(c, &opts).diagnose(ctx)
}

func newCluster(c *facts.Cluster, opts *Options) *cluster {
	in := &cluster{opts: opts, cluster: c, inventory: inventory.New(c), most: maxObjects}
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

func (in *cluster) diagnose(ctx context.Context) (*api.Diagnosis, error) {
	c, opts := in.cluster, in.opts
	out := &api.Diagnosis{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Diagnosis"},
		Source:   c.Snapshot.Source, Namespace: opts.Namespace, KubernetesVersion: c.Snapshot.ServerVersion, Findings: []api.Finding{}, Checks: []string{},
	}
	ignored := ignoring(c.Snapshot)
	for _, check := range Checks() {
		if !opts.Makes(check.Code) || check.given != nil && !check.given(opts) {
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
			if !opts.Shows(finding.Severity) || !opts.concerns(&finding) {
				continue
			}
			if ignored.all(finding) {
				out.Ignored++
				continue
			}
			finding.ObjectCount = len(finding.Objects)
			finding.Objects = finding.Objects[:min(len(finding.Objects), in.most)]
			finding.Evidence = finding.Evidence[:min(len(finding.Evidence), in.most)]
			checks.Count(&out.Counts, finding.Severity)
			out.Findings = append(out.Findings, finding)
		}
	}
	return out, nil
}

// concerns reports whether a finding matters in the namespace: its object is in the
// namespace, has no namespace, or belongs to a component that serves all.
func (o *Options) concerns(f *api.Finding) bool {
	return o.Namespace == "" || inventory.Concerns(f, o.Namespace) ||
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
