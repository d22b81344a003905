// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// objectKey names an object as references do.
type objectKey struct{ apiVersion, kind, namespace, name string }

const (
	// maxGets limits how many objects of one kind are read one by one. Beyond that, those
	// of the namespaces are listed.
	maxGets = 4
	// maxRounds limits how far owners are followed beyond the owners of pods.
	maxRounds = 4
)

// readTargetOwners reads what stands between the target and its pods, if it is of a
// kind that this program does not know.
func readTargetOwners(ctx context.Context, r *reader, s *snapshot.Snapshot, target *snapshot.Argument) {
	if isListed(target.Resource) || len(s.Workloads) > 0 {
		return
	}
	if mapping, err := r.clients.Resolve(target.Resource); err != nil || !strings.Contains(mapping.Resource.Group, ".") {
		return
	}
	var pods []*corev1.Pod
	for _, pod := range s.Pods {
		if pod.Namespace == r.namespace && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	readOwners(ctx, r, s, pods)
}

// readOwners reads what the pods belong to, what that belongs to, and so on. What a
// ReplicaSet or a DaemonSet belongs to says nothing about when pods are created.
func readOwners(ctx context.Context, r *reader, s *snapshot.Snapshot, pods []*corev1.Pod) {
	next := map[objectKey]bool{}
	add := func(object metav1.Object) {
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind != "ReplicaSet" && owner.Kind != snapshot.KindDaemonSet {
			next[objectKey{owner.APIVersion, owner.Kind, object.GetNamespace(), owner.Name}] = true
		}
	}
	for _, pod := range pods {
		add(pod)
	}
	known := map[objectKey]bool{}
	for range maxRounds {
		wanted := next
		next = map[objectKey]bool{}
		maps.DeleteFunc(wanted, func(key objectKey, _ bool) bool { return known[key] })
		if len(wanted) == 0 {
			return
		}
		maps.Copy(known, wanted)
		for key := range wanted {
			if key.kind != "Pod" {
				continue
			}
			delete(wanted, key)
			if pod := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Namespace == key.namespace && p.Name == key.name }); pod >= 0 {
				add(s.Pods[pod])
			}
		}
		for _, keys := range byKind(wanted) {
			for _, outline := range outlines(ctx, r, s, keys) {
				add(outline)
			}
		}
	}
}

// byKind yields the kinds of objects, in a fixed order, each with the objects.
func byKind(keys map[objectKey]bool) iter.Seq2[objectKey, map[objectKey]bool] {
	kinds := map[objectKey]map[objectKey]bool{}
	for key := range keys {
		kind := objectKey{apiVersion: key.apiVersion, kind: key.kind}
		if kinds[kind] == nil {
			kinds[kind] = map[objectKey]bool{}
		}
		kinds[kind][key] = true
	}
	return func(yield func(objectKey, map[objectKey]bool) bool) {
		for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b objectKey) int {
			return cmp.Or(cmp.Compare(a.apiVersion, b.apiVersion), cmp.Compare(a.kind, b.kind))
		}) {
			if !yield(kind, kinds[kind]) {
				return
			}
		}
	}
}

// outlines reads objects of one kind, puts them into the snapshot and returns them.
func outlines(ctx context.Context, r *reader, s *snapshot.Snapshot, keys map[objectKey]bool) []*snapshot.Outline {
	var found []*snapshot.Outline
	for key, object := range r.objectsNamed(ctx, keys) {
		data, err := object.MarshalJSON()
		if err != nil {
			continue
		}
		if outline := kinds.DecodeOutline(data, object.GetAPIVersion(), key.kind); outline != nil {
			found = append(found, outline)
		}
	}
	slices.SortFunc(found, func(a, b *snapshot.Outline) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	s.Outlines = snapshot.Overlay(s.Outlines, found)
	return found
}

// objectsNamed reads objects of one kind. What may not be read leaves a gap; a kind that
// the server does not have, and what does not exist, is left out.
func (r *reader) objectsNamed(ctx context.Context, keys map[objectKey]bool) map[objectKey]*unstructured.Unstructured {
	namespaces := map[string]bool{}
	var one objectKey
	for key := range keys {
		one = key
		namespaces[key.namespace] = true
	}
	if len(keys) == 0 {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(one.apiVersion, one.kind)
	mapping, err := r.clients.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		mapping, err = r.clients.Mapper.RESTMapping(kind.GroupKind())
	}
	if err != nil {
		return nil
	}
	resource := mapping.Resource.GroupResource().String()
	var items []unstructured.Unstructured
	read := func(verb, namespace string, err error) {
		if apierrors.IsForbidden(err) {
			r.gap(snapshot.Gap{Resource: resource, Reason: fmt.Sprintf("this user may not %s %s %s", verb, resource, where(namespace))})
		}
	}
	if len(keys) <= maxGets {
		for key := range keys {
			object, err := r.clients.Dynamic.Resource(mapping.Resource).Namespace(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
			if read("get", key.namespace, err); err == nil {
				items = append(items, *object)
			}
		}
	} else {
		scopes := slices.Sorted(maps.Keys(namespaces))
		if len(scopes) > maxGets || mapping.Scope.Name() == meta.RESTScopeNameRoot {
			scopes = []string{metav1.NamespaceAll}
		}
		for _, namespace := range scopes {
			options := metav1.ListOptions{Limit: chunkSize}
			for {
				page, err := r.clients.Dynamic.Resource(mapping.Resource).Namespace(namespace).List(ctx, options)
				if read("list", namespace, err); err != nil {
					break
				}
				items = append(items, page.Items...)
				if options.Continue = page.GetContinue(); options.Continue == "" {
					break
				}
			}
		}
	}
	found := map[objectKey]*unstructured.Unstructured{}
	for i := range items {
		key := one
		key.namespace, key.name = items[i].GetNamespace(), items[i].GetName()
		if keys[key] {
			items[i].SetAPIVersion(mapping.GroupVersionKind.GroupVersion().String())
			items[i].SetKind(one.kind)
			found[key] = &items[i]
		}
	}
	return found
}
