// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// feed is an [apiServer] whose lists can be watched. It counts what is asked.
type feed struct {
	answers apiServer

	mu sync.Mutex
	// events are sent to the watch of a path, each once.
	events map[string]chan map[string]any
	// asked has all lists ("list PATH") and watches ("watch PATH from VERSION").
	asked []string
	// refusal answers watches of a path; nil lets them be.
	refusal map[string]http.HandlerFunc
}

func newFeed(answers apiServer) *feed {
	return &feed{answers: answers, events: map[string]chan map[string]any{}, refusal: map[string]http.HandlerFunc{}}
}

func (f *feed) channel(path string) chan map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events[path] == nil {
		f.events[path] = make(chan map[string]any, 10)
	}
	return f.events[path]
}

func (f *feed) send(path, kind string, object map[string]any) {
	f.channel(path) <- map[string]any{"type": kind, "object": object}
}

func (f *feed) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := slices.Clone(f.asked)
	slices.Sort(asked)
	return asked
}

func (f *feed) count(line string) int {
	count := 0
	for _, asked := range f.log() {
		if asked == line {
			count++
		}
	}
	return count
}

func (f *feed) refuse(path string, with http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal[path] = with
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, query := r.URL.Path, r.URL.Query()
	if query.Get("watch") == "" {
		if _, isList := f.answers[path].(map[string]any); isList && strings.Count(path, "/") > 2 && !strings.HasSuffix(path, "/v1") && !strings.HasSuffix(path, "/v1beta1") {
			f.mu.Lock()
			f.asked = append(f.asked, "list "+path)
			f.mu.Unlock()
		}
		f.answers.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, "watch "+path+" from "+query.Get("resourceVersion"))
	refusal := f.refusal[path]
	f.mu.Unlock()
	if refusal != nil {
		refusal(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	stream := http.NewResponseController(w)
	_ = stream.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-f.channel(path):
			if event["type"] == "END" {
				return
			}
			_ = json.NewEncoder(w).Encode(event)
			_ = stream.Flush()
		}
	}
}

const claimsPath = "/apis/resource.k8s.io/v1/resourceclaims"

func claimObject(name, version string, more ...map[string]any) map[string]any {
	o := object(name, more...)
	o["apiVersion"], o["kind"] = "resource.k8s.io/v1", "ResourceClaim"
	if metadata, ok := o["metadata"].(map[string]any); ok {
		metadata["resourceVersion"] = version
		metadata["managedFields"] = []any{map[string]any{"manager": "test"}}
	}
	return o
}

// until waits for a snapshot that is as wanted.
func until(t *testing.T, w *Watcher, what string, condition func(s *snapshot.Snapshot) bool) *snapshot.Snapshot {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		if s := w.Snapshot(); condition(s) {
			return s
		}
		select {
		case <-w.Changed():
		case <-deadline:
			s := w.Snapshot()
			t.Fatalf("%s: still %q, gaps %q", what, contents(s), gapTexts(s))
		}
	}
}

