// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Options say which checks to make, and what they are to know.
type Options struct {
	checks.Choice
	// Namespace is the namespace of objects that name none.
	Namespace string
	// Cluster is the cluster that the manifests are applied to; nil if that is not known.
	Cluster *snapshot.Snapshot
	// Gates and KubernetesVersion describe the cluster if Cluster is nil.
	Gates             map[string]bool
	KubernetesVersion string
	// Explain answers for the targets of the given manifests in a cluster that has them, as "why -f" does. It is asked only if Cluster is not nil.
	Explain func(ctx context.Context, given, all *snapshot.Snapshot) ([]Answer, error)
	// WhyCommand is the command, for a shell, that asks why the targets of a file do not
	// fit; empty if there is none. It is called only if Explain is not nil.
	WhyCommand func(file string) string
}

// Lint makes the checks. An error means that a check failed, which is none of the
// faults of the manifests.
func Lint(ctx context.Context, texts []files.Text, opts Options) (*api.LintReport, error) {
	out := &api.LintReport{TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "LintReport"}, Checks: []string{}, Findings: []api.Finding{}}
	all := read(ctx, texts, opts, out)
	given := manifestsOf(all)
	snap := surroundings(given, opts)
	in := newInput(ctx, all, snap)
	in.whyCommand = opts.WhyCommand
	if opts.Cluster != nil {
		out.Source = opts.Cluster.Source
		in.against = true
		if opts.Explain != nil {
			in.explain = once(func(ctx context.Context) ([]Answer, error) { return opts.Explain(ctx, given, snap) })
		}
	}
	for _, check := range Checks() {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("make check %s: %w", check.Code, err)
		}
		if check.needsCluster && in.explain == nil {
			if opts.Makes(check.Code) {
				out.NotChecked = append(out.NotChecked, check.Code)
			}
			continue
		}
		// Those that are not chosen may know what others need not say.
		found := check.find(in)
		if in.err != nil {
			return nil, fmt.Errorf("make check %s: %w", check.Code, in.err)
		}
		// Of a text that cannot be read, no other check knows that it finds nothing.
		if !opts.Makes(check.Code) && (check.Code != codeUnreadable || len(found) == 0) {
			continue
		}
		out.Checks = append(out.Checks, check.Code)
		// The first finding in a document parses it for the positions of its fields.
		findings := make([]api.Finding, len(found))
		files.OnAllProcessors(len(found), func() func(int) {
			return func(i int) { findings[i] = check.finding(&found[i]) }
		})
		for i, f := range findings {
			switch {
			case !opts.Shows(f.Severity):
			case slices.Contains(found[i].object.ignored, check.Code):
				out.Ignored++
			default:
				checks.Count(&out.Counts, f.Severity)
				out.Findings = append(out.Findings, f)
			}
		}
	}
	order := map[string]int{}
	for i := range texts {
		if _, known := order[texts[i].File]; !known {
			order[texts[i].File] = len(order)
		}
	}
	out.Files = len(order)
	slices.SortStableFunc(out.Findings, func(a, b api.Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
	return out, nil
}

// once asks only the first time.
func once(ask func(context.Context) ([]Answer, error)) func(context.Context) ([]Answer, error) {
	var answers []Answer
	var err error
	asked := false
	return func(ctx context.Context) ([]Answer, error) {
		if !asked {
			answers, err = ask(ctx)
			asked = true
		}
		return answers, err
	}
}

// read finds the objects of texts, and counts the checked ones.
func read(ctx context.Context, texts []files.Text, opts Options, out *api.LintReport) []*object {
	patches := patchesIn(texts)
	skips := func(text *files.Text) bool { return text.Found && patches[filepath.Clean(text.File)] }
	read := make([][]*object, len(texts))
	files.OnAllProcessors(len(texts), func() func(int) {
		decoder := kinds.NewDecoder()
		return func(i int) {
			if ctx.Err() == nil && !skips(&texts[i]) {
				read[i] = objectsOf(&texts[i], cmp.Or(opts.Namespace, metav1.NamespaceDefault), decoder)
			}
		}
	})
	for i := range texts {
		if skips(&texts[i]) {
			out.Skipped++
		}
		for _, o := range read[i] {
			if o.decoded == nil && o.err == nil {
				out.Skipped++
			} else {
				out.Objects++
			}
		}
	}
	return slices.Concat(read...)
}

// patchesIn returns the files that the kustomizations among texts name as patches: these
// are no manifests.
func patchesIn(texts []files.Text) map[string]bool {
	patches := map[string]bool{}
	for i := range texts {
		if !slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(texts[i].File)) {
			continue
		}
		var kustomization struct {
			Patches               []struct{ Path string } `json:"patches"`
			PatchesJSON6902       []struct{ Path string } `json:"patchesJson6902"`
			PatchesStrategicMerge []string                `json:"patchesStrategicMerge"`
		}
		if json.Unmarshal(texts[i].JSON, &kustomization) != nil {
			continue
		}
		names := kustomization.PatchesStrategicMerge
		for _, p := range slices.Concat(kustomization.Patches, kustomization.PatchesJSON6902) {
			names = append(names, p.Path)
		}
		for _, name := range names {
			patches[filepath.Join(filepath.Dir(texts[i].File), name)] = true
		}
	}
	return patches
}

