// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	draclient "k8s.io/dynamic-resource-allocation/client"
	"k8s.io/klog/v2"
)

// Watcher keeps up with a cluster by watches. It is safe for concurrent use.
type Watcher struct {
	// only says which resources matter.
	only    func(resource string) bool
	server  string
	start   *Snapshot
	lists   []*watchedList
	changed chan struct{}

	mu sync.Mutex
	// trouble is what does not work at the moment, by resource.
	trouble map[string]error
	// since is when the first of it began.
	since time.Time
}

// watchedList is one resource that is watched.
type watchedList struct {
	resource string
	informer cache.SharedInformer
	// into puts the objects into a snapshot.
	into func(s *Snapshot, objects []any)
}

// Watch starts to watch what [Collect] reads, apart from the target and its
// events, and returns when everything has been read once. What the user may
// not list at the cluster scope is watched in the one namespace, or is a
// [Gap], as with Collect. It fails like Collect.
//
// Watches end with the context. Until then lost connections are made again;
// see [Watcher.Trouble].
func Watch(ctx context.Context, clients Clients, opts CollectOptions) (*Watcher, error) {
	opts.Target = nil
	first, err := newCollector(clients, opts)
	if err != nil {
		return nil, err
	}
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	if err := first.run(ctx); err != nil {
		return nil, err
	}
	apis, err := first.discover(ctx)
	if err != nil {
		return nil, serverError(ctx, first.server, err)
	}
	w := &Watcher{only: first.wants, server: first.server, start: first.snapshot, changed: make(chan struct{}, 1), trouble: map[string]error{}}
	if err := w.add(clients, apis); err != nil {
		return nil, err
	}
	for _, list := range w.lists {
		go list.informer.RunWithContext(ctx)
	}
	for _, list := range w.lists {
		if !cache.WaitForCacheSync(ctx.Done(), list.informer.HasSynced) {
			return nil, serverError(ctx, w.server, ctx.Err())
		}
		// The informer has them now.
		list.into(w.start, nil)
	}
	return w, nil
}

