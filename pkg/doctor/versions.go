// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func versionChecks() []Check {
	return []Check{
		{
			Code: "DRA1001", Title: "cluster newer than the embedded allocator", Severity: api.SeverityWarning,
			About:  "Verdicts come from the allocator of the Kubernetes release that this program is built with. A newer scheduler may decide otherwise, and know fields that are not looked at here.",
			Advice: "Install a newer version of kubectl-dra.",
			find:   findNewerCluster,
		},
		{
			Code: "DRA1002", Title: "published devices that no scheduler looks at", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices},
			About:  "A ResourceSlice uses a field that the scheduler does not know with the feature gates as they are. It ignores the whole slice, and so its devices do not exist for any pod.",
			Advice: "Turn on the feature gate in kube-apiserver, kube-controller-manager, kube-scheduler and kubelets, or configure the driver not to use the field.",
			find:   findIgnoredSlices,
		},
		{
			Code: "DRA1003", Title: "field that the API server has dropped", Severity: api.SeverityWarning,
			About:  "kubectl applied a field that the API server has not stored, because the feature gate for it is off. There was no error. The object means something else than its manifest.",
			Advice: "Turn on the feature gate and apply the manifest again, or take the field out of it.",
			find:   findDroppedFields,
		},
		{
			Code: "DRA1004", Title: "kubelet outside of the version skew policy", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceNodes, snapshot.ResourceSlices},
			About:  "The kubelet of a node with devices is newer than the API server, or more than three minor releases older. Kubernetes supports neither: the kubelet and the drivers on it may use fields that the API server drops, or not know those that the scheduler sets.",
			Advice: "Update the kubelets, after the control plane.",
			find:   findSkew,
		},
		{
			Code: "DRA1005", Title: "feature gate without effect", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceMetrics},
			About:  "A feature gate of Dynamic Resource Allocation is on in the API server and has no effect, since another one that it requires is off. Where the gates cannot be read, all answers assume the defaults of the release.",
			Advice: "Turn on the gate that is required, in kube-apiserver, kube-controller-manager, kube-scheduler and kubelets.",
			find:   findIdleGates,
		},
	}
}

func findNewerCluster(_ context.Context, in *cluster) ([]api.Finding, error) {
	cluster, known := snapshot.MinorVersion(in.cluster.Snapshot.BinaryVersion())
	library, _ := snapshot.MinorVersion("v1" + facts.Library[len("v0"):])
	if !known || cluster <= library {
		return nil, nil
	}
	return []api.Finding{{
		Message:  fmt.Sprintf("the cluster runs Kubernetes %s; the embedded allocator is that of 1.%d", in.cluster.Snapshot.BinaryVersion(), library),
		Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "gitVersion", Found: in.cluster.Snapshot.BinaryVersion(), Required: fmt.Sprintf("at most 1.%d", library)}},
		Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "install a newer version of kubectl-dra"},
	}}, nil
}

func findIgnoredSlices(_ context.Context, in *cluster) ([]api.Finding, error) {
	byReason := map[string]*api.Finding{}
	var reasons []string
	for _, slice := range in.cluster.Snapshot.Slices {
		ignored := in.cluster.Pools.Ignored(slice)
		if ignored == nil {
			continue
		}
		f := byReason[ignored.Reason]
		if f == nil {
			f = &api.Finding{}
			if ignored.Gate != "" {
				f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "turn on the feature gate " + ignored.Gate + " in all components, or configure the driver not to use the field"}
			}
			byReason[ignored.Reason], reasons = f, append(reasons, ignored.Reason)
		}
		f.Objects = append(f.Objects, api.RefTo(kindSlice, slice))
		f.Evidence = append(f.Evidence, api.Evidence{Object: api.RefTo(kindSlice, slice), Path: "spec", Found: ignored.Reason})
	}
	slices.Sort(reasons)
	var found []api.Finding
	for _, reason := range reasons {
		f := byReason[reason]
		f.Message = fmt.Sprintf("the scheduler ignores %s: %s", english.Count(len(f.Objects), "slice"), reason)
		found = append(found, *f)
	}
	return found, nil
}

