// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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
