// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// workloadManifest is the form of any object with a pod template. A [snapshot.Workload] is
// also saved in it.
type workloadManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *workloadSpec `json:"spec,omitempty"`
	// Template is where a PodTemplate has it.
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
	// Status is only read of built-in kinds. Custom resources can have anything.
	Status json.RawMessage `json:"status,omitempty"`
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

// WorkloadShape is where a kind has its pod template.
type WorkloadShape int

// The shapes of workloads. One of a kind that is not built in has a template in
// its spec, if it has one at all.
const (
	NotWorkload WorkloadShape = iota
	TemplateInSpec
	TemplateInJob
	TemplateOnTop
)

// KnownWorkload returns the shape of the built-in kinds.
func KnownWorkload(group, kind string) WorkloadShape {
	switch (schema.GroupKind{Group: group, Kind: kind}) {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return TemplateInSpec
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return TemplateInJob
	case schema.GroupKind{Kind: "PodTemplate"}:
		return TemplateOnTop
	default:
		return NotWorkload
	}
}

// LooksLikeWorkload reports whether an object of an unknown kind has a pod template, that
// is containers in spec.template.spec.
func LooksLikeWorkload(data []byte) bool {
	for _, name := range []string{"spec", "template", "spec"} {
		var value []byte
		if _, err := EachField(data, 0, func(key []byte, at int) (int, bool, error) {
			end, err := SkipValue(data, at)
			if err == nil && string(key) == name {
				value = data[at:end]
			}
			return end, value == nil, err
		}); err != nil || value == nil || value[0] != '{' {
			return false
		}
		data = value
	}
	found := false
	_, err := EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		found = string(key) == "containers" && at < len(data) && data[at] == '['
		end, err := SkipValue(data, at)
		return end, !found, err
	})
	return found && err == nil
}

// errNoTemplate is a workload without a pod template, as StatefulSets of other
// API groups may be.
var errNoTemplate = errors.New("expected a pod template, found none")

// DecodeWorkload decodes an object with a pod template.
func DecodeWorkload(data []byte, shape WorkloadShape) (*snapshot.Workload, error) {
	manifest, err := DecodeAs[workloadManifest](data)
	if err != nil {
		return nil, err
	}
	workload := &snapshot.Workload{TypeMeta: manifest.TypeMeta, ObjectMeta: manifest.ObjectMeta}
	spec := manifest.Spec
	if spec == nil {
		spec = &workloadSpec{}
	}
	workload.Suspended = string(spec.Suspend) == "true"
	template, field := spec.Template, "spec.template"
	switch shape {
	case TemplateOnTop:
		template, field = manifest.Template, "template"
	case TemplateInJob:
		template, field = nil, "spec.jobTemplate.spec.template"
		if spec.JobTemplate != nil {
			spec = &spec.JobTemplate.Spec
			template = spec.Template
		}
	case TemplateInSpec, NotWorkload:
	}
	if template == nil {
		return nil, &FieldError{Path: field, Err: errNoTemplate}
	}
	workload.Template = *template
	workload.Selector = decodeSelector(spec.Selector)
	workload.Replicas = spec.replicas(shape, workload.Kind)
	if status := new(snapshot.DaemonStatus); workload.Kind == snapshot.KindDaemonSet && len(manifest.Status) > 0 && json.Unmarshal(manifest.Status, status) == nil {
		workload.Daemon = status
	}
	if shape == TemplateInSpec {
		decodeControl(workload, spec, manifest.Status)
	}
	if shape == TemplateInSpec && workload.Kind == snapshot.KindJob {
		var status batchv1.JobStatus
		if len(manifest.Status) > 0 && json.Unmarshal(manifest.Status, &status) == nil {
			workload.End, workload.Limit = jobEnd(&status), jobLimit(spec, &status)
		}
	}
	return workload, nil
}

// JobWorkload returns the kept part of a Job.
func JobWorkload(job *batchv1.Job) *snapshot.Workload {
	workload := &snapshot.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: snapshot.KindJob},
		ObjectMeta: job.ObjectMeta, Selector: job.Spec.Selector, Template: job.Spec.Template,
		Replicas: job.Spec.Parallelism, Suspended: ptr.Deref(job.Spec.Suspend, false), End: jobEnd(&job.Status),
	}
	if job.Spec.ActiveDeadlineSeconds != nil && job.Status.StartTime != nil {
		workload.Limit = &snapshot.JobLimit{ActiveDeadlineSeconds: *job.Spec.ActiveDeadlineSeconds, StartTime: *job.Status.StartTime}
	}
	return workload
}

// jobLimit returns how long a Job runs at most, nil if that is not limited, or it does not
// run.
func jobLimit(spec *workloadSpec, status *batchv1.JobStatus) *snapshot.JobLimit {
	limit := &snapshot.JobLimit{}
	if status.StartTime == nil || len(spec.ActiveDeadlineSeconds) == 0 || json.Unmarshal(spec.ActiveDeadlineSeconds, &limit.ActiveDeadlineSeconds) != nil {
		return nil
	}
	limit.StartTime = *status.StartTime
	return limit
}

