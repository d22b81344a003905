// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Find looks a target up.
func Find(c *cluster.Cluster, opts Options) (*Target, error) {
	s := &Target{Options: opts}
	var err error
	switch opts.Object.Kind {
	case api.KindClaim:
		err = s.findClaim(c)
	case api.KindTemplate:
		err = s.findTemplate(c.Snapshot)
	case api.KindPod:
		err = s.findPod(c)
	case api.KindPodGroup:
		err = s.findPodGroup(c)
	default:
		err = s.findWorkload(c)
	}
	if err == nil && opts.Node != "" {
		err = s.findNode(c, opts.Node)
	}
	if err == nil && opts.Device != "" {
		err = s.findDevice(c, opts.Device)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Target) findClaim(c *cluster.Cluster) error {
	claim := c.Snapshot.Claim(s.Object.Namespace, s.Object.Name)
	if claim == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourceClaims, c.Snapshot.Claims)
	}
	s.Users = lifecycle.PodsUsing(c.Snapshot, claim)
	if claim.Status.Allocation == nil {
		for _, pod := range s.Users {
			if snapshot.Waits(pod) {
				s.Others = append(s.Others, pod)
			}
		}
		if len(s.Others) > 0 {
			s.UsePod(c, s.Others[0])
			s.Others = s.Others[1:]
			return nil
		}
	}
	s.Claims = []cluster.PodClaim{{Claim: cluster.Defaulted(claim)}}
	return nil
}

func (s *Target) findTemplate(snap *snapshot.Snapshot) error {
	template := snap.Template(s.Object.Namespace, s.Object.Name)
	if template == nil {
		return notFound(snap, s.Object, snapshot.ResourceTemplates, snap.Templates)
	}
	for _, pod := range snap.Pods {
		if pod.Namespace != template.Namespace {
			continue
		}
		if slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			return c.ResourceClaimTemplateName != nil && *c.ResourceClaimTemplateName == template.Name
		}) {
			s.Users = append(s.Users, pod)
		}
	}
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: template.Name + "-…"},
		Spec:       template.Spec.Spec,
	}
	cluster.Planned(claim, template.Name)
	s.Claims = []cluster.PodClaim{{Generated: true, Template: template.Name, Claim: cluster.Defaulted(claim)}}
	return nil
}

func (s *Target) findPod(c *cluster.Cluster) error {
	pod := c.Snapshot.Pod(s.Object.Namespace, s.Object.Name)
	if pod == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourcePods, c.Snapshot.Pods)
	}
	s.Hypothetical = Hypothetical(pod)
	if s.Hypothetical {
		pod = WithClassPriority(c.Snapshot, pod)
	} else {
		s.Users = []*corev1.Pod{pod}
	}
	s.UsePod(c, pod)
	return s.needClaims(c)
}

func (s *Target) findWorkload(c *cluster.Cluster) error {
	var same []*snapshot.Workload
	for _, w := range c.Snapshot.Workloads {
		if !s.isKind(w.GroupVersionKind()) {
			continue
		}
		same = append(same, w)
		if w.Namespace != s.Object.Namespace || w.Name != s.Object.Name {
			continue
		}
		s.Object = w.Ref()
		if s.Users, s.End = lifecycle.Pods(c.Snapshot, w), w.End; s.End != nil {
			return nil
		}
		s.Workload, s.Desired, s.Creator = true, w.Replicas, lifecycle.CreatorOf(w)
		chosen := firstToWait(s.Users)
		switch {
		case chosen >= 0:
			s.UsePod(c, s.Users[chosen])
		case len(s.Users) > 0:
			s.UsePod(c, s.Users[0])
		default:
			s.Hypothetical = true
			s.UsePod(c, podOf(c.Snapshot, w))
			s.New, s.Sample = replicas(s.Pod, w.Replicas)
		}
		return s.needClaims(c)
	}
	if found, err := s.findOwner(c); found || err != nil {
		return err
	}
	return notFound(c.Snapshot, s.Object, hiddenKind(c.Snapshot, s.Object.Kind), same)
}

