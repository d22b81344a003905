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
		err = serverError(ctx, c.server, ctx.Err())
	}
	c.progress.stop()
	return err
}

func newCollector(clients Clients, opts Options) (*collector, error) {
	c := &collector{
		clients:   clients,
		opts:      opts,
		server:    serverAddress(clients.Config),
		namespace: cmp.Or(opts.Namespace, clients.Namespace, metav1.NamespaceDefault),
		progress:  &progress{report: opts.Progress},
	}
	if opts.Target != nil {
		c.namespace = cmp.Or(opts.Target.Namespace, c.namespace)
	}
	c.snapshot = &snapshot.Snapshot{Source: "cluster " + c.server, TakenAt: time.Now(), Gates: map[string]snapshot.Gate{}}
	if opts.KubernetesVersion != "" {
		given, err := snapshot.ParseVersion(opts.KubernetesVersion)
		if err != nil {
			return nil, err
		}
		c.snapshot.AssumeVersion(given)
	}
	return c, nil
}

func (c *collector) run(ctx context.Context) error {
	apis, err := c.discover(ctx)
	if err != nil {
		return serverError(ctx, c.server, err)
	}
	c.apis = apis
	group, groupCtx := errgroup.WithContext(ctx)
	for _, task := range c.tasks(apis) {
		group.Go(func() error { return task(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return serverError(ctx, c.server, err)
	}
	// Nothing was refused where the server has nothing of what was asked for.
	if !c.anyRead && len(c.denied) > 0 {
		return c.forbidden()
	}
	if err := c.readDependents(ctx); err != nil {
		return err
	}
	c.finish()
	return nil
}

// readDependents reads what the question takes besides the lists, which it needs.
func (c *collector) readDependents(ctx context.Context) error {
	c.readTargetOwners(ctx)
	c.readAutoscaler(ctx)
	c.readQueued(ctx)
	if err := c.readStarting(ctx); err != nil {
		return err
	}
	c.readRefused(ctx)
	if err := c.readPluginEvents(ctx); err != nil {
		return err
	}
	if err := c.readPodEvents(ctx); err != nil {
		return err
	}
	if err := c.readComponents(ctx); err != nil {
		return err
	}
	if err := c.readPlugins(ctx); err != nil {
		return err
	}
	return c.readOptional(ctx)
}

// aboutTarget returns the requests about the target or, without one, about refused pods.
func (c *collector) aboutTarget() []func(context.Context) error {
	switch {
	case c.opts.Target != nil:
		return []func(context.Context) error{c.readTarget, c.events()}
	case c.opts.Starting:
		return []func(context.Context) error{c.failedCreates}
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
	s, clients := c.snapshot, c.clients
	tasks := []func(context.Context) error{
		c.readGates,
		c.namespaces(),
		c.daemonSets(),
		c.clusterList(snapshot.ResourceNodes, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, nodeAPI(clients), &s.Nodes)
		}),
		c.clusterList(snapshot.ResourceSlices, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, sliceAPI(clients, apis.dra), &s.Slices)
		}),
		c.clusterList(snapshot.ResourceClasses, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, classAPI(clients, apis.dra), &s.Classes)
		}),
		c.namespacedList(snapshot.ResourcePods, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, podAPI(clients, namespace), &s.Pods)
		}),
		c.namespacedList(snapshot.ResourceClaims, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, claimAPI(clients, apis.dra, namespace), &s.Claims)
		}),
		c.namespacedList(snapshot.ResourceTemplates, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, templateAPI(clients, apis.dra, namespace), &s.Templates)
		}),
	}
	if apis.taintRules != "" {
		tasks = append(tasks, c.clusterList(snapshot.ResourceTaintRules, func(ctx context.Context, l *listing) error {
			return fetch(ctx, l, taintRuleAPI(clients, apis.taintRules), &s.TaintRules)
		}))
	}
	if apis.podGroups != "" {
		tasks = append(tasks, c.namespacedList(snapshot.ResourcePodGroups, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, podGroupAPI(clients, apis.podGroups, namespace), &s.PodGroups)
		}))
	}
	tasks = append(tasks, c.aboutTarget()...)
	return slices.DeleteFunc(tasks, func(task func(context.Context) error) bool { return task == nil })
}

// namespaces returns a task that lists the namespaces, or gets the one of interest: its
// labels decide about admin access.
func (c *collector) namespaces() func(context.Context) error {
	s := c.snapshot
	return c.clusterList(snapshot.ResourceNamespaces, func(ctx context.Context, l *listing) error {
		denied := fetch(ctx, l, namespaceAPI(c.clients), &s.Namespaces)
		if !apierrors.IsForbidden(denied) || c.opts.AllNamespaces {
			return denied
		}
		namespace, err := c.clients.namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return denied
		}
		if err != nil {
			return err
		}
		kinds.Strip(namespace)
		s.Namespaces = []*corev1.Namespace{namespace}
		c.gap(snapshot.Gap{Resource: snapshot.ResourceNamespaces, Namespace: c.namespace, Reason: fmt.Sprintf(
			"this user may not list namespaces at the cluster scope; only namespace %s itself could be read", c.namespace)})
		return nil
	})
}

// readGates asks for the feature gates, unless the user named a version. It never fails for
// lack of metrics: the defaults of the server's version are good enough, if the gap says
// so.
func (c *collector) readGates(ctx context.Context) error {
	if c.opts.KubernetesVersion != "" || !c.wants(snapshot.ResourceMetrics) {
		return nil
	}
	gates, err := readGates(ctx, c.clients)
	if apierrors.IsUnauthorized(err) {
		return err
	}
	if err != nil {
		c.gap(snapshot.Gap{Resource: snapshot.ResourceMetrics, Reason: metricsGapReason(err)})
		return nil
	}
	c.snapshot.Gates = gates
	return nil
}

func (c *collector) forbidden() error {
	slices.Sort(c.denied)
	err := &ForbiddenError{Server: c.server, Resources: c.denied}
	if !c.opts.AllNamespaces {
		err.Namespace = c.namespace
	}
	return err
}

// finish brings the snapshot into the form that [snapshot.Snapshot] promises.
func (c *collector) finish() {
	s := c.snapshot
	s.Workloads = c.workloads()
	for resource, leftOut := range c.progress.leftOut() {
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
