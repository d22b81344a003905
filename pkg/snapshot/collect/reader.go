// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Options says what [Collect] is to read.
type Options struct {
	// Gates has the feature gates given by the user. They beat everything that
	// the cluster tells and get the source [snapshot.GateFromFlag].
	Gates map[string]bool
	// KubernetesVersion is the version given by the user. It beats what the
	// cluster tells. Empty means: not given.
	KubernetesVersion string
	// Namespace is the namespace to read if the user may not read all of them. Empty means
	// the default namespace of the clients. The namespace of Target, if it has one, goes
	// before both.
	Namespace string
	// AllNamespaces tells that the user asked for all namespaces, so that one
	// of them is no substitute: what may not be listed in the whole cluster is
	// then a [snapshot.Gap] without a namespace.
	AllNamespaces bool
	// Only are the resources that matter, by the names of gaps; empty for all.
	// Of others nothing is known afterwards, and there is no gap for them.
	Only []string
	// Unused are fields that nobody is going to look at, by resource. They may
	// be missing in the objects. May be nil.
	Unused map[string][]kinds.Field
	// Target is the object of the question. Its events are read, and, if it has a pod
	// template, the object itself. May be nil.
	Target *snapshot.Argument
	// Creates tells that pods, or claims, are about to be created: what may refuse
	// them is read. UsesVolumes tells that they have PersistentVolumeClaims.
	Creates, UsesVolumes bool
	// Evicts tells that pods are about to be evicted: what may delay that is read.
	Evicts bool
	// Ends tells that it matters until when pods run at most: the Jobs that limit it are
	// read.
	Ends bool
	// Starting tells that the question is also about pods that were scheduled and do
	// not start: if there are any with devices, what kubelets report about them is
	// read. It is also about workloads with devices whose pods the API server refuses:
	// these are read, with the events that say so.
	Starting bool
	// Health tells that the question is whether anything is wrong: quotas are read
	// even if no pod waits for them, and where the DaemonSet of a plugin for the
	// kubelet has fewer pods that are ready than it wants, the warnings about it and
	// its pods.
	Health bool
	// Admission tells that it matters which pods Kueue holds back, and why, although
	// there is no target: its workloads and queues are read where it holds some.
	Admission bool
	// ComputeDomains tells that it matters which ComputeDomains claims name, and how these
	// are. Of resources in Only they are read anyway.
	ComputeDomains bool
	// DevicePlugins tells that it matters how device plugins divide devices.
	DevicePlugins bool
	// Scaling tells that it matters whether a HorizontalPodAutoscaler sets the number of
	// pods of the target.
	Scaling bool
	// Progress is told after each chunk, and when a list ends without one, how
	// many objects have arrived, how many there will be (0 while that is
	// unknown), and of which resource that was. Calls do not overlap, and there
	// is none after Collect returned. May be nil.
	Progress func(done, total int, what string)
	// podEvents tells that warnings about pods with devices are read.
	podEvents bool
	// pulse is how [Watch] notices a silent server; the zero value is the default.
	pulse pulse
}

// reader reads from one server as one user. What this user may not read becomes a gap.
type reader struct {
	clients Clients
	server  string
	// only are the resources to be read, empty for all.
	only []string
	// namespace is read where the user may not read all of them, unless allNamespaces is set.
	namespace     string
	allNamespaces bool
	progress      *progress

	mu      sync.Mutex
	gaps    *[]snapshot.Gap
	anyRead bool
	denied  []string
}

// wants reports whether a resource is to be read.
func (r *reader) wants(resource string) bool {
	return len(r.only) == 0 || slices.Contains(r.only, resource)
}

// clusterList returns a task that lists something without a namespace. Where that is
// forbidden, it leaves a gap.
func (r *reader) clusterList(resource string, list func(context.Context, *listing) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		return r.concluded(l, "at the cluster scope", list(ctx, l))
	}
}

// namespacedList returns a task that lists something in all namespaces, or, where that is
// forbidden, in one, and leaves a gap.
func (r *reader) namespacedList(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		const everywhere = "at the cluster scope"
		err := list(ctx, l, metav1.NamespaceAll)
		if !apierrors.IsForbidden(err) || r.allNamespaces {
			return r.concluded(l, everywhere, err)
		}
		err = list(ctx, l, r.namespace)
		if err == nil {
			r.gap(snapshot.Gap{Resource: resource, Namespace: r.namespace, Reason: fmt.Sprintf(
				"this user may not list %s %s; only those in namespace %s could be read", resource, everywhere, r.namespace)})
		}
		return r.concluded(l, everywhere+", nor in namespace "+r.namespace, err)
	}
}

// inNamespace is like [reader.namespacedList], for one namespace.
func (r *reader) inNamespace(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if !r.wants(resource) {
		return nil
	}
	l := r.progress.list(resource)
	return func(ctx context.Context) error {
		err := list(ctx, l, r.namespace)
		if apierrors.IsForbidden(err) {
			l.finished()
			r.gap(snapshot.Gap{Resource: resource, Reason: fmt.Sprintf("this user may not list %s in namespace %s", resource, r.namespace)})
			return nil
		}
		return r.concluded(l, "in namespace "+r.namespace, err)
	}
}

// concluded notes how a list ended. Only an error that makes the whole
// snapshot worthless comes back.
func (r *reader) concluded(l *listing, scope string, err error) error {
	l.finished()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		r.anyRead = true
		return nil
	case apierrors.IsForbidden(err):
		r.denied = append(r.denied, l.resource)
		*r.gaps = append(*r.gaps, snapshot.Gap{Resource: l.resource, Reason: fmt.Sprintf("this user may not list %s %s", l.resource, scope)})
		return nil
	default:
		return err
	}
}

func (r *reader) gap(gap snapshot.Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(*r.gaps, gap) {
		*r.gaps = append(*r.gaps, gap)
	}
}

// forbidden returns the error for a user who may read nothing.
func (r *reader) forbidden() error {
	slices.Sort(r.denied)
	err := &ForbiddenError{Server: r.server, Resources: r.denied}
	if !r.allNamespaces {
		err.Namespace = r.namespace
	}
	return err
}

// where returns "in namespace a", or, without a namespace, "at the cluster scope".
func where(namespace string) string {
	if namespace == "" {
		return "at the cluster scope"
	}
	return "in namespace " + namespace
}
