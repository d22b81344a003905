// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// film is a recording that a test makes.
type film []recording.Moment

// then adds a state that is so much later and different.
func (f film) then(later time.Duration, changes ...func(s *snapshot.Snapshot)) film {
	s := *f[len(f)-1].Snapshot
	s.TakenAt = s.TakenAt.Add(later)
	s.Slices, s.Claims, s.Pods, s.Nodes = slices.Clone(s.Slices), slices.Clone(s.Claims), slices.Clone(s.Pods), slices.Clone(s.Nodes)
	s.Classes, s.TaintRules = slices.Clone(s.Classes), slices.Clone(s.TaintRules)
	for _, change := range changes {
		change(&s)
	}
	return append(f, recording.Moment{Snapshot: &s})
}

// missed says that the cluster was not followed before the last state, but for the first ten seconds.
func (f film) missed(reason string) film {
	f[len(f)-1].Missed = &recording.Missed{Since: f[len(f)-2].Snapshot.TakenAt.Add(10 * time.Second), Reason: reason}
	return f
}

func (f film) moments() iter.Seq2[recording.Moment, error] {
	return func(yield func(recording.Moment, error) bool) {
		for _, moment := range f {
			if !yield(moment, nil) {
				return
			}
		}
	}
}

// put adds objects, and replaces objects with the same names.
func put(objects ...any) func(s *snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, object := range objects {
			switch o := object.(type) {
			case *corev1.Pod:
				gone(o.Name)(s)
			case tc.ClaimWrapper:
				s.Claims = slices.DeleteFunc(s.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == o.Name && c.Namespace == o.Namespace })
			case *corev1.Node:
				s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == o.Name })
			}
		}
		tc.Add(s, objects...)
	}
}

// gone deletes the pod, the claim or the pool with a name.
func gone(name string) func(s *snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Pods = slices.DeleteFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == name })
		s.Claims = slices.DeleteFunc(s.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == name })
		s.Slices = slices.DeleteFunc(s.Slices, func(o *resourceapi.ResourceSlice) bool { return o.Spec.Pool.Name == name })
	}
}

// train returns the pod that waits for two GPUs of one node.
func train(changes ...func(*corev1.Pod)) *corev1.Pod {
	return tc.Pod("train", append([]func(*corev1.Pod){tc.Using("wants")}, changes...)...)
}

func pool1() tc.SliceWrapper {
	return tc.Pool(tc.Node1, tc.Device("gpu-0"), tc.Device("gpu-1"))
}

// begin returns a film of two nodes: the pod fits on the first one, the second one has a single GPU.
func begin(objects ...any) film {
	objects = append([]any{tc.Nodes(tc.Node1, tc.Node2), pool1(), tc.Pool(tc.Node2, tc.Device("gpu-0")), tc.Claim("wants", tc.GPUs("gpu", 2))}, objects...)
	return film{{Snapshot: tc.Cluster(objects...)}}
}

// other returns a claim with devices of node-1 and the pod that uses it.
func other(name string, change func(*corev1.Pod), devices ...string) func(*snapshot.Snapshot) {
	claim := tc.Claim(name, tc.GPUs("gpu", int64(len(devices)))).ReservedFor(name, string(tc.UID(name)))
	for _, device := range devices {
		claim = claim.Holding(device)
	}
	return put(claim, tc.Pod(name, tc.Using(name), tc.RunningOn(tc.Node1), change))
}

// scheduled lets the pod have its devices on the first node.
func scheduled(s *snapshot.Snapshot) {
	gone(tc.Node1)(s)
	claim := tc.Claim("wants", tc.GPUs("gpu", 2)).Holding("gpu-0").Holding("gpu-1").ReservedFor("train", string(tc.UID("train")))
	put(pool1(), train(tc.OnNode(tc.Node1)), claim)(s)
}

func priority(value int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(value) }
}

func created(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago)) }
}