func mustWatch(t *testing.T, clients Clients, opts Options) *Watcher {
	t.Helper()
	w, err := Watch(t.Context(), clients, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWatchReadsEachListOnce(t *testing.T) {
	f := newFeed(smallCluster())
	clients := start(t, f)
	w := mustWatch(t, clients, Options{})
	first := w.Snapshot()
	collected := mustCollect(t, start(t, smallCluster()), Options{})
	expect(t, "objects", contents(collected), contents(first))
	if first.ServerVersion != collected.ServerVersion || len(first.Gates) != len(collected.Gates) {
		t.Errorf("version %s and %d gates, Collect has %s and %d", first.ServerVersion, len(first.Gates), collected.ServerVersion, len(collected.Gates))
	}

	f.send(claimsPath, "ADDED", claimObject("ml/new", "5"))
	f.send(claimsPath, "DELETED", claimObject("default/claim", "6"))
	f.send(claimsPath, "MODIFIED", claimObject("ml/claim", "7", map[string]any{"status": map[string]any{"reservedFor": []any{map[string]any{"resource": "pods", "name": "train-0", "uid": "1"}}}}))
	now := until(t, w, "three changes", func(s *snapshot.Snapshot) bool {
		claim := s.Claim("ml", "claim")
		return claim != nil && len(claim.Status.ReservedFor) == 1
	})
	expect(t, "claims", []string{"Claim ml/claim", "Claim ml/new"}, named("Claim", now.Claims))
	if fields := now.Claim("ml", "new").ManagedFields; fields != nil {
		t.Errorf("managed fields are kept: %v", fields)
	}
	expect(t, "the first snapshot", contents(collected), contents(first))

	expect(t, "requests", []string{
		"list /api/v1/namespaces", "list /api/v1/nodes", "list /api/v1/pods",
		"list /apis/resource.k8s.io/v1/deviceclasses", "list /apis/resource.k8s.io/v1/devicetaintrules", "list " + claimsPath,
		"list /apis/resource.k8s.io/v1/resourceclaimtemplates", "list /apis/resource.k8s.io/v1/resourceslices",
		"list /apis/scheduling.k8s.io/v1beta1/podgroups",
	}, slices.DeleteFunc(f.log(), func(line string) bool { return !strings.HasPrefix(line, "list") }))
	if got := f.count("watch " + claimsPath + " from 1"); got != 1 {
		t.Errorf("claims are watched %d times from the version of the list, want once: %q", got, f.log())
	}
}

func TestWatchListsAgainWhatTheServerForgot(t *testing.T) {
	f := newFeed(smallCluster())
	w := mustWatch(t, start(t, f), Options{Only: []string{snapshot.ResourceClaims}})
	f.send(claimsPath, "MODIFIED", claimObject("ml/gone", "4"))
	until(t, w, "a change", func(s *snapshot.Snapshot) bool { return s.Claim("ml", "gone") != nil })
	f.send(claimsPath, "ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": http.StatusGone, "reason": "Expired"})
	now := until(t, w, "the list", func(s *snapshot.Snapshot) bool { return s.Claim("ml", "gone") == nil })
	expect(t, "claims", []string{"Claim default/claim", "Claim ml/claim"}, named("Claim", now.Claims))
	if _, err := w.Trouble(); err != nil {
		t.Errorf("that is no trouble: %v", err)
	}
}

// TestWatchKeepsWhatDidNotChange reads a list again: what it has in the same version stays
// the same object, so that nothing is made of it again, or kept twice.
func TestWatchKeepsWhatDidNotChange(t *testing.T) {
	f := newFeed(smallCluster().with(apiServer{claimsPath: listOf("resource.k8s.io/v1", "ResourceClaim", claimObject("default/claim", "1"), claimObject("ml/claim", "1"))}))
	w := mustWatch(t, start(t, f), Options{Only: []string{snapshot.ResourceClaims}})
	f.send(claimsPath, "MODIFIED", claimObject("ml/claim", "3"))
	f.send(claimsPath, "ADDED", claimObject("ml/gone", "4"))
	before := until(t, w, "a change", func(s *snapshot.Snapshot) bool { return s.Claim("ml", "gone") != nil })
	f.send(claimsPath, "ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": http.StatusGone, "reason": "Expired"})
	now := until(t, w, "the list", func(s *snapshot.Snapshot) bool { return s.Claim("ml", "gone") == nil })
	if now.Claim("default", "claim") != before.Claim("default", "claim") {
		t.Error("a claim that did not change is another object")
	}
	if got := now.Claim("ml", "claim").ResourceVersion; got != "1" {
		t.Errorf("a claim that changed is still of version %s", got)
	}
}

// TestAwait lets nobody ask a server that is silent until it is heard of again, but not
// forever. Its clock is that of the bubble: no time passes.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth("")
		h.await(t.Context())
		for name, end := range map[string]func(){"heard": func() { h.works(silence) }, "timeout": func() { time.Sleep(awaitTimeout) }} {
			h.failed(silence, errors.New("connection refused"))
			var done atomic.Int32
			for range 3 {
				go func() {
					h.await(t.Context())
					done.Add(1)
				}()
			}
			synctest.Wait()
			if n := done.Load(); n > 0 {
				t.Errorf("%s: %d ask a silent server", name, n)
			}
			end()
			synctest.Wait()
			if n := done.Load(); n != 3 {
				t.Errorf("%s: %d of 3 went on", name, n)
			}
		}
	})
}

