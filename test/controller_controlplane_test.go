// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationapi "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

const controllerNamespace = "kubectl-dra"

// installController applies config with the component for events.
func (c *cluster) installController(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	config, err := filepath.Abs("../config")
	if err != nil {
		t.Fatal(err)
	}
	if config, err = filepath.Rel(dir, config); err != nil {
		t.Fatal(err)
	}
	kustomization := fmt.Sprintf("resources: [%s]\ncomponents: [%s/events]\n", config, config)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	mustDo(t, func() error {
		_, err := c.kubectl(t, "apply", "-k", dir)
		return err
	})
}

// kubectl runs the kubectl of the control plane.
func (c *cluster) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries, "kubectl"), append(args, "--kubeconfig", c.kubeconfig)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// token returns a token of a service account.
func (c *cluster) token(t *testing.T, namespace, name string) string {
	t.Helper()
	request := &authenticationapi.TokenRequest{}
	var token string
	mustDo(t, func() error {
		got, err := c.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, request, metav1.CreateOptions{})
		if err == nil {
			token = got.Status.Token
		}
		return err
	})
	return token
}

// replica is a running controller.
type replica struct {
	*running
	metrics, probes string
}

// startController runs a replica with the rights of its service account.
func (c *cluster) startController(t *testing.T, path, kubeconfig string, args ...string) *replica {
	t.Helper()
	address := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // A free port.
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
	r := &replica{metrics: address(), probes: address()}
	p := &program{path: path, env: []string{"HOME=" + t.TempDir()}}
	r.running = p.start(t, append([]string{
		"--kubeconfig", kubeconfig, "-n", controllerNamespace, "--metrics-bind-address", r.metrics, "--health-probe-bind-address", r.probes, "--leader-elect", "--interval", "1s",
	}, args...)...)
	return r
}