// firstToWait returns the index of the pod of a workload that waits longest, -1 if none
// does. During a rollout, pods of the latest revision come first: the others are replaced.
// The pods are sorted by age, and the youngest one is of the latest revision.
func firstToWait(pods []*corev1.Pod) int {
	latest := slices.IndexFunc(pods, func(pod *corev1.Pod) bool {
		return snapshot.Waits(pod) && revision(pod) == revision(pods[len(pods)-1])
	})
	if latest >= 0 {
		return latest
	}
	return slices.IndexFunc(pods, snapshot.Waits)
}

// revision returns the revision of a pod's template, empty if its controller gives it none.
func revision(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], pod.Labels[appsv1.ControllerRevisionHashLabelKey])
}

// hiddenKind returns the resource of a kind if it could not be read, else empty. A snapshot
// does not know resources by their kinds, but their names are related: even the resources of
// other projects begin as their kinds do.
func hiddenKind(snap *snapshot.Snapshot, kind string) string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	stem := strings.ToLower(kind)
	stem = stem[:max(len(stem)-1, 0)]
	similar := ""
	for _, gap := range snap.Gaps {
		switch name, group, _ := strings.Cut(gap.Resource, "."); {
		case name == plural.Resource:
			return gap.Resource
		case similar == "" && stem != "" && strings.HasPrefix(name, stem) && strings.Contains(group, "."):
			similar = gap.Resource
		}
	}
	return similar
}

// FindNode looks up a node. It fails with an [*Error] if there is none of that name.
func FindNode(c *cluster.Cluster, name string) (*corev1.Node, error) {
	s := &Target{}
	err := s.findNode(c, name)
	return s.Only, err
}

// findNode looks up the only node to look at.
func (s *Target) findNode(c *cluster.Cluster, name string) error {
	nodes, known := c.Nodes.All()
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		if node.Name == name {
			s.Only = node
			return nil
		}
		names = append(names, node.Name)
	}
	err := absent(c.Snapshot, api.Ref(api.KindNode, "", name))
	gap, near := c.Snapshot.Gap(snapshot.ResourceNodes), english.DidYouMean(name, names)
	slices.SortFunc(names, english.CompareNames)
	switch {
	case near != "":
		err.Message += near
	case gap != nil:
		err.Hint = "it may exist all the same: " + gap.Reason
	case len(names) == 0:
		err.Hint = "no Node exists"
	case !known:
		err.Hint = "no Node exists, but ResourceSlices name: " + english.Sample(names, maxNodeNames)
	default:
		err.Hint = "existing nodes: " + english.Sample(names, maxNodeNames)
	}
	return err
}

// maxNodeNames limits how many names a hint has.
const maxNodeNames = 10

// Nodes returns the nodes of the question.
func (s *Target) Nodes(c *cluster.Cluster) []*corev1.Node {
	if s.Only != nil {
		return []*corev1.Node{s.Only}
	}
	nodes, _ := c.Nodes.All()
	return nodes
}

// IsElsewhere reports whether a pod is bound to another node than the node of the question.
func (s *Target) IsElsewhere(pod *corev1.Pod) bool {
	return s.Only != nil && pod.Spec.NodeName != s.Only.Name
}

// KindDevice is the kind of what [Options.Device] names.
const KindDevice = api.KindDevice

// FindDevice looks up a device by driver/pool/device, or a part of that which is
// clear. It fails with an [*Error] if there is none, or more than one.
func FindDevice(c *cluster.Cluster, text string) (*cluster.Device, error) {
	s := &Target{}
	err := s.findDevice(c, text)
	return s.Device, err
}

