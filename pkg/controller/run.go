// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// Options configure the controller.
type Options struct {
	// MetricsAddress is the address of the metrics, "0" for none. They are served over HTTPS to
	// those who may get /metrics, unless Insecure is true. CertDir has tls.crt and tls.key; if it
	// is empty, the certificate is self-signed.
	MetricsAddress string
	Insecure       bool
	CertDir        string
	// ProbeAddress is the address of /healthz and /readyz, "0" for none.
	ProbeAddress string
	// LeaderElection is true if one of several replicas works. Its lease is in the namespace of
	// the pod or, elsewhere, in the namespace of the flags.
	LeaderElection bool
	// Events is true to publish events.
	Events bool
	// PodMetrics is how many waiting pods have a metric of their own.
	PodMetrics int
	// Every is the least time between two evaluations of the cluster, such as [DefaultInterval].
	Every time.Duration
	Log   logr.Logger
}

// Run runs the controller until the context is done. It fails if it cannot serve, and when it does
// not lead any more: the process has to be restarted then.
func Run(ctx context.Context, flags genericclioptions.RESTClientGetter, opts Options) error {
	ctrl.SetLogger(opts.Log)
	config, err := flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	clients, err := collect.NewClients(flags)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	metrics := metricsserver.Options{BindAddress: opts.MetricsAddress, CertDir: opts.CertDir}
	if !opts.Insecure {
		metrics.SecureServing, metrics.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: runtime.NewScheme(), Logger: opts.Log, Metrics: metrics, HealthProbeBindAddress: opts.ProbeAddress,
		LeaderElection: opts.LeaderElection, LeaderElectionID: ControllerName, LeaderElectionNamespace: clients.Namespace,
		// The program ends with the manager.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	follower, err := newFollower(config, clients, opts)
	if err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(follower.Metrics); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	if err := manager.AddHealthzCheck("evaluation", func(*http.Request) error { return follower.Stuck() }); err != nil {
		return fmt.Errorf("serve /healthz: %w", err)
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("serve /readyz: %w", err)
	}
	if err := manager.Add(follower); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// newFollower makes a follower of a cluster.
func newFollower(config *rest.Config, clients collect.Clients, opts Options) (*Follower, error) {
	f := &Follower{Clients: clients, Metrics: NewMetrics(opts.PodMetrics), Log: opts.Log, Every: opts.Every}
	if opts.Events {
		client, err := eventsv1.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this instance: %w", err)
		}
		f.Events = NewPublisher(client, f.Metrics, ControllerName+"-"+name)
	}
	return f, nil
}
