// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkTop opens the dashboard of the built program in a terminal of 200x60, on an API
// server with 5,000 mixed nodes and 1,000 pods that wait. It takes minutes, and reports
//
//	first-ms   until something is on the screen
//	page-s     until there is the first page
//	page-cpu-s the processor time of that
//	rest-cpu   the share of a core while nothing happens, once all pods are explained: in two
//	           minutes, in which ages go on at least once
//	busy-cpu   the same in a minute in which 100 pods a second become ready or not
//	rest-MiB   resident memory (VmRSS) with each view looked at once, afterwards
//	peak-MiB   the most of it (VmHWM) until then
func BenchmarkTop(b *testing.B) {
	snap := fleet.Mixed(5000)
	fleet.AddWaiting(snap, 1000)
	c := startBenchCluster(b)
	c.store(b, snap)
	for b.Loop() {
		began := time.Now()
		top := openBenchTop(b, c.program, c.kubeconfig)
		top.until(b, func(screen string) bool { return strings.TrimSpace(screen) != "" })
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "first-ms")
		top.until(b, func(screen string) bool { return strings.Contains(screen, "Capacity") })
		b.ReportMetric(time.Since(began).Seconds(), "page-s")
		b.ReportMetric(top.cpu(b), "page-cpu-s")
		top.keys(b, "6")
		top.until(b, func(screen string) bool {
			return strings.Contains(screen, "pending") && strings.Contains(screen, "WAIT") && !strings.Contains(screen, "  …  ")
		})
		for _, view := range []string{"2", "3", "4", "5", "6", "7", "8", "9", "0", "1"} {
			top.keys(b, view)
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Minute)
		b.ReportMetric(top.share(b, 2*time.Minute), "rest-cpu")
		b.ReportMetric(top.memory(b, "VmRSS"), "rest-MiB")
		b.ReportMetric(top.memory(b, "VmHWM"), "peak-MiB")
		ctx, stop := context.WithCancel(b.Context())
		go c.change(ctx, snap, 100)
		b.ReportMetric(top.share(b, time.Minute), "busy-cpu")
		stop()
		top.keys(b, "q")
	}
}

// store writes objects past the API server, so that all have their UIDs and states.
func (c *benchCluster) store(b *testing.B, snap *snapshot.Snapshot) {
	type stored interface {
		metav1.Object
		runtime.Object
	}
	var objects []stored
	add := func(object stored) { objects = append(objects, object) }
	for _, o := range snap.Namespaces {
		add(o.DeepCopy())
	}
	for _, o := range snap.Nodes {
		add(o.DeepCopy())
	}
	for _, o := range snap.Slices {
		add(o.DeepCopy())
	}
	for _, o := range snap.Classes {
		add(o.DeepCopy())
	}
	for _, o := range snap.Claims {
		add(o.DeepCopy())
	}
	for _, o := range snap.Pods {
		add(o.DeepCopy())
	}
	resources := map[string]string{
		"Namespace": "namespaces", "Node": "minions", "ResourceSlice": "resourceslices", "DeviceClass": "deviceclasses", "ResourceClaim": "resourceclaims", "Pod": "pods",
	}
	each(b, objects, func(ctx context.Context, i int) error {
		object := objects[i]
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return err
		}
		object.SetResourceVersion("")
		text, err := runtime.Encode(scheme.Codecs.LegacyCodec(kinds[0].GroupVersion()), object)
		if err != nil {
			return err
		}
		return c.plane.Store(ctx, filepath.Join(resources[kinds[0].Kind], object.GetNamespace(), object.GetName()), text)
	})
}

// change makes pods ready or not, so many a second.
func (c *benchCluster) change(ctx context.Context, snap *snapshot.Snapshot, perSecond int) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pod, ready := snap.Pods[i%len(snap.Pods)], i/len(snap.Pods)%2 == 1
		go func() {
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, map[bool]string{true: "True", false: "False"}[ready])
			// It fails when the benchmark ends.
			_, _ = c.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		}()
	}
}

// benchTop is a dashboard in tmux.
type benchTop struct{ socket, pid string }

func openBenchTop(b *testing.B, program, kubeconfig string) *benchTop {
	if _, err := exec.LookPath("tmux"); err != nil {
		b.Skip("tmux is not installed")
	}
	top := &benchTop{socket: filepath.Join(b.TempDir(), "tmux")}
	top.tmux(b, "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "60", "exec '"+program+"' top --no-config --kubeconfig '"+kubeconfig+"'")
	b.Cleanup(func() { _ = exec.Command("tmux", "-S", top.socket, "kill-server").Run() })
	top.pid = strings.TrimSpace(top.tmux(b, "display-message", "-p", "#{pane_pid}"))
	return top
}

func (top *benchTop) tmux(b *testing.B, args ...string) string {
	out, err := exec.CommandContext(b.Context(), "tmux", append([]string{"-S", top.socket}, args...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (top *benchTop) keys(b *testing.B, names ...string) {
	top.tmux(b, append([]string{"send-keys"}, names...)...)
}

func (top *benchTop) until(b *testing.B, shows func(screen string) bool) {
	var screen string
	err := poll(b.Context(), func() bool {
		screen = top.tmux(b, "capture-pane", "-p")
		return shows(screen)
	})
	if err != nil {
		b.Fatalf("%v; the screen is\n%s", err, screen)
	}
}

// cpu returns the processor time in seconds.
func (top *benchTop) cpu(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/" + top.pid + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	// Behind the name, which may have blanks: user and system time are 12th and 13th, in
	// hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	total := 0.0
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += ticks / 100
	}
	return total
}

// share returns the used share of a core for a while.
func (top *benchTop) share(b *testing.B, during time.Duration) float64 {
	before, began := top.cpu(b), time.Now()
	time.Sleep(during)
	return (top.cpu(b) - before) / time.Since(began).Seconds()
}

// memory returns a line of /proc/PID/status in MiB.
func (top *benchTop) memory(b *testing.B, name string) float64 {
	text, err := os.ReadFile("/proc/" + top.pid + "/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	b.Fatalf("no %s in\n%s", name, text)
	return 0
}