// get returns the status and the body of an address.
func get(t testing.TB, url, token string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // Its certificate is self-signed.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// value returns the value of a metric in the text format; -1 if it is not there.
func value(text, metric string) float64 {
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\S+)$`).FindStringSubmatch(text)
	if match == nil {
		return -1
	}
	v, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return -1
	}
	return v
}

// ourEvents returns the events of the controller about a pod.
func (c *cluster) ourEvents(ctx context.Context, namespace, pod string) []eventsapi.Event {
	list, err := c.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=dra-controller"})
	if err != nil {
		return nil
	}
	var ours []eventsapi.Event
	for i := range list.Items {
		if list.Items[i].Regarding.Name == pod {
			ours = append(ours, list.Items[i])
		}
	}
	return ours
}

// TestController runs two replicas with the rights of config. The pod that the scheduler refuses gets
// one event, which says what `why` says; it stays the only one when the leader is killed, when the API
// server is restarted, and when the next leader loses its lease, and is gone when the pod has a node.
func TestController(t *testing.T) {
	options := everything()
	c := startCluster(t, options)
	c.installController(t)
	c.createAll(t, "diff", diffObjects)
	kubeconfig := c.kubeconfigOf(t, "system:serviceaccount:"+controllerNamespace+":dra-controller")
	path := builtController(t)
	replicas := []*replica{c.startController(t, path, kubeconfig, "--events"), c.startController(t, path, kubeconfig, "--events")}
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
	publish(all[:1])
	c.createAll(t, "diff", diffPod)
	began := time.Now()
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("the scheduler decided %+v", got)
	}
	await := func(what string, condition func([]eventsapi.Event) bool) []eventsapi.Event {
		t.Helper()
		var events []eventsapi.Event
		if err := poll(t.Context(), func() bool {
			events = c.ourEvents(t.Context(), "diff", "train")
			return condition(events)
		}); err != nil {
			t.Fatalf("%s: %v; events %+v\n%v\n%v", what, err, events, replicas[0].stderr.sofar(), replicas[len(replicas)-1].stderr.sofar())
		}
		return events
	}
	event := await("an event", func(events []eventsapi.Event) bool { return len(events) == 1 })[0]
	t.Logf("event after %s: %s: %s", time.Since(began).Round(time.Second), event.Reason, event.Note)
	_, why, _ := programFor(t, c.kubeconfig).tried(t, "why", "pod/train", "-n", "diff", "-o", "jsonpath={.code}\n{.headline}{.summary}\n{.remedies[0].change}")
	answer := strings.SplitN(why, "\n", 3)
	if event.Reason != answer[0] || !strings.HasPrefix(answer[1], strings.SplitN(event.Note, ";", 2)[0]) {
		t.Errorf("the event says %s: %q, why says %q", event.Reason, event.Note, answer)
	}
	described, err := c.kubectl(t, "describe", "pod", "train", "-n", "diff")
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Fields(event.Note); !strings.Contains(described, event.Reason) || !strings.Contains(described, event.Note) || len(words) == 0 || !strings.Contains(described, "dra-controller") {
		t.Errorf("kubectl describe does not show %q:\n%s", event.Note, described)
	}

	leader, other := replicas[0], replicas[1]
	reader := c.token(t, controllerNamespace, "dra-controller")
	text := func(r *replica) string {
		t.Helper()
		_, body := get(t, "https://"+r.metrics+"/metrics", reader)
		return body
	}
	if value(text(leader), "dra_pods{state=\"waiting\"}") < 0 {
		leader, other = other, leader
	}
	for metric, want := range map[string]float64{
		`dra_pods{state="waiting"}`:                                        1,
		`dra_class_devices{class="diff",state="free"}`:                     2,
		`dra_class_placeable_devices{class="diff"}`:                        2,
		`dra_class_placeable_nodes{class="diff",size="2"}`:                 0,
		`dra_pools{driver="diff.example.com",state="usable"}`:              2,
		`dra_class_waiting_pods{class="diff",code="` + event.Reason + `"}`: 1,
		`dra_events_total{result="published"}`:                             1,
	} {
		if got := value(text(leader), metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if got := value(text(other), `dra_pods{state="waiting"}`); got != -1 {
		t.Errorf("the replica that does not lead says that %v pods wait", got)
	}
	if status, body := get(t, "https://"+leader.metrics+"/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d %s", status, body)
	}
	c.createAll(t, "diff", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody}}")
	if status, body := get(t, "https://"+leader.metrics+"/metrics", c.token(t, "diff", "nobody")); status != http.StatusForbidden {
		t.Errorf("metrics without rights: %d %s", status, body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := get(t, "http://"+other.probes+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}

	if err := leader.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = leader.cmd.Wait()
	if err := poll(t.Context(), func() bool { return value(text(other), "dra_evaluations_total{result=\"ok\"}") > 0 }); err != nil {
		t.Fatalf("the other replica does not take over: %v", other.stderr.sofar())
	}
	mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
	other.wait(t, other.stderr, "that it is connected again", func(line string) bool { return strings.Contains(line, "connected again") })
	if got := c.ourEvents(t.Context(), "diff", "train"); len(got) != 1 || got[0].UID != event.UID {
		t.Errorf("after the leader was killed and the API server restarted: %+v", got)
	}

	// Somebody takes the lease from the leader, and does not renew it.
	third := c.startController(t, path, kubeconfig, "--events")
	replicas = append(replicas, third)
	mustDo(t, func() error {
		lease, err := c.kube.CoordinationV1().Leases(controllerNamespace).Get(t.Context(), "dra-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("somebody"), &metav1.MicroTime{Time: time.Now()}
		_, err = c.kube.CoordinationV1().Leases(controllerNamespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	})
	if log := other.stderr.all(); !strings.Contains(strings.Join(log, "\n"), "error: run: leader election lost") {
		t.Errorf("the leader without a lease ends with %v", log)
	}
	if err := other.cmd.Wait(); err == nil {
		t.Error("the leader without a lease ends with 0, want an error so that it is restarted")
	}
	if err := poll(t.Context(), func() bool { return value(text(third), "dra_evaluations_total{result=\"ok\"}") > 1 }); err != nil {
		t.Fatalf("the third replica does not lead: %v", third.stderr.sofar())
	}
	if got := c.ourEvents(t.Context(), "diff", "train"); len(got) != 1 || got[0].UID != event.UID {
		t.Errorf("after the leader lost its lease: %+v", got)
	}

	publish(all)
	if got := c.decision(t.Context(), "diff", "train", func(d decision) bool { return d.reason == scheduled }); got.node != "diff-a" {
		t.Fatalf("with the device back, the scheduler decided %+v", got)
	}
	await("the end of the event", func(events []eventsapi.Event) bool { return len(events) == 0 })
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	mustDo(t, func() error {
		node, err := c.kube.CoreV1().Nodes().Get(t.Context(), "diff-a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: metav1.NewTime(since)}}
		_, err = c.kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
		return err
	})
	event = await("an event about the node", func(events []eventsapi.Event) bool { return len(events) == 1 })[0]
	if want := "(since " + since.Format(time.RFC3339) + ")"; event.Reason != "NodeNotReady" || !strings.Contains(event.Note, want) {
		t.Errorf("the event says %s: %q, want NodeNotReady with %q", event.Reason, event.Note, want)
	}
	code, _, stderr := third.interrupt(t)
	if code != 0 {
		t.Errorf("the controller ends with %d: %v", code, stderr)
	}
}

// TestControllerWithoutDRA runs the controller on an API server without the group resource.k8s.io. It
// says so once, is ready, tries again at growing intervals, and works when the group is there.
func TestControllerWithoutDRA(t *testing.T) {
	options := controlplane.Options{RuntimeConfig: map[string]bool{"resource.k8s.io/v1": false}, WithoutScheduler: true, WithoutControllerManager: true}
	c := startCluster(t, options)
	c.installController(t)
	account := "system:serviceaccount:" + controllerNamespace + ":dra-controller"
	r := c.startController(t, builtController(t), c.kubeconfigOf(t, account), "--leader-elect=false")
	reader := c.token(t, controllerNamespace, "dra-controller")
	r.wait(t, r.stderr, "that there is no such group", func(line string) bool { return strings.Contains(line, "has no API group resource.k8s.io") })
	began := time.Now()
	if err := poll(t.Context(), func() bool {
		_, metrics := get(t, "https://"+r.metrics+"/metrics", reader)
		return value(metrics, `dra_evaluations_total{result="error"}`) >= 3
	}); err != nil {
		t.Fatalf("it does not try again: %v", r.stderr.sofar())
	}
	if passed := time.Since(began); passed < 4*time.Second {
		t.Errorf("three attempts in %s", passed)
	}
	if status, body := get(t, "http://"+r.probes+"/readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if log := strings.Join(r.stderr.sofar(), "\n"); strings.Count(log, "has no API group resource.k8s.io") != 1 {
		t.Errorf("it does not say once that there is no such group:\n%s", log)
	}
	options.RuntimeConfig = nil
	mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
	r.wait(t, r.stderr, "that it follows the cluster", func(line string) bool { return strings.Contains(line, "following the cluster") })
	if code, _, stderr := r.interrupt(t); code != 0 {
		t.Errorf("the controller ends with %d: %v", code, stderr)
	}
}
