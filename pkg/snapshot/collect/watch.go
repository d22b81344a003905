// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Watcher keeps up with a cluster by watches. It is safe for concurrent use.
type Watcher struct {
	clients Clients
	opts    Options
	apis    servedAPIs
	// start is the first snapshot, without watched objects.
	start *snapshot.Snapshot
	lists []watched
	*health

	mu sync.Mutex
	// added has the objects that [Watcher.Refresh] read last; nil before.
	added *snapshot.Snapshot
}

// Watch reads once the objects that [Collect] reads, apart from the target and its objects,
// and follows all lists by watches. It fails like Collect. Resources that the user may not
// list at the cluster scope are watched in the one namespace, or are a [snapshot.Gap], as
// with Collect; lists that may not be watched stay as they were, which is a gap, too.
//
// Some facts are only read once: the version of the server, its APIs, its feature gates,
// and, for a user who may not list namespaces, the one namespace.
//
// Watches end with the context. Until then lost connections are made again; see
// [Watcher.Trouble].
func Watch(ctx context.Context, clients Clients, opts Options) (*Watcher, error) {
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
		clients: clients, opts: opts, apis: c.apis, start: c.snapshot, health: newHealth(c.reader.server),
	}
	w.add(c.reader.progress)
	for _, list := range w.lists {
		go list.run(ctx)
	}
	if opts.pulse == (pulse{}) {
		opts.pulse = defaultPulse()
	}
	go opts.pulse.run(ctx, w.health, clients)
	return w, nil
}

// Snapshot returns the cluster as it is now. It shares its objects with later ones, and
// costs little where nothing changed. It is what [Collect] would give without a target; for
// one see [Watcher.Target]. While the server is silent it is taken at the time of its last
// answer: nothing is known for later.
func (w *Watcher) Snapshot() *snapshot.Snapshot {
	s := w.watched()
	w.mu.Lock()
	added := w.added
	w.mu.Unlock()
	if added == nil {
		return s
	}
	s.Events, s.Queued, s.Outlines, s.Listed = added.Events, added.Queued, added.Outlines, added.Listed
	s.Quotas, s.LimitRanges, s.Budgets, s.CompositePodGroups = added.Quotas, added.LimitRanges, added.Budgets, added.CompositePodGroups
	s.VolumeClaims, s.Volumes, s.StorageClasses = added.VolumeClaims, added.Volumes, added.StorageClasses
	s.Workloads = snapshot.Overlay(added.Workloads, s.Workloads)
	// These are watched only if a claim named one at the beginning.
	s.ComputeDomains, s.Cliques = snapshot.Overlay(added.ComputeDomains, s.ComputeDomains), snapshot.Overlay(added.Cliques, s.Cliques)
	s.Gaps = append(s.Gaps, added.Gaps...)
	sortGaps(s.Gaps)
	return s
}

// watched returns the cluster as it is now, without the objects of [Watcher.Refresh].
func (w *Watcher) watched() *snapshot.Snapshot {
	s := *w.start
	s.Gates = maps.Clone(w.start.Gates)
	s.Gaps = slices.Clone(w.start.Gaps)
	s.TakenAt = w.asOf()
	for _, list := range w.lists {
		list.into(&s)
	}
	sortGaps(s.Gaps)
	return &s
}

// Target is like [Watcher.Snapshot], with the objects that [Collect] adds for a target: the
// object itself, if it has a pod template, its events, and the workloads of Kueue next to
// it. The server is asked for these. Errors are the errors of Collect.
func (w *Watcher) Target(ctx context.Context, target snapshot.Argument) (*snapshot.Snapshot, error) {
	opts := w.opts
	opts.Target = &target
	return w.also(ctx, opts)
}

// Problems is like [Watcher.Snapshot], with the objects that [Collect] adds for
// [Options.Starting], [Options.Health] and [Options.Admission]. The server is asked for these.
// Errors are the errors of Collect.
func (w *Watcher) Problems(ctx context.Context) (*snapshot.Snapshot, error) {
	opts := w.opts
	opts.Starting, opts.Health, opts.Admission = true, true, true
	return w.also(ctx, opts)
}

// Refresh is like [Watcher.Problems]. What it adds, and the warnings about pods with devices, is in
// all later snapshots, as it was then.
func (w *Watcher) Refresh(ctx context.Context) (*snapshot.Snapshot, error) {
	opts := w.opts
	opts.Starting, opts.Health, opts.Admission, opts.podEvents = true, true, true, true
	s, err := w.also(ctx, opts)
	if err != nil {
		return nil, err
	}
	added, before := *s, w.watched()
	added.Gaps = slices.DeleteFunc(slices.Clone(s.Gaps), func(gap snapshot.Gap) bool { return slices.Contains(before.Gaps, gap) })
	// Those that are watched are newer there.
	watched := map[snapshot.Identity]bool{}
	for _, workload := range before.Workloads {
		watched[snapshot.Identify(workload)] = true
	}
	added.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), func(workload *snapshot.Workload) bool { return watched[snapshot.Identify(workload)] })
	w.mu.Lock()
	w.added = &added
	w.mu.Unlock()
	return s, nil
}

