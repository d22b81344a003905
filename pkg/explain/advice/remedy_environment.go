// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// environment proposes changes that are enough on a node without a change of the request:
// once by the user wherever there is a choice, once by an administrator.
func (r *remedies) environment(ctx context.Context, p *Prospect) error {
	if len(p.environment) == 0 {
		return nil
	}
	var choices [][]measure
	var holders []*fact
	for _, i := range p.environment {
		f := &p.Scenario.facts[i]
		if f.kind == factHolder {
			if r.keeps(f.holder) {
				return nil
			}
			holders = append(holders, f)
			continue
		}
		choices = append(choices, r.measures(p, f))
	}
	if len(holders) > 0 {
		choices = append(choices, []measure{r.release(holders)})
	}
	for _, preferred := range []string{api.ActorUser, api.ActorAdmin} {
		c := change{changes: len(p.environment)}
		var texts []string
		var operations []claimEdit
		for _, measures := range choices {
			if len(measures) == 0 {
				return nil
			}
			m := measures[max(0, slices.IndexFunc(measures, func(m measure) bool { return m.actor == preferred }))]
			texts = append(texts, m.text)
			operations = append(operations, m.pod...)
			c.objects, c.claims = append(c.objects, m.objects...), append(c.claims, m.claims...)
			if len(choices) == 1 {
				c.lessOf = m.lessOf
			}
			c.silent, c.loss, c.gate = c.silent || m.silent, max(c.loss, m.loss), cmp.Or(c.gate, m.gate)
			c.actor = together(c.actor, m.actor)
		}
		if len(operations) > 0 {
			edits, silent := r.podEdits(mergedPodEdits(r.Pod, operations))
			if len(edits) == 0 {
				continue
			}
			c.objects, c.silent = append(c.objects, edits...), c.silent || silent
		}
		// From the end of a list, so that the places of the others stay right.
		slices.SortStableFunc(c.objects, func(a, b api.Edit) int {
			return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), english.CompareNames(b.Path, a.Path))
		})
		c.text = strings.Join(texts, "; and ")
		if _, err := r.propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// released proposes that the fewest claims are released that are enough.
func (r *remedies) released(ctx context.Context) error {
	if r.scenario == nil {
		return nil
	}
	var others, holders []int
	for i := range r.scenario.facts {
		if f := &r.scenario.facts[i]; f.kind != factHolder || r.keeps(f.holder) {
			others = append(others, i)
		} else {
			holders = append(holders, i)
		}
	}
	if len(holders) == 0 {
		return nil
	}
	if ok, err := r.scenario.fits(ctx, others); err != nil || !ok {
		return err
	}
	given, err := r.scenario.fewest(ctx, others, holders)
	if err != nil || len(given) == 0 {
		return err
	}
	facts := make([]*fact, 0, len(given))
	for _, i := range given {
		facts = append(facts, &r.scenario.facts[i])
	}
	m := r.release(facts)
	_, err = r.propose(ctx, change{actor: m.actor, text: m.text, objects: m.objects, silent: m.silent, changes: len(given)})
	return err
}

// keeps reports whether the claim belongs to the target or to another pod of its workload,
// whose controller would create that pod again, with the same needs.
func (c *Case) keeps(claim *resourceapi.ResourceClaim) bool {
	return isOwnClaim(c.Question, claim) || c.Target.Workload && slices.ContainsFunc(lifecycle.PodsUsing(c.Cluster.Snapshot, claim), c.concerns)
}

// measures lists what can be done about a fact of the environment. There is
// none for what nobody can change.
func (c *Case) measures(p *Prospect, f *fact) []measure {
	switch f.kind {
	case factRestriction:
		return c.restrictionMeasures(p, f)
	case factGate:
		return []measure{{actor: api.ActorAdmin, loss: lossNone, gate: f.gate, text: gateText(f.gate), silent: true}}
	case factPool:
		complete := completed(f.pool)
		return []measure{{actor: complete.actor, text: complete.text, objects: complete.objects}}
	case factTaint:
		tolerate := p.Scenario.tolerate(f)
		tolerations := []measure{{actor: api.ActorUser, text: tolerate.text, loss: tolerate.loss, claims: tolerate.claims}}
		if len(tolerate.claims) == 0 {
			tolerations = nil
		}
		if rule, ok := c.withoutRule(f); ok {
			return append(tolerations, measure{actor: rule.actor, text: rule.text, objects: rule.objects})
		}
		return append([]measure{p.Scenario.repaired(f)}, tolerations...)
	default:
		return nil
	}
}

