// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/list"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
)

// changer makes the changes that were confirmed on the dashboard.
type changer struct {
	clients collect.Clients
	// topFlags are kubectl's flags that select the cluster.
	flags []string
}

// CheckTaint fails if a text is no taint.
func (*changer) CheckTaint(text string) error {
	_, err := (&list.RuleFlags{All: true}).Rule(text)
	return err
}

// Plan says what a change does. Nothing is sent to the server.
func (c *changer) Plan(ctx context.Context, snap *snapshot.Snapshot, change tui.Change) (*tui.Plan, error) {
	switch change.Kind {
	case tui.AddTaint:
		return c.taint(ctx, snap, change)
	case tui.RemoveTaint:
		return c.untaint(ctx, snap, change.Name)
	case tui.Uncordon:
		return c.uncordon(ctx, snap, change.Name)
	case tui.DeleteClaim:
		return c.deleteClaim(snap, change.Namespace, change.Name)
	default:
		return nil, fmt.Errorf("%s: there is no such change", change)
	}
}

// command returns a command for the same cluster: a verb, and flags and names.
func (c *changer) command(verb string, words ...string) string {
	return strings.Join(slices.Concat([]string{verb}, words, c.flags), " ")
}

func (c *changer) taint(ctx context.Context, snap *snapshot.Snapshot, change tui.Change) (*tui.Plan, error) {
	flags := list.RuleFlags{Driver: change.Driver, Pool: change.Pool, Device: change.Device}
	rule, err := flags.Rule(change.Taint)
	if err != nil {
		return nil, err
	}
	words := []string{"--driver", shell.Quote(change.Driver), "--pool", shell.Quote(change.Pool)}
	if change.Device != "" {
		words = append(words, "--device", shell.Quote(change.Device))
	}
	named, err := freeName(snap, rule)
	if err != nil {
		return nil, err
	}
	if named {
		words = append(words, "--name", shell.Quote(rule.Name))
	}
	var effects bytes.Buffer
	warning, err := list.PreviewRule(ctx, &effects, snap, rule)
	if err != nil {
		return nil, err
	}
	return &tui.Plan{
		Command: c.command("kubectl dra taints add", append(words, shell.Quote(change.Taint))...), Effects: effects.String(), Warning: warning,
		Do: func(ctx context.Context) (string, error) {
			rules, err := list.RulesOf(c.clients)
			if err == nil {
				_, err = rules.Create(ctx, rule)
			}
			return fmt.Sprintf("DeviceTaintRule %s added", rule.Name), err
		},
	}, nil
}

// freeName gives the rule a name that no other has, and reports whether that took another
// one than the usual. It fails if there is a rule that says the same.
func freeName(snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (named bool, err error) {
	taken := map[string]bool{}
	for _, other := range snap.TaintRules {
		taken[other.Name] = true
		a, b := other.Spec.Taint, rule.Spec.Taint
		if a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && equality.Semantic.DeepEqual(other.Spec.DeviceSelector, rule.Spec.DeviceSelector) {
			return false, fmt.Errorf("taint devices with %s: DeviceTaintRule %s does that already", b.String(), other.Name)
		}
	}
	usual := rule.Name
	for i := 2; taken[rule.Name]; i++ {
		rule.Name = fmt.Sprintf("%s-%d", usual, i)
	}
	return rule.Name != usual, nil
}

func (c *changer) untaint(ctx context.Context, snap *snapshot.Snapshot, name string) (*tui.Plan, error) {
	at := slices.IndexFunc(snap.TaintRules, func(rule *resourceapi.DeviceTaintRule) bool { return rule.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("remove DeviceTaintRule %s: it is gone", name)
	}
	rule := snap.TaintRules[at]
	effects, err := withoutRule(ctx, snap, rule)
	if err != nil {
		return nil, err
	}
	return &tui.Plan{
		Command: c.command("kubectl dra taints remove", shell.Quote(name)), Effects: effects,
		Do: func(ctx context.Context) (string, error) {
			rules, err := list.RulesOf(c.clients)
			if err == nil {
				err = staleChange("remove DeviceTaintRule "+name, rules.Delete(ctx, rule))
			}
			return fmt.Sprintf("DeviceTaintRule %s removed", name), err
		},
	}, nil
}

func (c *changer) uncordon(ctx context.Context, snap *snapshot.Snapshot, name string) (*tui.Plan, error) {
	node := snap.Node(name)
	switch {
	case node == nil:
		return nil, fmt.Errorf("uncordon node %s: it is gone", name)
	case !node.Spec.Unschedulable:
		return nil, fmt.Errorf("uncordon node %s: it is not cordoned", name)
	}
	effects, err := uncordoned(ctx, snap, name)
	if err != nil {
		return nil, err
	}
	// With another UID, it is another node of the same name, and the server refuses.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID}, "spec": map[string]any{"unschedulable": nil}})
	if err != nil {
		return nil, fmt.Errorf("uncordon node %s: %w", name, err)
	}
	return &tui.Plan{
		Command: c.command("kubectl uncordon", shell.Quote(name)), Effects: effects,
		Do: func(ctx context.Context) (string, error) {
			_, err := c.clients.Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: cli.FieldManager})
			if err != nil {
				err = staleChange("uncordon node "+name, fmt.Errorf("uncordon node %s: %w", name, err))
			}
			return fmt.Sprintf("node %s uncordoned", name), err
		},
	}, nil
}