// findDevice looks up the device to be explained. It may be given without its
// driver, or without its pool, too, if there is only one.
func (s *Target) findDevice(c *cluster.Cluster, text string) error {
	all := publishedDevices(c)
	forms := []func(cluster.DeviceID) string{
		cluster.DeviceID.String,
		func(id cluster.DeviceID) string { return id.Pool + "/" + id.Device },
		func(id cluster.DeviceID) string { return id.Device },
	}
	for _, form := range forms {
		var found []*cluster.Device
		for i := range all {
			if form(all[i].ID) != text {
				continue
			}
			at := slices.IndexFunc(found, func(d *cluster.Device) bool { return d.ID == all[i].ID })
			switch {
			case at < 0:
				found = append(found, &all[i])
			case s.Only != nil && !eligibility.DeviceReaches(found[at], s.Only) && eligibility.DeviceReaches(&all[i], s.Only):
				// The node may have an older generation of the pool.
				found[at] = &all[i]
			}
		}
		if len(found) > 1 && s.Only != nil {
			if there := slices.DeleteFunc(slices.Clone(found), func(d *cluster.Device) bool { return !eligibility.DeviceReaches(d, s.Only) }); len(there) > 0 {
				found = there
			}
		}
		switch len(found) {
		case 0:
		case 1:
			s.Device = found[0]
			return nil
		default:
			names := make([]string, 0, len(found))
			for _, d := range found {
				names = append(names, d.ID.String())
			}
			return &Error{
				Target:  api.Ref(KindDevice, "", text),
				Message: fmt.Sprintf("Device %s is ambiguous, there are %d of that name", text, len(names)),
				Hint:    "write one of: " + english.Sample(names, 3),
			}
		}
	}
	err := absent(c.Snapshot, api.Ref(KindDevice, "", text))
	form := forms[max(0, 2-strings.Count(text, "/"))]
	names, inPool := make([]string, 0, len(all)), []string(nil)
	for i := range all {
		id := all[i].ID
		names = append(names, form(id))
		if strings.HasPrefix(text, id.Driver+"/"+id.Pool+"/") || strings.HasPrefix(text, id.Pool+"/") {
			inPool = append(inPool, id.Device)
		}
	}
	prefix, device, candidates := "", text, names
	if len(inPool) > 0 {
		// The pool is right.
		at := strings.LastIndex(text, "/") + 1
		prefix, device, candidates = text[:at], text[at:], inPool
	}
	near := english.Typo(device, candidates)
	switch gap := c.Snapshot.Gap(snapshot.ResourceSlices); {
	case near != "":
		err.Message += english.Suggestion(prefix + near)
	case gap != nil:
		err.Hint = "it may exist all the same: " + gap.Reason
	case len(inPool) > 0:
		err.Hint = "its pool has: " + english.Sample(inPool, 3)
	case len(names) > 0:
		slices.SortFunc(names, english.CompareNames)
		err.Hint = "existing devices: " + english.Sample(slices.Compact(names), 3)
	default:
		err.Hint = "no ResourceSlice has a device"
	}
	return err
}

// publishedDevices lists all devices, starting with the newest generations.
func publishedDevices(c *cluster.Cluster) []cluster.Device {
	all := slices.Clone(c.Pools.Devices())
	for _, pool := range c.Pools.All() {
		for _, slice := range pool.Obsolete {
			for i := range slice.Spec.Devices {
				all = append(all, cluster.DeviceIn(pool, slice, i))
			}
		}
	}
	return all
}

// GroupOf returns the name of the PodGroup that a pod belongs to, empty if there is none.
func GroupOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulingGroup == nil {
		return ""
	}
	return ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
}

// GroupPods lists the pods of a PodGroup that have not ended, the oldest first.
func GroupPods(snap *snapshot.Snapshot, namespace, name string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace == namespace && GroupOf(pod) == name && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	lifecycle.SortPods(pods)
	return pods
}

// NewGroupPods returns the pods that workloads without pods will create in a PodGroup. If
// sample is set, it is not known how many there will be.
func NewGroupPods(snap *snapshot.Snapshot, namespace, name string) (pods []*corev1.Pod, sample bool) {
	for _, w := range snap.Workloads {
		if w.Namespace != namespace || w.End != nil || GroupOf(&corev1.Pod{Spec: w.Template.Spec}) != name || len(lifecycle.Pods(snap, w)) > 0 {
			continue
		}
		of, one := replicas(podOf(snap, w), w.Replicas)
		pods, sample = append(pods, of...), sample || one
	}
	return pods, sample
}

// Pods lists the pods of all groups that have not ended.
func (t *GroupTree) Pods(snap *snapshot.Snapshot) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, group := range t.Groups() {
		pods = append(pods, GroupPods(snap, group.Namespace, group.Name)...)
	}
	return pods
}