// withoutRule deletes the DeviceTaintRule that a taint comes from, if it does.
func (c *Case) withoutRule(f *fact) (change, bool) {
	rule := c.Cluster.Taints.Rule(f.tainted, f.taint)
	if rule == nil {
		return change{}, false
	}
	return change{
		actor: api.ActorAdmin, text: fmt.Sprintf("delete DeviceTaintRule %s if it is no longer needed", rule.Name),
		objects: []api.Edit{whatif.NewEdit(api.Ref("DeviceTaintRule", "", rule.Name), "remove", "", nil)},
	}, true
}

// restrictionMeasures lists what makes a node suitable for the pod.
func (c *Case) restrictionMeasures(p *Prospect, f *fact) []measure {
	node, misfit := p.Node(), f.misfit
	name := node.Name
	if len(p.Nodes) > 1 {
		name += fmt.Sprintf(" or one of %s", english.Count(len(p.Nodes)-1, "equivalent node"))
	}
	switch misfit.Filter {
	case cluster.FilterUnschedulable:
		return []measure{{actor: api.ActorAdmin, text: "uncordon node " + name, objects: whatif.Uncordon(node)}}
	case cluster.FilterTaint:
		return c.nodeTaintMeasures(node, name, misfit)
	case cluster.FilterNodeSelector:
		return []measure{{
			actor: api.ActorUser, loss: lossCondition,
			text: fmt.Sprintf("remove %s=%s from spec.nodeSelector", misfit.Label, c.Pod.Spec.NodeSelector[misfit.Label]),
			pod:  []claimEdit{{op: "remove", path: "/nodeSelector/" + whatif.PointerToken(misfit.Label)}},
		}}
	case cluster.FilterNodeAffinity:
		return []measure{{
			actor: api.ActorUser, loss: lossCondition, text: "remove the required node affinity",
			pod: []claimEdit{{op: "remove", path: "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"}},
		}}
	case cluster.FilterResources:
		var list []measure
		if m, ok := c.lower(misfit); ok {
			list = append(list, m)
		}
		if m, ok := c.makeRoom(node, misfit); ok {
			list = append(list, m)
		}
		return list
	case cluster.FilterPods:
		if m, ok := c.makeRoom(node, misfit); ok {
			return []measure{m}
		}
		return nil
	case cluster.FilterPorts:
		namespace, podName, _ := strings.Cut(misfit.User, "/")
		if pod := c.Cluster.Snapshot.Pod(namespace, podName); pod != nil {
			return []measure{c.podsLeave(node, []*corev1.Pod{pod})}
		}
		return nil
	default:
		return nil
	}
}

// nodeTaintMeasures tolerates a taint of a node, or removes it. What Kubernetes sets and removes
// itself goes with the condition that it stands for.
func (c *Case) nodeTaintMeasures(node *corev1.Node, name string, misfit *cluster.Misfit) []measure {
	taint := misfit.Taint
	removed := func(such func(*corev1.Taint) bool) []api.Edit {
		var edits []api.Edit
		for i := range node.Spec.Taints {
			if such(&node.Spec.Taints[i]) {
				edits = append(edits, whatif.NewEdit(api.Ref(api.KindNode, "", node.Name), "remove", fmt.Sprintf("/spec/taints/%d", i), nil))
			}
		}
		return edits
	}
	if cluster.SetByKubernetes(&taint) {
		m := measure{
			actor: api.ActorNobody, silent: true, objects: removed(func(t *corev1.Taint) bool { return t.Key == taint.Key }),
			text: fmt.Sprintf("wait until node %s no longer has the taint %s, which Kubernetes sets and removes itself", name, taint.ToString()),
		}
		if misfit.Condition != nil {
			m.actor, m.text = api.ActorAdmin, fmt.Sprintf(misfit.Condition.Repair, name)
		}
		return []measure{m}
	}
	remove := removed(func(t *corev1.Taint) bool { return t.MatchTaint(&taint) })
	toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
	if taint.Value == "" {
		toleration.Operator = corev1.TolerationOpExists
	}
	return []measure{
		{
			actor: api.ActorUser, loss: lossTolerance, text: fmt.Sprintf("tolerate the node taint %s if the pod may run there", taint.ToString()),
			pod: []claimEdit{{op: "add", path: "/tolerations/-", value: toleration}},
		},
		{actor: api.ActorAdmin, text: fmt.Sprintf("remove the taint %s from node %s", taint.ToString(), name), objects: remove},
	}
}

