// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// recorded waits until the last moment of a recording is the awaited one.
func recorded(t *testing.T, path, what string, awaited func(*snapshot.Snapshot) bool) *snapshot.Snapshot {
	t.Helper()
	var found *snapshot.Snapshot
	err := poll(t.Context(), func() bool {
		r, err := recording.Open(path)
		if err != nil {
			return false
		}
		defer func() { _ = r.Close() }()
		m, err := r.Last(t.Context(), files.Options{})
		if err != nil || !awaited(m.Snapshot) {
			return false
		}
		found = m.Snapshot
		return true
	})
	if err != nil {
		t.Fatalf("%s was not recorded: %v", what, err)
	}
	return found
}

// objectsOf returns the objects that a cluster without changes has, as text.
func objectsOf(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var text bytes.Buffer
	for _, list := range files.Lists() {
		switch list.Name {
		case "Namespace", "DeviceClass", "ResourceSlice", "ResourceClaim", "Pod":
		default:
			continue
		}
		for object := range list.All(s) {
			manifest, err := list.Manifest(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.NewEncoder(&text).Encode(manifest); err != nil {
				t.Fatal(err)
			}
		}
	}
	return text.String()
}

const recordOther = `
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: one}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: diff, count: 1}}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: other}, spec: {resourceClaims: [{name: gpus, resourceClaimName: one}],
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}}
`

// TestRecordAgainstCluster records a pod that the scheduler refuses and later places. In between the
// recorder is killed, and the API server is restarted. Each answer from the recording is right for
// its time, and the times that were not recorded are reported.
func TestRecordAgainstCluster(t *testing.T) {
	options := everything()
	c := startCluster(t, options)
	c.createAll(t, "diff", diffObjects)
	p := programFor(t, c.kubeconfig)
	path := filepath.Join(t.TempDir(), "cluster.rec")
	first := p.start(t, "record", "-o", path)
	all := []resourceapi.Device{{Name: "gpu-0"}, {Name: "gpu-1"}}
	publish := func(devices []resourceapi.Device) {
		t.Helper()
		mustDo(t, func() error {
			s, err := c.kube.ResourceV1().ResourceSlices().Get(t.Context(), "diff-a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			s.Spec.Pool.Generation++
			s.Spec.Devices = devices
			_, err = c.kube.ResourceV1().ResourceSlices().Update(t.Context(), s, metav1.UpdateOptions{})
			return err
		})
	}
	has := func(devices int) func(*snapshot.Snapshot) bool {
		return func(s *snapshot.Snapshot) bool { return len(s.Slices) == 2 && len(s.Slices[0].Spec.Devices) == devices }
	}
	begun := recorded(t, path, "the beginning", has(2))
	publish(all[:1])
	c.createAll(t, "diff", diffPod)
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler decided %+v", got)
	}
	refused := recorded(t, path, "the refusal", func(s *snapshot.Snapshot) bool {
		pod := s.Pod("diff", "train")
		return pod != nil && len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Reason == string(unschedulable)
	})
	saved := filepath.Join(t.TempDir(), "now.json")
	if code, out, message := p.tried(t, "snapshot", "-o", saved); code != 0 {
		t.Fatal(code, out, message)
	}
	live, err := files.Load(t.Context(), []string{saved}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if one, other := objectsOf(t, live), objectsOf(t, refused); one != other {
		t.Errorf("a snapshot and the recording differ:\n%s\n%s", one, other)
	}

	// Another pod gets a device that the first one could use, and is gone again.
	c.createAll(t, "diff", recordOther)
	if got := c.decision(t.Context(), "diff", "other", func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
		t.Fatalf("the scheduler decided %+v about the other pod", got)
	}
	other := func(s *snapshot.Snapshot) bool {
		claim := s.Claim("diff", "one")
		return claim != nil && claim.Status.Allocation != nil
	}
	recorded(t, path, "the other pod", other)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	mustDo(t, func() error { return c.kube.CoreV1().Pods("diff").Delete(t.Context(), "other", now) })
	mustDo(t, func() error { return c.kube.ResourceV1().ResourceClaims("diff").Delete(t.Context(), "one", now) })
	recorded(t, path, "the end of the other pod", func(s *snapshot.Snapshot) bool { return s.Claim("diff", "one") == nil })

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	publish(all)
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == scheduled }); got.node != "diff-a" {
		t.Fatalf("with the device back, the scheduler decided %+v", got)
	}
	second := p.start(t, "record", "-o", path)
	placed := recorded(t, path, "the decision", func(s *snapshot.Snapshot) bool {
		pod := s.Pod("diff", "train")
		return pod != nil && pod.Spec.NodeName == "diff-a"
	})
	mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
	second.wait(t, second.stderr, "that it lost the connection", func(line string) bool { return strings.Contains(line, "nothing is recorded until it is back") })
	second.wait(t, second.stderr, "that it is connected again", func(line string) bool { return strings.Contains(line, "connected again") })
	code, _, stderr := second.interrupt(t)
	if code != 0 || !strings.Contains(strings.Join(stderr, "\n"), "Recorded ") {
		t.Errorf("the recorder ends with %d: %v", code, stderr)
	}

	why := func(at time.Time) (int, string, string) {
		t.Helper()
		return p.tried(t, "why", "pod/train", "-n", "diff", "--snapshot", path, "--at", at.Format(time.RFC3339Nano))
	}
	if code, out, message := why(refused.TakenAt); code != 1 || !strings.Contains(message, "this is the cluster at") {
		t.Errorf("when it was refused: %d\n%s%s", code, out, message)
	}
	if code, out, message := why(placed.TakenAt); code != 0 || !strings.Contains(message, "this is the cluster at") {
		t.Errorf("when it was placed: %d\n%s%s", code, out, message)
	}
	if code, out, message := why(placed.TakenAt.Add(-time.Millisecond)); code != 1 || !strings.Contains(message, "nothing is known of") {
		t.Errorf("while nothing was recorded: %d\n%s%s", code, out, message)
	}
	if code, out, message := why(begun.TakenAt.Add(-time.Hour)); code != 3 || !strings.Contains(message, "it was recorded from") {
		t.Errorf("before the beginning: %d\n%s%s", code, out, message)
	}
	code, out, message := p.tried(t, "diff", path+"@"+begun.TakenAt.Format(time.RFC3339Nano), path+"@"+refused.TakenAt.Format(time.RFC3339Nano))
	if code != 1 || !strings.Contains(out, "diff-a") {
		t.Errorf("diff: %d\n%s%s", code, out, message)
	}
	code, out, message = p.tried(t, "why", "pod/train", "-n", "diff", "--snapshot", path, "--since", "1h", "-o", "json")
	var history api.History
	if err := json.Unmarshal([]byte(out), &history); err != nil || code != 0 {
		t.Fatalf("the history: %d, %v\n%s%s", code, err, out, message)
	}
	var story []string
	for i := range history.Entries {
		e := &history.Entries[i]
		text := string(e.Event)
		if e.Answer != nil {
			text += " " + string(e.Answer.Verdict)
		}
		for _, taken := range e.Taken {
			text += " " + taken.Claim.Name
		}
		story = append(story, text)
	}
	if want := []string{"Created DoesNotFit", "Taken one", "Missed", "Scheduled Allocated", "Missed"}; !slices.Equal(story, want) {
		t.Errorf("the history is %q, want %q\n%s", story, want, out)
	}
	missed := 0
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for m, err := range r.From(t.Context(), begun.TakenAt, files.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Missed != nil {
			missed++
		}
	}
	if missed != 2 {
		t.Errorf("%d times in which nothing is known", missed)
	}
}
