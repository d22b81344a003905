// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// The fleet that the figures are for.
const (
	fleetNodes   = 5000
	fleetDevices = 8
	fleetClaims  = 20000
)

// settle runs all immediate commands, and drops later ones.
func settle(m *Model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, one := range msg {
			settle(m, one)
		}
	default:
		_, next := m.Update(msg)
		settle(m, next)
	}
}

func fleetModel(ctx context.Context, source live.Source) *Model {
	m := New(ctx, Options{
		Source: source, Name: "fleet", Env: func(string) string { return "" },
		After: func(time.Duration, tea.Msg) tea.Cmd { return nil },
	})
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
	return m
}

// BenchmarkFirstPicture measures the time from the data to the first complete screen, for
// each view: cpu-s/op is the processor's time.
func BenchmarkFirstPicture(b *testing.B) {
	source := &moving{snap: fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)}
	for number, name := range views.Names() {
		b.Run(name, func(b *testing.B) {
			used := cpuTime(b)
			defer func() { b.ReportMetric((cpuTime(b)-used).Seconds()/float64(b.N), "cpu-s/op") }()
			for b.Loop() {
				m := fleetModel(b.Context(), source)
				m.view = views.ID(number)
				m.stack = []screen{m.views[number]}
				m.resize()
				settle(m, m.live.Take())
				if content := m.View().Content; len(content) == 0 {
					b.Fatal("nothing is drawn")
				}
			}
		})
	}
}

// BenchmarkKey measures the time from a key to the next screen, on the longest list: p95-ms
// for 95 of 100 keys. Background work does not count.
func BenchmarkKey(b *testing.B) {
	source := &moving{snap: fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)}
	m := fleetModel(b.Context(), source)
	settle(m, m.live.Take())
	settle(m, m.show(views.Devices))
	for _, press := range []struct {
		name string
		key  tea.KeyPressMsg
	}{
		{"down", tea.KeyPressMsg{Code: tea.KeyDown}},
		{"pgdown", tea.KeyPressMsg{Code: tea.KeyPgDown}},
		{"end", tea.KeyPressMsg{Code: tea.KeyEnd}},
		{"sort", tea.KeyPressMsg{Code: '.', Text: "."}},
		{"find", tea.KeyPressMsg{Code: 'f', Text: "f"}},
		{"typed", tea.KeyPressMsg{Code: '4', Text: "4"}},
		{"left", tea.KeyPressMsg{Code: tea.KeyEscape}},
		{"nodes", tea.KeyPressMsg{Code: '2', Text: "2"}},
		{"map", tea.KeyPressMsg{Code: 'v', Text: "v"}},
		{"cell", tea.KeyPressMsg{Code: tea.KeyRight}},
		{"view", tea.KeyPressMsg{Code: '5', Text: "5"}},
	} {
		b.Run(press.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				m.Update(press.key)
				_ = m.View()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// BenchmarkFilter measures how long it takes in the background to apply a typed filter.
func BenchmarkFilter(b *testing.B) {
	source := &moving{snap: fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)}
	m := fleetModel(b.Context(), source)
	settle(m, m.live.Take())
	for _, filter := range []string{"node-04242", "!allocated", `~gpu-[0-3]$`, `--where device.attributes["gpu.example.com"].model == "none"`} {
		b.Run(filter[:5], func(b *testing.B) {
			list := newList(views.Devices, views.Scope{})
			for b.Loop() {
				list.from = nil
				list.wanted.Filter = filter
				settle(m, m.push(list))
				m.stack = m.stack[:1]
			}
		})
	}
}

// BenchmarkRoom measures how long it takes in the background to say on how many nodes the
// largest claims fit.
func BenchmarkRoom(b *testing.B) {
	m := fleetModel(b.Context(), &moving{snap: fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)})
	settle(m, m.live.Take())
	for b.Loop() {
		if text, err := views.NodeRoom(b.Context(), m.live.Picture().Cluster, m.live.Picture().Inventory); err != nil || len(text) == 0 {
			b.Fatal(text, err)
		}
	}
}

// BenchmarkChanges measures the dashboard's use of a processor while 500 claims change in a
// second: cpu/s is the share of one core.
func BenchmarkChanges(b *testing.B) {
	snap := fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)
	for _, view := range []views.ID{views.Overview, views.Devices, views.Claims, views.Pending} {
		b.Run(view.String(), func(b *testing.B) {
			source := &moving{snap: snap}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			m := New(ctx, Options{Source: source, Name: "fleet", Env: func(string) string { return "" }})
			m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
			messages := make(chan tea.Msg, 100)
			run := func(cmd tea.Cmd) { start(ctx, cmd, messages) }
			run(m.live.Take())
			run(m.show(view))
			const seconds = 10
			for b.Loop() {
				began, used := time.Now(), cpuTime(b)
				tick := time.NewTicker(100 * time.Millisecond)
				drawn := time.NewTicker(time.Second / 60)
				for step := 0; time.Since(began) < seconds*time.Second; {
					select {
					case <-tick.C:
						step++
						source.set(reallocated(snap, step*50, 50))
						_, cmd := m.Update(live.ChangedMsg{})
						run(cmd)
					case msg := <-messages:
						_, cmd := m.Update(msg)
						run(cmd)
					case <-drawn.C:
						_ = m.View()
					}
				}
				tick.Stop()
				drawn.Stop()
				b.ReportMetric((cpuTime(b)-used).Seconds()/time.Since(began).Seconds(), "cpu/s")
			}
		})
	}
}

