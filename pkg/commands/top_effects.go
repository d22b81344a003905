// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
