// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// request is the name of the request in a claim, and of the claim in a pod.
	request = "device"
	// image does nothing, until the user puts another one in its place.
	image = "registry.k8s.io/pause:3.10"
)

// spec returns a claim for a device of the class that matches an expression, if there is one.
func (f *finder) spec(expression string, capacity map[resourceapi.QualifiedName]resource.Quantity, config []resourceapi.DeviceClaimConfiguration) *resourceapi.ResourceClaimSpec {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: f.class.Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
	if expression != "" {
		exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	}
	if len(capacity) > 0 {
		exactly.Capacity = &resourceapi.CapacityRequirements{Requests: capacity}
	}
	return &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: request, Exactly: exactly}}, Config: config}}
}

// recipe is a manifest: a claim for all pods, or a template for a claim of each, and two pods.
type recipe struct {
	claim    *resourceapi.ResourceClaim
	template *resourceapi.ResourceClaimTemplate
	pods     []*corev1.Pod
}

// newRecipe returns a recipe for a claim with a spec, which is shared or made for each pod. All names begin
// with name, or with name and a number if an object of the namespace has one of them.
func (f *finder) newRecipe(name string, spec *resourceapi.ResourceClaimSpec, shared bool) *recipe {
	free := name
	for n := 2; f.inUse(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	r := &recipe{}
	entry := corev1.PodResourceClaim{Name: request}
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: free}
	if version := resourceapi.SchemeGroupVersion.String(); shared {
		r.claim = &resourceapi.ResourceClaim{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: api.KindClaim}, ObjectMeta: meta, Spec: *spec}
		entry.ResourceClaimName = &free
	} else {
		r.template = &resourceapi.ResourceClaimTemplate{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: api.KindTemplate}, ObjectMeta: meta}
		r.template.Spec.Spec = *spec
		entry.ResourceClaimTemplateName = &free
	}
	for number := range 2 {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: api.KindPod}, ObjectMeta: meta}
		pod.Name = fmt.Sprintf("%s-%d", free, number)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{entry}
		containers := []string{"main"}
		if shared && number == 1 {
			// Containers of one pod can share a claim, too.
			containers = append(containers, "second")
		}
		for _, container := range containers {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: container, Image: image, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: request}}},
			})
		}
		r.pods = append(r.pods, pod)
	}
	return r
}

// inUse reports whether the namespace has an object with a name of a recipe.
func (f *finder) inUse(name string) bool {
	return f.Snapshot.Template(f.namespace, name) != nil || f.Snapshot.Claim(f.namespace, name) != nil ||
		f.Snapshot.Pod(f.namespace, name+"-0") != nil || f.Snapshot.Pod(f.namespace, name+"-1") != nil
}

