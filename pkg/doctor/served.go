// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// firstStable is the minor release from which on components use v1 of the group
// resource.k8s.io.
const firstStable = 34

// lastKnown is the newest known minor release.
const lastKnown = 37

const taintRules = "devicetaintrules"

func servedChecks() []Check {
	return []Check{{
		Code: "DRA1007", Title: "API version that is not served", Severity: api.SeverityError,
		About:  "The API server does not serve v1 of resource.k8s.io although its release has it, or not the resource that a feature gate which is on needs. From 1.34 on kube-scheduler, kube-controller-manager and kubelets use v1 and nothing else; DeviceTaintRules are read in v1alpha3 up to 1.35, in v1beta2 by 1.36, and in v1 since. A file does not tell, unless 'kubectl dra snapshot' wrote it.",
		Advice: "Serve the version: --runtime-config of kube-apiserver.",
		find:   findUnserved,
	}}
}

func findUnserved(_ context.Context, in *cluster) ([]api.Finding, error) {
	if in.cluster.Snapshot.Served == nil {
		return nil, nil
	}
	var found []api.Finding
	minor, known := snapshot.MinorVersion(in.cluster.Snapshot.ServerVersion)
	if versions := versionsOf(in.cluster.Snapshot, "resourceclaims"); known && minor >= firstStable && !slices.Contains(versions, "v1") {
		found = append(found, api.Finding{
			Message:  fmt.Sprintf("the API server does not serve v1 of resource.k8s.io, only %s: kube-scheduler and kubelets of 1.%d on use v1", english.JoinAnd(versions), firstStable),
			Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "--runtime-config", Found: strings.Join(versions, ", "), Required: "resource.k8s.io/v1"}},
			Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "remove what turns resource.k8s.io/v1 off from --runtime-config of kube-apiserver"},
		})
	}
	for gate, resource := range map[string]string{"DRADeviceTaintRules": taintRules, "DRAResourcePoolStatus": "resourcepoolstatusrequests"} {
		versions := versionsOf(in.cluster.Snapshot, resource)
		read := versionRead(resource, minor)
		switch {
		case !in.cluster.Snapshot.Gate(gate).Enabled || len(versions) > 0 && (read == "" || slices.Contains(versions, read)):
		case read != "":
			found = append(found, api.Finding{
				Message:  fmt.Sprintf("the feature gate %s is on, but %s of %s is not served: kube-scheduler of 1.%d reads no other version, and schedules no pod until it can", gate, read, resource, minor),
				Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "--runtime-config", Found: cmp.Or(strings.Join(versions, ", "), "no "+resource), Required: "resource.k8s.io/" + read}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "turn resource.k8s.io/" + read + " on with --runtime-config of kube-apiserver"},
			})
		default:
			found = append(found, api.Finding{
				Severity: api.SeverityWarning,
				Message:  fmt.Sprintf("the feature gate %s is on, but no version of %s is served", gate, resource),
				Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "--runtime-config", Found: "no " + resource, Required: "a version of resource.k8s.io with " + resource}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "turn the version of resource.k8s.io that has " + resource + " on with --runtime-config of kube-apiserver"},
			})
		}
	}
	slices.SortFunc(found, func(a, b api.Finding) int { return strings.Compare(a.Message, b.Message) })
	return found, nil
}

// versionRead returns the only version of a resource that kube-scheduler of a minor release
// reads (New in pkg/scheduler/scheduler.go), empty if it reads none or that is not known.
// It waits for its caches before it schedules anything (Run in
// cmd/kube-scheduler/app/server.go).
func versionRead(resource string, minor int) string {
	switch {
	case resource != taintRules || minor < firstStable || minor > lastKnown:
		return ""
	case minor <= 35:
		return "v1alpha3"
	case minor == 36:
		return "v1beta2"
	default:
		return "v1"
	}
}

// versionsOf lists the versions in which a resource of the group is served.
func versionsOf(snap *snapshot.Snapshot, resource string) []string {
	var versions []string
	for _, served := range snap.Served {
		if name, rest, _ := strings.Cut(served, "."); name == resource {
			version, _, _ := strings.Cut(rest, ".")
			versions = append(versions, version)
		}
	}
	return versions
}
