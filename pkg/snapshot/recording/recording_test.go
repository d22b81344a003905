// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// start returns the time at which all recordings of the tests begin.
func start() time.Time { return time.Date(2026, 9, 1, 9, 0, 0, 0, time.UTC) }

// saved returns a snapshot as text.
func saved(t testing.TB, s *snapshot.Snapshot) string {
	t.Helper()
	var text bytes.Buffer
	if err := files.Write(&text, s, files.JSON); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// changedAtRandom returns a snapshot that differs from another one in some objects.
func changedAtRandom(t testing.TB, random *rand.Rand, s *snapshot.Snapshot, step int) *snapshot.Snapshot {
	t.Helper()
	other := fleet.Random(random.Uint64N(1 << 20)).Snapshot
	next := *s
	next.TakenAt = start().Add(time.Duration(step) * time.Second)
	for _, list := range files.Lists() {
		switch random.IntN(6) {
		case 0:
			list.Remove(&next, func(snapshot.Identity) bool { return random.IntN(3) == 0 })
		case 1:
			if list.Name == "ResourceClaim" || list.Name == "ResourceSlice" || list.Name == "Pod" || list.Name == "Node" {
				part := *other
				list.Remove(&part, func(snapshot.Identity) bool { return random.IntN(2) == 0 })
				next = *next.With(&part)
			}
		}
	}
	if len(next.Claims) > 0 && random.IntN(2) == 0 {
		claim := next.Claims[random.IntN(len(next.Claims))].DeepCopy()
		parameters := []string{`{"a":null}`, `{"a":{"b":null}}`, `{"a":{"b":9007199254740993}}`, `{"a":[null,{"c":null}]}`, `{}`, `{"a":"b"}`}
		for i := range claim.Spec.Devices.Config {
			if opaque := claim.Spec.Devices.Config[i].Opaque; opaque != nil {
				opaque.Parameters.Raw = []byte(parameters[random.IntN(len(parameters))])
			}
		}
		claim.Annotations = map[string]string{"example.com/step": fmt.Sprint(step)}
		next.Claims = slices.Clone(next.Claims)
		next.Claims[slices.IndexFunc(next.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == claim.Name && c.Namespace == claim.Namespace })] = claim
	}
	switch random.IntN(8) {
	case 0:
		next.Gates = map[string]snapshot.Gate{"DRADeviceTaints": {Enabled: random.IntN(2) == 0, Source: snapshot.GateFromMetrics}}
	case 1:
		next.Gaps = []snapshot.Gap{{Resource: snapshot.ResourceMetrics, Reason: fmt.Sprintf("step %d", step)}}
	case 2:
		next.Gaps, next.ServerVersion = nil, "v1.37.1"
	}
	// Files have what the API server would set.
	return testsnapshot.Load(t, saved(t, &next))
}

// story returns a random history of a cluster.
func story(t testing.TB, seed uint64, steps int) []*snapshot.Snapshot {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	s := testsnapshot.Load(t, testsnapshot.Everything())
	s.TakenAt = start()
	states := []*snapshot.Snapshot{testsnapshot.Load(t, saved(t, s))}
	for step := 1; step < steps; step++ {
		states = append(states, changedAtRandom(t, random, states[step-1], step))
	}
	return states
}

// record writes states to a new file, each second one, and returns its path.
func record(t testing.TB, states []*snapshot.Snapshot, limits Limits) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.rec")
	w, err := Create(t.Context(), path, states[0], limits)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states[1:] {
		if err := w.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(states[len(states)-1].TakenAt); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path string) *Recording {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// checkState fails unless a snapshot of a recording is the recorded one, byte for byte.
func checkState(t testing.TB, what string, want, got *snapshot.Snapshot) {
	t.Helper()
	one, other := strings.Split(saved(t, want), "\n"), strings.Split(saved(t, got), "\n")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			t.Fatalf("%s, line %d: recorded and read differ:\n%.800s\n%.800s", what, i, one[i], other[i])
		}
	}
	if len(one) != len(other) {
		t.Fatalf("%s: %d and %d lines", what, len(one), len(other))
	}
}

// stateAt returns the state that was recorded when a snapshot was taken.
func stateAt(states []*snapshot.Snapshot, s *snapshot.Snapshot) *snapshot.Snapshot {
	return states[int(s.TakenAt.Sub(start())/time.Second)]
}

