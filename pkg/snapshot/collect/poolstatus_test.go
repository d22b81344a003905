// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// poolsAre makes a slice for each pool, "driver/pool"; one with a star lacks
// another slice.
func poolsAre(pools ...string) *snapshot.Snapshot {
	s := &snapshot.Snapshot{}
	for _, text := range pools {
		name, incomplete := strings.CutSuffix(text, "*")
		driver, pool, _ := strings.Cut(name, "/")
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name, "/", "-")}}
		slice.Spec.Driver, slice.Spec.Pool = driver, resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1}
		if incomplete {
			slice.Spec.Pool.ResourceSliceCount = 2
		}
		s.Slices = append(s.Slices, slice)
	}
	return s
}

func manyPools(driver string, count int) []string {
	pools := make([]string, 0, count)
	for i := range count {
		pools = append(pools, fmt.Sprintf("%s/pool-%04d", driver, i))
	}
	return pools
}

func TestStatusQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		pools  []string
		wanted func(driver, pool string) bool
		want   []string
		gaps   int
	}{
		"one for each driver": {pools: []string{"b/1", "a/1", "a/2", "b/2"}, want: []string{"driver a", "driver b"}},
		"one pool of several": {
			pools:  []string{"a/1", "a/2", "b/1"},
			wanted: func(_, pool string) bool { return pool == "2" },
			want:   []string{"pool a/2"},
		},
		"one by one if a pool of the driver is incomplete": {
			pools: []string{"a/1", "a/2*", "a/3", "b/1", "b/2"}, want: []string{"driver b", "pool a/1", "pool a/3"},
		},
		"nothing but an incomplete pool":   {pools: []string{"a/1*"}},
		"more pools than one answer takes": {pools: manyPools("a", 1002), want: []string{"driver a", "pool a/pool-1000", "pool a/pool-1001"}},
		"more than it is worth": {
			pools: append(manyPools("a", 40), "a/z*"), gaps: 1,
			want: func() (want []string) {
				for _, pool := range manyPools("a", 32) {
					want = append(want, "pool "+pool)
				}
				return want
			}(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			questions, gaps := statusQuestions(poolsAre(test.pools...), test.wanted)
			var got []string
			for _, q := range questions {
				got = append(got, q.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(gaps) != test.gaps {
				t.Errorf("gaps %v, want %d", gaps, test.gaps)
			}
		})
	}
}

// statusServer is an API server with pool status requests.
type statusServer struct {
	mutex sync.Mutex
	// made and deleted are the names of requests, drivers what they were about.
	made, deleted, drivers []string
	allowed                func(verb string) bool
	// answer is the status of a request, nil if nobody fills it in.
	answer map[string]any
	// createFails and deleteFails are HTTP statuses to fail with, 0 for none.
	createFails, deleteFails int
}

const statusPath = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"

func (s *statusServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/apis/resource.k8s.io/v1alpha3":
		sendJSON(w, serves("resource.k8s.io/v1alpha3", "resourcepoolstatusrequests"))
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		verb := review.Spec.ResourceAttributes.Verb
		sendJSON(w, map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"status": map[string]any{"allowed": s.allowed == nil || s.allowed(verb)},
		})
	case r.URL.Path == statusPath && r.Method == http.MethodPost:
		s.create(w, r)
	case r.URL.Path == statusPath:
		s.watch(w, r)
	case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, statusPath+"/"):
		s.mutex.Lock()
		s.deleted = append(s.deleted, strings.TrimPrefix(r.URL.Path, statusPath+"/"))
		s.mutex.Unlock()
		if s.deleteFails != 0 {
			refuse(s.deleteFails, metav1.StatusReasonForbidden)(w, r)
			return
		}
		sendJSON(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})
	default:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
	}
}

