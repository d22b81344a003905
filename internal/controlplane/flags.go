// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"slices"
	"strings"
)

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