// BenchmarkBusy measures the dashboard's use of a processor while 100 objects change in a
// second, half of them claims that lose their devices or get them back and half pods that
// become ready or not, and 30 pods wait: cpu/s is the share of one core.
func BenchmarkBusy(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			snap := fleet.Mixed(nodes)
			fleet.AddWaiting(snap, 30)
			source := &moving{snap: snap}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			m := New(ctx, Options{Source: source, Name: "fleet", Env: func(string) string { return "" }})
			m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
			messages := make(chan tea.Msg, 100)
			run := func(cmd tea.Cmd) { start(ctx, cmd, messages) }
			run(m.Init())
			for m.causes() == nil {
				_, cmd := m.Update(<-messages)
				run(cmd)
			}
			const seconds = 30
			for b.Loop() {
				began, used, looks, last := time.Now(), cpuTime(b), 0, m.causes()
				tick := time.NewTicker(100 * time.Millisecond)
				for step := 0; time.Since(began) < seconds*time.Second; {
					select {
					case <-tick.C:
						step++
						next := reallocated(snap, step*5, 5)
						next.Pods = slices.Clone(snap.Pods)
						for i := range 5 {
							at := (step*5 + i) % len(next.Pods)
							pod := *next.Pods[at]
							pod.Status.Conditions = append(slices.Clone(pod.Status.Conditions), corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
							next.Pods[at] = &pod
						}
						source.set(next)
						_, cmd := m.Update(live.ChangedMsg{})
						run(cmd)
					case msg := <-messages:
						_, cmd := m.Update(msg)
						run(cmd)
					}
					_ = m.View()
					if now := m.causes(); now != last {
						looks, last = looks+1, now
					}
				}
				tick.Stop()
				b.ReportMetric((cpuTime(b)-used).Seconds()/time.Since(began).Seconds(), "cpu/s")
				b.ReportMetric(float64(looks), "looks")
			}
		})
	}
}

// BenchmarkRest measures the dashboard's use of a processor while nothing happens, with 30
// waiting pods, once the causes are found: cpu/s is the share of one core.
func BenchmarkRest(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			snap := fleet.Mixed(nodes)
			fleet.AddWaiting(snap, 30)
			source := &resting{moving{snap: snap}}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			m := New(ctx, Options{Source: source, Name: "fleet", Env: func(string) string { return "" }})
			m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
			messages := make(chan tea.Msg, 100)
			run := func(cmd tea.Cmd) { start(ctx, cmd, messages) }
			// The program draws after each message.
			during := func(enough func() bool) {
				for !enough() {
					_, cmd := m.Update(<-messages)
					run(cmd)
					_ = m.View()
				}
			}
			run(m.Init())
			during(func() bool { return m.causes() != nil })
			const seconds = 20
			for b.Loop() {
				began, used := time.Now(), cpuTime(b)
				during(func() bool { return time.Since(began) >= seconds*time.Second })
				b.ReportMetric((cpuTime(b)-used).Seconds()/time.Since(began).Seconds(), "cpu/s")
			}
		})
	}
}

// resting is a cluster in which nothing happens but time.
type resting struct{ moving }

func (s *resting) Snapshot() *snapshot.Snapshot {
	now := *s.moving.Snapshot()
	now.TakenAt = time.Now()
	return &now
}

func (*resting) Answered() time.Time { return time.Now() }

// start runs a command in the background, as the program does.
func start(ctx context.Context, cmd tea.Cmd, messages chan<- tea.Msg) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, one := range batch {
				start(ctx, one, messages)
			}
			return
		}
		if msg == nil {
			return
		}
		select {
		case messages <- msg:
		case <-ctx.Done():
		}
	}()
}

// reallocated returns the fleet with some claims seen a moment later.
func reallocated(snap *snapshot.Snapshot, from, count int) *snapshot.Snapshot {
	to := *snap
	to.TakenAt = time.Now()
	to.Claims = slices.Clone(snap.Claims)
	for i := from; i < from+count; i++ {
		at := i % len(to.Claims)
		claim := *to.Claims[at]
		claim.Status.ReservedFor = nil
		claim.Generation++
		claim.Labels = map[string]string{"seen": fmt.Sprint(i)}
		if i%2 == 0 {
			claim.Status.Allocation = nil
		}
		to.Claims[at] = &claim
	}
	return &to
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkMemory compares the memory of the dashboard, with each view looked at once, with
// the snapshot's: ratio is both together over the snapshot.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		empty := heap()
		snap := fleet.Fleet(fleetNodes, fleetDevices, fleetClaims)
		alone := heap() - empty
		m := fleetModel(b.Context(), &moving{snap: snap})
		settle(m, m.live.Take())
		for number := range views.Names() {
			settle(m, m.show(views.ID(number)))
			_ = m.View()
		}
		all := heap() - empty
		b.ReportMetric(float64(alone)/(1<<20), "snapshot-MiB")
		b.ReportMetric(float64(all)/(1<<20), "all-MiB")
		b.ReportMetric(float64(all)/float64(alone), "ratio")
		runtime.KeepAlive(m)
	}
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