// Manifests returns the valid objects of texts, for callers that need the objects that are
// about to be applied.
func Manifests(ctx context.Context, texts []files.Text, opts Options) *snapshot.Snapshot {
	return manifestsOf(read(ctx, texts, opts, &api.LintReport{}))
}

func manifestsOf(all []*object) *snapshot.Snapshot {
	given := &snapshot.Snapshot{}
	for _, o := range all {
		if o.decoded == nil || o.err != nil || o.unstorable != nil {
			// Nothing can be computed with it.
			continue
		}
		switch decoded := o.decoded.(type) {
		case *corev1.Pod:
			given.Pods = append(given.Pods, decoded)
		case *snapshot.Workload:
			given.Workloads = append(given.Workloads, decoded)
		case *corev1.Namespace:
			given.Namespaces = append(given.Namespaces, decoded)
		case *corev1.ResourceQuota:
			given.Quotas = append(given.Quotas, decoded)
		case *corev1.LimitRange:
			given.LimitRanges = append(given.LimitRanges, decoded)
		case *resourceapi.ResourceClaim:
			given.Claims = append(given.Claims, decoded)
		case *resourceapi.ResourceClaimTemplate:
			given.Templates = append(given.Templates, decoded)
		case *resourceapi.DeviceClass:
			given.Classes = append(given.Classes, decoded)
		case *resourceapi.ResourceSlice:
			given.Slices = append(given.Slices, decoded)
		case *resourceapi.DeviceTaintRule:
			given.TaintRules = append(given.TaintRules, decoded)
		}
	}
	return given
}

// surroundings returns the cluster with the manifests in it, or these alone.
func surroundings(given *snapshot.Snapshot, opts Options) *snapshot.Snapshot {
	if opts.Cluster != nil {
		return opts.Cluster.With(given)
	}
	alone := *given
	alone.ServerVersion, alone.Gates = opts.KubernetesVersion, map[string]snapshot.Gate{}
	for name, enabled := range opts.Gates {
		alone.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag}
	}
	return &alone
}

// Groups lists what checks are about, in their order.
func Groups() []checks.Group {
	return []checks.Group{
		{Number: "20", Title: "Form and versions"},
		{Number: "21", Title: "Pods and workloads"},
		{Number: "22", Title: "Claims and templates"},
		{Number: "23", Title: "CEL expressions"},
		{Number: "24", Title: "Classes, slices, taint rules and quotas"},
		{Number: "25", Title: "Against a cluster"},
	}
}

// Checks lists all checks by their codes.
func Checks() []Check {
	return slices.Concat(formChecks(), podChecks(), claimChecks(), celChecks(), adminChecks(), clusterChecks())
}

// Descriptions lists what all checks say of themselves.
func Descriptions() []checks.Description {
	var list []checks.Description
	for _, check := range Checks() {
		list = append(list, checks.Description{Code: check.Code, Title: check.Title, Severity: check.Severity, About: check.About, Advice: check.Advice})
	}
	return list
}
