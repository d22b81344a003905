// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
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

// rulesOf is the minor release whose rules [kinds.Rejected] has.
const rulesOf = 37

func storedChecks() []Check {
	return []Check{{
		Code: "DRA1212", Title: "slice that the API server no longer accepts", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices},
		About:  fmt.Sprintf("A stored ResourceSlice breaks the rules that the API server of Kubernetes 1.%d has for new ones, such as 64 devices in a slice with taints or counters, or counters in a slice of their own. It was stored by an earlier release. The driver can no longer update it: each attempt is rejected, also one that changes something else. If the cluster is older than these rules, that is so once it is updated, and the finding is an Info.", rulesOf),
		Advice: "Update the driver to a version for the release of the cluster: it publishes its devices in slices that follow the rules.",
		find:   findOutdatedSlices,
	}}
}

// findOutdatedSlices finds slices that an API server would not store again.
func findOutdatedSlices(_ context.Context, in *cluster) ([]api.Finding, error) {
	severity, when := api.Severity(""), "each update of it is rejected"
	if minor, known := snapshot.MinorVersion(in.cluster.Snapshot.BinaryVersion()); !known || minor < rulesOf {
		severity, when = api.SeverityInfo, fmt.Sprintf("Kubernetes 1.%d rejects each update of it", rulesOf)
	}
	var found []api.Finding
	for _, slice := range in.cluster.Snapshot.Slices {
		// Computed slices are not stored.
		if _, computed := slice.Annotations[snapshot.PreviewAnnotation]; computed {
			continue
		}
		problems := kinds.Rejected(slice, "resource.k8s.io/v1")
		if len(problems) == 0 {
			continue
		}
		f := api.Finding{Severity: severity, Objects: []api.ObjectRef{api.RefTo(kindSlice, slice)}}
		for _, problem := range problems {
			f.Evidence = append(f.Evidence, api.Evidence{Object: api.RefTo(kindSlice, slice), Path: problem.Path, Found: problem.Err.Error()})
		}
		f.Message = fmt.Sprintf("slice %s of driver %s breaks the rules of the API, and %s: %s: %s", slice.Name, slice.Spec.Driver, when, problems[0].Path, problems[0].Err)
		if more := len(problems) - 1; more > 0 {
			f.Message += fmt.Sprintf(", and %d more", more)
		}
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "update driver " + slice.Spec.Driver + " to a version for the release of the cluster"}
		found = append(found, f)
	}
	return found, nil
}
