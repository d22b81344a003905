// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	probed "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// testConform tries the driver of a real kubelet through its socket, with claims that
// no pod uses, and leaves the running pod alone.
func (r *realNode) testConform(t *testing.T) {
	ctx := t.Context()
	one, two := r.allocated(ctx, t, "conform-one", "gpu-2"), r.allocated(ctx, t, "conform-two", "gpu-3")
	code, out, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "conform", "conform-one", "conform-two", "-n", namespace, "-o", "json")...)
	var found driver.Conformance
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("exit code %d: %v", code, err)
	}
	// Without a restart and other claims not everything is known.
	if code != 2 || found.Driver != driverName {
		t.Errorf("exit code %d, driver %q", code, found.Driver)
	}
	tried := map[string]probed.State{}
	for _, result := range found.Results {
		tried[result.Name] = result.State
		if result.State == probed.Problem {
			t.Errorf("%s: %s", result.Name, result.Message)
		}
	}
	for _, name := range []string{"slices", "prepare", "cdi", "prepare-twice", "prepare-replaced", "unprepare", "unprepare-twice", "unprepare-unknown", "several-claims"} {
		if tried["conform/"+name] != probed.OK {
			t.Errorf("%s is %q", name, tried["conform/"+name])
		}
	}
	if r.driver.Prepared(one.UID)+r.driver.Prepared(two.UID) != 0 || len(r.specs(t, one))+len(r.specs(t, two)) != 0 {
		t.Errorf("the claims are still prepared")
	}
	// That of a running pod is not touched.
	if code, _, errOut := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "conform", "train", "-n", namespace)...); code != 3 || !strings.Contains(errOut, "reserved for pods/train") {
		t.Errorf("exit code %d, want 3 for the claim of a pod: %s", code, errOut)
	}
	r.noProbePods(ctx, t)
}

// testConformScript runs the script of the examples as it stands, with a driver that it can
// restart and stop.
func (r *realNode) testConformScript(t *testing.T) {
	const name = "conform.test.example.com"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config := testdriver.Config{Name: name, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: 3}
	instance := r.startDriver(t, config)
	instance.SetHealth(kubeletplugin.DeviceHealth{PoolName: nodeName, DeviceName: "gpu-0", Health: kubeletplugin.HealthStatusHealthy})
	// The driver runs in this process, which the commands of the script notify.
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		defer close(ended)
		for which := range signals {
			instance.Stop()
			if which != syscall.SIGUSR1 {
				continue
			}
			var err error
			if instance, err = testdriver.Start(context.WithoutCancel(ctx), config); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() {
		signal.Stop(signals)
		close(signals)
		<-ended
		instance.Stop()
	}()

	binaries, err := controlplane.Binaries(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "../../examples/conform/run.sh", nodeName, name, "--kubelet-root="+r.node.Kubelet, "--cdi-dir="+r.node.CDI,
		fmt.Sprintf("--restart-command=kill -USR1 %d", os.Getpid()), fmt.Sprintf("--stop-command=kill -USR2 %d", os.Getpid()))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig, "PATH="+strings.Join([]string{binaries, filepath.Dir(r.program), os.Getenv("PATH")}, ":"))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, said.String(), out.String())
	}
	t.Log(out.String())
	for _, want := range []string{
		// The upstream helper lets one claim that does not exist fail the call.
		"19 requirements: 18 met, 0 broken, 1 not known, 0 not tried.", "| `conform/errors-per-claim` | not known |",
		"| kubelet | v1.37.", "| container runtime | containerd://", "| the reply has the claim, and its 1 device |", "CDI `k8s." + name + "/claim=",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not have %q", want)
		}
	}
	namespace := regexp.MustCompile("conform-[a-z0-9]+").FindString(regexp.MustCompile("`conform-[a-z0-9]+/claim-1`").FindString(out.String()))
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := r.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("namespace %q is left", namespace)
	}
}