// Snapshot is the cluster as it is now. It shares its objects with later ones.
func (w *Watcher) Snapshot() *Snapshot {
	s := *w.start
	s.Gates = maps.Clone(w.start.Gates)
	s.TakenAt = time.Now()
	for _, list := range w.lists {
		list.into(&s, list.informer.GetStore().List())
	}
	s.sort()
	return &s
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

// failed notes that a list or watch does not work. That a watch ends is
// normal, and that the server forgot where it was, too.
func (w *Watcher) failed(resource string, err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	w.mu.Lock()
	if len(w.trouble) == 0 {
		w.since = time.Now()
	}
	w.trouble[resource] = serverError(context.Background(), w.server, err)
	w.mu.Unlock()
	w.notify()
}

func (w *Watcher) works(resource string) {
	w.mu.Lock()
	_, failed := w.trouble[resource]
	delete(w.trouble, resource)
	w.mu.Unlock()
	if failed {
		w.notify()
	}
}

// add sets up a watch for each resource that could be read.
func (w *Watcher) add(clients Clients, apis servedAPIs) error {
	core := clients.Kubernetes.CoreV1()
	dra := func() *draclient.Client { return draclient.New(clients.Kubernetes) }
	sliceAPI, classAPI, claimAPI, templateAPI, ruleAPI := dra(), dra(), dra(), dra(), dra()
	err := errors.Join(
		watchList(w, ResourceNodes, &corev1.Node{}, core.Nodes().List, core.Nodes().Watch, func(s *Snapshot) *[]*corev1.Node { return &s.Nodes }),
		watchList(w, ResourceNamespaces, &corev1.Namespace{}, core.Namespaces().List, core.Namespaces().Watch, func(s *Snapshot) *[]*corev1.Namespace { return &s.Namespaces }),
		watchList(w, ResourcePods, &corev1.Pod{}, core.Pods(w.namespace(ResourcePods)).List, core.Pods(w.namespace(ResourcePods)).Watch, func(s *Snapshot) *[]*corev1.Pod { return &s.Pods }),
		watchList(w, ResourceSlices, &resourceapi.ResourceSlice{}, sliceAPI.ResourceSlices().List, sliceAPI.ResourceSlices().Watch, func(s *Snapshot) *[]*resourceapi.ResourceSlice { return &s.Slices }),
		watchList(w, ResourceClasses, &resourceapi.DeviceClass{}, classAPI.DeviceClasses().List, classAPI.DeviceClasses().Watch, func(s *Snapshot) *[]*resourceapi.DeviceClass { return &s.Classes }),
		watchList(w, ResourceClaims, &resourceapi.ResourceClaim{}, claimAPI.ResourceClaims(w.namespace(ResourceClaims)).List, claimAPI.ResourceClaims(w.namespace(ResourceClaims)).Watch, func(s *Snapshot) *[]*resourceapi.ResourceClaim { return &s.Claims }),
		watchList(w, ResourceTemplates, &resourceapi.ResourceClaimTemplate{}, templateAPI.ResourceClaimTemplates(w.namespace(ResourceTemplates)).List, templateAPI.ResourceClaimTemplates(w.namespace(ResourceTemplates)).Watch, func(s *Snapshot) *[]*resourceapi.ResourceClaimTemplate { return &s.Templates }),
	)
	// Other versions of these have no typed client: what was read first stays.
	if apis.taintRules == "v1" || apis.taintRules == "v1beta2" {
		err = errors.Join(err, watchList(w, ResourceTaintRules, &resourceapi.DeviceTaintRule{}, ruleAPI.DeviceTaintRules().List, ruleAPI.DeviceTaintRules().Watch, func(s *Snapshot) *[]*resourceapi.DeviceTaintRule { return &s.TaintRules }))
	}
	if apis.podGroups == "v1beta1" {
		groups := clients.Kubernetes.SchedulingV1beta1().PodGroups(w.namespace(ResourcePodGroups))
		err = errors.Join(err, watchList(w, ResourcePodGroups, &schedulingapi.PodGroup{}, groups.List, groups.Watch, func(s *Snapshot) *[]*schedulingapi.PodGroup { return &s.PodGroups }))
	}
	return err
}

// namespace is the one that a resource can be read in, empty for all.
func (w *Watcher) namespace(resource string) string {
	if gap := w.start.Gap(resource); gap != nil {
		return gap.Namespace
	}
	return metav1.NamespaceAll
}

// watchList sets up the watch of one resource. What could not be listed at all
// is not watched.
func watchList[L runtime.Object, P interface {
	runtime.Object
	metav1.Object
}](w *Watcher, resource string, example P, list func(context.Context, metav1.ListOptions) (L, error), begin func(context.Context, metav1.ListOptions) (watch.Interface, error), field func(*Snapshot) *[]P,
) error {
	if !w.only(resource) {
		return nil
	}
	if gap := w.start.Gap(resource); gap != nil && (gap.Namespace == "" || resource == ResourceNamespaces) {
		return nil
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found, err := list(ctx, options)
			if err != nil {
				w.failed(resource, err)
				return nil, err
			}
			w.works(resource)
			return found, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := begin(ctx, options)
			if err != nil {
				w.failed(resource, err)
				return nil, err
			}
			w.works(resource)
			return events, nil
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{ObjectDescription: resource})
	err := errors.Join(
		informer.SetTransform(func(object any) (any, error) {
			if o, ok := object.(metav1.Object); ok {
				strip(o)
			}
			return object, nil
		}),
		informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.failed(resource, err) }),
	)
	if err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.notify() },
		UpdateFunc: func(any, any) { w.notify() },
		DeleteFunc: func(any) { w.notify() },
	}); err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	w.lists = append(w.lists, &watchedList{resource: resource, informer: informer, into: func(s *Snapshot, objects []any) {
		all := make([]P, 0, len(objects))
		for _, object := range objects {
			if o, ok := object.(P); ok {
				all = append(all, o)
			}
		}
		*field(s) = all
	}})
	return nil
}
