// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Same reports whether two snapshots of a cluster differ in nothing that anybody could
// draw conclusions from: only in when they were taken, in versions of objects, and in
// the heartbeats of nodes. Objects that both have are not looked at, so that it costs
// little where little changed.
func Same(a, b *Snapshot) bool {
	one, other := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range one.NumField() {
		if one.Type().Field(i).Name == "TakenAt" {
			continue
		}
		if !sameField(one.Field(i), other.Field(i)) {
			return false
		}
	}
	return true
}

func sameField(a, b reflect.Value) bool {
	if a.Kind() != reflect.Slice || a.Type().Elem().Kind() != reflect.Pointer {
		return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
	}
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		x, y := a.Index(i), b.Index(i)
		if x.Pointer() != y.Pointer() && !equality.Semantic.DeepEqual(timeless(x.Interface()), timeless(y.Interface())) {
			return false
		}
	}
	return true
}

// timeless returns an object without its version and, for a node, without its heartbeats.
// The object itself stays as it is.
func timeless(object any) any {
	if node, ok := object.(*corev1.Node); ok {
		still := *node
		still.Status.Conditions = make([]corev1.NodeCondition, len(node.Status.Conditions))
		for i, condition := range node.Status.Conditions {
			condition.LastHeartbeatTime = metav1.Time{}
			still.Status.Conditions[i] = condition
		}
		still.ResourceVersion = ""
		return &still
	}
	value := reflect.ValueOf(object).Elem()
	if value.Kind() != reflect.Struct || !value.FieldByName("ObjectMeta").IsValid() {
		return object
	}
	still := reflect.New(value.Type())
	still.Elem().Set(value)
	if meta, ok := still.Interface().(metav1.Object); ok {
		meta.SetResourceVersion("")
	}
	return still.Interface()
}
