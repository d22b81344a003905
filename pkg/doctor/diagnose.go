// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Examination has the facts behind an overview of a cluster: what there is, why pods wait or
// do not work, and the findings of all checks.
type Examination struct {
	Inventory *inventory.Inventory
	Survey    *inventory.Survey
	// Answers are the explanations of the pods that wait, in the order of [facts.Cluster.Waiting].
	Answers []explain.Answer
	// Blocked are the pods that have devices and cannot work with them.
	Blocked []lifecycle.BlockedPod
	// Diagnosis has the findings with all of their objects and all evidence.
	Diagnosis *api.Diagnosis

	in   *cluster
	made made
}

// Within returns the findings that matter in a namespace, or all if that is empty, as [Diagnose]
// does.
func (x *Examination) Within(namespace string) *api.Diagnosis {
	return x.in.diagnosis(x.made, namespace, maxObjects)
}

// Examine explains all pods that wait, and makes the checks of the options, in all namespaces. An
// error means that one of these failed, not that the cluster has a problem.
func Examine(ctx context.Context, c *facts.Cluster, opts Options) (*Examination, error) {
	in := newCluster(c, &opts)
	survey, err := in.inventory.Survey(ctx, in.inventory.Usage())
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	x := &Examination{Inventory: in.inventory, Survey: survey, in: in}
	if x.Answers, err = in.explained(ctx); err != nil {
		return nil, err
	}
	if x.made, err = in.makeChecks(ctx); err != nil {
		return nil, err
	}
	x.Diagnosis = in.diagnosis(x.made, "", math.MaxInt)
	x.Blocked = in.blocked()
	return x, nil
}

// Overview makes the overview of a cluster: it explains all pods that wait, and makes all
// checks. Pods and claims are in one namespace or, if that is empty, in any. The error
// says what failed, which is none of the cluster's faults.
func Overview(ctx context.Context, c *facts.Cluster, namespace string) (*inventory.Overview, error) {
	x, err := Examine(ctx, c, Options{})
	if err != nil {
		return nil, err
	}
	reasons := make(map[*corev1.Pod]api.StuckReason, len(x.Answers))
	for i, pod := range c.Waiting() {
		reasons[pod] = explain.Reason(x.Answers[i].Explanation, x.Answers[i].Err)
	}
	o := x.Survey.Overview(inventory.Known{
		Namespace: namespace, Reason: func(pod *corev1.Pod) api.StuckReason { return reasons[pod] }, Findings: x.Diagnosis.Findings,
	})
	o.AddNodes(x.Inventory.Nodes())
	return o, nil
}

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

// Numbers of groups of checks of cluster components.
const (
	groupVersions = "10"
	groupDrivers  = "11"
)

// servingAll returns the groups whose findings matter in each namespace, wherever the pods
// of the component are.
func servingAll() []string { return []string{groupVersions, groupDrivers} }

// Groups lists the groups in their order.
func Groups() []checks.Group {
	return []checks.Group{
		{Number: groupVersions, Title: "API and versions"},
		{Number: groupDrivers, Title: "Drivers"},
		{Number: "12", Title: "Slices and pools"},
		{Number: "13", Title: "Classes"},
		{Number: "14", Title: "Claims"},
		{Number: "15", Title: "Taints"},
		{Number: "16", Title: "Waiting pods"},
		{Number: "17", Title: "Nodes"},
		{Number: "19", Title: "Known bugs of Kubernetes"},
	}
}

// Checks lists all checks by their codes.
func Checks() []Check {
	return slices.Concat(versionChecks(), probeChecks(), servedChecks(), componentChecks(), []Check{controllerCheck()}, driverChecks(), poolChecks(), storedChecks(), pluginChecks(), []Check{partsCheck()}, classChecks(), claimChecks(), taintChecks(), waitingChecks(), nodeChecks(), bugChecks())
}

// Descriptions lists the descriptions of all checks.
func Descriptions() []checks.Description {
	var list []checks.Description
	for _, check := range Checks() {
		list = append(list, checks.Description{Code: check.Code, Title: check.Title, Severity: check.Severity, About: check.About, Advice: check.Advice, Needs: check.Needs})
	}
	return list
}

// RepeatsOf returns what says the same as the findings of a code.
func RepeatsOf(code string) Repeats {
	all := Checks()
	if i := slices.IndexFunc(all, func(c Check) bool { return c.Code == code }); i >= 0 {
		return all[i].Repeats
	}
	return RepeatsNothing
}

func waitingChecks() []Check {
	needs := waitingNeeds()
	checks := []Check{
		{
			Code: codeNever, Title: "pod that can never fit", Severity: api.SeverityError, Needs: needs, Repeats: RepeatsPods,
			About:  "A pod waits for devices that the nodes of the cluster could not give it if all other claims were released. Waiting does not help.",
			Advice: "'kubectl dra why' says which conditions conflict, and which changes make the pod fit.",
			find:   waitingCheck(neverFits),
		},
		{
			Code: codeFails, Title: "pod whose scheduling fails", Severity: api.SeverityError, Needs: needs, Repeats: RepeatsPods,
			About:  "The scheduler ends each attempt for a pod with an error before it has looked at all nodes: a selector fails, a class or a feature gate is missing.",
			Advice: "'kubectl dra why' names the error and what causes it.",
			find:   waitingCheck(failsToSchedule),
		},
		{
			Code: "DRA1603", Title: "pod that has devices and does not work", Severity: api.SeverityError, Needs: []string{snapshot.ResourcePods, snapshot.ResourceClaims}, Repeats: RepeatsPods,
			About:  "A pod has its devices allocated and is stuck after that: the driver does not prepare them, the runtime does not inject them, a taint is about to evict it.",
			Advice: "Follow the remedy. 'kubectl dra why' names the stage, the evidence and all that can be done.",
			find:   findBlockedPods,
		},
		{
			Code: "DRA1605", Title: "pods that wait for the devices of one claim", Severity: api.SeverityInfo, Needs: needs, Repeats: RepeatsPods,
			About:  "Several pods would fit if one claim were released, and that claim alone. They get the devices one after another.",
			Advice: "'kubectl dra tree claim/NAME' lists the pods that use the claim. It is released when the last of them ends.",
			find:   findQueues,
		},
		{
			Code: "DRA1608", Title: "workload whose pods the API server refuses", Severity: api.SeverityError, Needs: []string{snapshot.ResourceEvents}, Repeats: RepeatsPods,
			About:  "The controller of a workload with devices cannot create its pods: a ServiceAccount or a PriorityClass is missing, a quota or a LimitRange does not allow them, or an admission webhook or policy refuses them. There is no pod that waits, so that nothing else shows it.",
			Advice: "The message is that of the API server. 'kubectl dra why' says who can act, with the commands.",
			find:   findRefusedWorkloads,
		},
		{
			Code: codeUnheard, Title: "pods that no scheduler has looked at", Severity: api.SeverityError, Needs: needs,
			About:  "Pods fit, have waited for more than a minute, and have no condition PodScheduled: kube-scheduler has not tried to place them, nor any pod that was created after the first of them.",
			Advice: "Look at the pods, the lease and the log of kube-scheduler.",
			find:   findUnheard,
		},
	}
	checks = append(checks, quotaChecks()...)
	slices.SortFunc(checks, func(a, b Check) int { return strings.Compare(a.Code, b.Code) })
	return checks
}
