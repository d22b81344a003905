// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

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

// readPlugins reads how NVIDIA's device plugin is configured, if a node has a resource of it: the ClusterPolicies of the GPU Operator, and the ConfigMaps that pods of device plugins
// mount. It needs the nodes and the pods.
func readPlugins(ctx context.Context, r *reader, s *snapshot.Snapshot) error {
	if !slices.ContainsFunc(s.Nodes, offersNVIDIA) {
		return nil
	}
	policies := r.clusterList(snapshot.ResourceClusterPolicies, func(ctx context.Context, l *listing) error {
		kind := snapshot.ClusterPolicyKind()
		api := r.clients.Dynamic.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: "clusterpolicies"})
		return fetch(ctx, l, untypedAPI(api, decoded[snapshot.ClusterPolicy]), &s.ClusterPolicies)
	})
	if policies != nil {
		if err := policies(ctx); err != nil {
			return serverError(ctx, r.server, err)
		}
		listed(s, snapshot.ResourceClusterPolicies)
	}
	if !r.wants(snapshot.ResourcePluginConfigs) {
		return nil
	}
	asked := map[string]bool{}
	for _, pod := range s.Pods {
		for _, name := range snapshot.MountedByPlugin(pod) {
			if asked[pod.Namespace+"/"+name] {
				continue
			}
			asked[pod.Namespace+"/"+name] = true
			if err := readPluginConfig(ctx, r, s, pod.Namespace, name); err != nil {
				return serverError(ctx, r.server, err)
			}
		}
	}
	listed(s, snapshot.ResourcePluginConfigs)
	return nil
}

// readPluginConfig reads a ConfigMap, and keeps it if it has configurations of NVIDIA's device plugin.
func readPluginConfig(ctx context.Context, r *reader, s *snapshot.Snapshot, namespace, name string) error {
	object, err := r.clients.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		r.gap(snapshot.Gap{Resource: snapshot.ResourcePluginConfigs, Reason: fmt.Sprintf("this user may not get ConfigMap %s in namespace %s", name, namespace)})
		return nil
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ConfigMap %s/%s: %w", namespace, name, err)
	}
	config := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
		return fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	config.TypeMeta = metav1.TypeMeta{}
	if kinds.Strip(config); len(config.Data) > 0 {
		s.PluginConfigs = append(s.PluginConfigs, config)
	}
	return nil
}

// offersNVIDIA reports whether a device plugin of NVIDIA has offered a resource on a node.
func offersNVIDIA(node *corev1.Node) bool {
	for name := range node.Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			return true
		}
	}
	return false
}

// computeDomains returns a task that reads the ComputeDomains. A server that does not have
// them leaves a gap: a claim names one all the same.
func computeDomains(r *reader, s *snapshot.Snapshot) func(context.Context) error {
	return r.namespacedList(snapshot.ResourceComputeDomains, func(ctx context.Context, l *listing, namespace string) error {
		err := fetch(ctx, l, computeDomainAPI(r.clients, namespace), &s.ComputeDomains)
		if apierrors.IsNotFound(err) {
			r.gap(snapshot.Gap{Resource: snapshot.ResourceComputeDomains, Reason: "the API server has no " + snapshot.ResourceComputeDomains + " of version " + snapshot.ComputeDomainVersion})
		}
		return err
	})
}

// cliques returns a task that reads what the daemons of ComputeDomains write in newer
// releases of the driver. Older ones have none.
func cliques(r *reader, s *snapshot.Snapshot) func(context.Context) error {
	return r.namespacedList(snapshot.ResourceCliques, func(ctx context.Context, l *listing, namespace string) error {
		return fetch(ctx, l, cliqueAPI(r.clients, namespace), &s.Cliques)
	})
}

func computeDomainAPI(c Clients, namespace string) endpoint[*snapshot.ComputeDomain] {
	return untypedAPI(c.nvidiaAPI("computedomains", namespace), decoded[snapshot.ComputeDomain])
}

func cliqueAPI(c Clients, namespace string) endpoint[*snapshot.ComputeDomainClique] {
	return untypedAPI(c.nvidiaAPI("computedomaincliques", namespace), decoded[snapshot.ComputeDomainClique])
}

func (c Clients) nvidiaAPI(resource, namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{
		Group: snapshot.ComputeDomainGroup, Version: snapshot.ComputeDomainVersion, Resource: resource,
	}).Namespace(namespace)
}

// decoded reads an object for whose API there are no types. One that no driver writes
// is left out.
func decoded[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object any) (P, error) {
	content, err := as[*unstructured.Unstructured](object)
	if err != nil {
		return nil, err
	}
	data, err := content.MarshalJSON()
	if err != nil {
		return nil, err
	}
	typed, err := kinds.DecodeAs[T](data)
	if err != nil {
		return nil, &leftOutError{content.GetKind(), nameOf(content), err}
	}
	kept := P(typed)
	kinds.Strip(kept)
	kept.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return kept, nil
}
