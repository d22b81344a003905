// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// NamespaceChange is a change of one object of a namespace. One of Pod, Claim and Event is
// set.
type NamespaceChange struct {
	Pod   *corev1.Pod
	Claim *resourceapi.ResourceClaim
	Event *corev1.Event
	// Deleted is set if the object is gone. It is then as it was last.
	Deleted bool
	// At is when the program heard of it.
	At time.Time
}

// FollowNamespace tells of every change of the pods, the claims (resource.k8s.io/v1)
// and the events of a namespace, first of those that are there, until the context ends.
// Calls of the function do not overlap for objects of one kind. It returns once all
// three are followed; connections that are lost are made again.
func FollowNamespace(ctx context.Context, clients Clients, namespace string, changed func(NamespaceChange)) error {
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	failed := make(chan error, 3)
	started := []<-chan struct{}{
		followOne(ctx, failed, podAPI(clients, namespace), func(pod *corev1.Pod, deleted bool) {
			changed(NamespaceChange{Pod: pod, Deleted: deleted, At: time.Now()})
		}),
		followOne(ctx, failed, claimAPI(clients, "v1", namespace), func(claim *resourceapi.ResourceClaim, deleted bool) {
			changed(NamespaceChange{Claim: claim, Deleted: deleted, At: time.Now()})
		}),
		followOne(ctx, failed, eventAPI(clients, namespace), func(event *corev1.Event, deleted bool) {
			changed(NamespaceChange{Event: event, Deleted: deleted, At: time.Now()})
		}),
	}
	for _, watches := range started {
		select {
		case <-watches:
		case err := <-failed:
			return serverError(ctx, serverAddress(clients.Config), fmt.Errorf("follow namespace %s: %w", namespace, err))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// followOne follows one kind of object. The channel is closed once the first watch is
// there.
func followOne[P metav1.Object](ctx context.Context, failed chan<- error, api endpoint[P], changed func(object P, deleted bool)) <-chan struct{} {
	watches := make(chan struct{})
	first := true
	fail := func(err error) {
		if err != nil && first && !errors.Is(err, context.Canceled) {
			select {
			case failed <- err:
			default:
			}
		}
	}
	source := &lister{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found, err := api.list(ctx, options)
			fail(err)
			return found, err
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := api.watch(ctx, options)
			fail(err)
			if err == nil && first {
				first = false
				close(watches)
			}
			return events, err
		},
	}
	store := &changeStore[P]{convert: api.convert, changed: changed, known: map[objectName]P{}}
	reflector := cache.NewReflectorWithOptions(source, api.example, store, cache.ReflectorOptions{})
	go reflector.RunWithContext(ctx)
	return watches
}

// changeStore is the store of a reflector. It passes on changes, and keeps the objects to
// find out what was deleted while the watch was down.
type changeStore[P metav1.Object] struct {
	convert func(any) (P, error)
	changed func(object P, deleted bool)
	known   map[objectName]P
}

// put passes an object on. One that cannot be kept is nothing of ours.
func (s *changeStore[P]) put(object any, deleted bool) {
	converted, err := s.convert(object)
	if err != nil {
		return
	}
	name := objectName{converted.GetNamespace(), converted.GetName()}
	if deleted {
		delete(s.known, name)
	} else {
		s.known[name] = converted
	}
	s.changed(converted, deleted)
}

// Add handles a new object from the reflector.
func (s *changeStore[P]) Add(object any) error {
	s.put(object, false)
	return nil
}

// Update handles a changed object from the reflector.
func (s *changeStore[P]) Update(object any) error {
	s.put(object, false)
	return nil
}

// Delete handles a deleted object from the reflector.
func (s *changeStore[P]) Delete(object any) error {
	s.put(object, true)
	return nil
}

// Replace handles the list of all objects from the reflector.
func (s *changeStore[P]) Replace(objects []any, _ string) error {
	there := map[objectName]bool{}
	for _, object := range objects {
		if accessor, err := meta.Accessor(object); err == nil {
			there[objectName{accessor.GetNamespace(), accessor.GetName()}] = true
		}
		s.put(object, false)
	}
	for name, object := range s.known {
		if !there[name] {
			delete(s.known, name)
			s.changed(object, true)
		}
	}
	return nil
}

// Resync does nothing: nothing is ever late.
func (s *changeStore[P]) Resync() error { return nil }
