// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// startTimeout bounds how long all components together may take. It takes
	// some seconds; a busy machine with two cores needs much longer.
	startTimeout = 5 * time.Minute
	// startAttempts is how often a start is tried when something else took a
	// port between its choice and its use.
	startAttempts = 3
)

// Options configure a control plane.
type Options struct {
	// Binaries is the directory with etcd, kube-apiserver,
	// kube-controller-manager and kube-scheduler, see [Binaries].
	Binaries string
	// FeatureGates are set in all three Kubernetes components.
	FeatureGates map[string]bool
	// RuntimeConfig switches API versions, as in "resource.k8s.io/v1": false.
	RuntimeConfig map[string]bool
	// EmulatedVersion makes all components behave as an older release: "1.35".
	EmulatedVersion string
	// SchedulerConfig is a KubeSchedulerConfiguration in YAML without the
	// fields apiVersion, kind, clientConnection and leaderElection.
	SchedulerConfig string
	// WithControllers are controllers of kube-controller-manager that run besides
	// those that most tests need.
	WithControllers []string
	// WithoutControllers are controllers of kube-controller-manager that do not
	// run.
	WithoutControllers []string
	// WithoutScheduler leaves kube-scheduler out.
	WithoutScheduler bool
	// WithoutControllerManager leaves kube-controller-manager out: nothing
	// changes then but what the test changes.
	WithoutControllerManager bool
	// WithNodes lets real kubelets join, see [ControlPlane.StartNode].
	WithNodes bool
}

// ControlPlane is a running control plane. Its methods may be called
// concurrently, except for Stop, Halt, Restart and StartScheduler.
type ControlPlane struct {
	options  Options
	dir      string
	server   string
	pki      *pki
	launcher *launcher
	// processes in the order in which they were started.
	processes []*process
	admin     keyPair
	health    *http.Client
	ports     ports
}

// ports are where the components listen.
type ports struct{ etcd, etcdPeer, apiserver, controllerManager, scheduler string }

// portTaken reports whether a component did not start because something else
// listens where it should.
func portTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "address already in use")
}

// Stop ends all components and removes their files.
func (c *ControlPlane) Stop() error {
	for _, p := range slices.Backward(c.processes) {
		p.stop()
	}
	c.processes = nil
	close(c.launcher.work)
	if c.dir == "" {
		return nil
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the files of the control plane: %w", err)
	}
	return nil
}

// Logs returns the end of each component's log, for a test that failed.
func (c *ControlPlane) Logs() string {
	var b strings.Builder
	for _, p := range c.processes {
		b.WriteString(p.tail())
	}
	return b.String()
}

// Config returns the configuration of a client that may do everything.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host:            c.server,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.caPEM, CertData: c.admin.cert, KeyData: c.admin.key},
		// Loopback and a server of our own: no need to be polite.
		QPS: -1,
	}
}

// Kubeconfig writes a kubeconfig file of the given user and returns its path.
// It is removed by Stop. Group system:masters may do everything.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) (string, error) {
	pair, err := c.pki.client(user, groups)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(c.dir, "*.kubeconfig")
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return file.Name(), c.writeKubeconfig(file.Name(), pair)
}

func (c *ControlPlane) writeKubeconfig(path string, pair keyPair) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.pki.caPEM}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

// Halt stops the Kubernetes components, until Restart.
func (c *ControlPlane) Halt() {
	etcd, others := c.processes[0], c.processes[1:]
	for _, p := range slices.Backward(others) {
		p.stop()
	}
	c.processes = []*process{etcd}
}

// Store writes an object as JSON past the API server, as an earlier release, or an
// earlier day, has left it. The key is as the API server has it, such as
// "resourceslices/NAME".
func (c *ControlPlane) Store(ctx context.Context, key string, object []byte) error {
	body, err := json.Marshal(map[string][]byte{"key": []byte("/registry/" + key), "value": object})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcd()+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	if ok, answer := send(http.DefaultClient, request); !ok {
		return fmt.Errorf("store %s: etcd says %s", key, answer)
	}
	return nil
}

func (c *ControlPlane) etcd() string { return "http://" + loopback(c.ports.etcd) }

func loopback(port string) string { return net.JoinHostPort("127.0.0.1", port) }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

// freePorts finds distinct TCP ports that nothing listens on right now.
func freePorts() (p ports, err error) {
	for _, port := range []*string{&p.etcd, &p.etcdPeer, &p.apiserver, &p.controllerManager, &p.scheduler} {
		listener, listenErr := net.Listen("tcp", loopback("0"))
		if listenErr != nil {
			return ports{}, fmt.Errorf("find a free port: %w", listenErr)
		}
		// Open until all are found, so that none is found twice.
		defer func() { err = errors.Join(err, listener.Close()) }()
		if _, *port, err = net.SplitHostPort(listener.Addr().String()); err != nil {
			return ports{}, fmt.Errorf("find a free port: %w", err)
		}
	}
	return p, nil
}

// settings renders a map as a flag wants it: "a=true,b=false".
func settings(m map[string]bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+strconv.FormatBool(m[name]))
	}
	return strings.Join(list, ",")
}

// BinariesVariable and NodeBinariesVariable are the environment variables that
// name a directory with the binaries, for those who have them already.
const (
	BinariesVariable     = "KUBECTL_DRA_CONTROLPLANE"
	NodeBinariesVariable = "KUBECTL_DRA_NODE"
)

// Binaries returns the directory that has the binaries. Unless
// [BinariesVariable] names one it runs test/controlplane/build.sh of this
// module, which takes minutes the first time.
func Binaries(ctx context.Context) (string, error) {
	return binaries(ctx, BinariesVariable, "controlplane")
}

// ReleaseBinaries is like [Binaries], for another release than the newest: "1.35", one of
// test/controlplane/releases. There is no kubectl.
func ReleaseBinaries(ctx context.Context, release string) (string, error) {
	return binaries(ctx, BinariesVariable+"_"+strings.ReplaceAll(release, ".", "_"), "controlplane", release)
}

// NodeBinaries returns the directory that has kubelet and containerd, in the
// same way: built by test/node/build.sh.
func NodeBinaries(ctx context.Context) (string, error) {
	return binaries(ctx, NodeBinariesVariable, "node")
}

func binaries(ctx context.Context, variable, what string, arguments ...string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return dir, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	script := filepath.Join(root, "test", what, "build.sh")
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, script, arguments...)
	cmd.Stdout = &stdout
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build what the tests start with %s: %w", script, err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// moduleRoot returns the nearest directory above the current one with a go.mod.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: no go.mod in %s or above", start)
		}
	}
}