// told returns a history in short, an entry a line.
func told(h *api.History) string {
	var lines []string
	at := func(t *metav1.Time) string { return fmt.Sprint(t.Sub(tc.Taken())) }
	for i := range h.Entries {
		e := &h.Entries[i]
		text := at(&e.Time)
		if e.After != nil {
			text = at(e.After) + "-" + text
		}
		text += " " + string(e.Event)
		if e.Answer != nil {
			text += " " + strings.Join(strings.Fields(string(e.Answer.Verdict)+" "+string(e.Answer.Code)+" "+e.Answer.Node), " ")
		}
		for _, undo := range e.Undo {
			text += "; " + undo.Message
		}
		for _, taken := range e.Taken {
			text += fmt.Sprintf("; %s on %s", taken.Claim.Name, taken.Node)
			for _, d := range taken.Devices {
				text += " " + d.Device
			}
			text += fmt.Sprintf(" %s %d:%d", taken.Reason, taken.Priority, taken.TargetPriority)
		}
		if e.Note != "" {
			text += "; " + e.Note
		}
		if e.Count > 0 {
			text += fmt.Sprintf("; %d times until %s", e.Count, at(e.Last))
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// TestHistory tells histories that are known.
func TestHistory(t *testing.T) {
	const s, m = time.Second, time.Minute
	for name, test := range map[string]struct {
		film   film
		want   string
		waited int64
		waits  bool
	}{
		"a slice is lost and put back": {
			begin(train()).then(5*s, gone(tc.Node1)).then(2*m, put(pool1())),
			`0s Existed Fits
5s Changed DoesNotFit CountUnsatisfiable; pool node-1 is gone with 2 devices
2m5s Changed Fits; pool node-1 added with 2 devices`, 125, true,
		},
		"it is created, scheduled and deleted": {
			begin().then(5*s, put(train())).then(s, scheduled).then(m, gone("train"), gone("wants")),
			`5s Created Fits
6s Scheduled Allocated node-1
1m6s Deleted`, 1, false,
		},
		"it is created again": {
			begin(train()).then(s, gone("train")).then(s, put(train(func(p *corev1.Pod) { p.UID = "other" }))),
			`0s Existed Fits
1s Deleted
2s Created Fits`, 1, true,
		},
		"it is created again between two states": {
			begin(train()).then(s, put(train(func(p *corev1.Pod) { p.UID = "other" }))),
			`0s Existed Fits
1s Deleted
1s Created Fits`, 1, true,
		},
		"another pod of higher priority gets a device, and releases it": {
			begin(train()).then(s, other("b", priority(1000), "gpu-1")).then(m, gone("b")),
			`0s Existed Fits
1s Taken; b on node-1 gpu-1 HigherPriority 1000:0
1s Changed DoesNotFit CountUnsatisfiable; pod ml/b created and scheduled and claim ml/b of pod ml/b got node-1/gpu-1
1m1s Changed Fits; pod ml/b deleted and claim ml/b deleted, which had 1 device`, 61, true,
		},
		"another pod gets what a third one releases at the same time": {
			begin(train(), other("a", created(time.Hour), "gpu-1")).then(s, gone("a"), other("b", created(time.Hour), "gpu-1")).then(s, gone("b"), other("c", created(0), "gpu-1")),
			`0s Existed DoesNotFit CountUnsatisfiable
1s Taken; b on node-1 gpu-1 CreatedEarlier 0:0
2s Taken; c on node-1 gpu-1 SchedulerOrder 0:0`, 2, true,
		},
		"others get what it cannot use": {
			begin(
				train(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: tc.Node2} }),
				tc.Class(tc.ClassA, tc.DriverA), tc.Slice("a", tc.DriverA, tc.Node2, tc.Device("a-0")).OnNode(tc.Node2),
			).then(s, other("b", priority(1), "gpu-0")).then(s, put(tc.Claim("c", tc.Request("a", tc.ClassA, 1)).Holding(tc.DriverA+"/"+tc.Node2+"/a-0"))),
			`0s Existed DoesNotFit CountUnsatisfiable`, 2, true,
		},
		"its node is cordoned, and nothing else changes": {
			begin(train()).then(s, func(s *snapshot.Snapshot) {
				node := s.Nodes[0].DeepCopy()
				node.Spec.Unschedulable = true
				s.Nodes[0] = node
			}).then(s, func(s *snapshot.Snapshot) {
				pod := s.Pod(tc.Namespace, "train").DeepCopy()
				pod.ResourceVersion = "7"
				put(pod)(s)
			}),
			`0s Existed Fits
1s Changed DoesNotFit CountUnsatisfiable; node node-1 cordoned`, 2, true,
		},
		"the cluster was not followed": {
			begin(train()).then(m, gone(tc.Node1)).missed("the API server did not answer").then(m, scheduled).missed("again"),
			`0s Existed Fits
10s-1m0s Missed; the API server did not answer
10s-1m0s Changed DoesNotFit CountUnsatisfiable; pool node-1 is gone with 2 devices
1m10s-2m0s Missed; again
1m10s-2m0s Scheduled Allocated node-1`, 70, false,
		},
		"a slice comes and goes": {
			begin(train()).then(s, gone(tc.Node1)).then(s, put(pool1())).then(s, gone(tc.Node1)).then(s, put(pool1())).then(s, gone(tc.Node1)),
			`0s Existed Fits
1s Changed DoesNotFit CountUnsatisfiable; pool node-1 is gone with 2 devices; 3 times until 5s
2s Changed Fits; pool node-1 added with 2 devices; 2 times until 4s`, 5, true,
		},
		"a device is tainted": {
			begin(train()).then(s, put(tc.TaintRule("hot", tc.Driver, tc.Node1, "gpu-1"))),
			`0s Existed Fits
1s Changed DoesNotFit CountUnsatisfiable; DeviceTaintRule hot added: taint hot:NoSchedule`, 1, true,
		},
		"the class is deleted": {
			begin(train()).then(s, gone(tc.Node1)).then(s).then(m, func(s *snapshot.Snapshot) { s.Classes = nil }),
			`0s Existed Fits
1s Changed DoesNotFit CountUnsatisfiable; pool node-1 is gone with 2 devices
1m2s Changed Error ClassNotFound; class gpu removed`, 62, true,
		},
		"the reason changes while it fits nowhere": {
			begin(train(), other("a", priority(0), "gpu-1"), other("b", priority(0), "gpu-0")).then(s, gone(tc.Node1)).then(s).then(m, gone("a")).then(s, gone(tc.Node2)).then(s),
			`0s Existed DoesNotFit CountUnsatisfiable
1m2s-1m4s Changed DoesNotFit NodeNotReachable`, 64, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := History(t.Context(), test.film.moments(), explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "train")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, told(h)); diff != "" {
				t.Errorf("history, -want +got:\n%s", diff)
			}
			if h.SecondsWaited != test.waited || h.Waits != test.waits || h.Waits && h.WaitingSince.IsZero() {
				t.Errorf("waited %d s, want %d; waits %v since %v", h.SecondsWaited, test.waited, h.Waits, h.WaitingSince)
			}
			if last := test.film[len(test.film)-1].Snapshot.TakenAt; !h.To.Time.Equal(last) || !h.From.Time.Equal(tc.Taken()) {
				t.Errorf("from %s to %s", h.From, h.To)
			}
		})
	}
}

