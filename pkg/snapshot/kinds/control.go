// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

type workloadSpec struct {
	Selector json.RawMessage         `json:"selector,omitempty"`
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
	// Replicas is the number of pods; for a Job it is Parallelism, or the fewer
	// Completions. Custom resources can have anything there.
	Replicas    json.RawMessage `json:"replicas,omitempty"`
	Parallelism json.RawMessage `json:"parallelism,omitempty"`
	Completions json.RawMessage `json:"completions,omitempty"`
	// JobTemplate is where a CronJob has it.
	JobTemplate *jobTemplate `json:"jobTemplate,omitempty"`
	// Suspend is a boolean in the kinds that have it.
	Suspend json.RawMessage `json:"suspend,omitempty"`
	// Paused and Strategy are only read of a Deployment, PodManagementPolicy of a
	// StatefulSet, UpdateStrategy of a DaemonSet.
	Paused              json.RawMessage `json:"paused,omitempty"`
	Strategy            json.RawMessage `json:"strategy,omitempty"`
	PodManagementPolicy json.RawMessage `json:"podManagementPolicy,omitempty"`
	UpdateStrategy      json.RawMessage `json:"updateStrategy,omitempty"`
	// ActiveDeadlineSeconds is only read of a Job.
	ActiveDeadlineSeconds json.RawMessage `json:"activeDeadlineSeconds,omitempty"`
}

type jobTemplate struct {
	Spec workloadSpec `json:"spec"`
}