// TestReplay records random histories and reads each moment back, alone and one after the other.
func TestReplay(t *testing.T) {
	for seed := range uint64(6) {
		states := story(t, seed, 40)
		r := opened(t, record(t, states, Limits{}))
		for i, want := range states {
			m, err := r.At(t.Context(), want.TakenAt, files.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkState(t, fmt.Sprintf("seed %d, moment %d alone", seed, i), want, m.Snapshot)
		}
		count := 0
		for m, err := range r.From(t.Context(), start(), files.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			checkState(t, fmt.Sprintf("seed %d, at %v", seed, m.Snapshot.TakenAt), stateAt(states, m.Snapshot), m.Snapshot)
			count++
		}
		// Moments in which nothing changed are left out.
		if count < len(states)*3/4 {
			t.Errorf("seed %d: %d of %d moments", seed, count, len(states))
		}
	}
}

// TestCut cuts a recording at many places. All moments that were complete are still there, and the
// recording can be gone on with.
func TestCut(t *testing.T) {
	states := story(t, 1, 12)
	path := record(t, states, Limits{})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The sizes of the file after each moment.
	var sizes []int64
	for n := range states {
		info, err := os.Stat(record(t, states[:n+1], Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	for cut := 0; cut < len(whole); cut += 1 + len(whole)/150 {
		// A complete file ends with an empty block of three bytes.
		complete := 0
		for complete < len(sizes) && sizes[complete]-3 <= int64(cut) {
			complete++
		}
		r, err := Bytes("cut", whole[:cut])
		if complete == 0 {
			if err == nil {
				_, err = r.Last(t.Context(), files.Options{})
			}
			var input *files.InputError
			if !errors.As(err, &input) {
				t.Fatalf("cut at %d: expected an error about the file, got %v", cut, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		m, err := r.Last(t.Context(), files.Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		checkState(t, fmt.Sprintf("cut at %d", cut), states[complete-1], m.Snapshot)
		checkResumed(t, whole[:cut], states, complete)
	}
}

// checkResumed goes on with a recording that was cut.
func checkResumed(t testing.TB, text []byte, states []*snapshot.Snapshot, complete int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.rec")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	next := *states[0]
	next.TakenAt = start().Add(time.Hour)
	w, err := Create(t.Context(), path, &next, Limits{})
	if err != nil {
		t.Fatalf("cut at %d: %v", len(text), err)
	}
	if err := w.Close(time.Time{}); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path)
	count := 0
	var last Moment
	for m, err := range r.From(t.Context(), start(), files.Options{}) {
		if err != nil {
			t.Fatalf("cut at %d: %v", len(text), err)
		}
		if m.Missed == nil {
			checkState(t, fmt.Sprintf("cut at %d, resumed", len(text)), stateAt(states, m.Snapshot), m.Snapshot)
		}
		last = m
		count++
	}
	checkState(t, "resumed", &next, last.Snapshot)
	if count != complete+1 || last.Missed == nil || !last.Missed.Since.Equal(states[complete-1].TakenAt) {
		t.Errorf("cut at %d: %d moments, %+v", len(text), count, last.Missed)
	}
	// In between, nothing is known.
	m, err := r.At(t.Context(), start().Add(time.Minute), files.Options{})
	if err != nil || m.After == nil || !m.Snapshot.TakenAt.Equal(states[complete-1].TakenAt) {
		t.Errorf("cut at %d, in the gap: %+v, %v", len(text), m, err)
	}
}

// TestLimits keeps a recording within its limits. The moments that are left read as before.
func TestLimits(t *testing.T) {
	states := story(t, 2, 60)
	full, err := os.Stat(record(t, states, Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []Limits{{Size: full.Size() * 2 / 3}, {Keep: 20 * time.Second}} {
		path := record(t, states, limits)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if limits.Size > 0 && info.Size() > limits.Size {
			t.Errorf("%+v: %d bytes", limits, info.Size())
		}
		r := opened(t, path)
		from, to, err := r.Range(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := states[len(states)-1]
		if !to.Equal(last.TakenAt) || !from.After(start()) || limits.Keep > 0 && to.Sub(from) < limits.Keep {
			t.Errorf("%+v: from %v to %v", limits, from, to)
		}
		for m, err := range r.From(t.Context(), from, files.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			checkState(t, fmt.Sprintf("%+v", limits), stateAt(states, m.Snapshot), m.Snapshot)
		}
		if _, err := r.At(t.Context(), start(), files.Options{}); !strings.Contains(fmt.Sprint(err), "it was recorded from") {
			t.Errorf("%+v: before the first moment: %v", limits, err)
		}
	}
}

// TestOtherCluster refuses to go on with a recording of another cluster, or that another process
// writes, and leaves it as it is.
func TestOtherCluster(t *testing.T) {
	states := story(t, 3, 3)
	id := func(s *snapshot.Snapshot, uid string) *snapshot.Snapshot {
		other := *s
		other.Namespaces = append(slices.Clone(other.Namespaces), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(uid)}})
		other.Sort()
		return &other
	}
	path := record(t, []*snapshot.Snapshot{id(states[0], "1")}, Limits{})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var other *OtherClusterError
	if _, err := Create(t.Context(), path, id(states[1], "2"), Limits{}); !errors.As(err, &other) {
		t.Errorf("another cluster: %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	w, err := Create(t.Context(), path, id(states[1], "1"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), path, id(states[2], "1"), Limits{}); !strings.Contains(fmt.Sprint(err), "another process writes to it") {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// TestEarlierClock goes on with a recording when the clock says an earlier time. The last state is the
// newest one.
func TestEarlierClock(t *testing.T) {
	states := story(t, 8, 4)
	path := record(t, states[:3], Limits{})
	earlier := *states[3]
	earlier.TakenAt = start().Add(-time.Hour)
	w, err := Create(t.Context(), path, &earlier, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(time.Time{}); err != nil {
		t.Fatal(err)
	}
	m, err := opened(t, path).Last(t.Context(), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !m.Snapshot.TakenAt.After(states[2].TakenAt) || m.Missed == nil {
		t.Errorf("the last moment is %v, missed %+v", m.Snapshot.TakenAt, m.Missed)
	}
	want := *states[3]
	want.TakenAt = m.Snapshot.TakenAt
	checkState(t, "the last moment", &want, m.Snapshot)
}

// TestJoined reads two recordings in one file. The time between them is not known; the other way
// round, it is an error.
func TestJoined(t *testing.T) {
	states := story(t, 9, 8)
	var parts [2][]byte
	for i, part := range [][]*snapshot.Snapshot{states[:3], states[5:]} {
		text, err := os.ReadFile(record(t, part, Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = text
	}
	r, err := Bytes("joined", slices.Concat(parts[0], parts[1]))
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.At(t.Context(), states[4].TakenAt, files.Options{})
	if err != nil || m.After == nil || !m.After.Since.Equal(states[2].TakenAt) {
		t.Errorf("between them: %+v, %v", m, err)
	}
	if _, err := Bytes("reversed", slices.Concat(parts[1], parts[0])); err == nil {
		t.Error("the later one first is no error")
	}
}

// TestKilledAtOnce goes on with a file that has no moment yet.
func TestKilledAtOnce(t *testing.T) {
	states := story(t, 10, 2)
	whole, err := os.ReadFile(record(t, states[:1], Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cluster.rec")
	if err := os.WriteFile(path, whole[:len(whole)/3], 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(t.Context(), path, states[1], Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(time.Time{}); err != nil {
		t.Fatal(err)
	}
	m, err := opened(t, path).Last(t.Context(), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkState(t, "the first moment", states[1], m.Snapshot)
}

// TestStill writes from time to time that nothing changed, and nothing in between.
func TestStill(t *testing.T) {
	first := story(t, 4, 1)[0]
	var states []*snapshot.Snapshot
	for second := range 60 {
		s := *first
		s.TakenAt = start().Add(time.Duration(second) * time.Second)
		states = append(states, &s)
	}
	r := opened(t, record(t, states, Limits{}))
	count := 0
	for _, err := range r.From(t.Context(), start(), files.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != 7 {
		t.Errorf("%d moments", count)
	}
	m, err := r.At(t.Context(), start().Add(35*time.Second), files.Options{})
	if err != nil || !m.Snapshot.TakenAt.Equal(start().Add(35*time.Second)) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestDamage changes bytes of a recording. It never reads as another history.
func TestDamage(t *testing.T) {
	states := story(t, 5, 8)
	whole, err := os.ReadFile(record(t, states, Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 1 + len(whole)/200 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x55
		r, err := Bytes("damaged", damaged)
		if err != nil {
			continue
		}
		for m, err := range r.From(t.Context(), start(), files.Options{}) {
			if err != nil {
				break
			}
			checkState(t, fmt.Sprintf("damaged at %d", at), stateAt(states, m.Snapshot), m.Snapshot)
		}
	}
}

// FuzzRead reads any bytes.
func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile(record(f, story(f, 6, 4), Limits{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := Bytes("fuzz", content)
		if err != nil {
			return
		}
		for _, err := range r.From(t.Context(), r.segments[0].begins, files.Options{}) {
			if err != nil {
				return
			}
		}
	})
}
