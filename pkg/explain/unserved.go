// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

// WantsDevices reports whether a pod uses claims or extended resources of DRA, or
// an extended resource that nothing in the cluster serves: that is mostly a typo in
// the name of one that something does.
func WantsDevices(c *cluster.Cluster, pod *corev1.Pod) bool {
	return len(c.Claims.OfPod(pod)) > 0 || len(target.Unserved(c, pod)) > 0
}

// RefusedWorkloads lists the workloads whose pods use devices, and that the API server
// refuses.
func RefusedWorkloads(c *cluster.Cluster) []*lifecycle.Refusal {
	return slices.DeleteFunc(lifecycle.Refusals(c.Snapshot), func(r *lifecycle.Refusal) bool {
		w := r.Workload
		return !WantsDevices(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Spec: w.Template.Spec})
	})
}

// unservedPod settles the matter for a pod without claims that asks for extended
// resources which nothing serves: NodeResourcesFit of the scheduler rejects
// every node.
func (x *builder) unservedPod() *settlement {
	if len(x.PodClaims) > 0 || x.Pod == nil {
		return nil
	}
	names := target.Unserved(x.Cluster, x.Pod)
	if len(names) == 0 {
		return nil
	}
	text := fmt.Sprintf("no node offers the extended resource %s, and no DeviceClass maps it%s", names[0], cmp.Or(naming.DidYouMean(string(names[0]), servedResources(x.Question)), hints.OfMappable(x.Cluster.Snapshot, names[0])))
	for _, class := range x.Cluster.Snapshot.Classes {
		if class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(names[0]) {
			text = fmt.Sprintf("no node offers the extended resource %s; DeviceClass %s maps it, but the feature gate DRAExtendedResource is off", names[0], class.Name)
		}
	}
	return &settlement{verdict: api.DoesNotFit, code: api.NodeUnsuitable, message: text}
}

// servedResources lists the extended resources that nodes have and that classes
// stand for.
func servedResources(q *funnel.Question) []string {
	found := map[string]bool{}
	for _, node := range q.Cluster.Snapshot.Nodes {
		for _, name := range q.Cluster.Nodes.ExtendedResourcesOf(node) {
			if _, offered := node.Status.Allocatable[name]; offered {
				found[string(name)] = true
			}
		}
	}
	if q.Cluster.Gates.Enabled("DRAExtendedResource") {
		for _, class := range q.Cluster.Snapshot.Classes {
			found[resourceapi.ResourceDeviceClassPrefix+class.Name] = true
			if class.Spec.ExtendedResourceName != nil {
				found[*class.Spec.ExtendedResourceName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