func (s *statusServer) create(w http.ResponseWriter, r *http.Request) {
	if s.createFails != 0 {
		refuse(s.createFails, metav1.StatusReasonInvalid)(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var request map[string]any
	_ = json.Unmarshal(body, &request)
	metadata, _ := request["metadata"].(map[string]any)
	spec, _ := request["spec"].(map[string]any)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.made = append(s.made, fmt.Sprint(metadata["name"]))
	s.drivers = append(s.drivers, fmt.Sprint(spec["driver"]))
	metadata["resourceVersion"] = "7"
	request["apiVersion"], request["kind"] = "resource.k8s.io/v1alpha3", snapshot.KindPoolStatus
	sendJSON(w, request)
}

func (s *statusServer) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	event := map[string]any{"type": "MODIFIED", "object": map[string]any{
		"apiVersion": "resource.k8s.io/v1alpha3", "kind": snapshot.KindPoolStatus,
		"metadata": map[string]any{"name": name, "resourceVersion": "8"},
		"spec":     map[string]any{"driver": "a"},
		"status":   s.answer,
	}}
	if s.answer != nil {
		_ = json.NewEncoder(w).Encode(event)
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

func sendJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func complete() map[string]any {
	return map[string]any{
		"poolCount": 1, "pools": []any{map[string]any{"driver": "a", "poolName": "1", "generation": 1, "totalDevices": 4, "allocatedDevices": 3}},
		"conditions": []any{map[string]any{"type": "Complete", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-09-01T12:00:00Z"}},
	}
}

func TestAskPoolStatus(t *testing.T) {
	for name, test := range map[string]struct {
		server *statusServer
		gates  map[string]snapshot.Gate
		// answered and made count requests, gap is the reported gap.
		answered, made int
		gap            string
	}{
		"an answer":          {server: &statusServer{answer: complete()}, answered: 2, made: 2},
		"no right to delete": {server: &statusServer{allowed: func(verb string) bool { return verb != "delete" }}, gap: "this user may not delete resourcepoolstatusrequests.resource.k8s.io"},
		"the gate is off":    {server: &statusServer{}, gates: map[string]snapshot.Gate{statusGate: {Source: snapshot.GateFromMetrics}}, gap: "the feature gate DRAResourcePoolStatus is off"},
		"refused":            {server: &statusServer{createFails: http.StatusUnprocessableEntity}, gap: "it answered 422"},
		"the cluster failed": {
			server: &statusServer{answer: map[string]any{"poolCount": 0, "conditions": []any{map[string]any{
				"type": "Failed", "status": "True", "reason": "r", "message": "no cache", "lastTransitionTime": "2026-09-01T12:00:00Z",
			}}}},
			made: 2, gap: "the cluster failed: no cache",
		},
		"not deleted": {server: &statusServer{answer: complete(), deleteFails: http.StatusForbidden}, answered: 2, made: 2, gap: "could not be deleted, and is for somebody else to delete"},
	} {
		t.Run(name, func(t *testing.T) {
			clients := start(t, test.server)
			snap := poolsAre("a/1", "a/2", "b/1", "b/2")
			snap.Gates = test.gates
			asked, made, err := AskPoolStatus(t.Context(), clients, snap, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(asked.PoolStatuses) != test.answered || made != test.made {
				t.Errorf("%d answers to %d requests, want %d and %d; gaps %v", len(asked.PoolStatuses), made, test.answered, test.made, asked.Gaps)
			}
			slices.Sort(test.server.made)
			slices.Sort(test.server.deleted)
			if !slices.Equal(test.server.made, test.server.deleted) {
				t.Errorf("made %v, deleted %v", test.server.made, test.server.deleted)
			}
			gap := asked.Gap(snapshot.ResourcePoolStatuses)
			if (gap != nil) != (test.gap != "") || gap != nil && !strings.Contains(gap.Reason, test.gap) {
				t.Errorf("gap %v, want %q", gap, test.gap)
			}
			if len(snap.PoolStatuses)+len(snap.Gaps) > 0 {
				t.Error("the snapshot was changed")
			}
			if test.answered > 0 && snapshot.AnsweredAt(asked.PoolStatuses[0]).UTC().Format("2006-01-02") != "2026-09-01" {
				t.Errorf("answered at %s", snapshot.AnsweredAt(asked.PoolStatuses[0]))
			}
		})
	}
}

// TestAskPoolStatusWithoutAPI asks a server that does not have the requests.
func TestAskPoolStatusWithoutAPI(t *testing.T) {
	asked, made, err := AskPoolStatus(t.Context(), start(t, smallCluster()), poolsAre("a/1"), nil)
	if err != nil || made != 0 {
		t.Fatal(made, err)
	}
	if gap := asked.Gap(snapshot.ResourcePoolStatuses); gap == nil || !strings.Contains(gap.Reason, "the server has no ResourcePoolStatusRequest") {
		t.Errorf("gap %v", gap)
	}
}