func (c *changer) deleteClaim(snap *snapshot.Snapshot, namespace, name string) (*tui.Plan, error) {
	claim := snap.Claim(namespace, name)
	switch {
	case claim == nil:
		return nil, fmt.Errorf("delete ResourceClaim %s/%s: it is gone", namespace, name)
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("delete ResourceClaim %s/%s: it is being deleted already, and goes when no pod uses it any more", namespace, name)
	}
	effects, warning := withoutClaim(snap, claim)
	return &tui.Plan{
		Command: c.command("kubectl delete", shell.KubectlObjects("resourceclaim", namespace, name), "--wait=false"), Effects: effects, Warning: warning,
		Do: func(ctx context.Context) (string, error) {
			kind := fmt.Sprintf("ResourceClaim %s/%s", namespace, name)
			mapping, err := c.clients.Mapper.RESTMapping(schema.GroupKind{Group: resourceapi.GroupName, Kind: "ResourceClaim"})
			if err != nil {
				return "", fmt.Errorf("delete %s: find ResourceClaims at %s: %w", kind, c.clients.Address(), err)
			}
			options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))}
			if err := c.clients.Dynamic.Resource(mapping.Resource).Namespace(namespace).Delete(ctx, name, options); err != nil {
				return "", staleChange("delete "+kind, fmt.Errorf("delete %s: %w", kind, err))
			}
			if len(claim.Status.ReservedFor) > 0 {
				return kind + " marked for deletion", nil
			}
			return kind + " deleted", nil
		},
	}, nil
}

// staleChange turns a server's error that an object is gone, or is another one of the same name,
// into a [tui.StaleError] about the intended change. Others stay.
func staleChange(doing string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &tui.StaleError{Err: fmt.Errorf("%s: it is gone", doing)}
	case apierrors.IsConflict(err):
		return &tui.StaleError{Err: fmt.Errorf("%s: it was deleted meanwhile, and this is another one of the same name", doing)}
	default:
		return err
	}
}

// maxEffectNames limits how many names are worth their room.
const maxEffectNames = 8

