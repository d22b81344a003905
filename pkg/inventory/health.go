// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// maxPods limits how many pods a holder names.
const maxPods = 10

// StatusOf picks what people look for in what the driver says about an allocated
// device in the status of its claim; nil if it says nothing.
func StatusOf(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *api.DeviceStatus {
	status := cluster.DeviceStatus(claim, result)
	if status == nil {
		return nil
	}
	out := &api.DeviceStatus{Conditions: status.Conditions}
	for _, c := range cluster.OddConditions(claim, result) {
		out.Odd = append(out.Odd, c.Type)
	}
	if status.Data != nil {
		out.Data = plainJSON(status.Data.Raw)
	}
	if network := status.NetworkData; network != nil {
		out.Interface, out.IPs, out.HardwareAddress = network.InterfaceName, network.IPs, network.HardwareAddress
	}
	return out
}

// plainJSON returns a JSON text with its strings written as everywhere in the output:
// readers of YAML do not understand all escapes of JSON. One with a key that is too long
// for them becomes a string. It is nil for what is not JSON.
func plainJSON(raw []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if !json.Valid(raw) || decoder.Decode(&value) != nil {
		return nil
	}
	plain, err := json.Marshal(value)
	if err == nil && hasLongKey(value) {
		plain, err = json.Marshal(string(plain))
	}
	if err != nil {
		return nil
	}
	return plain
}

// maxKey limits how long a key may be, in bytes. Readers of YAML take at most 1,024
// characters before a colon, and one byte may be written as six.
const maxKey = 160

// hasLongKey reports whether there is a longer key in a JSON value.
func hasLongKey(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			if len(key) > maxKey || hasLongKey(element) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasLongKey)
	}
	return false
}

// ConditionText returns "Ready=False: NoCarrier: the cable is unplugged".
func ConditionText(c *metav1.Condition) string {
	text := c.Type + "=" + string(c.Status)
	for _, part := range []string{c.Reason, c.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// healthSaid returns the worst that kubelets say about a device that a claim has. A kubelet
// leaves what it said last in the status of a pod that finished, and it says nothing about
// a device that the pod only waits for.
func healthSaid(facts *cluster.Cluster, holder cluster.Holder) (health, message string) {
	var running []*corev1.Pod
	for _, pod := range facts.Claims.Users(holder.Claim.Namespace, holder.Claim.Name) {
		if !snapshot.Finished(pod) && uses(facts, pod, holder.Claim) {
			running = append(running, pod)
		}
	}
	for _, h := range facts.Claims.HealthOf(holder, running) {
		if worse(string(h.Status), health) {
			health, message = string(h.Status), h.Message
		}
	}
	return health, message
}

// healthOf returns the worst that kubelets say about a device.
func healthOf(facts *cluster.Cluster, d *cluster.Device) (health, message string) {
	for _, holder := range facts.Usage.Holders(d.ID) {
		if said, why := healthSaid(facts, holder); worse(said, health) {
			health, message = said, why
		}
	}
	return health, message
}

// worse reports whether a state of health is worse than another; the empty one is the best.
func worse(a, b string) bool {
	order := []string{"", string(corev1.ResourceHealthStatusHealthy), string(corev1.ResourceHealthStatusUnknown), string(corev1.ResourceHealthStatusUnhealthy)}
	return slices.Index(order, a) > slices.Index(order, b)
}
