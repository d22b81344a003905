// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
)

// refusals tries what makes the scheduler or the API server look at the claims
// at all.
func (r *remedies) refusals(ctx context.Context) error {
	if r.out.Verdict != Error || len(r.out.Nodes) == 0 {
		return nil
	}
	claims := r.waiting()
	switch r.out.Nodes[0].Code { //nolint:exhaustive // for the others see below
	case ClassNotFound:
		names := make([]string, 0, len(r.snap.Classes))
		for _, class := range r.snap.Classes {
			names = append(names, class.Name)
		}
		for _, at := range places(claims) {
			if wanted := *at.in(claims).class; r.snap.Class(wanted) == nil {
				meant := nearestFirst(wanted, names)[:min(len(names), maxClasses)]
				if near := nearest(wanted, names); near != "" {
					meant = []string{near}
				}
				for _, name := range meant {
					if _, err := r.propose(ctx, r.withClass(at, name, costCorrect)); err != nil {
						return err
					}
				}
			}
		}
	case SelectorError:
		return r.guarded(ctx)
	case AdminAccessDenied:
		return r.adminAccess(ctx)
	case FeatureDisabled:
		for _, gate := range []string{"DRAPrioritizedList", "DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes"} {
			if err := r.gateOn(ctx, gate); err != nil {
				return err
			}
		}
	}
	return nil
}

