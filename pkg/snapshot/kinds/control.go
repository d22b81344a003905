// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// controlStatus is the status that the controllers of built-in kinds report.
type controlStatus struct {
	*snapshot.DaemonStatus `json:",inline"`

	ObservedGeneration *int64             `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Scheduled is only there in what an API server says of a DaemonSet.
	Scheduled *int32 `json:"currentNumberScheduled,omitempty"`
}

// decodeControl reads whether, and how, the controller of a built-in kind makes
// pods. What is malformed is left out: nothing but hints and reasons depends on it.
func decodeControl(w *snapshot.Workload, spec *workloadSpec, status json.RawMessage) {
	var said controlStatus
	known := len(status) > 0 && json.Unmarshal(status, &said) == nil
	if w.GroupVersionKind().Group != appsv1.GroupName {
		return
	}
	switch w.Kind {
	case snapshot.KindDeployment:
		w.Paused = string(spec.Paused) == "true"
		w.Update = decodeUpdate(spec.Strategy)
	case snapshot.KindStatefulSet:
		w.Ordered = string(spec.PodManagementPolicy) != `"`+string(appsv1.ParallelPodManagement)+`"`
	case snapshot.KindDaemonSet:
		w.Update = decodeUpdate(spec.UpdateStrategy)
		known = known && (said.ObservedGeneration != nil || said.Scheduled != nil)
	case snapshot.KindReplicaSet:
	default:
		return
	}
	if known {
		// A controller that has never seen the object has not written the number.
		w.ObservedGeneration = new(int64)
		if said.ObservedGeneration != nil {
			w.ObservedGeneration = said.ObservedGeneration
		}
		w.Conditions = said.Conditions
	}
}

func decodeUpdate(data json.RawMessage) *snapshot.Update {
	update := &snapshot.Update{}
	if len(data) == 0 || json.Unmarshal(data, update) != nil {
		return nil
	}
	return update
}

// encodeControl reverses decodeControl for the spec.
func encodeControl(w *snapshot.Workload, spec *workloadSpec) error {
	if w.Paused {
		spec.Paused = json.RawMessage("true")
	}
	if w.Kind == snapshot.KindStatefulSet && w.GroupVersionKind().Group == appsv1.GroupName && !w.Ordered {
		spec.PodManagementPolicy = json.RawMessage(`"` + appsv1.ParallelPodManagement + `"`)
	}
	if w.Update == nil {
		return nil
	}
	encoded, err := json.Marshal(w.Update)
	if err != nil {
		return err
	}
	if w.Kind == snapshot.KindDaemonSet {
		spec.UpdateStrategy = encoded
	} else {
		spec.Strategy = encoded
	}
	return nil
}