// jobEnd finds the condition that ends a Job in its status, nil if there is none.
func jobEnd(status *batchv1.JobStatus) *snapshot.JobEnd {
	for _, condition := range status.Conditions {
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue {
			return &snapshot.JobEnd{Condition: string(condition.Type), Reason: condition.Reason}
		}
	}
	return nil
}

// jobStatus returns what a Job is saved with that ended, or has a limit.
func jobStatus(w *snapshot.Workload) batchv1.JobStatus {
	var status batchv1.JobStatus
	if w.End != nil {
		status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobConditionType(w.End.Condition), Status: corev1.ConditionTrue, Reason: w.End.Reason}}
	}
	if w.Limit != nil {
		status.StartTime = &w.Limit.StartTime
	}
	return status
}

// replicas returns how many pods the workload wants at the same time, nil if that is not
// known. The API server sets the same defaults.
func (s *workloadSpec) replicas(shape WorkloadShape, kind string) *int32 {
	number := func(data json.RawMessage) *int32 {
		var n int32
		if len(data) == 0 || json.Unmarshal(data, &n) != nil || n < 0 {
			return nil
		}
		return &n
	}
	one := int32(1)
	switch {
	case shape == TemplateOnTop, shape == TemplateInSpec && kind == snapshot.KindDaemonSet:
		return nil
	case shape == TemplateInJob, shape == TemplateInSpec && kind == snapshot.KindJob:
		n := &one
		if given := number(s.Parallelism); given != nil {
			n = given
		}
		if most := number(s.Completions); most != nil {
			n = new(min(*n, *most))
		}
		return n
	}
	n := number(s.Replicas)
	if n == nil && shape == TemplateInSpec {
		n = &one
	}
	return n
}

// decodeSelector reads a label selector, or the plain labels that a
// ReplicationController has instead. Other kinds of selectors that custom
// resources may have are none.
func decodeSelector(data json.RawMessage) *metav1.LabelSelector {
	var selector metav1.LabelSelector
	if json.Unmarshal(data, &selector) == nil && (selector.MatchLabels != nil || selector.MatchExpressions != nil) {
		return &selector
	}
	var labels map[string]string
	if json.Unmarshal(data, &labels) == nil && len(labels) > 0 {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	return nil
}

// WorkloadManifest returns what the workload is saved as.
func WorkloadManifest(w *snapshot.Workload) (any, error) {
	manifest := &workloadManifest{TypeMeta: w.TypeMeta, ObjectMeta: w.ObjectMeta}
	var status any
	switch {
	case w.End != nil, w.Limit != nil:
		status = jobStatus(w)
	case w.Daemon != nil, w.ObservedGeneration != nil, len(w.Conditions) > 0:
		status = controlStatus{DaemonStatus: w.Daemon, ObservedGeneration: w.ObservedGeneration, Conditions: w.Conditions}
	}
	if status != nil {
		encoded, err := json.Marshal(status)
		if err != nil {
			return nil, err
		}
		manifest.Status = encoded
	}
	group := w.GroupVersionKind().Group
	shape := KnownWorkload(group, w.Kind)
	if shape == TemplateOnTop {
		manifest.Template = &w.Template
		return manifest, nil
	}
	spec := &workloadSpec{Template: &w.Template}
	if w.Selector != nil {
		var selector any = w.Selector
		if group == "" && w.Kind == "ReplicationController" {
			selector = w.Selector.MatchLabels
		}
		encoded, err := json.Marshal(selector)
		if err != nil {
			return nil, err
		}
		spec.Selector = encoded
	}
	if w.Replicas != nil {
		number := json.RawMessage(strconv.Itoa(int(*w.Replicas)))
		if shape == TemplateInJob || shape == TemplateInSpec && w.Kind == snapshot.KindJob {
			spec.Parallelism = number
		} else {
			spec.Replicas = number
		}
	}
	if shape == TemplateInJob {
		spec = &workloadSpec{JobTemplate: &jobTemplate{Spec: *spec}}
	}
	if w.Suspended {
		spec.Suspend = json.RawMessage("true")
	}
	if shape == TemplateInSpec {
		if err := encodeControl(w, spec); err != nil {
			return nil, err
		}
	}
	if w.Limit != nil {
		spec.ActiveDeadlineSeconds = json.RawMessage(strconv.FormatInt(w.Limit.ActiveDeadlineSeconds, 10))
	}
	manifest.Spec = spec
	return manifest, nil
}

// templatePath returns where a kind has its pod template.
func templatePath(apiVersion, kind string) string {
	switch KnownWorkload(groupOf(apiVersion).Group, kind) {
	case TemplateInJob:
		return "spec.jobTemplate.spec.template"
	case TemplateOnTop:
		return "template"
	case TemplateInSpec, NotWorkload:
	}
	return "spec.template"
}

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
