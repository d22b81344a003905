// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	draclient "k8s.io/dynamic-resource-allocation/client"
	"k8s.io/klog/v2"
)

// Watcher keeps up with a cluster by watches. It is safe for concurrent use.
type Watcher struct {
	clients Clients
	opts    CollectOptions
	server  string
	// start is what was read first, without what is watched.
	start   *Snapshot
	lists   []watched
	changed chan struct{}

	mu sync.Mutex
	// trouble is what does not work at the moment, by resource.
	trouble map[string]error
	// since is when the first of it began.
	since time.Time
}

// Watch reads once what [Collect] reads, apart from the target and what is
// known about it, and follows all lists by watches that go on from there. It
// fails like Collect. What the user may not list at the cluster scope is
// watched in the one namespace, or is a [Gap], as with Collect; what may be
// listed but not watched stays as it was, which is a gap, too.
//
// Some things are only read once: the version of the server, what it serves,
// its feature gates, and, for a user who may not list namespaces, the one
// namespace.
//
// Watches end with the context. Until then lost connections are made again;
// see [Watcher.Trouble].
func Watch(ctx context.Context, clients Clients, opts CollectOptions) (*Watcher, error) {
	opts.Target = nil
	c, err := newCollector(clients, opts)
	if err != nil {
		return nil, err
	}
	// The client library logs some of the errors that it also returns.
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	w := &Watcher{
		clients: clients, opts: opts, server: c.server, start: c.snapshot,
		changed: make(chan struct{}, 1), trouble: map[string]error{},
	}
	w.add(c)
	for _, list := range w.lists {
		go list.run(ctx)
	}
	return w, nil
}

// Snapshot is the cluster as it is now. It shares its objects with later ones,
// and costs little where nothing changed. It is what [Collect] would give
// without a target; for one see [Watcher.Target].
func (w *Watcher) Snapshot() *Snapshot {
	s := *w.start
	s.Gates = maps.Clone(w.start.Gates)
	s.Gaps = slices.Clone(w.start.Gaps)
	s.TakenAt = time.Now()
	for _, list := range w.lists {
		list.into(&s)
	}
	sortGaps(s.Gaps)
	return &s
}

// Target is [Watcher.Snapshot] with what [Collect] adds for a target: the
// object itself, if it has a pod template, its events, and the workloads of
// Kueue next to it. The server is asked for these. Errors are those of Collect.
func (w *Watcher) Target(ctx context.Context, target ObjectRef) (*Snapshot, error) {
	opts := w.opts
	opts.Target, opts.Progress = &target, nil
	c, err := newCollector(w.clients, opts)
	if err != nil {
		return nil, err
	}
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	c.snapshot = w.Snapshot()
	c.plugins, c.snapshot.Workloads = c.snapshot.Workloads, nil
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.readTarget(groupCtx) })
	group.Go(func() error { return c.events()(groupCtx) })
	if err := group.Wait(); err != nil {
		return nil, serverError(ctx, c.server, err)
	}
	c.readQueued(ctx)
	s := c.snapshot
	s.Workloads = overlay(c.plugins, s.Workloads)
	// The other lists are in order, and others look at them.
	sortByName(s.Events)
	sortByName(s.Queued)
	sortGaps(s.Gaps)
	return s, nil
}

// Changed gets a value after anything changed, also after [Watcher.Trouble]
// did. Changes that come before it is read are one.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Trouble tells what does not work at the moment, and since when; nil if
// everything does. The snapshot stays what it was then.
func (w *Watcher) Trouble() (since time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(w.trouble)) {
		return w.since, w.trouble[resource]
	}
	return time.Time{}, nil
}

func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// failed notes that a resource cannot be followed.
func (w *Watcher) failed(resource string, err error) {
	w.mu.Lock()
	if len(w.trouble) == 0 {
		w.since = time.Now()
	}
	w.trouble[resource] = serverError(context.Background(), w.server, err)
	w.mu.Unlock()
	w.notify()
}

// works notes that a resource is followed.
func (w *Watcher) works(resource string) {
	w.mu.Lock()
	_, failed := w.trouble[resource]
	delete(w.trouble, resource)
	w.mu.Unlock()
	if failed {
		w.notify()
	}
}

