// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// collector is one run of [Collect].
type collector struct {
	reader   *reader
	opts     Options
	snapshot *snapshot.Snapshot

	// apis are the APIs that the server has, after run.
	apis servedAPIs
	// plugins are the DaemonSets with plugins for the kubelet.
	plugins []*snapshot.Workload
	// jobs are the jobs whose pods run for a limited time.
	jobs []*snapshot.Workload
	// failed are the events of controllers whose pods the API server refuses, refused the
	// workloads with devices among what they are about.
	failed  []*corev1.Event
	refused []*snapshot.Workload
}

// Collect asks a cluster. It reads all DRA objects, nodes, namespaces, pods and
// pod groups, and the feature gates, each at its own moment, but all within
// about as long as it takes to load the largest list.
//
// What the user may not read becomes a [snapshot.Gap]. Errors are *[UnauthorizedError],
// *[ForbiddenError] if nothing may be read, *[NoDRAError], *[ServerError],
// *[UnknownResourceError] or *[NoTemplateError] for the target, or wrap the
// error of the context.
// Collect returns as soon as the context is cancelled.
func Collect(ctx context.Context, clients Clients, opts Options) (*snapshot.Snapshot, error) {
	c, err := newCollector(clients, opts)
	if err != nil {
		return nil, err
	}
	// The client library logs some of the errors that it also returns. A user who
	// asks for its log with -v gets it.
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	return c.snapshot, nil
}

// collect runs the collector, and returns as soon as the context is cancelled.
func (c *collector) collect(ctx context.Context) (err error) {
	ctx = withUnused(ctx, c.opts.Unused)
	// Not everything below listens to the context: a credential plugin and the
	// REST mapper do not.
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = serverError(ctx, c.reader.server, ctx.Err())
	}
	c.reader.progress.stop()
	return err
}

func newCollector(clients Clients, opts Options) (*collector, error) {
	r := &reader{
		clients: clients, server: clients.Address(), only: opts.Only,
		namespace: cmp.Or(opts.Namespace, clients.Namespace, metav1.NamespaceDefault), allNamespaces: opts.AllNamespaces,
		progress: &progress{report: opts.Progress},
	}
	if opts.Target != nil {
		r.namespace = cmp.Or(opts.Target.Namespace, r.namespace)
	}
	s := &snapshot.Snapshot{Source: "cluster " + r.server, Clock: snapshot.Clock{TakenAt: time.Now()}, Release: snapshot.Release{Gates: map[string]snapshot.Gate{}}}
	r.gaps = &s.Gaps
	if opts.KubernetesVersion != "" {
		given, err := snapshot.ParseVersion(opts.KubernetesVersion)
		if err != nil {
			return nil, err
		}
		s.AssumeVersion(given)
	}
	return &collector{reader: r, opts: opts, snapshot: s}, nil
}

