// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// lower lets the pod request as much of a resource as the node has left: the whole pod
// where it has a request of its own, and the largest of the containers that run at the same
// time as long as these request more.
func (c *Case) lower(misfit *cluster.Misfit) (measure, bool) {
	switch misfit.Resource {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
	default:
		return measure{}, false
	}
	l := &lowering{name: misfit.Resource, most: rounded(misfit.Available, misfit.Resource), pod: c.Pod.DeepCopy()}
	if l.most.Sign() <= 0 {
		return measure{}, false
	}
	if whole := l.pod.Spec.Resources; whole != nil {
		if before, ok := requestOf(whole, l.name); ok {
			l.most.Sub(c.Pod.Spec.Overhead[l.name])
			l.pod.Spec.Overhead = nil
			if l.most.Sign() <= 0 || !l.set(whole, "/resources", "the pod (spec.resources)", before, l.most) {
				return measure{}, false
			}
			l.pod.Spec.Resources = nil
		}
	}
	isSidecar := func(i int) bool {
		return ptr.Deref(l.pod.Spec.InitContainers[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	}
	for i := range l.pod.Spec.InitContainers {
		if !isSidecar(i) && !l.phase(i) {
			return measure{}, false
		}
	}
	if !l.phase(len(l.pod.Spec.InitContainers)) {
		return measure{}, false
	}
	if len(l.edits) == 0 {
		return measure{}, false
	}
	return measure{
		actor: api.ActorUser, loss: l.loss, lessOf: string(l.name), pod: l.edits,
		text: fmt.Sprintf("request %s %s", l.name, english.JoinAnd(l.texts)),
	}, true
}

// lowering lowers the requests of a pod for one resource until they are at most so much.
type lowering struct {
	name  corev1.ResourceName
	most  resource.Quantity
	pod   *corev1.Pod
	edits []claimEdit
	texts []string
	loss  int
}

// phase lowers the requests of the containers that run at the same time: an init container
// and the sidecars before it, or all sidecars and the containers. It reports whether that
// is possible.
func (l *lowering) phase(init int) bool {
	for {
		running := l.pod.DeepCopy()
		running.Spec.InitContainers = nil
		var largest *corev1.Container
		var request resource.Quantity
		path := ""
		consider := func(list []corev1.Container, field string, i int) {
			if quantity, ok := requestOf(&list[i].Resources, l.name); ok && (largest == nil || quantity.Cmp(request) > 0) {
				largest, request, path = &list[i], quantity, fmt.Sprintf("/%s/%d/resources", field, i)
			}
		}
		all := l.pod.Spec.InitContainers
		for i := range all {
			if sidecar := ptr.Deref(all[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways; i == init || sidecar && i < init {
				running.Spec.InitContainers = append(running.Spec.InitContainers, all[i])
				consider(all, "initContainers", i)
			}
		}
		if init < len(all) {
			running.Spec.Containers = nil
		} else {
			for i := range l.pod.Spec.Containers {
				consider(l.pod.Spec.Containers, "containers", i)
			}
		}
		total := resourcehelper.PodRequests(running, resourcehelper.PodResourcesOptions{})[l.name]
		if total.Cmp(l.most) <= 0 {
			return true
		}
		if largest == nil {
			return false
		}
		after := request.DeepCopy()
		after.Sub(total)
		after.Add(l.most)
		where := "container " + largest.Name
		if strings.HasPrefix(path, "/init") {
			where = "init container " + largest.Name
		}
		if after.Sign() <= 0 || !l.set(&largest.Resources, path, where, request, after) {
			return false
		}
	}
}

// set lowers one request, and reports whether that was the first time.
func (l *lowering) set(in *corev1.ResourceRequirements, path, where string, before, after resource.Quantity) bool {
	after = rounded(after, l.name)
	if after.Sign() <= 0 || slices.ContainsFunc(l.edits, func(e claimEdit) bool { return strings.HasPrefix(e.path, path+"/") }) {
		return false
	}
	l.loss = max(l.loss, lossOf(after.MilliValue(), before.MilliValue()))
	text := fmt.Sprintf("%s instead of %s in %s", after.String(), before.String(), where)
	if kinds.HasDefaultRequest(l.pod, where, l.name) {
		text = fmt.Sprintf("%s in %s, which has %s from a LimitRange", after.String(), where, before.String())
	}
	l.texts = append(l.texts, text)
	field := path + "/requests/" + whatif.PointerToken(string(l.name))
	switch {
	case hasResource(in.Requests, l.name):
		l.edits = append(l.edits, claimEdit{op: "replace", path: field, value: after.String()})
	case len(in.Requests) > 0:
		l.edits = append(l.edits, claimEdit{op: "add", path: field, value: after.String()})
	default:
		l.edits = append(l.edits, claimEdit{op: "add", path: path + "/requests", value: corev1.ResourceList{l.name: after}})
	}
	if in.Requests == nil {
		in.Requests = corev1.ResourceList{}
	}
	in.Requests[l.name] = after
	return true
}

// rounded returns a quantity that people would write, no larger than this one: memory in
// whole Mi.
func rounded(q resource.Quantity, name corev1.ResourceName) resource.Quantity {
	const mi = 1 << 20
	if name == corev1.ResourceCPU || q.Value() < mi {
		return q
	}
	return *resource.NewQuantity(q.Value()/mi*mi, resource.BinarySI)
}

// requestOf returns what a container requests, or what it is limited to if it requests
// nothing else.
func requestOf(in *corev1.ResourceRequirements, name corev1.ResourceName) (resource.Quantity, bool) {
	if q, ok := in.Requests[name]; ok {
		return q, true
	}
	q, ok := in.Limits[name]
	return q, ok
}

// measure is one way to change a fact of the environment.
type measure struct {
	actor string
	text  string
	loss  int
	// lessOf names the reduced part of the request.
	lessOf string
	// objects are edits of stored objects, pod edits of the pod's own spec.
	objects []api.Edit
	pod     []claimEdit
	claims  []claimEdit
	gate    string
	// silent is true if there is no command for it.
	silent bool
}

func hasResource[K comparable](list map[K]resource.Quantity, name K) bool {
	_, ok := list[name]
	return ok
}