// mergedPodEdits makes one list of operations that can be applied one after the
// other: lists that do not exist are added, those that get empty are removed.
func mergedPodEdits(pod *corev1.Pod, operations []claimEdit) []claimEdit {
	var merged []claimEdit
	dropped := 0
	tolerations := len(pod.Spec.Tolerations)
	for _, o := range operations {
		if toleration, ok := o.value.(corev1.Toleration); ok && tolerations == 0 {
			o = claimEdit{op: "add", path: "/tolerations", value: []corev1.Toleration{toleration}}
		}
		if strings.HasPrefix(o.path, "/tolerations") {
			tolerations++
		}
		if strings.HasPrefix(o.path, "/nodeSelector/") {
			dropped++
		}
		merged = append(merged, o)
	}
	if dropped > 0 && dropped == len(pod.Spec.NodeSelector) {
		merged = slices.DeleteFunc(merged, func(o claimEdit) bool { return strings.HasPrefix(o.path, "/nodeSelector/") })
		merged = append(merged, claimEdit{op: "remove", path: "/nodeSelector"})
	}
	return merged
}

// makeRoom finds the pods of a node that matter least and whose leaving is
// enough: one if there is one, else as few as it takes from the least important.
func (c *Case) makeRoom(node *corev1.Node, misfit *cluster.Misfit) (measure, bool) {
	needs := misfit.Required.DeepCopy()
	needs.Sub(misfit.Available)
	type user struct {
		pod  *corev1.Pod
		uses resource.Quantity
	}
	var users []user
	for _, pod := range podsOn(c.Question, node.Name) {
		uses := *resource.NewQuantity(1, resource.DecimalSI)
		if misfit.Filter == cluster.FilterResources {
			uses = c.Cluster.Nodes.RequestOf(pod, misfit.Resource)
		}
		if owner := metav1.GetControllerOfNoCopy(pod); uses.Sign() > 0 && (owner == nil || owner.Kind != "DaemonSet") {
			users = append(users, user{pod, uses})
		}
	}
	slices.SortStableFunc(users, func(a, b user) int {
		return cmp.Or(
			cmp.Compare(ptr.Deref(a.pod.Spec.Priority, 0), ptr.Deref(b.pod.Spec.Priority, 0)),
			b.uses.Cmp(a.uses), b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time),
		)
	})
	var leaving []*corev1.Pod
	if i := slices.IndexFunc(users, func(u user) bool { return u.uses.Cmp(needs) >= 0 }); i >= 0 {
		leaving = []*corev1.Pod{users[i].pod}
	} else {
		for _, u := range users {
			if needs.Sign() <= 0 {
				break
			}
			needs.Sub(u.uses)
			leaving = append(leaving, u.pod)
		}
		if needs.Sign() > 0 {
			return measure{}, false
		}
	}
	if len(leaving) == 0 {
		return measure{}, false
	}
	return c.podsLeave(node, leaving), true
}

// podsLeave returns that pods leave a node. Those that nobody makes again can be deleted;
// others come back, perhaps to the same node.
func (c *Case) podsLeave(node *corev1.Node, pods []*corev1.Pod) measure {
	m := measure{actor: api.ActorAdmin}
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, c.withPriority(pod))
		m.objects = append(m.objects, whatif.NewEdit(api.RefTo(api.KindPod, pod), "remove", "", nil))
		if metav1.GetControllerOfNoCopy(pod) != nil {
			m.actor, m.silent = api.ActorNobody, true
		}
	}
	m.text = "delete pod " + english.JoinAnd(shortList(names))
	if m.silent {
		m.text = fmt.Sprintf("wait until node %s no longer runs pod %s", node.Name, english.JoinAnd(shortList(names)))
	}
	return m
}

// withPriority names a pod with its priority, if that says something.
func (c *Case) withPriority(pod *corev1.Pod) string {
	name, own := pod.Namespace+"/"+pod.Name, int32(0)
	if c.Pod != nil {
		own = ptr.Deref(c.Pod.Spec.Priority, 0)
	}
	if priority := ptr.Deref(pod.Spec.Priority, 0); priority != own {
		name += fmt.Sprintf(", priority %d", priority)
	}
	return name
}

