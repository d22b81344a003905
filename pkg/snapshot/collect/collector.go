// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// collector is one run of [Collect].
type collector struct {
	clients   Clients
	opts      Options
	server    string
	namespace string
	progress  *progress

	// apis are the APIs that the server has, after run.
	apis servedAPIs
	// plugins are the DaemonSets with plugins for the kubelet.
	plugins []*snapshot.Workload
	// jobs are the jobs whose pods run for a limited time.
	jobs []*snapshot.Workload
	// failed are the events of controllers whose pods the API server refuses, refused the
	// workloads with devices among what they are about.
	failed  []*corev1.Event
	refused []*snapshot.Workload

	mu       sync.Mutex
	snapshot *snapshot.Snapshot
	anyRead  bool
	denied   []string
}

// wants reports whether a resource is to be read.
func (c *collector) wants(resource string) bool {
	return len(c.opts.Only) == 0 || slices.Contains(c.opts.Only, resource)
}

// clusterList returns a task that lists something without a namespace. Where that is
// forbidden, it leaves a gap.
func (c *collector) clusterList(resource string, list func(context.Context, *listing) error) func(context.Context) error {
	if !c.wants(resource) {
		return nil
	}
	l := c.progress.list(resource)
	return func(ctx context.Context) error {
		return c.concluded(l, "at the cluster scope", list(ctx, l))
	}
}

// namespacedList returns a task that lists something in all namespaces, or, where that is
// forbidden, in one, and leaves a gap.
func (c *collector) namespacedList(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if !c.wants(resource) {
		return nil
	}
	l := c.progress.list(resource)
	return func(ctx context.Context) error {
		const everywhere = "at the cluster scope"
		err := list(ctx, l, metav1.NamespaceAll)
		if !apierrors.IsForbidden(err) || c.opts.AllNamespaces {
			return c.concluded(l, everywhere, err)
		}
		err = list(ctx, l, c.namespace)
		if err == nil {
			c.gap(snapshot.Gap{Resource: resource, Namespace: c.namespace, Reason: fmt.Sprintf(
				"this user may not list %s %s; only those in namespace %s could be read", resource, everywhere, c.namespace)})
		}
		return c.concluded(l, everywhere+", nor in namespace "+c.namespace, err)
	}
}

// concluded notes how a list ended. Only an error that makes the whole
// snapshot worthless comes back.
func (c *collector) concluded(l *listing, scope string, err error) error {
	l.finished()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		c.anyRead = true
		return nil
	case apierrors.IsForbidden(err):
		c.denied = append(c.denied, l.resource)
		c.snapshot.Gaps = append(c.snapshot.Gaps, snapshot.Gap{Resource: l.resource, Reason: fmt.Sprintf("this user may not list %s %s", l.resource, scope)})
		return nil
	default:
		return err
	}
}

func (c *collector) gap(gap snapshot.Gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.snapshot.Gaps, gap) {
		c.snapshot.Gaps = append(c.snapshot.Gaps, gap)
	}
}

// servedAPIs tells which versions of the optional resources the server has;
// empty for none.
type servedAPIs struct {
	// dra is the API of claims, classes, slices and templates.
	dra        string
	taintRules string
	podGroups  string
	// compositePodGroups is set if the server has CompositePodGroups, all in v1alpha3.
	compositePodGroups bool
}