func TestWatchWithFewRights(t *testing.T) {
	namespaced := "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims"
	f := newFeed(smallCluster().with(apiServer{
		claimsPath:     forbid(),
		namespaced:     listOf("resource.k8s.io/v1", "ResourceClaim", object("ml/claim")),
		"/api/v1/pods": forbid(), "/api/v1/namespaces/ml/pods": forbid(),
		"/api/v1/namespaces/ml": object("ml"),
		"/api/v1/namespaces":    forbid(),
	}))
	f.refuse("/api/v1/nodes", forbid())
	w := mustWatch(t, start(t, f), Options{})
	f.send(namespaced, "ADDED", claimObject("ml/new", "5"))
	now := until(t, w, "a change and a gap", func(s *snapshot.Snapshot) bool {
		return s.Claim("ml", "new") != nil && s.Gap(snapshot.ResourceNodes) != nil
	})
	if got := f.count("watch " + claimsPath + " from 1"); got != 0 {
		t.Error("claims of all namespaces are watched")
	}
	if got := f.count("watch /api/v1/nodes from 1"); got != 1 {
		t.Errorf("what may not be watched was asked for %d times", got)
	}
	if _, err := w.Trouble(); err != nil {
		t.Errorf("a right that is missing is a gap and no trouble: %v", err)
	}
	expect(t, "nodes", []string{"Node node-a", "Node node-b"}, named("Node", now.Nodes))
	expect(t, "namespaces", []string{"Namespace ml"}, named("Namespace", now.Namespaces))
	expect(t, "gaps", []string{
		"namespaces[ml]: this user may not list namespaces at the cluster scope; only namespace ml itself could be read",
		"nodes[]: this user may not watch nodes at the cluster scope; they are as they were at " + w.start.TakenAt.Format(time.TimeOnly),
		"pods[]: this user may not list pods at the cluster scope, nor in namespace ml",
		"resourceclaims.resource.k8s.io[ml]: this user may not list resourceclaims.resource.k8s.io at the cluster scope; only those in namespace ml could be read",
	}, gapTexts(now))
}

func TestWatchTellsTroubleUntilItIsOver(t *testing.T) {
	f := newFeed(smallCluster())
	w := mustWatch(t, start(t, f), Options{Only: []string{snapshot.ResourceClaims}})
	f.send(claimsPath, "ADDED", claimObject("ml/new", "5"))
	until(t, w, "a change", func(s *snapshot.Snapshot) bool { return s.Claim("ml", "new") != nil })
	f.refuse(claimsPath, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	f.send(claimsPath, "END", nil)
	trouble := func() error {
		_, err := w.Trouble()
		return err
	}
	until(t, w, "trouble", func(*snapshot.Snapshot) bool { return trouble() != nil })
	f.refuse(claimsPath, nil)
	until(t, w, "no trouble", func(*snapshot.Snapshot) bool { return trouble() == nil })
}

func TestWatchOldVersions(t *testing.T) {
	const rules, groups = "/apis/resource.k8s.io/v1alpha3/devicetaintrules", "/apis/scheduling.k8s.io/v1alpha3/podgroups"
	rule := func(name string, selector map[string]any) map[string]any {
		o := object(name, map[string]any{"spec": map[string]any{"deviceSelector": selector, "taint": map[string]any{"key": "a", "effect": "NoSchedule"}}})
		o["apiVersion"], o["kind"] = "resource.k8s.io/v1alpha3", "DeviceTaintRule"
		return o
	}
	byClass := map[string]any{"deviceClassName": "gpu"}
	byPool := map[string]any{"pool": "a"}
	f := newFeed(smallCluster().without("/apis/scheduling.k8s.io").with(apiServer{
		"/apis/resource.k8s.io/v1":         serves("resource.k8s.io/v1", "resourceclaims"),
		"/apis/resource.k8s.io/v1alpha3":   serves("resource.k8s.io/v1alpha3", "devicetaintrules"),
		"/apis/scheduling.k8s.io/v1alpha3": serves("scheduling.k8s.io/v1alpha3", "podgroups"),
		rules:                              listOf("resource.k8s.io/v1alpha3", "DeviceTaintRule", rule("pool", byPool), rule("class", byClass)),
		groups:                             listOf("scheduling.k8s.io/v1alpha3", "PodGroup", object("ml/gang")),
	}))
	w := mustWatch(t, start(t, f), Options{})
	first := w.Snapshot()
	expect(t, "rules", []string{"TaintRule pool"}, named("TaintRule", first.TaintRules))
	expect(t, "groups", []string{"PodGroup ml/gang"}, named("PodGroup", first.PodGroups))
	if gaps := gapTexts(first); len(gaps) != 1 || !strings.Contains(gaps[0], "left out DeviceTaintRule class:") {
		t.Errorf("got gaps %q", gaps)
	}

	f.send(rules, "ADDED", rule("second", byClass))
	f.send(rules, "MODIFIED", rule("class", byPool))
	group := object("ml/other")
	group["apiVersion"], group["kind"] = "scheduling.k8s.io/v1alpha3", "PodGroup"
	f.send(groups, "ADDED", group)
	now := until(t, w, "changes", func(s *snapshot.Snapshot) bool { return len(s.TaintRules) == 2 && s.PodGroup("ml", "other") != nil })
	expect(t, "rules", []string{"TaintRule class", "TaintRule pool"}, named("TaintRule", now.TaintRules))
	if gaps := gapTexts(now); len(gaps) != 1 || !strings.Contains(gaps[0], "left out DeviceTaintRule second:") {
		t.Errorf("got gaps %q", gaps)
	}
}

func TestWatchFollowsPlugins(t *testing.T) {
	const path = "/apis/apps/v1/daemonsets"
	set := func(name string, desired int, directory string) map[string]any {
		o := object(name, map[string]any{
			"status": map[string]any{"desiredNumberScheduled": desired},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{
				map[string]any{"name": "registry", "hostPath": map[string]any{"path": directory}},
			}}}},
		})
		o["apiVersion"], o["kind"] = "apps/v1", "DaemonSet"
		return o
	}
	const registry = "/var/lib/kubelet/plugins_registry"
	f := newFeed(smallCluster().with(apiServer{path: listOf("apps/v1", "DaemonSet", set("ml/plugin", 1, registry), set("ml/logs", 1, "/var/log"))}))
	w := mustWatch(t, start(t, f), Options{})
	expect(t, "workloads", []string{"Workload ml/plugin"}, named("Workload", w.Snapshot().Workloads))
	f.send(path, "MODIFIED", set("ml/logs", 2, "/var/log"))
	f.send(path, "MODIFIED", set("ml/plugin", 7, registry))
	now := until(t, w, "a change", func(s *snapshot.Snapshot) bool { return len(s.Workloads) == 1 && s.Workloads[0].Daemon.Desired == 7 })
	expect(t, "workloads", []string{"Workload ml/plugin"}, named("Workload", now.Workloads))
}