// guarded makes selectors that fail false instead.
func (r *remedies) guarded(ctx context.Context) error {
	claims := r.waiting()
	seen := map[string]bool{}
	for _, at := range places(claims) {
		a := at.in(claims)
		if class := r.snap.Class(*a.class); class != nil && !seen[class.Name] {
			seen[class.Name] = true
			for k, selector := range class.Spec.Selectors {
				if guarded, ok := r.guard(ctx, selector); ok {
					name := object("DeviceClass", "", class.Name)
					if _, err := r.propose(ctx, change{
						actor: ActorAdmin, cost: costCorrect, text: fmt.Sprintf("let the selector of class %s be false where it fails now: %s", class.Name, guarded),
						objects: []Edit{newEdit(name, "replace", fmt.Sprintf("/spec/selectors/%d/cel/expression", k), guarded)},
					}); err != nil {
						return err
					}
				}
			}
		}
		for k, selector := range *a.selectors {
			if guarded, ok := r.guard(ctx, selector); ok {
				if _, err := r.propose(ctx, change{
					actor: ActorUser, cost: costCorrect, text: fmt.Sprintf("let the selector of request %s be false where it fails now: %s", a.name, guarded),
					claims: []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/selectors/%d/cel/expression", at.pointer(), k), guarded}},
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// guard rewrites a selector so that no device of the cluster makes it fail for
// what it lacks.
func (r *remedies) guard(ctx context.Context, from resourceapi.DeviceSelector) (string, bool) {
	if from.CEL == nil {
		return "", false
	}
	compiled := r.selectors.Compile(from.CEL.Expression)
	var missing []selector.Reading
	devices := r.site.alloc.Devices()
	for i := range devices {
		for _, lacks := range r.selectors.Evaluate(ctx, compiled, devices[i].ID.Driver, devices[i].Device).Detail(ctx).Missing {
			if !slices.Contains(missing, lacks) {
				missing = append(missing, lacks)
			}
		}
	}
	if len(missing) == 0 {
		return "", false
	}
	return r.selectors.Guard(compiled, missing)
}

// adminAccess asks for the label of the namespace, or does without.
func (r *remedies) adminAccess(ctx context.Context) error {
	var without []claimEdit
	namespace := ""
	claims := r.waiting()
	for _, at := range places(claims) {
		exact := claims[at.claim].Spec.Devices.Requests[at.request].Exactly
		if exact != nil && ptr.Deref(exact.AdminAccess, false) {
			without = append(without, claimEdit{at.claim, "remove", at.pointer() + "/adminAccess", nil})
			namespace = claims[at.claim].Namespace
		}
	}
	if _, err := r.propose(ctx, change{actor: ActorUser, cost: costGiveUp, text: "do without admin access", claims: without}); err != nil {
		return err
	}
	n := r.snap.Namespace(namespace)
	if n == nil {
		return nil
	}
	label := newEdit(object("Namespace", "", namespace), "add", "/metadata/labels/"+pointerToken(resourceapi.DRAAdminNamespaceLabelKey), "true")
	if len(n.Labels) == 0 {
		label = newEdit(label.Object, "add", "/metadata/labels", map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"})
	}
	_, err := r.propose(ctx, change{
		actor: ActorAdmin, cost: costAccept, objects: []Edit{label},
		text: fmt.Sprintf("label namespace %s with %s=true, if its users may look into devices of others", namespace, resourceapi.DRAAdminNamespaceLabelKey),
	})
	return err
}

func (r *remedies) gateOn(ctx context.Context, gate string) error {
	if r.site.alloc.FeatureEnabled(gate) {
		return nil
	}
	_, err := r.propose(ctx, change{
		actor: ActorAdmin, cost: costAccept, gate: gate,
		text: fmt.Sprintf("turn on the feature gate %s in the whole cluster", gate),
	})
	return err
}

// maxRestrictions bounds the nodes on which the pod's restrictions are tried.
const maxRestrictions = 3

// restrictions tries to let the pod onto nodes that it rules out itself.
func (r *remedies) restrictions(ctx context.Context) error {
	if r.subject.pod == nil {
		return nil
	}
	tried := map[string]bool{}
	for _, u := range r.site.unsuitable {
		if len(tried) == maxRestrictions {
			break
		}
		if len(r.site.pools[u.node.Name]) == 0 {
			continue
		}
		operations, texts, ok := r.welcome(u.node)
		text := strings.Join(texts, "; and ")
		if !ok || tried[text] {
			continue
		}
		tried[text] = true
		c := change{actor: ActorUser, cost: costGiveUp, text: text}
		if c.objects, c.silent = r.podEdits(operations); len(c.objects) == 0 {
			return nil
		}
		if _, err := r.propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// welcome lists the operations on the pod's spec after which a node takes it.
// It is false if the pod cannot do anything about it.
func (r *remedies) welcome(node *corev1.Node) (operations []claimEdit, texts []string, ok bool) {
	pod := r.subject.pod
	if pod == nil {
		return nil, nil, false
	}
	var dropped []string
	tolerations := len(pod.Spec.Tolerations)
	for _, u := range r.misfits(node) {
		switch misfit := u.misfit; {
		case strings.HasPrefix(misfit.Path, "metadata.labels['"):
			key := strings.TrimSuffix(strings.TrimPrefix(misfit.Path, "metadata.labels['"), "']")
			dropped = append(dropped, key)
			operations = append(operations, claimEdit{op: "remove", path: "/nodeSelector/" + pointerToken(key)})
			texts = append(texts, fmt.Sprintf("do not insist on nodes with label %s=%s", key, misfit.Wanted))
		case misfit.Path == "metadata.labels":
			operations = append(operations, claimEdit{op: "remove", path: "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"})
			texts = append(texts, "drop the required node affinity")
		case strings.HasPrefix(misfit.Path, "spec.taints["):
			var at int
			if _, err := fmt.Sscanf(misfit.Path, "spec.taints[%d]", &at); err != nil || at >= len(node.Spec.Taints) {
				return nil, nil, false
			}
			taint := node.Spec.Taints[at]
			toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
			if taint.Value == "" {
				toleration.Operator = corev1.TolerationOpExists
			}
			if tolerations == 0 {
				operations = append(operations, claimEdit{op: "add", path: "/tolerations", value: []corev1.Toleration{toleration}})
			} else {
				operations = append(operations, claimEdit{op: "add", path: "/tolerations/-", value: toleration})
			}
			tolerations++
			texts = append(texts, fmt.Sprintf("tolerate the taint %s of nodes, if the pod may run there", taint.ToString()))
		default:
			return nil, nil, false
		}
	}
	if len(dropped) > 0 && len(dropped) == len(pod.Spec.NodeSelector) {
		operations = slices.DeleteFunc(operations, func(o claimEdit) bool { return strings.HasPrefix(o.path, "/nodeSelector/") })
		operations = append(operations, claimEdit{op: "remove", path: "/nodeSelector"})
	}
	return operations, texts, len(operations) > 0
}

// cluster tries what an administrator can do: end taints, repair pools, turn
// on feature gates.
func (r *remedies) cluster(ctx context.Context) error {
	if r.scene == nil {
		return nil
	}
	for i := range r.scene.facts {
		f := &r.scene.facts[i]
		if len(r.conflict) > 0 && !slices.Contains(r.conflict, i) {
			continue
		}
		var err error
		switch f.kind { //nolint:exhaustive // nobody can do anything about the others
		case factGate:
			err = r.gateOn(ctx, f.gate)
		case factPool:
			err = r.completed(ctx, f.pool)
		case factTaint:
			if kind, _, name := parseObject(f.evidence.Object); kind == "DeviceTaintRule" {
				_, err = r.propose(ctx, change{
					actor: ActorAdmin, cost: costAccept,
					text:    fmt.Sprintf("delete DeviceTaintRule %s, if what it is for is over", name),
					objects: []Edit{newEdit(f.evidence.Object, "remove", "", nil)},
				})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// completed takes a pool for complete with the slices that there are.
func (r *remedies) completed(ctx context.Context, pool *allocator.Pool) error {
	c := change{actor: ActorAdmin, cost: costCorrect, text: fmt.Sprintf("driver %s publishes the whole of pool %s, not only %d of %s", pool.Driver, pool.Name, len(pool.Slices), plural(int(pool.Expected), "slice"))}
	for _, slice := range pool.Slices {
		c.objects = append(c.objects, newEdit(object("ResourceSlice", "", slice.Name), "replace", "/spec/pool/resourceSliceCount", len(pool.Slices)))
	}
	_, err := r.propose(ctx, c)
	return err
}

// maxPairs bounds the holders of which two are tried to be the only ones.
const maxPairs = 12

// freed looks for the fewest claims that would have to give back their
// devices. Those of pods with a low priority come first.
func (r *remedies) freed(ctx context.Context) error {
	if r.scene == nil {
		return nil
	}
	var others, holders []int
	for i := range r.scene.facts {
		if f := &r.scene.facts[i]; f.kind != factHolder || r.own(f.holder) {
			others = append(others, i)
		} else {
			holders = append(holders, i)
		}
	}
	if len(holders) == 0 {
		return nil
	}
	if ok, err := r.scene.fits(ctx, others); err != nil || !ok {
		return err
	}
	priorities := map[int]int32{}
	for _, i := range holders {
		priorities[i] = r.priority(r.scene.facts[i].holder)
	}
	slices.SortStableFunc(holders, func(a, b int) int { return cmp.Compare(priorities[a], priorities[b]) })
	victims, err := r.victims(ctx, others, holders)
	if err != nil || len(victims) == 0 {
		return err
	}
	c := change{actor: ActorNobody, cost: costAccept}
	names := make([]string, 0, len(victims))
	least := int32(0)
	for n, i := range victims {
		claim := r.scene.facts[i].holder
		name := claim.Namespace + "/" + claim.Name
		if users := usersOf(r.snap, claim); len(users) > 0 {
			name += fmt.Sprintf(" (pod %s)", users[0].Name)
		}
		names = append(names, name)
		if n == 0 || priorities[i] > least {
			least = priorities[i]
		}
		c.objects = append(c.objects, newEdit(claimObject(claim), "remove", "/status/allocation", nil))
	}
	c.text = fmt.Sprintf("claim %s gives back its devices", names[0])
	if len(names) > 1 {
		c.text = fmt.Sprintf("%d claims give back their devices: %s", len(names), sample(names, 4))
	}
	if pod := r.subject.pod; pod != nil {
		if own := ptr.Deref(pod.Spec.Priority, 0); own > least {
			c.text += fmt.Sprintf("; the priority of those who have them is %d and that of the pod %d, but devices are never preempted", least, own)
		}
	}
	_, err = r.propose(ctx, c)
	return err
}

// victims chooses claims to be freed, of those sorted by what they matter: one
// if that is enough, else two, else as few as can be found by sparing them one
// after the other.
func (r *remedies) victims(ctx context.Context, others, holders []int) ([]int, error) {
	without := func(freed ...int) (bool, error) {
		holding := slices.Clone(others)
		for _, i := range holders {
			if !slices.Contains(freed, i) {
				holding = append(holding, i)
			}
		}
		return r.scene.fits(ctx, holding)
	}
	for _, i := range holders {
		if ok, err := without(i); err != nil || ok {
			return []int{i}, err
		}
	}
	if len(holders) <= maxPairs {
		for n, i := range holders {
			for _, j := range holders[:n] {
				if ok, err := without(i, j); err != nil || ok {
					return []int{j, i}, err
				}
			}
		}
	}
	freed := slices.Clone(holders)
	for _, i := range slices.Backward(holders) {
		at := slices.Index(freed, i)
		fewer := slices.Delete(slices.Clone(freed), at, at+1)
		ok, err := without(fewer...)
		if err != nil {
			return nil, err
		}
		if ok {
			freed = fewer
		}
	}
	return freed, nil
}

// own says whether a claim is one of the pod's.
func (x *inquiry) own(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(x.subject.claims, func(pc allocator.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Namespace == claim.Namespace && pc.Claim.Name == claim.Name
	})
}

// priority is the highest of the pods that use a claim.
func (r *remedies) priority(claim *resourceapi.ResourceClaim) int32 {
	highest := int32(0)
	for i, pod := range usersOf(r.snap, claim) {
		if priority := ptr.Deref(pod.Spec.Priority, 0); i == 0 || priority > highest {
			highest = priority
		}
	}
	return highest
}