// yaml returns the objects as documents.
func (r *recipe) yaml() (string, error) {
	var documents []any
	if r.claim != nil {
		documents = append(documents, whatif.PlainJSON(r.claim))
	} else {
		documents = append(documents, whatif.PlainJSON(r.template))
	}
	for _, pod := range r.pods {
		documents = append(documents, whatif.PlainJSON(pod))
	}
	texts := make([]string, 0, len(documents))
	for _, document := range documents {
		text, err := yaml.Marshal(withoutEmpty(document))
		if err != nil {
			return "", fmt.Errorf("write manifest: %w", err)
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n"), nil
}

// withoutEmpty returns a document without objects that have nothing in them, such as a status.
func withoutEmpty(document any) any {
	switch value := document.(type) {
	case map[string]any:
		for key, field := range value {
			// Parameters are the driver's: an empty object can mean something.
			if key == "parameters" {
				continue
			}
			value[key] = withoutEmpty(field)
			if empty, ok := value[key].(map[string]any); ok && len(empty) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	}
	return document
}

// over returns the cluster with the objects, and without the other pods that wait: they would get devices
// first.
func (r *recipe) over(c *cluster.Cluster) (*cluster.Cluster, []*corev1.Pod) {
	after := *c.Snapshot
	if r.claim != nil {
		claim := r.claim.DeepCopy()
		claim.UID = types.UID(claim.Name)
		after.Claims = append(slices.Clone(after.Claims), claim)
		snapshot.SortByName(after.Claims)
	} else {
		after.Templates = append(slices.Clone(after.Templates), r.template)
		snapshot.SortByName(after.Templates)
	}
	var pods []*corev1.Pod
	for _, pod := range r.pods {
		pod = pod.DeepCopy()
		pod.UID, pod.Status.Phase = types.UID(pod.Name), corev1.PodPending
		pods = append(pods, pod)
	}
	after.Pods = append(slices.DeleteFunc(slices.Clone(after.Pods), snapshot.Waits), pods...)
	snapshot.SortByName(after.Pods)
	return c.Amended(&after), pods
}

// decide puts a recipe into a way, with what the allocator says about it: whether both pods fit and, with
// a template, how many more claims do.
func (f *finder) decide(ctx context.Context, way *api.SharingWay, r *recipe) error {
	var err error
	if way.Manifest, err = r.yaml(); err != nil {
		return err
	}
	with, pods := r.over(f.Cluster)
	var targets []target.Options
	for _, pod := range pods {
		targets = append(targets, target.Options{Object: api.RefTo(api.KindPod, pod)})
	}
	answers, err := explain.ReasonsOfEach(ctx, with, targets, pods)
	if err != nil {
		return fmt.Errorf("decide %s: %w", way.Method, err)
	}
	way.Verdict = api.Fits
	for i, answer := range answers {
		if answer.Err != nil {
			way.Verdict, way.Summary = api.Undetermined, answer.Err.Error()
			break
		}
		e := answer.Explanation
		if i == 0 {
			way.NodeCount = e.NodeCount
			for j := range e.Nodes {
				if e.Nodes[j].Verdict == api.Fits {
					way.Nodes += e.Nodes[j].Count
				}
			}
			f.assume(e.Assumptions)
		}
		if e.Verdict != api.Fits && e.Verdict != api.Allocated {
			way.Verdict, way.Summary = e.Verdict, e.Summary
			break
		}
	}
	if r.template == nil {
		return nil
	}
	shape, snap := ShapeOfClaims(f.Snapshot, f.namespace, r.template.Name, &r.template.Spec.Spec)
	count, err := CountShape(ctx, f.Amended(snap), shape, 2)
	if err != nil {
		return fmt.Errorf("count claims for %s: %w", way.Method, err)
	}
	way.Now, way.Released = &count.Now, &count.Released
	return nil
}

// room counts the claims with a spec that some devices of one pool take, by the allocator, on a cluster
// that has nothing but these devices: none of them is in use or tainted, and one node reaches them.
func (f *finder) room(ctx context.Context, devices []*cluster.Device, spec *resourceapi.ResourceClaimSpec) (api.CopyCount, error) {
	const name, pods = "node", 1_000_000
	kept := map[string]bool{}
	for _, d := range devices {
		kept[d.ID.Device] = true
	}
	pool := devices[0].Pool
	var published []*resourceapi.ResourceSlice
	for _, slice := range pool.Slices {
		slice = slice.DeepCopy()
		slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes, slice.Spec.PerDeviceNodeSelection = new(name), nil, nil, nil
		slice.Spec.Pool.ResourceSliceCount = int64(len(pool.Slices))
		slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return !kept[d.Name] })
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			d.Taints, d.NodeName, d.NodeSelector, d.AllNodes = nil, nil, nil, nil
		}
		published = append(published, slice)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	s := f.Snapshot
	shape, snap := ShapeOfClaims(&snapshot.Snapshot{
		Source: s.Source, Clock: s.Clock, Release: s.Release,
		Nodes: []*corev1.Node{node}, Slices: published, Classes: []*resourceapi.DeviceClass{f.class},
	}, f.namespace, request, spec)
	count, err := CountShape(ctx, f.Amended(snap), shape, 1)
	if err != nil {
		return api.CopyCount{}, fmt.Errorf("count claims on %s: %w", devices[0].ID, err)
	}
	if most := count.Now.AtMost; most != nil && *most >= pods {
		// Nothing of the devices limits it.
		count.Now.AtMost = nil
	}
	return count.Now, nil
}
