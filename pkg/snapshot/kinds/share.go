// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"hash/maphash"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Sharer knows parts of objects that it met before. It remembers a bounded number of
// them, and is not safe for concurrent use.
type Sharer struct {
	seed       maphash.Seed
	strings    known[string]
	pointers   known[*string]
	integers   known[*int64]
	yes, no    *bool
	words      known[map[string]string]
	finalizers known[[]string]
	resources  known[corev1.ResourceList]
	containers known[[]corev1.Container]
	tolerated  known[[]corev1.Toleration]
	podClaims  known[[]corev1.PodResourceClaim]
	requests   known[[]resourceapi.DeviceRequest]
	capacities known[map[resourceapi.QualifiedName]resourceapi.DeviceCapacity]
	counters   known[map[string]resourceapi.Counter]
}

// NewSharer returns a Sharer that knows nothing yet.
func NewSharer() *Sharer {
	return &Sharer{seed: maphash.MakeSeed(), yes: new(true), no: new(false)}
}

// known are values that were met before, each in the place that its hash says; nil before
// the first one.
type known[T any] []T

// places is how many values are known of one type.
const places = 1 << 10

// of returns an equal value that is known, or the value, which is known from now on.
func (k *known[T]) of(hash uint64, value T, equal func(a, b T) bool) T {
	if *k == nil {
		*k = make(known[T], places)
	}
	before := &(*k)[hash%places]
	if !equal(*before, value) {
		*before = value
	}
	return *before
}

// each makes strings share their bytes.
func (s *Sharer) each(texts ...*string) {
	for _, text := range texts {
		*text = s.string(*text)
	}
}

func (s *Sharer) string(text string) string {
	if text == "" {
		return ""
	}
	return s.strings.of(s.hash(text), text, func(a, b string) bool { return a == b })
}

func (s *Sharer) pointer(text *string) *string {
	return s.pointers.of(s.hash(*text), text, samePointer)
}

func (s *Sharer) labels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return labels
	}
	var hash uint64
	for key, value := range labels {
		hash += s.hash(key, value)
	}
	return s.words.of(hash, labels, maps.Equal)
}

func (s *Sharer) quantities(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	hash := hashKeys(s, list)
	for _, quantity := range list {
		hash += uint64(quantity.Value())
	}
	return s.resources.of(hash, list, equal)
}

func (s *Sharer) counts(counters map[string]resourceapi.Counter) map[string]resourceapi.Counter {
	if len(counters) == 0 {
		return counters
	}
	hash := hashKeys(s, counters)
	for _, counter := range counters {
		hash += uint64(counter.Value.Value())
	}
	return s.counters.of(hash, counters, equal)
}

func (s *Sharer) hash(texts ...string) uint64 {
	var hash uint64
	for _, text := range texts {
		hash = hash*31 + maphash.String(s.seed, text)
	}
	return hash
}

func hashKeys[K ~string, V any](s *Sharer, m map[K]V) uint64 {
	var hash uint64
	for key := range m {
		hash += s.hash(string(key))
	}
	return hash
}

func equal[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

func samePointer[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameCapacities(a, b map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) bool {
	return maps.EqualFunc(a, b, func(a, b resourceapi.DeviceCapacity) bool {
		return a.RequestPolicy == nil && b.RequestPolicy == nil && a.Value.Cmp(b.Value) == 0 && a.Value.Format == b.Value.Format
	})
}
