// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ProbeObjects returns a claim and a pod with fields that feature gates and webhooks are
// known to drop. They have a made-up namespace, and are never created.
func ProbeObjects() []*unstructured.Unstructured {
	const name, derived = "kubectl-dra-probe", "derived/probe"
	metadata := map[string]any{"generateName": name + "-"}
	claim := map[string]any{
		"apiVersion": resourceapi.SchemeGroupVersion.String(), "kind": api.KindClaim, "metadata": metadata,
		"spec": map[string]any{"devices": map[string]any{
			"requests": []any{map[string]any{"name": "devices", "exactly": map[string]any{
				"deviceClassName": name, "allocationMode": "ExactCount", "count": int64(1),
				"tolerations":       []any{map[string]any{"key": "example.com/probe", "operator": "Exists"}},
				"capacity":          map[string]any{"requests": map[string]any{"memory": "1"}},
				"derivedAttributes": []any{map[string]any{"name": derived, "expression": "device.driver"}},
			}}},
			// Derived attributes have to be used.
			"constraints": []any{map[string]any{"matchAttribute": derived}},
		}},
	}
	pod := map[string]any{
		"apiVersion": "v1", "kind": api.KindPod, "metadata": metadata,
		"spec": map[string]any{
			"schedulingGates": []any{map[string]any{"name": "example.com/probe"}},
			"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			"resourceClaims":  []any{map[string]any{"name": "devices", "resourceClaimTemplateName": name}},
			"containers": []any{map[string]any{
				"name": "main", "image": "registry.k8s.io/pause",
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
				"resources":       map[string]any{"claims": []any{map[string]any{"name": "devices", "request": "devices"}}},
			}},
		},
	}
	return []*unstructured.Unstructured{{Object: claim}, {Object: pod}}
}

func probeChecks() []Check {
	return []Check{{
		Code: "DRA1006", Title: "field that would be dropped", Severity: api.SeverityWarning,
		About:  "With --probe, a claim and a pod are sent to the API server as a dry run, which stores nothing. A field that does not come back is dropped without an error: by the API server, because its release does not know it or a feature gate is off, or by a webhook. If the object is refused, others like it are, too.",
		Advice: "Turn on the feature gate, or correct the webhook.",
		Flag:   "probe",
		given:  func(opts *Options) bool { return len(opts.Probes) > 0 },
		find:   findProbed,
	}}
}

func findProbed(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, probe := range in.opts.Probes {
		kind := probe.Sent.GetKind()
		switch {
		case probe.Unknown != "":
			found = append(found, api.Finding{Severity: api.SeverityUnknown, Message: "not checked: " + probe.Unknown})
			continue
		case probe.Stored == nil:
			found = append(found, api.Finding{
				Message:  fmt.Sprintf("a %s of a dry run is refused: %s", kind, probe.Refused),
				Evidence: []api.Evidence{{Object: api.Ref(kind, "", ""), Path: "spec", Found: probe.Refused}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "the message names the admission plugin, policy or webhook that refuses it"},
			})
			continue
		}
		gates := snapshot.GatedFields(&resourceapi.ResourceClaim{})
		for _, path := range missing(probe.Sent.Object["spec"], probe.Stored.Object["spec"], "spec") {
			f := api.Finding{
				Message:  fmt.Sprintf("%s of a %s would be dropped or changed", path, kind),
				Evidence: []api.Evidence{{Object: api.Ref(kind, "", ""), Path: path, Found: "not as it was sent"}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "find the webhook that changes it (kubectl get mutatingwebhookconfigurations), or update the API server"},
			}
			if gate := gates.Of(path); kind == api.KindClaim && gate != "" && !in.cluster.Snapshot.Gate(gate).Enabled {
				f.Severity = api.SeverityInfo
				f.Message = fmt.Sprintf("%s of a %s would be dropped: the feature gate %s is off", path, kind, gate)
				f.Remedy.Text = "turn on " + gate + " if claims are to use it"
			}
			found = append(found, f)
		}
	}
	return found, nil
}

// missing lists the paths that were sent and not stored. Added fields do not matter.
func missing(sent, stored any, path string) []string {
	switch sent := sent.(type) {
	case map[string]any:
		has, ok := stored.(map[string]any)
		if !ok {
			return []string{path}
		}
		var paths []string
		for _, key := range slices.Sorted(maps.Keys(sent)) {
			paths = append(paths, missing(sent[key], has[key], path+"."+key)...)
		}
		return paths
	case []any:
		has, ok := stored.([]any)
		if !ok || len(has) < len(sent) {
			return []string{path}
		}
		var paths []string
		for i := range sent {
			paths = append(paths, missing(sent[i], has[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return paths
	default:
		if !reflect.DeepEqual(sent, stored) {
			return []string{path}
		}
		return nil
	}
}
