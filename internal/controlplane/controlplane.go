// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
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
	startTimeout = 2 * time.Minute
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
	// WithoutScheduler leaves kube-scheduler out.
	WithoutScheduler bool
}

// ControlPlane is a running control plane. Its methods may be called
// concurrently, except for Stop.
type ControlPlane struct {
	options  Options
	dir      string
	server   string
	pki      *pki
	launcher *launcher
	// processes in the order in which they were started.
	processes []*process
	admin     keyPair
}

// Start runs a control plane and returns when all of it is ready. Errors show
// the end of the log of the component that failed. The caller must call Stop.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		c := &ControlPlane{options: options, launcher: newLauncher()}
		err := c.start(ctx)
		if err == nil {
			return c, nil
		}
		stopErr := c.Stop()
		if attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, errors.Join(err, stopErr)
		}
	}
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

// Config is for a client that may do everything.
func (c *ControlPlane) Config() *rest.Config { return c.config(c.admin) }

// ConfigFor is for a client of the given user. RBAC decides what it may do.
func (c *ControlPlane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.pki.client(user, groups)
	if err != nil {
		return nil, err
	}
	return c.config(pair), nil
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

func (c *ControlPlane) config(pair keyPair) *rest.Config {
	return &rest.Config{
		Host:            c.server,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.caPEM, CertData: pair.cert, KeyData: pair.key},
		// Loopback and a server of our own: no need to be polite.
		QPS: -1,
	}
}

func (c *ControlPlane) start(ctx context.Context) error {
	var err error
	if c.dir, err = os.MkdirTemp("", "kubectl-dra-controlplane-"); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	if c.pki, err = newPKI(); err != nil {
		return err
	}
	if c.admin, err = c.pki.client("admin", []string{"system:masters"}); err != nil {
		return err
	}
	health, err := healthClient(c.pki.caPEM, c.admin)
	if err != nil {
		return err
	}
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	c.server = "https://127.0.0.1:" + ports[2]
	if err := c.writeFiles(); err != nil {
		return err
	}

	etcd := "http://127.0.0.1:" + ports[0]
	if err := c.run(ctx, health, "etcd", etcd+"/health", etcdFlags(etcd, "http://127.0.0.1:"+ports[1])); err != nil {
		return err
	}
	if err := c.run(ctx, health, "kube-apiserver", c.server+"/readyz", c.apiserverFlags(etcd, ports[2])); err != nil {
		return err
	}
	if err := c.run(ctx, health, "kube-controller-manager", "https://127.0.0.1:"+ports[3]+"/healthz", c.controllerManagerFlags(ports[3])); err != nil {
		return err
	}
	if c.options.WithoutScheduler {
		return nil
	}
	return c.run(ctx, health, "kube-scheduler", "https://127.0.0.1:"+ports[4]+"/readyz", c.schedulerFlags(ports[4]))
}

func (c *ControlPlane) run(ctx context.Context, health *http.Client, name, url string, flags []string) error {
	p, err := c.launcher.start(c.dir, name, filepath.Join(c.options.Binaries, name), flags...)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return p.waitHealthy(ctx, health, url)
}

// writeFiles writes what the flags name.
func (c *ControlPlane) writeFiles() error {
	server, err := c.pki.server()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt":         c.pki.caPEM,
		"server.crt":     server.cert,
		"server.key":     server.key,
		"scheduler.yaml": c.schedulerConfig(),
	}
	for name, content := range files {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write the files of the control plane: %w", err)
		}
	}
	if err := writeServiceAccountKey(c.path("sa.key")); err != nil {
		return fmt.Errorf("write the files of the control plane: %w", err)
	}
	if err := c.writeKubeconfig(c.path("admin.kubeconfig"), c.admin); err != nil {
		return err
	}
	// The scheduler runs with the rights that it has everywhere.
	scheduler, err := c.pki.client("system:kube-scheduler", nil)
	if err != nil {
		return err
	}
	return c.writeKubeconfig(c.path("scheduler.kubeconfig"), scheduler)
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

// freePorts finds distinct TCP ports that nothing listens on right now.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("find a free port: %s is no TCP address", listener.Addr())
		}
		ports[i] = strconv.Itoa(address.Port)
	}
	return ports, nil
}

// settings renders a map as a flag wants it: "a=true,b=false".
func settings(m map[string]bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+strconv.FormatBool(m[name]))
	}
	return strings.Join(list, ",")
}
