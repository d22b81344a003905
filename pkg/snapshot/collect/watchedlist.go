// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// watched is a [watchedList] of any type.
type watched interface {
	// run follows the resource until the context is done.
	run(ctx context.Context)
	// into puts the objects, and what could not be read, into a snapshot.
	into(s *snapshot.Snapshot)
}

// watchedList is the newest known state of one resource: what a reflector
// writes to, and what snapshots are made from.
type watchedList[P metav1.Object] struct {
	health   *health
	resource string
	// namespace is the watched namespace, empty for all.
	namespace string
	// readAt is when the collector read the list.
	readAt time.Time
	api    endpoint[P]
	// version is the version of the list that the collector read.
	version string
	field   func(*snapshot.Snapshot) *[]P

	mu sync.Mutex
	// listed is true once the reflector has asked for the list.
	listed bool
	// begun is true after the first watch.
	begun bool
	// refused is true if the user may not watch.
	refused bool
	// sorted is in the order of a snapshot. Snapshots have it, so it is never
	// changed but replaced.
	sorted []P
	// changes are the objects that came after it; nil for deleted ones.
	changes map[objectName]*P
	// leftOut is why something cannot be converted, by what it is called.
	leftOut map[string]error
}

func (l *watchedList[P]) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// A person waits: not longer than some seconds between attempts. These are only made of a
	// server that answers.
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 10, Cap: 3 * time.Second}
	reflector := cache.NewReflectorWithOptions(&lister{list: l.listAgain, watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		l.health.await(ctx)
		events, err := l.api.watch(ctx, options)
		if err != nil {
			if !l.goesOn(err) {
				stop()
			}
			return nil, err
		}
		return settled(events, l.health.heard, l.works, func(err error) { l.goesOn(err) }), nil
	}}, l.api.example, l, cache.ReflectorOptions{Name: l.resource, TypeDescription: l.resource, Backoff: backoff})
	reflector.RunWithContext(ctx)
}

// lister is the source of a reflector.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (l *lister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.list(context.Background(), options)
}

func (l *lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.watch(context.Background(), options)
}

func (l *lister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.list(ctx, options)
}

func (l *lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return l.watch(ctx, options)
}

// IsWatchListSemanticsUnSupported reports whether the reflector must not read the list by a
// watch: it asks for the list that was read already.
func (l *lister) IsWatchListSemanticsUnSupported() bool { return true }

// listAgain reads the list that the reflector asks for, and keeps it; the reflector itself only
// needs its version. The first one is from the collector.
func (l *watchedList[P]) listAgain(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	l.mu.Lock()
	first := !l.listed
	l.listed = true
	l.merge()
	known := inOrder[P](l.sorted)
	l.mu.Unlock()
	if first {
		return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: l.version}}, nil
	}
	l.health.await(ctx)
	var all []P
	read := (&progress{}).list(l.resource)
	if err := fetch(ctx, read, known.kept(l.api), &all); err != nil {
		l.health.failed(l.resource, err)
		return nil, err
	}
	snapshot.SortByName(all)
	l.mu.Lock()
	l.sorted, l.leftOut = all, read.leftOut
	clear(l.changes)
	l.mu.Unlock()
	l.health.notify()
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: read.version}}, nil
}

// works notes that the resource is followed. That lists can be read again does not
// end any trouble: somebody who may not watch any more can still list.
func (l *watchedList[P]) works() {
	l.mu.Lock()
	l.begun = true
	l.mu.Unlock()
	l.health.works(l.resource)
}

// goesOn notes how a watch failed, and reports whether to try again.
func (l *watchedList[P]) goesOn(err error) bool {
	l.mu.Lock()
	l.refused = !l.begun && apierrors.IsForbidden(err)
	refused := l.refused
	l.mu.Unlock()
	switch {
	case refused:
		l.health.notify()
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, context.Canceled):
	default:
		l.health.failed(l.resource, err)
	}
	return !refused
}

