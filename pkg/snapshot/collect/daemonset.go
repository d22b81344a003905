// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// daemonSets returns a task that reads the DaemonSets with plugins for the kubelet, which
// include drivers, and the DaemonSets of ComputeDomains. Only hints depend on them, so a
// user who may not list them has as good a snapshot as others.
func daemonSets(r *reader, into *[]*snapshot.Workload) func(context.Context) error {
	if !r.wants(snapshot.ResourceDaemonSets) {
		return nil
	}
	l := r.progress.list(snapshot.ResourceDaemonSets)
	return func(ctx context.Context) error {
		defer l.finished()
		err := fetch(ctx, l, pluginAPI(r.clients), into)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			r.gap(snapshot.Gap{Resource: snapshot.ResourceDaemonSets, Reason: "this user may not list daemonsets.apps at the cluster scope"})
			return nil
		default:
			return err
		}
	}
}

// pluginWorkload returns the kept part of a DaemonSet with a plugin for the kubelet, or of
// a ComputeDomain; nil for any other one.
func pluginWorkload(set *appsv1.DaemonSet) *snapshot.Workload {
	workload := &snapshot.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: snapshot.KindDaemonSet},
		ObjectMeta: set.ObjectMeta, Selector: set.Spec.Selector, Template: set.Spec.Template,
	}
	if update := set.Spec.UpdateStrategy; update.Type != "" {
		workload.Update = &snapshot.Update{Type: string(update.Type)}
		if rolling := update.RollingUpdate; rolling != nil {
			workload.Update.RollingUpdate = &snapshot.RollingUpdate{MaxSurge: rolling.MaxSurge, MaxUnavailable: rolling.MaxUnavailable}
		}
	}
	// Until the controller has seen it, the counts are from before the change.
	if set.Status.ObservedGeneration >= set.Generation {
		workload.Daemon = &snapshot.DaemonStatus{Desired: set.Status.DesiredNumberScheduled, Ready: set.Status.NumberReady}
	}
	kinds.Strip(workload)
	if _, plugin := workload.KubeletPlugin(); !plugin && workload.Labels[snapshot.ComputeDomainLabel] == "" {
		return nil
	}
	return workload
}

func asPlugin(object any) (*snapshot.Workload, error) {
	set, err := as[*appsv1.DaemonSet](object)
	if err != nil {
		return nil, err
	}
	workload := pluginWorkload(set)
	if workload == nil {
		return nil, errNotKept
	}
	return workload, nil
}

// pluginAPI returns the DaemonSets with a plugin for the kubelet.
func pluginAPI(c Clients) endpoint[*snapshot.Workload] {
	return typedAPI(c, appsv1.SchemeGroupVersion, "daemonsets", "", &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, asPlugin)
}