func findDroppedFields(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	look := func(kind string, o metav1.Object) {
		for _, dropped := range snapshot.DroppedFields(o) {
			name := api.RefTo(kind, o)
			found = append(found, api.Finding{
				Objects:  []api.ObjectRef{name},
				Message:  fmt.Sprintf("%s of %s was applied and not stored: the feature gate %s is off", dropped.Path, name, dropped.Gate),
				Evidence: []api.Evidence{{Object: name, Path: dropped.Path, Found: "missing", Required: "what the manifest has"}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "turn on " + dropped.Gate + " and apply the manifest again, or take the field out of it"},
			})
		}
	}
	for _, o := range in.cluster.Snapshot.Slices {
		look(kindSlice, o)
	}
	for _, o := range in.cluster.Snapshot.Classes {
		look(kindClass, o)
	}
	for _, o := range in.cluster.Snapshot.Templates {
		look(api.KindTemplate, o)
	}
	for _, o := range in.cluster.Snapshot.Claims {
		look(api.KindClaim, o)
	}
	return found, nil
}

func findSkew(_ context.Context, in *cluster) ([]api.Finding, error) {
	server, known := snapshot.MinorVersion(in.cluster.Snapshot.BinaryVersion())
	if !known {
		return nil, nil
	}
	oldest := max(0, server-snapshot.MaxSkew)
	allowed := fmt.Sprintf("1.%d to 1.%d", oldest, server)
	outside := func(is func(kubelet int) bool) func(string) string {
		return func(release string) string {
			if kubelet, ok := snapshot.MinorVersion(release); ok && is(kubelet) {
				return allowed
			}
			return ""
		}
	}
	var found []api.Finding
	for _, side := range []struct {
		how string
		is  func(kubelet int) bool
	}{
		{fmt.Sprintf("more than %d minor releases older than the API server", snapshot.MaxSkew), func(kubelet int) bool { return kubelet < oldest }},
		{"newer than the API server", func(kubelet int) bool { return kubelet > server }},
	} {
		if f, nodes := kubelets(in, outside(side.is)); nodes > 0 {
			f.Message = fmt.Sprintf("the kubelet of %s with devices is %s (%s)", english.Count(nodes, "node"), side.how, in.cluster.Snapshot.BinaryVersion())
			f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "run kubelets of " + allowed}
			found = append(found, f)
		}
	}
	return found, nil
}

// kubelets returns the nodes with devices whose kubelet does not have the required release,
// and counts them. required returns empty for a good kubelet.
func kubelets(in *cluster, required func(release string) string) (f api.Finding, nodes int) {
	devices := map[string]bool{}
	for _, slice := range in.cluster.Snapshot.Slices {
		devices[ptr.Deref(slice.Spec.NodeName, "")] = true
	}
	for _, node := range in.cluster.Snapshot.Nodes {
		release, o := node.Status.NodeInfo.KubeletVersion, api.RefTo(api.KindNode, node)
		if right := required(release); devices[node.Name] && right != "" {
			f.Objects = append(f.Objects, o)
			f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "status.nodeInfo.kubeletVersion", Found: release, Required: right})
		}
	}
	return f, len(f.Objects)
}

func findIdleGates(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, spec := range snapshot.GateSpecs() {
		if gate := in.cluster.Snapshot.Gate(spec.Name); !gate.Enabled || gate.Source == snapshot.GateFromDefault {
			continue
		}
		for _, required := range spec.Requires {
			if in.cluster.Snapshot.Gate(required).Enabled {
				continue
			}
			found = append(found, api.Finding{
				Message:  fmt.Sprintf("feature gate %s is on and has no effect: %s is off", spec.Name, required),
				Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "--feature-gates", Found: required + "=false", Required: required + "=true"}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "turn on " + required + ", or turn off " + spec.Name},
			})
		}
	}
	return found, nil
}