func (c *collector) run(ctx context.Context) error {
	apis, err := discover(ctx, c.reader.clients, c.reader.namespace, c.snapshot)
	if err != nil {
		return serverError(ctx, c.reader.server, err)
	}
	c.apis = apis
	group, groupCtx := errgroup.WithContext(ctx)
	for _, task := range c.tasks(apis) {
		group.Go(func() error { return task(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return serverError(ctx, c.reader.server, err)
	}
	// Nothing was refused where the server has nothing of what was asked for.
	if !c.reader.anyRead && len(c.reader.denied) > 0 {
		return c.reader.forbidden()
	}
	if err := c.readDependents(ctx); err != nil {
		return err
	}
	c.finish()
	return nil
}

// readDependents reads what the question takes besides the lists, which it needs.
func (c *collector) readDependents(ctx context.Context) error {
	r, s, opts := c.reader, c.snapshot, &c.opts
	if opts.Target != nil {
		readTargetOwners(ctx, r, s, opts.Target)
		if opts.Scaling {
			readAutoscaler(ctx, r, s, opts.Target.Name)
		}
	}
	if opts.Target != nil || opts.Admission {
		readQueued(ctx, r, s, c.scope())
	}
	if opts.Starting {
		namespace := r.namespace
		if opts.AllNamespaces {
			namespace = metav1.NamespaceAll
		}
		if err := readEvents(ctx, r, aboutStarting(s.Pods, namespace), &s.Events); err != nil {
			return err
		}
	}
	c.readRefused(ctx)
	if opts.Health {
		if err := readEvents(ctx, r, aboutPlugins(c.plugins, s.Pods), &s.Events); err != nil {
			return err
		}
	}
	if opts.podEvents {
		if err := readEvents(ctx, r, aboutPods(s.Pods), &s.Events); err != nil {
			return err
		}
	}
	if opts.Health {
		if err := readComponents(ctx, r, s); err != nil {
			return err
		}
	}
	if opts.DevicePlugins {
		if err := readPlugins(ctx, r, s); err != nil {
			return err
		}
	}
	return readOptional(ctx, r, s, opts, c.apis, &c.jobs)
}

// readRefused reads the workloads whose pods are refused, and keeps the events about them.
func (c *collector) readRefused(ctx context.Context) {
	events := c.failed
	if c.opts.Target != nil && hasPodsThroughOthers(c.snapshot) {
		events = c.snapshot.Events
	}
	c.refused = readRefused(ctx, c.reader, events)
	for _, event := range c.failed {
		if isAbout(event, c.refused) {
			c.snapshot.Events = append(c.snapshot.Events, event)
		}
	}
}

// scope returns the namespace to read, empty for all namespaces.
func (c *collector) scope() string {
	if c.opts.Target == nil && c.opts.AllNamespaces {
		return metav1.NamespaceAll
	}
	return c.reader.namespace
}

// aboutTarget returns the requests about the target or, without one, about refused pods.
func (c *collector) aboutTarget() []func(context.Context) error {
	r, s, target := c.reader, c.snapshot, c.opts.Target
	switch {
	case target != nil:
		return []func(context.Context) error{
			func(ctx context.Context) error { return readTarget(ctx, r, s, target) },
			targetEvents(r, target.Name, &s.Events),
		}
	case c.opts.Starting:
		return []func(context.Context) error{func(ctx context.Context) error { return failedCreates(ctx, r, c.scope(), &c.failed) }}
	default:
		return nil
	}
}

// workloads returns the workloads of all requests.
func (c *collector) workloads() []*snapshot.Workload {
	return snapshot.Overlay(c.jobs, snapshot.Overlay(c.plugins, snapshot.Overlay(c.refused, c.snapshot.Workloads)))
}

// tasks returns the requests that go out at the same time.
func (c *collector) tasks(apis servedAPIs) []func(context.Context) error {
	r, s, clients := c.reader, c.snapshot, c.reader.clients
	tasks := []func(context.Context) error{
		c.readGates,
		namespaces(r, s),
		daemonSets(r, &c.plugins),
		r.clusterList(snapshot.ResourceNodes, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, nodeAPI(clients), &s.Nodes)
		}),
		r.clusterList(snapshot.ResourceSlices, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, sliceAPI(clients, apis.dra), &s.Slices)
		}),
		r.clusterList(snapshot.ResourceClasses, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, classAPI(clients, apis.dra), &s.Classes)
		}),
		r.namespacedList(snapshot.ResourcePods, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, podAPI(clients, namespace), &s.Pods)
		}),
		r.namespacedList(snapshot.ResourceClaims, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, claimAPI(clients, apis.dra, namespace), &s.Claims)
		}),
		r.namespacedList(snapshot.ResourceTemplates, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, templateAPI(clients, apis.dra, namespace), &s.Templates)
		}),
	}
	if apis.taintRules != "" {
		tasks = append(tasks, r.clusterList(snapshot.ResourceTaintRules, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, taintRuleAPI(clients, apis.taintRules), &s.TaintRules)
		}))
	}
	if apis.podGroups != "" {
		tasks = append(tasks, r.namespacedList(snapshot.ResourcePodGroups, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, podGroupAPI(clients, apis.podGroups, namespace), &s.PodGroups)
		}))
	}
	tasks = append(tasks, c.aboutTarget()...)
	return slices.DeleteFunc(tasks, func(task func(context.Context) error) bool { return task == nil })
}

// namespaces returns a task that lists the namespaces, or gets the one of interest: its
// labels decide about admin access.
func namespaces(r *reader, s *snapshot.Snapshot) func(context.Context) error {
	return r.clusterList(snapshot.ResourceNamespaces, func(ctx context.Context, l *listing) error {
		denied := fetch(ctx, l, namespaceAPI(r.clients), &s.Namespaces)
		if !apierrors.IsForbidden(denied) || r.allNamespaces {
			return denied
		}
		namespace, err := r.clients.namespaces().Get(ctx, r.namespace, metav1.GetOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return denied
		}
		if err != nil {
			return err
		}
		kinds.Strip(namespace)
		s.Namespaces = []*corev1.Namespace{namespace}
		r.gap(snapshot.Gap{Resource: snapshot.ResourceNamespaces, Namespace: r.namespace, Reason: fmt.Sprintf(
			"this user may not list namespaces at the cluster scope; only namespace %s itself could be read", r.namespace)})
		return nil
	})
}

// readGates asks for the feature gates, unless the user named a version. It never fails for
// lack of metrics: the defaults of the server's version are good enough, if the gap says
// so.
func (c *collector) readGates(ctx context.Context) error {
	if c.opts.KubernetesVersion != "" || !c.reader.wants(snapshot.ResourceMetrics) {
		return nil
	}
	gates, err := readGates(ctx, c.reader.clients)
	if apierrors.IsUnauthorized(err) {
		return err
	}
	if err != nil {
		c.reader.gap(snapshot.Gap{Resource: snapshot.ResourceMetrics, Reason: metricsGapReason(err)})
		return nil
	}
	c.snapshot.Gates = gates
	return nil
}

// finish brings the snapshot into the form that [snapshot.Snapshot] promises.
func (c *collector) finish() {
	s := c.snapshot
	s.Workloads = c.workloads()
	for resource, leftOut := range c.reader.progress.leftOut() {
		s.Gaps = append(s.Gaps, leftOutGap(resource, leftOut))
	}
	for name, enabled := range c.opts.Gates {
		s.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag}
	}
	sortGaps(s.Gaps)
	s.Sort()
}

func sortGaps(gaps []snapshot.Gap) {
	slices.SortFunc(gaps, func(a, b snapshot.Gap) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Reason, b.Reason))
	})
}