// TestClaim follows a claim.
func TestClaim(t *testing.T) {
	h, err := History(t.Context(), begin().then(time.Second, gone(tc.Node1)).then(time.Second, put(pool1()), put(tc.Claim("wants", tc.GPUs("gpu", 2)).Holding("gpu-0").Holding("gpu-1"))).moments(),
		explain.Options{Object: api.Ref(api.KindClaim, tc.Namespace, "wants")})
	if err != nil {
		t.Fatal(err)
	}
	want := `0s Existed Fits
1s Changed DoesNotFit CountUnsatisfiable; pool node-1 is gone with 2 devices
2s Changed Allocated`
	if diff := cmp.Diff(want, told(h)); diff != "" || h.SecondsWaited != 2 || h.Waits {
		t.Errorf("waited %d s: %s", h.SecondsWaited, diff)
	}
}

// TestAbsent follows what does not exist, and fails with the recording.
func TestAbsent(t *testing.T) {
	_, err := History(t.Context(), begin().then(time.Second, gone(tc.Node1)).moments(), explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "train")})
	if absent := new(explain.TargetError); !errors.As(err, &absent) {
		t.Errorf("the error is %v", err)
	}
	broken := errors.New("broken")
	_, err = History(t.Context(), func(yield func(recording.Moment, error) bool) {
		if yield(begin(train())[0], nil) {
			yield(recording.Moment{}, broken)
		}
	}, explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "train")})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}