// TestWatchTarget wants what Collect reads for a target.
func TestWatchTarget(t *testing.T) {
	answers := smallCluster().with(apiServer{
		"/apis/apps/v1/namespaces/ml/deployments/train": map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "ml", "name": "train"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{}}}},
		},
		"/api/v1/namespaces/ml/events": listOf("v1", "Event", object("ml/event")),
	})
	target := snapshot.Argument{Resource: "deployment", Namespace: "ml", Name: "train"}
	collected := mustCollect(t, start(t, answers), Options{Target: &target})
	w := mustWatch(t, start(t, newFeed(answers)), Options{})
	got, err := w.Target(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "objects", contents(collected), contents(got))
	if len(got.Events) != 1 || len(got.Workloads) != 1 {
		t.Errorf("got %d events and %d workloads", len(got.Events), len(got.Workloads))
	}
	if again := w.Snapshot(); len(again.Events) != 0 || len(again.Workloads) != 0 {
		t.Error("the target stays in later snapshots")
	}
}

// TestWatchProblems wants what Collect reads about problems.
func TestWatchProblems(t *testing.T) {
	waits := object("ml/waits")
	waits["spec"] = map[string]any{"resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "gpu"}}}
	refused := object("ml/refused")
	refused["reason"], refused["involvedObject"] = "FailedCreate", map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "ml", "name": "train"}
	answers := smallCluster().with(apiServer{
		"/api/v1/pods":           listOf("v1", "Pod", waits),
		"/api/v1/events":         listOf("v1", "Event", refused),
		"/api/v1/resourcequotas": listOf("v1", "ResourceQuota", object("ml/devices")), "/api/v1/limitranges": listOf("v1", "LimitRange"),
		"/apis/apps/v1/namespaces/ml/replicasets/train": map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{"namespace": "ml", "name": "train"},
			"spec": map[string]any{"template": map[string]any{"spec": waits["spec"]}},
		},
	})
	collected := mustCollect(t, start(t, answers), Options{AllNamespaces: true, Starting: true, Health: true, Admission: true})
	w := mustWatch(t, start(t, newFeed(answers)), Options{AllNamespaces: true})
	for range 2 {
		got, err := w.Problems(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "objects", contents(collected), contents(got))
		if len(got.Quotas) != 1 || len(got.Workloads) != 1 {
			t.Errorf("got %d quotas and %d workloads", len(got.Quotas), len(got.Workloads))
		}
	}
}

