// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func TestTaintPreviewTellsWhoIsEvictedWhen(t *testing.T) {
	now := time.Date(2026, 10, 5, 9, 30, 0, 0, time.UTC)
	at := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(after)} }
	other := func(after time.Duration) *api.OtherEviction {
		return &api.OtherEviction{Taint: "xid=79:NoExecute", Source: api.Ref("DeviceTaintRule", "", "broken"), At: *at(after)}
	}
	seconds := int64(300)
	taint := &api.Taint{
		Key: "fan", Effect: "NoExecute", Rule: "fans", Selector: "pool=a", Devices: []string{"d/a/gpu-0"},
		Pods: []api.TaintedPod{
			{Namespace: "ml", Name: "stays"},
			{Namespace: "ml", Name: "now", Evicted: true, EvictionAt: at(0)},
			{Namespace: "ml", Name: "later", Evicted: true, EvictionAt: at(5 * time.Minute), TolerationSeconds: &seconds},
			{Namespace: "ml", Name: "dated", Evicted: true, EvictionAt: at(time.Hour)},
			{Namespace: "ml", Name: "sooner", Evicted: true, EvictionAt: at(0), Anyway: other(time.Hour)},
			{Namespace: "ml", Name: "not-sooner", Evicted: true, EvictionAt: at(5 * time.Minute), TolerationSeconds: &seconds, Anyway: other(0)},
			{Namespace: "ml", Name: "other", Anyway: other(time.Minute)},
		},
	}
	var out strings.Builder
	if err := TaintPreview(&out, taint, &api.Impact{Pods: []api.ImpactPod{
		{Namespace: "ml", Name: "now", Node: "gpu-01", Effect: api.EffectEvicted, Outcome: api.OutcomeNotRecreated, Reason: "No GPU."},
		{Namespace: "ml", Name: "later", Effect: api.EffectEvicted, Owner: api.Ref("Job", "ml", "train"), Outcome: api.OutcomePlaced, Placement: &api.Placement{Node: "gpu-02"}},
		{Namespace: "ml", Name: "dated", Effect: api.EffectEvicted, Owner: api.Ref("ReplicaSet", "ml", "web"), Outcome: api.OutcomeUndetermined, Reason: "Pods could not be read."},
		{Namespace: "ml", Name: "waits", Effect: api.EffectFitLost, Outcome: api.OutcomeNoPlace},
	}}, now); err != nil {
		t.Fatal(err)
	}
	const want = `DeviceTaintRule fans puts fan:NoExecute on 1 device (pool=a)
  d/a/gpu-0
5 pods would be evicted, 2 of them anyway
  ml/stays would stay
  ml/now would be evicted at once
    bare pod  not created again; no place for one like it
  ml/later would be evicted in 5m, when it does not tolerate the taint any longer
    job/train  -> gpu-02
  ml/dated would be evicted in 60m
    replicaset/web  not known. Pods could not be read.
  ml/sooner would be evicted at once; it is evicted anyway in 60m because of xid=79:NoExecute (DeviceTaintRule/broken)
  ml/not-sooner is evicted anyway at once because of xid=79:NoExecute (DeviceTaintRule/broken)
  ml/other would stay, but is evicted anyway in 60s because of xid=79:NoExecute (DeviceTaintRule/broken)
1 waiting pod would not fit any more: ml/waits
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