// add sets up a watch for each resource that the collector has read.
func (w *Watcher) add(c *collector) {
	core, apps := c.clients.Kubernetes.CoreV1(), c.clients.Kubernetes.AppsV1()
	// As in collector.tasks, each has a converting client of its own.
	dra := func() *draclient.Client { return draclient.New(c.clients.Kubernetes) }
	sliceAPI, classAPI, claimAPI, templateAPI, ruleAPI := dra(), dra(), dra(), dra(), dra()

	follow(w, c, ResourceNodes, apiOf(core.Nodes()), &corev1.Node{}, as[*corev1.Node], func(s *Snapshot) *[]*corev1.Node { return &s.Nodes })
	follow(w, c, ResourceNamespaces, apiOf(core.Namespaces()), &corev1.Namespace{}, as[*corev1.Namespace], func(s *Snapshot) *[]*corev1.Namespace { return &s.Namespaces })
	follow(w, c, ResourcePods, apiOf(core.Pods(w.namespace(ResourcePods))), &corev1.Pod{}, as[*corev1.Pod], func(s *Snapshot) *[]*corev1.Pod { return &s.Pods })
	follow(w, c, ResourceSlices, apiOf(sliceAPI.ResourceSlices()), &resourceapi.ResourceSlice{}, as[*resourceapi.ResourceSlice], func(s *Snapshot) *[]*resourceapi.ResourceSlice { return &s.Slices })
	follow(w, c, ResourceClasses, apiOf(classAPI.DeviceClasses()), &resourceapi.DeviceClass{}, as[*resourceapi.DeviceClass], func(s *Snapshot) *[]*resourceapi.DeviceClass { return &s.Classes })
	follow(w, c, ResourceClaims, apiOf(claimAPI.ResourceClaims(w.namespace(ResourceClaims))), &resourceapi.ResourceClaim{}, as[*resourceapi.ResourceClaim], func(s *Snapshot) *[]*resourceapi.ResourceClaim { return &s.Claims })
	follow(w, c, ResourceTemplates, apiOf(templateAPI.ResourceClaimTemplates(w.namespace(ResourceTemplates))), &resourceapi.ResourceClaimTemplate{}, as[*resourceapi.ResourceClaimTemplate], func(s *Snapshot) *[]*resourceapi.ResourceClaimTemplate { return &s.Templates })
	follow(w, c, ResourceDaemonSets, apiOf(apps.DaemonSets(metav1.NamespaceAll)), &appsv1.DaemonSet{}, asPlugin, func(s *Snapshot) *[]*Workload { return &s.Workloads })

	rules := func(s *Snapshot) *[]*resourceapi.DeviceTaintRule { return &s.TaintRules }
	if c.apis.taintRules == oldTaintRules {
		follow(w, c, ResourceTaintRules, apiOf(c.clients.oldTaintRuleAPI()), nil, asOldTaintRule, rules)
	} else {
		follow(w, c, ResourceTaintRules, apiOf(ruleAPI.DeviceTaintRules()), &resourceapi.DeviceTaintRule{}, as[*resourceapi.DeviceTaintRule], rules)
	}
	groups, namespace := func(s *Snapshot) *[]*schedulingapi.PodGroup { return &s.PodGroups }, w.namespace(ResourcePodGroups)
	if version := c.apis.podGroups; version == "v1beta1" {
		follow(w, c, ResourcePodGroups, apiOf(c.clients.Kubernetes.SchedulingV1beta1().PodGroups(namespace)), &schedulingapi.PodGroup{}, as[*schedulingapi.PodGroup], groups)
	} else {
		follow(w, c, ResourcePodGroups, apiOf(c.clients.oldPodGroupAPI(version, namespace)), nil, asOldPodGroup(version), groups)
	}
}

// namespace is the one that a resource can be read in, empty for all.
func (w *Watcher) namespace(resource string) string {
	if gap := w.start.Gap(resource); gap != nil {
		return gap.Namespace
	}
	return metav1.NamespaceAll
}