func TestWatchFailsLikeCollect(t *testing.T) {
	if _, err := Watch(t.Context(), start(t, smallCluster().with(apiServer{claimsPath: refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)})), Options{}); err == nil {
		t.Error("a user who is not known can watch")
	}
}

// BenchmarkWatcherSnapshot takes a snapshot of 20,000 claims and 5,000 slices
// after each number of changed claims.
func BenchmarkWatcherSnapshot(b *testing.B) {
	for _, changes := range []int{0, 1, 125, 20000} {
		b.Run(fmt.Sprintf("%d changes", changes), func(b *testing.B) {
			w := &Watcher{start: &snapshot.Snapshot{}, health: newHealth("")}
			lists := &progress{}
			for _, resource := range []string{snapshot.ResourceClaims, snapshot.ResourceSlices} {
				lists.list(resource).read("1", nil)
			}
			claims := make([]*resourceapi.ResourceClaim, 20000)
			for i := range claims {
				claims[i] = &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%02d", i/400), Name: fmt.Sprintf("claim-%05d", i)}}
			}
			w.start.Claims = slices.Clone(claims)
			for i := range 5000 {
				w.start.Slices = append(w.start.Slices, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("slice-%05d", i)}})
			}
			follow(w, lists, snapshot.ResourceClaims, endpoint[*resourceapi.ResourceClaim]{convert: as[*resourceapi.ResourceClaim]}, func(s *snapshot.Snapshot) *[]*resourceapi.ResourceClaim { return &s.Claims })
			follow(w, lists, snapshot.ResourceSlices, endpoint[*resourceapi.ResourceSlice]{convert: as[*resourceapi.ResourceSlice]}, func(s *snapshot.Snapshot) *[]*resourceapi.ResourceSlice { return &s.Slices })
			store, ok := w.lists[0].(*watchedList[*resourceapi.ResourceClaim])
			if !ok {
				b.Fatalf("the first list is %T", w.lists[0])
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range changes {
					if err := store.Update(claims[(i*7919)%len(claims)]); err != nil {
						b.Fatal(err)
					}
				}
				if s := w.Snapshot(); len(s.Claims) != len(claims) {
					b.Fatalf("got %d claims", len(s.Claims))
				}
			}
		})
	}
}

// TestWatchNoticesSilence covers a server that keeps its connections and sends nothing any
// more, then a server that refuses them, as a proxy without a server behind it does.
func TestWatchNoticesSilence(t *testing.T) {
	for _, how := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"stalled", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer"},
		{"unavailable", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), "it is not ready"},
	} {
		t.Run(how.name, func(t *testing.T) {
			f := newFeed(smallCluster())
			var broken atomic.Bool
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() {
					how.answer(w, r)
					return
				}
				f.ServeHTTP(w, r)
			})
			w := mustWatch(t, start(t, server), Options{pulse: pulse{every: time.Millisecond, within: 100 * time.Millisecond, again: time.Millisecond}})
			broken.Store(true)
			trouble := func() error { _, err := w.Trouble(); return err }
			silent := until(t, w, "trouble", func(s *snapshot.Snapshot) bool { return trouble() != nil && s.TakenAt.Equal(w.Answered()) })
			if !strings.Contains(trouble().Error(), how.want) {
				t.Errorf("got %q, want it to tell of %q", trouble(), how.want)
			}
			if since, _ := w.Trouble(); !since.Equal(w.Answered()) {
				t.Errorf("the last answer was at %v, the trouble begins at %v", w.Answered(), since)
			}
			broken.Store(false)
			now := until(t, w, "no trouble", func(*snapshot.Snapshot) bool { return trouble() == nil })
			if !now.TakenAt.After(silent.TakenAt) {
				t.Errorf("time stands still: %v after %v", now.TakenAt, silent.TakenAt)
			}
		})
	}
}
