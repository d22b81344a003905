// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// readKubeletEvent describes a warning of the kubelet. The messages are from
// pkg/kubelet/cm/dra (1.30 to 1.37).
func readKubeletEvent(snap *snapshot.Snapshot, f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, event *corev1.Event) {
	node := pod.Spec.NodeName
	message := saidOnce(event.Message)
	if devices := cdiDevices(message); len(devices) > 0 {
		blameCDI(f, pod, claims, devices)
		return
	}
	if event.Reason != reasonPrepare {
		before := ""
		if afterPreparation(event) {
			before = "the devices are prepared, but "
		}
		f.Reason = fmt.Sprintf("%sthe last warning about the pod is %s: %s%s", before, event.Reason, message, often(snap, event))
		return
	}
	message = unwrapped(message)
	if driver, ok := unregisteredDriver(message); ok {
		f.Reason = fmt.Sprintf("DRA driver %s is not registered with the kubelet of node %s%s", driver, node, often(snap, event))
		blameDriver(snap, f, driver, node)
		return
	}
	if call, ok := prepareCall(message); ok {
		noAnswer(snap, f, pod, claims, event, call)
		return
	}
	if claim, words, ok := prepareFailure(message); ok {
		if domainFailure(snap, f, pod, claims, claim, words, event) || configRejected(snap, f, pod, claims, claim, words, event) {
			return
		}
		f.Reason = fmt.Sprintf("%s cannot prepare claim %s on node %s: %s%s", driverOf(claims, claim), claim, node, words, often(snap, event))
		ownClaim(f, pod, claims, claim)
		f.Step(api.ActorAdmin, "check the log of %s on node %s; the kubelet retries", driverOf(claims, claim), node)
		driverPods(snap, f, calledFor(claims, claim), node)
		return
	}
	if name, ok := between(message, "old ResourceClaim with same name ", " and different UID "); ok {
		f.Reason = fmt.Sprintf("the kubelet of node %s still has an earlier claim %s, of a pod that was deleted by force%s", node, name, often(snap, event))
		if uid, ok := between(message, " and different UID ", " still exists"); ok {
			if claim := snap.Claim(pod.Namespace, name); claim != nil {
				f.AddEvidence(api.RefTo(api.KindClaim, claim), "metadata.uid", string(claim.UID), uid+", which the kubelet still has")
			}
		}
		f.Step(api.ActorAdmin, "the kubelet forgets it after the driver has unprepared its devices: check that %s runs on node %s", driverOf(claims, name), node)
		return
	}
	f.Reason = fmt.Sprintf("the kubelet of node %s cannot prepare the devices: %s%s", node, message, often(snap, event))
	f.Step(api.ActorAdmin, "check the log of the kubelet on node %s; it retries", node)
}

// ownClaim adds the step for a claim that a driver refuses because other pods use it, too.
func ownClaim(f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, name string) {
	for i := range claims {
		pc := &claims[i]
		if pc.Claim == nil || pc.Claim.Name != name || len(pc.Claim.Status.ReservedFor) < 2 {
			continue
		}
		f.Step(api.ActorUser, "give pod %s a claim of its own, unless %s lets %d pods share one: create a ResourceClaimTemplate with the spec of claim %s, and name it with resourceClaimTemplateName in place of resourceClaimName (spec.resourceClaims, %s)",
			pod.Name, driverOf(claims, name), len(pc.Claim.Status.ReservedFor), name, pc.Entry)
		f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "status.reservedFor", english.Count(len(pc.Claim.Status.ReservedFor), "pod"), "")
	}
}

// unregisteredDriver returns the driver that the kubelet does not know.
func unregisteredDriver(message string) (string, bool) {
	for _, form := range [][2]string{
		{"DRA driver ", " is not registered"},
		{"plugin name ", " not found in the list of registered DRA plugins"},
		{"plugin ", " not found in the list of registered DRA plugins"},
	} {
		if driver, ok := between(message, form[0], form[1]); ok {
			return driver, true
		}
	}
	return "", false
}

// prepareFailure returns the claim that a driver failed to prepare, and its error.
func prepareFailure(message string) (claim, words string, ok bool) {
	for _, before := range []string{"NodePrepareResources failed for ResourceClaim ", "NodePrepareResources failed for claim "} {
		if _, rest, found := strings.Cut(message, before); found {
			claim, words, ok = strings.Cut(rest, ": ")
			_, name, qualified := strings.Cut(claim, "/")
			if qualified {
				claim = name
			}
			return claim, words, ok
		}
	}
	return "", "", false
}

// driverOf names the driver of a claim, if it has only one.
func driverOf(claims []cluster.PodClaim, name string) string {
	driver := ""
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Name != name || claim.Status.Allocation == nil {
			continue
		}
		for j := range claim.Status.Allocation.Devices.Results {
			next := claim.Status.Allocation.Devices.Results[j].Driver
			if driver != "" && next != driver {
				return "the driver"
			}
			driver = next
		}
	}
	if driver == "" {
		return "the driver"
	}
	return "driver " + driver
}

// blameDriver adds the steps for a driver that is not registered.
func blameDriver(snap *snapshot.Snapshot, f *Finding, driver, node string) {
	if !driverPods(snap, f, []string{driver}, node) {
		f.Step(api.ActorAdmin, "check that the pod of driver %s runs on node %s; it registers when it starts, with a socket in the directory plugins_registry of the kubelet", driver, node)
	}
	addAbsence(snap, f, driver, node)
	object, found := idleKubelet(snap, node)
	if found == "" {
		return
	}
	f.AddEvidence(object, "status.nodeInfo.kubeletVersion", found, "v1.34.2 or newer")
	f.Step(api.ActorAdmin, "kubelet %s loses a driver that it has not called for 30 minutes: restart the kubelet of node %s, and upgrade it to v1.34.2 or newer", found, node)
}