func (l *watchedList[P]) into(s *snapshot.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.merge()
	*l.field(s) = l.sorted
	if len(l.leftOut) > 0 {
		s.Gaps = append(s.Gaps, leftOutGap(l.resource, l.leftOut))
	}
	if !l.refused {
		return
	}
	scope := "at the cluster scope"
	if l.namespace != "" {
		scope = "in namespace " + l.namespace
	}
	s.Gaps = append(s.Gaps, snapshot.Gap{Resource: l.resource, Namespace: l.namespace, Reason: fmt.Sprintf(
		"this user may not watch %s %s; they are as they were at %s", l.resource, scope, l.readAt.Format(time.TimeOnly))})
}

// merge brings what changed into a new list: what snapshots have stays.
func (l *watchedList[P]) merge() {
	if len(l.changes) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(l.changes), objectName.compare)
	merged := make([]P, 0, len(l.sorted)+len(names))
	rest := l.sorted
	for _, name := range names {
		before, found := slices.BinarySearchFunc(rest, name, func(object P, name objectName) int { return nameOf(object).compare(name) })
		merged = append(merged, rest[:before]...)
		rest = rest[before:]
		if found {
			rest = rest[1:]
		}
		if object := l.changes[name]; object != nil {
			merged = append(merged, *object)
		}
	}
	merged = append(merged, rest...)
	l.sorted = merged
	clear(l.changes)
}

// The following methods make it a [cache.ReflectorStore].

// Add takes an object that is new.
func (l *watchedList[P]) Add(object any) error { return l.put(object) }

// Update takes an object that changed.
func (l *watchedList[P]) Update(object any) error { return l.put(object) }

// Resync does nothing: nobody is told again what has not changed.
func (l *watchedList[P]) Resync() error { return nil }

func (l *watchedList[P]) put(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.resource, err)
	}
	name := nameOf(accessor)
	converted, err := l.api.convert(object)
	switch {
	case err == nil:
		l.change(name, &converted, nil)
	case errors.Is(err, errNotKept):
		l.change(name, nil, nil)
	default:
		l.change(name, nil, err)
	}
	return nil
}

// change notes what an object is now, nil if it is gone or left out for a reason, unless
// there are more objects than any cluster has.
func (l *watchedList[P]) change(name objectName, now *P, leftOut error) {
	l.mu.Lock()
	if max(len(l.sorted), len(l.changes)) > maxObjects {
		l.mu.Unlock()
		l.health.failed(l.resource, &refusedError{fmt.Sprintf("a watch of it does not end: it has more than %d objects", maxObjects)})
		return
	}
	l.changes[name] = now
	delete(l.leftOut, name.String())
	if leftOut != nil {
		l.leftOut[name.String()] = leftOut
	}
	l.mu.Unlock()
	l.health.notify()
}

// Delete takes an object that is gone.
func (l *watchedList[P]) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.resource, err)
	}
	l.change(nameOf(accessor), nil, nil)
	return nil
}

// Replace does nothing: [watchedList.listAgain] has kept the list.
func (l *watchedList[P]) Replace([]any, string) error { return nil }

// inOrder are objects in the order of a snapshot.
type inOrder[P metav1.Object] []P

// kept returns an endpoint that gives these objects in place of those that are copies of
// them. Most of a list that is read again are: nothing need be made of them again, and they
// are not in memory twice while older snapshots are in use. The others are copied, so that
// they do not keep the whole page that they came on.
func (l inOrder[P]) kept(from endpoint[P]) endpoint[P] {
	convert := from.convert
	from.convert = func(object any) (P, error) {
		if copied, ok := object.(metav1.Object); ok {
			if known, found := l.find(copied); found {
				return known, nil
			}
		}
		if item, ok := object.(runtime.Object); ok {
			object = item.DeepCopyObject()
		}
		return convert(object)
	}
	return from
}

// find returns the object that another one is a copy of, in the same version.
func (l inOrder[P]) find(copied metav1.Object) (P, bool) {
	at, found := slices.BinarySearchFunc(l, nameOf(copied), func(object P, name objectName) int { return nameOf(object).compare(name) })
	if !found || copied.GetResourceVersion() == "" || l[at].GetResourceVersion() != copied.GetResourceVersion() || l[at].GetUID() != copied.GetUID() {
		var none P
		return none, false
	}
	return l[at], true
}