// findPodGroup makes the target stand for the pods of a PodGroup, and for those that
// workloads without pods will create in it.
func (s *Target) findPodGroup(c *cluster.Cluster) error {
	group := c.Snapshot.PodGroup(s.Object.Namespace, s.Object.Name)
	if group == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourcePodGroups, c.Snapshot.PodGroups)
	}
	s.Group, s.Workload = group, true
	s.Users = GroupPods(c.Snapshot, group.Namespace, group.Name)
	s.New, s.Sample = NewGroupPods(c.Snapshot, group.Namespace, group.Name)
	if len(s.New) > 0 && !s.Sample {
		s.Desired = ptr.To(int32(len(s.Users) + len(s.New)))
	}
	all := slices.Concat(s.Users, s.New)
	if len(all) == 0 {
		err := &Error{Target: s.Object, Message: fmt.Sprintf("%s has no pods", s.Object.Title())}
		err.Hint = "create pods with spec.schedulingGroup.podGroupName: " + group.Name
		if gap := c.Snapshot.Gap(snapshot.ResourcePods); gap != nil {
			err.Hint = "it may have pods all the same: " + gap.Reason
		}
		return err
	}
	uses := func(pod *corev1.Pod) bool { return len(c.Claims.OfPod(pod)) > 0 }
	chosen := slices.IndexFunc(all, func(pod *corev1.Pod) bool { return snapshot.Waits(pod) && uses(pod) })
	if chosen < 0 {
		chosen = max(slices.IndexFunc(all, uses), 0)
	}
	s.Hypothetical = Hypothetical(all[chosen])
	s.UsePod(c, all[chosen])
	return s.needClaims(c)
}

// findOwner looks for an object of any kind that pods belong to, directly or through
// others, by the owners that pods name: a JobSet, a RayCluster. found is false if no
// pod names it, and the snapshot does not have it either.
func (s *Target) findOwner(c *cluster.Cluster) (found bool, err error) {
	if outline := c.Snapshot.Outline(schema.GroupKind{Group: s.Object.APIGroup, Kind: s.Object.Kind}, s.Object.Namespace, s.Object.Name); outline != nil {
		s.Creator = &lifecycle.Creator{Object: outline, Kind: outline.GroupKind(), Suspended: outline.Spec.Suspend}
		s.Object = outline.Ref()
	}
	pods := s.ownedPods(c.Snapshot)
	if len(pods) == 0 {
		return s.Creator != nil, nil
	}
	chosen := slices.MaxFunc(pods, func(a, b *corev1.Pod) int { return s.urgency(c, a) - s.urgency(c, b) })
	role := roleOf(chosen)
	for _, pod := range pods {
		if roleOf(pod) == role {
			s.Users = append(s.Users, pod)
		} else {
			s.Different = append(s.Different, pod)
		}
	}
	s.Workload, s.ByOwner = true, true
	s.UsePod(c, chosen)
	return true, s.needClaims(c)
}

// urgency returns a higher number for pods that an answer should cover: waiting pods with
// claims, then pods with claims.
func (s *Target) urgency(c *cluster.Cluster, pod *corev1.Pod) int {
	n := 0
	if len(c.Claims.OfPod(pod)) > 0 {
		n = 2
	}
	if snapshot.Waits(pod) {
		n++
	}
	return n
}

// ownedPods lists the pods of the target that have not ended, by age. The target owns a pod, or
// owns an owner of the pod.
func (s *Target) ownedPods(snap *snapshot.Snapshot) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace != s.Object.Namespace || snapshot.Finished(pod) {
			continue
		}
		for _, owner := range snap.Owners(pod) {
			if kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind); s.isKind(kind) && owner.Name == s.Object.Name {
				s.Object.APIGroup = kind.Group
				pods = append(pods, pod)
				break
			}
		}
	}
	lifecycle.SortPods(pods)
	return pods
}

// roleOf returns the same for pods of one owner with the same needs: pods of one role, such
// as the workers of a cluster but not its head.
func roleOf(pod *corev1.Pod) string {
	type container struct {
		Name      string
		Resources corev1.ResourceRequirements
	}
	spec := &pod.Spec
	role := struct {
		Claims       []corev1.PodResourceClaim
		Containers   []container
		NodeSelector map[string]string
		Scheduler    string
		Priority     *int32
	}{Claims: spec.ResourceClaims, NodeSelector: spec.NodeSelector, Scheduler: spec.SchedulerName, Priority: spec.Priority}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			role.Containers = append(role.Containers, container{containers[i].Name, containers[i].Resources})
		}
	}
	data, err := json.Marshal(role)
	if err != nil {
		// Then it is like no other.
		return pod.Name
	}
	return string(data)
}