// withoutRule says what becomes of devices and pods when a rule is removed.
func withoutRule(ctx context.Context, snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (string, error) {
	c := cluster.New(snap)
	lines := []string{fmt.Sprintf("No device has the taint %s of DeviceTaintRule %s any more.", rule.Spec.Taint.String(), rule.Name)}
	for _, taint := range inventory.New(c).Taints() {
		if taint.Rule != rule.Name {
			continue
		}
		lines[0] = fmt.Sprintf("The taint %s is taken from %s (%s):", inventory.TaintText(&taint), english.Count(len(taint.Devices), "device"), taint.Selector)
		lines = append(lines, "  "+english.Sample(taint.Devices, maxEffectNames))
		var due []string
		for _, pod := range taint.Pods {
			if pod.Evicted {
				due = append(due, pod.Namespace+"/"+pod.Name)
			}
		}
		if len(due) > 0 {
			lines = append(lines, fmt.Sprintf("%s that it evicts and that still run stay: %s", english.Count(len(due), "pod"), english.Sample(due, maxEffectNames)))
		}
	}
	return impactText(ctx, snap, lines, forecast.RemoveTaint(rule.Name))
}

// uncordoned says what becomes of a node and of pods that wait.
func uncordoned(ctx context.Context, snap *snapshot.Snapshot, node string) (string, error) {
	c := cluster.New(snap)
	lines := []string{fmt.Sprintf("Pods can be placed on node %s again.", node)}
	have := inventory.New(c)
	for _, closed := range have.ClosedNodes(have.Usage()) {
		if closed.Name != node {
			continue
		}
		lines = append(lines, fmt.Sprintf("%d of its %s are free.", closed.Devices.Free, english.Count(closed.Devices.Total, "device")))
		if closed.State != "" && closed.State != inventory.NodeReady {
			lines = append(lines, fmt.Sprintf("It is %s: no pod starts there before it is ready.", closed.State))
		}
	}
	return impactText(ctx, snap, lines, forecast.Uncordon(node))
}

// impactText adds which of the pods that wait would fit then.
func impactText(ctx context.Context, snap *snapshot.Snapshot, lines []string, change forecast.Change) (string, error) {
	found, err := forecast.Assess(ctx, snap, change)
	if err != nil {
		return "", fmt.Errorf("decide where pods go: %w", err)
	}
	for effect, text := range map[api.ImpactEffect]string{api.EffectFitGained: "would fit then", api.EffectFitLost: "would not fit any more"} {
		var pods []string
		for i := range found.Pods {
			if pod := &found.Pods[i]; pod.Effect == effect {
				pods = append(pods, pod.Namespace+"/"+pod.Name)
			}
		}
		if len(pods) > 0 {
			lines = append(lines, fmt.Sprintf("%s %s: %s", english.Count(len(pods), "waiting pod"), text, english.Sample(pods, maxEffectNames)))
		}
	}
	if found.Counts.FitGained == 0 {
		lines = append(lines, "No pod that waits now would fit because of it.")
	}
	return strings.Join(lines, "\n"), nil
}

// withoutClaim says what becomes of the pods of a claim that is deleted, and of its devices.
func withoutClaim(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) (effects, warning string) {
	var lines, running, waiting []string
	facts := cluster.New(snap)
	for _, pod := range snap.Pods {
		uses := slices.ContainsFunc(facts.Claims.OfPod(pod), func(pc cluster.PodClaim) bool {
			return pc.Claim != nil && pc.Claim.Namespace == claim.Namespace && pc.Claim.Name == claim.Name
		})
		switch {
		case !uses || snapshot.Finished(pod):
		case pod.Status.Phase == corev1.PodRunning:
			running = append(running, pod.Name)
		default:
			waiting = append(waiting, pod.Name)
		}
	}
	others := len(claim.Status.ReservedFor) - len(running)
	devices := 0
	if claim.Status.Allocation != nil {
		devices = len(claim.Status.Allocation.Devices.Results)
	}
	switch {
	case claim.Status.Allocation == nil:
		lines = append(lines, "The claim has no devices: it is gone at once.")
	case len(claim.Status.ReservedFor) == 0:
		lines = append(lines, fmt.Sprintf("No pod has reserved the claim: it is gone at once, and its %s free.", areDevices(devices)))
	default:
		lines = append(lines, fmt.Sprintf("The claim is reserved by %s: it is marked for deletion, and keeps its %s until %s.", reservers(claim), english.Count(devices, "device"),
			map[bool]string{true: "that ends", false: "all of them end"}[len(claim.Status.ReservedFor) == 1]))
	}
	switch len(running) {
	case 0:
	case 1:
		warning = fmt.Sprintf("Pod %s is running and uses it: it keeps the devices until it ends. No other pod can use the claim from then on.", running[0])
	default:
		warning = fmt.Sprintf("%d pods are running and use it: %s. They keep the devices until they end. No other pod can use the claim from then on.", len(running), english.Sample(running, maxEffectNames))
	}
	if len(waiting) > 0 {
		lines = append(lines, fmt.Sprintf("%s that uses it and does not run cannot start without it: %s", english.Count(len(waiting), "pod"), english.Sample(waiting, maxEffectNames)))
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == api.KindPod {
		lines = append(lines, fmt.Sprintf("It was generated for pod %s. It is not always generated again while the pod exists: delete the pod, too, to get a new one.", owner.Name))
	}
	if gap := snap.Gap(snapshot.ResourcePods); gap != nil && others > 0 {
		lines = append(lines, "Not all pods that use it are known: "+gap.Reason)
	}
	return strings.Join(lines, "\n"), warning
}

func areDevices(n int) string {
	if n == 1 {
		return "device is"
	}
	return fmt.Sprintf("%d devices are", n)
}

// reservers names the consumers that a claim is reserved for.
func reservers(claim *resourceapi.ResourceClaim) string {
	names := make([]string, 0, len(claim.Status.ReservedFor))
	for _, consumer := range claim.Status.ReservedFor {
		kind := strings.TrimSuffix(consumer.Resource, "s")
		names = append(names, kind+" "+consumer.Name)
	}
	return english.Sample(names, maxEffectNames)
}
