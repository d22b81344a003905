// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
		if attempt == startAttempts || !portTaken(err) {
			return nil, errors.Join(err, stopErr)
		}
	}
}

// Restart restarts the Kubernetes components with other options, on the stored objects.
// Binaries, addresses and certificates stay the same.
func (c *ControlPlane) Restart(ctx context.Context, options Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	options.Binaries = c.options.Binaries
	c.options = options
	for {
		c.Halt()
		// While nobody listened, somebody else may have got a port. Those that ask
		// for any port mostly keep it for a moment.
		if err := c.startKubernetes(ctx); !portTaken(err) || ctx.Err() != nil {
			return err
		}
	}
}

// StartScheduler runs kube-scheduler, which was left out at the start
// ([Options.WithoutScheduler]), and returns when it is ready.
func (c *ControlPlane) StartScheduler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.startScheduler(ctx)
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
	if c.health, err = healthClient(c.pki.caPEM, c.admin); err != nil {
		return err
	}
	if c.ports, err = freePorts(); err != nil {
		return err
	}
	c.server = "https://" + loopback(c.ports.apiserver)
	if err := c.writeFiles(); err != nil {
		return err
	}
	client, peer := c.etcd(), "http://"+loopback(c.ports.etcdPeer)
	if err := c.run(ctx, "etcd", client+"/health", etcdFlags(client, peer)); err != nil {
		return err
	}
	return c.startKubernetes(ctx)
}

func (c *ControlPlane) startKubernetes(ctx context.Context) error {
	if err := c.run(ctx, "kube-apiserver", c.server+"/readyz", c.apiserverFlags(c.etcd(), c.ports.apiserver)); err != nil {
		return err
	}
	if !c.options.WithoutControllerManager {
		managerHealth := "https://" + loopback(c.ports.controllerManager) + "/healthz"
		if err := c.run(ctx, "kube-controller-manager", managerHealth, c.controllerManagerFlags(c.ports.controllerManager)); err != nil {
			return err
		}
	}
	if c.options.WithoutScheduler {
		return nil
	}
	return c.startScheduler(ctx)
}

func (c *ControlPlane) startScheduler(ctx context.Context) error {
	return c.run(ctx, "kube-scheduler", "https://"+loopback(c.ports.scheduler)+"/readyz", c.schedulerFlags(c.ports.scheduler))
}

func (c *ControlPlane) run(ctx context.Context, name, url string, flags []string) error {
	p, err := c.launcher.start(c.dir, name, filepath.Join(c.options.Binaries, name), flags...)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return p.waitHealthy(ctx, c.health, url)
}

// writeFiles writes what the flags name.
func (c *ControlPlane) writeFiles() error {
	server, err := c.pki.server()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"admin.crt":      c.admin.cert,
		"admin.key":      c.admin.key,
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

// etcdFlags makes it fast and forgetful: nothing has to survive.
func etcdFlags(client, peer string) []string {
	return []string{
		"--data-dir=etcd",
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
	}
}

func (c *ControlPlane) apiserverFlags(etcd, port string) []string {
	flags := append(c.servingFlags(port),
		"--etcd-servers="+etcd,
		"--advertise-address=127.0.0.1",
		// It refuses to publish a loopback address as its endpoint.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--client-ca-file="+c.path("ca.crt"),
		// Without it the other components complain until it is there.
		"--requestheader-client-ca-file="+c.path("ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("sa.key"),
		"--service-account-signing-key-file="+c.path("sa.key"),
		"--authorization-mode="+c.authorization(),
		// Pods need no service account here, and a new node no taint: nobody
		// would take it away again.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--enable-priority-and-fairness=false",
	)
	if c.options.WithNodes {
		flags = append(flags,
			"--allow-privileged",
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority="+c.path("ca.crt"),
			"--kubelet-client-certificate="+c.path("admin.crt"),
			"--kubelet-client-key="+c.path("admin.key"),
		)
	}
	if len(c.options.RuntimeConfig) > 0 {
		flags = append(flags, "--runtime-config="+settings(c.options.RuntimeConfig))
	}
	return append(flags, c.versionFlags()...)
}

func (c *ControlPlane) controllerManagerFlags(port string) []string {
	controllers := []string{
		"daemonset-controller",
		"deployment-controller",
		"device-taint-eviction-controller",
		"job-controller",
		"replicaset-controller",
		"resourceclaim-controller",
		"resourcepoolstatusrequest-controller",
	}
	controllers = append(controllers, c.options.WithControllers...)
	controllers = slices.DeleteFunc(controllers, func(name string) bool { return slices.Contains(c.options.WithoutControllers, name) })
	kubeconfig := c.path("admin.kubeconfig")
	flags := append(c.servingFlags(port),
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	)
	return append(flags, c.versionFlags()...)
}

func (c *ControlPlane) schedulerFlags(port string) []string {
	kubeconfig := c.path("scheduler.kubeconfig")
	flags := append(c.servingFlags(port),
		"--config="+c.path("scheduler.yaml"),
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--authentication-tolerate-lookup-failure",
	)
	return append(flags, c.versionFlags()...)
}

// schedulerConfig returns the KubeSchedulerConfiguration.
func (c *ControlPlane) schedulerConfig() []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false}
%s`, c.path("scheduler.kubeconfig"), c.options.SchedulerConfig)
}

// servingFlags returns the flags of the three Kubernetes components for TLS.
func (c *ControlPlane) servingFlags(port string) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port,
		"--tls-cert-file=" + c.path("server.crt"),
		"--tls-private-key-file=" + c.path("server.key"),
	}
}

// versionFlags returns the flags of the three Kubernetes components for the emulated
// version and the feature gates.
func (c *ControlPlane) versionFlags() []string {
	var flags []string
	if len(c.options.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+settings(c.options.FeatureGates))
	}
	if c.options.EmulatedVersion != "" {
		flags = append(flags, "--emulated-version="+c.options.EmulatedVersion)
	}
	return flags
}

// authorization is by RBAC and, for real kubelets, by node. The authorizer of
// nodes never gets ready without resource.k8s.io/v1.
func (c *ControlPlane) authorization() string {
	if c.options.WithNodes {
		return "Node,RBAC"
	}
	return "RBAC"
}