// release returns that claims are released: their pods are done, or deleted.
func (c *Case) release(holders []*fact) measure {
	m := measure{actor: api.ActorNobody, silent: true}
	names := make([]string, 0, len(holders))
	lower := false
	for _, f := range holders {
		claim := f.holder
		name := claim.Namespace + "/" + claim.Name
		var users []string
		for _, pod := range lifecycle.PodsUsing(c.Cluster.Snapshot, claim) {
			users = append(users, c.withPriority(pod))
			own := int32(0)
			if c.Pod != nil {
				own = ptr.Deref(c.Pod.Spec.Priority, 0)
			}
			lower = lower || ptr.Deref(pod.Spec.Priority, 0) < own
		}
		if len(users) > 0 {
			name += " (used by pod " + english.Sample(users, 2) + ")"
		}
		names = append(names, name)
		m.objects = append(m.objects, whatif.NewEdit(api.RefTo(api.KindClaim, claim), "remove", "/status/allocation", nil))
	}
	m.text = fmt.Sprintf("wait until claim %s is released", names[0])
	if len(names) > 1 {
		m.text = fmt.Sprintf("wait until %d claims are released: %s", len(names), english.Sample(names, 4))
	}
	if lower {
		m.text += "; devices are not preempted, whatever the priority"
	}
	return m
}

// completed takes a pool for complete with the slices that there are.
func completed(pool *cluster.Pool) change {
	found, wanted := len(pool.Slices), english.Count(int(pool.Expected), "slice")
	text := fmt.Sprintf("driver %s publishes the whole of pool %s, not only %d of %s", pool.Driver, pool.Name, found, wanted)
	if int64(found) > pool.Expected {
		text = fmt.Sprintf("driver %s publishes %s for pool %s, as its slices say, not %d", pool.Driver, wanted, pool.Name, found)
	}
	c := change{actor: api.ActorAdmin, silent: true, text: text + ": see the log of its plugin"}
	if node := pool.Slices[0].Spec.NodeName; node != nil {
		c.text += " on node " + *node
	}
	for _, slice := range pool.Slices {
		c.objects = append(c.objects, whatif.NewEdit(api.Ref("ResourceSlice", "", slice.Name), "replace", "/spec/pool/resourceSliceCount", len(pool.Slices)))
	}
	return c
}

// repaired lets a driver take a taint from the devices of the node: it has set the taint
// for a reason, which an administrator finds out.
func (s *Scenario) repaired(f *fact) measure {
	m := measure{actor: api.ActorAdmin, silent: true}
	var names []string
	for _, slice := range s.whole.Cluster.Snapshot.Slices {
		if slice.Spec.Driver != f.tainted.ID.Driver {
			continue
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			at := slices.IndexFunc(d.Taints, func(t resourceapi.DeviceTaint) bool {
				return t.Key == f.taint.Key && t.Value == f.taint.Value && t.Effect == f.taint.Effect
			})
			if at >= 0 && s.has(slice, d.Name) {
				names = append(names, d.Name)
				m.objects = append(m.objects, whatif.NewEdit(api.Ref("ResourceSlice", "", slice.Name), "remove", fmt.Sprintf("/spec/devices/%d/taints/%d", i, at), nil))
			}
		}
	}
	m.text = fmt.Sprintf("repair %s, or find out why driver %s has set the taint %s%s: it removes it then",
		english.Sample(names, 4), f.tainted.ID.Driver, f.taint, eligibility.SinceText(f.taint.TimeAdded))
	return m
}

// has reports whether the node can reach a device of a slice.
func (s *Scenario) has(slice *resourceapi.ResourceSlice, device string) bool {
	id := cluster.DeviceID{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device}
	return slices.ContainsFunc(s.whole.Reach.Pools[s.node.Name], func(pool *cluster.NodePool) bool {
		return slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool { return d.ID == id && d.Slice.Name == slice.Name })
	})
}

// tolerate adds a toleration to the requests that the taint keeps from a
// device.
func (s *Scenario) tolerate(f *fact) change {
	c := change{
		actor: api.ActorUser, loss: lossTolerance,
		text: fmt.Sprintf("tolerate the device taint %s if the workload can use such devices", f.taint),
	}
	if s.whole.Cluster.Taints.Rule(f.tainted, f.taint) == nil {
		c.loss = lossBroken
		c.text = fmt.Sprintf("tolerate the device taint %s, and run on broken hardware if driver %s has set it for a fault", f.taint, f.tainted.ID.Driver)
	}
	for _, at := range intolerant(s.claims, f.taint) {
		// Nobody can put a toleration into the claim for extended resources.
		if s.extended(at.claim) || !s.mayUse(at, f.tainted) {
			continue
		}
		toleration, path := tolerationOf(f.taint), at.pointer()+"/tolerations"
		if len(*at.in(s.claims).tolerations) == 0 {
			c.claims = append(c.claims, claimEdit{at.claim, "add", path, []resourceapi.DeviceToleration{toleration}})
		} else {
			c.claims = append(c.claims, claimEdit{at.claim, "add", path + "/-", toleration})
		}
	}
	return c
}
