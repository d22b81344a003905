// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
