// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	replicasPath    = "/spec/replicas"
	parallelismPath = "/spec/parallelism"
)

// Scaled returns the edit that gives a workload another number of pods, and its present
// number; ok is false for a kind without such a number, or if that is not known.
func Scaled(w *snapshot.Workload, count int32) (edit api.Edit, had int32, ok bool) {
	m, path := StoredWorkload(w), replicasPath
	switch (schema.GroupKind{Group: m.APIGroup, Kind: m.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}, schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"},
		schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}:
	default:
		if path = parallelismPath; !m.isJob() {
			return edit, 0, false
		}
	}
	if w.Replicas == nil || m.Kind != w.Kind {
		return edit, 0, false
	}
	edit = NewEdit(m.ObjectRef, "replace", path, count)
	edit.From, _ = asWritten(*w.Replicas)
	return edit, *w.Replicas, true
}

// Scales reports whether an edit is from [Scaled] or [Replacing]. It does not change
// existing pods.
func Scales(e api.Edit) bool {
	return e.Path == replicasPath || e.Path == parallelismPath || ReplacesPods(e)
}

// scale gives a workload the number of pods that edits say.
func scale(w *snapshot.Workload, edits []api.Edit) error {
	for _, e := range edits {
		if ReplacesPods(e) {
			continue
		}
		var count int32
		if err := json.Unmarshal(e.Value, &count); err != nil {
			return fmt.Errorf("read the value of %s: %w", e.Path, err)
		}
		w.Replicas = &count
	}
	return nil
}
