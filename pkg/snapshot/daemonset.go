// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const kindDaemonSet = "DaemonSet"

// DaemonStatus is how many nodes a DaemonSet wants, and has, pods on.
type DaemonStatus struct {
	Desired int32 `json:"desiredNumberScheduled"`
	Ready   int32 `json:"numberReady"`
}

// daemonSets is a task that reads the DaemonSets with plugins for the kubelet:
// those of drivers are among them. Nothing but hints depends on them, so that
// a user who may not list them has as good a snapshot as others.
func (c *collector) daemonSets() func(context.Context) error {
	if !c.wants(ResourceDaemonSets) {
		return nil
	}
	l := c.progress.list(ResourceDaemonSets)
	return func(ctx context.Context) error {
		defer l.finished()
		err := fetch(ctx, l, pluginAPI(c.clients), &c.plugins)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			c.gap(Gap{Resource: ResourceDaemonSets, Reason: "this user may not list daemonsets.apps at the cluster scope"})
			return nil
		default:
			return err
		}
	}
}

// pluginWorkload is what is kept of a DaemonSet with a plugin for the kubelet,
// nil for one without.
func pluginWorkload(set *appsv1.DaemonSet) *Workload {
	workload := &Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kindDaemonSet},
		ObjectMeta: set.ObjectMeta, Selector: set.Spec.Selector, Template: set.Spec.Template,
		Daemon: &DaemonStatus{Desired: set.Status.DesiredNumberScheduled, Ready: set.Status.NumberReady},
	}
	Strip(workload)
	if _, plugin := workload.KubeletPlugin(); !plugin {
		return nil
	}
	return workload
}

func asPlugin(object any) (*Workload, error) {
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
