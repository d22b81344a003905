// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testsnapshot loads, lists and compares snapshots in tests, and the lists
// that they are made from.
package testsnapshot

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

//go:embed everything.yaml
var everything string

// Everything returns one object of each kind, with references between them and the sorts of
// text that a snapshot of a customer has.
func Everything() string { return everything }

// Load loads a text, or fails the test.
func Load(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Equal fails the test if a snapshot does not tell all that another one does.
func Equal(t testing.TB, want, got *snapshot.Snapshot) {
	t.Helper()
	if !want.TakenAt.Equal(got.TakenAt) {
		t.Errorf("taken at: want %v, got %v", want.TakenAt, got.TakenAt)
	}
	parts := func(s *snapshot.Snapshot) []any {
		return []any{
			s.ServerVersion, s.Gates, s.Gaps, s.Nodes, s.Namespaces, s.Pods, s.Events, s.Slices, s.Classes, s.Claims,
			s.Templates, s.TaintRules, s.PoolStatuses, s.PodGroups, s.CompositePodGroups, s.Workloads, s.Queued, s.Outlines,
			s.ComputeDomains, s.Cliques, s.ClusterPolicies, s.PluginConfigs,
		}
	}
	w, g := parts(want), parts(got)
	for i := range w {
		if !equality.Semantic.DeepEqual(w[i], g[i]) {
			t.Errorf("snapshots differ (-want +got):\n%s", cmp.Diff(w[i], g[i]))
		}
	}
}

// Names lists everything in a snapshot as Kind/namespace/name.
func Names(s *snapshot.Snapshot) []string {
	var all []string
	all = appendNames(all, "Node", s.Nodes)
	all = appendNames(all, "Namespace", s.Namespaces)
	all = appendNames(all, "Pod", s.Pods)
	all = appendNames(all, "Event", s.Events)
	all = appendNames(all, "ResourceSlice", s.Slices)
	all = appendNames(all, "DeviceClass", s.Classes)
	all = appendNames(all, "ResourceClaim", s.Claims)
	all = appendNames(all, "ResourceClaimTemplate", s.Templates)
	all = appendNames(all, "DeviceTaintRule", s.TaintRules)
	all = appendNames(all, "ResourcePoolStatusRequest", s.PoolStatuses)
	all = appendNames(all, "PodGroup", s.PodGroups)
	all = appendNames(all, "CompositePodGroup", s.CompositePodGroups)
	all = appendNames(all, "Queued", s.Queued)
	all = appendNames(all, snapshot.KindComputeDomain, s.ComputeDomains)
	all = appendNames(all, snapshot.KindClique, s.Cliques)
	all = appendNames(all, snapshot.ClusterPolicyKind().Kind, s.ClusterPolicies)
	all = appendNames(all, "ConfigMap", s.PluginConfigs)
	for _, outline := range s.Outlines {
		all = appendNames(all, outline.Of.Kind, []*snapshot.Outline{outline})
	}
	for _, workload := range s.Workloads {
		all = appendNames(all, workload.Kind, []*snapshot.Workload{workload})
	}
	return all
}

func appendNames[T metav1.Object](names []string, kind string, objects []T) []string {
	for _, object := range objects {
		names = append(names, kind+"/"+object.GetNamespace()+"/"+object.GetName())
	}
	return names
}

// Encode makes a list what an API server sends: protobuf.
func Encode(t testing.TB, list runtime.Object) []byte {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(list)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()), list)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Decode reads what [Encode] made.
func Decode(t testing.TB, data []byte) runtime.Object {
	t.Helper()
	list, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
