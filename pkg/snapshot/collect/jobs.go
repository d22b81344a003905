// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// runsWithClaims reports whether a pod that is placed may have devices.
func runsWithClaims(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && (len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil)
}

// runsInJob reports whether a pod that may have devices is of a Job.
func runsInJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == snapshot.KindJob && runsWithClaims(pod)
}

// jobAPI returns the Jobs that run for a limited time.
func jobAPI(c Clients, namespace string) endpoint[*snapshot.Workload] {
	return typedAPI(c, batchv1.SchemeGroupVersion, "jobs", namespace, &batchv1.Job{}, &batchv1.JobList{}, asLimitedJob)
}

func asLimitedJob(object any) (*snapshot.Workload, error) {
	job, err := as[*batchv1.Job](object)
	if err != nil {
		return nil, err
	}
	workload := kinds.JobWorkload(job)
	if workload.Limit == nil {
		return nil, errNotKept
	}
	kinds.Strip(workload)
	return workload, nil
}