// also reads what other options add to the present snapshot.
func (w *Watcher) also(ctx context.Context, opts Options) (*snapshot.Snapshot, error) {
	opts.Progress = nil
	c, err := newCollector(w.clients, opts)
	if err != nil {
		return nil, err
	}
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	*c.snapshot, c.apis = *w.watched(), w.apis
	c.plugins, c.snapshot.Workloads = c.snapshot.Workloads, nil
	group, groupCtx := errgroup.WithContext(ctx)
	for _, task := range c.aboutTarget() {
		group.Go(func() error { return task(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, serverError(ctx, c.reader.server, err)
	}
	if err := c.readDependents(ctx); err != nil {
		return nil, err
	}
	s := c.snapshot
	s.Workloads = c.workloads()
	// The other lists are in order, and others look at them.
	snapshot.SortByName(s.Events)
	snapshot.SortByName(s.Queued)
	s.SortOptional()
	sortGaps(s.Gaps)
	return s, nil
}

// add sets up a watch for each resource whose list was read.
func (w *Watcher) add(lists *progress) {
	clients, apis := w.clients, w.apis
	follow(w, lists, snapshot.ResourceNodes, nodeAPI(clients), func(s *snapshot.Snapshot) *[]*corev1.Node { return &s.Nodes })
	follow(w, lists, snapshot.ResourceNamespaces, namespaceAPI(clients), func(s *snapshot.Snapshot) *[]*corev1.Namespace { return &s.Namespaces })
	follow(w, lists, snapshot.ResourcePods, podAPI(clients, w.namespace(snapshot.ResourcePods)), func(s *snapshot.Snapshot) *[]*corev1.Pod { return &s.Pods })
	follow(w, lists, snapshot.ResourceSlices, sliceAPI(clients, apis.dra), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceSlice { return &s.Slices })
	follow(w, lists, snapshot.ResourceClasses, classAPI(clients, apis.dra), func(s *snapshot.Snapshot) *[]*resourceapi.DeviceClass { return &s.Classes })
	follow(w, lists, snapshot.ResourceClaims, claimAPI(clients, apis.dra, w.namespace(snapshot.ResourceClaims)), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceClaim { return &s.Claims })
	follow(w, lists, snapshot.ResourceTemplates, templateAPI(clients, apis.dra, w.namespace(snapshot.ResourceTemplates)), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceClaimTemplate { return &s.Templates })
	follow(w, lists, snapshot.ResourceDaemonSets, pluginAPI(clients), func(s *snapshot.Snapshot) *[]*snapshot.Workload { return &s.Workloads })
	follow(w, lists, snapshot.ResourceTaintRules, taintRuleAPI(clients, apis.taintRules), func(s *snapshot.Snapshot) *[]*resourceapi.DeviceTaintRule { return &s.TaintRules })
	follow(w, lists, snapshot.ResourcePodGroups, podGroupAPI(clients, apis.podGroups, w.namespace(snapshot.ResourcePodGroups)), func(s *snapshot.Snapshot) *[]*schedulingapi.PodGroup { return &s.PodGroups })
	follow(w, lists, snapshot.ResourceComputeDomains, computeDomainAPI(clients, w.namespace(snapshot.ResourceComputeDomains)), func(s *snapshot.Snapshot) *[]*snapshot.ComputeDomain { return &s.ComputeDomains })
	follow(w, lists, snapshot.ResourceCliques, cliqueAPI(clients, w.namespace(snapshot.ResourceCliques)), func(s *snapshot.Snapshot) *[]*snapshot.ComputeDomainClique { return &s.Cliques })
}

// namespace returns the namespace that a resource can be read in, empty for all.
func (w *Watcher) namespace(resource string) string {
	for _, gap := range w.start.Gaps {
		if gap.Resource == resource && gap.Namespace != "" {
			return gap.Namespace
		}
	}
	return metav1.NamespaceAll
}

// follow sets up the watch of a resource, if its list was read.
func follow[P metav1.Object](w *Watcher, lists *progress, resource string, from endpoint[P], field func(*snapshot.Snapshot) *[]P) {
	version := lists.version(resource)
	if version == "" {
		return
	}
	list := &watchedList[P]{
		health: w.health, readAt: w.start.TakenAt, namespace: w.namespace(resource), resource: resource, api: from, version: version, field: field,
		sorted: *field(w.start), changes: map[objectName]*P{}, leftOut: map[string]error{},
	}
	// From now on the list has them.
	*field(w.start) = nil
	maps.Copy(list.leftOut, lists.leftOut()[resource])
	w.start.Gaps = slices.DeleteFunc(w.start.Gaps, func(gap snapshot.Gap) bool { return gap.Resource == resource && gap.LeftOut })
	w.lists = append(w.lists, list)
}
