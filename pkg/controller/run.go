// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
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

	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// DefaultInterval is the least time between two evaluations of the cluster.
const DefaultInterval = 5 * time.Second

const (
	// evaluationShare limits the part of the time that goes into evaluations: after an expensive one,
	// the next one is put off.
	evaluationShare = 0.2
	// evaluateAgain is how old causes get where nothing changes: some come with time alone. Expensive
	// ones get older, by evaluateAgainTimes.
	evaluateAgain      = time.Minute
	evaluateAgainTimes = 20
	// refreshEvery is how often the lists are read again that are not watched.
	refreshEvery = time.Minute
	// retryFirst and retryLast bound the time until a cluster is read again that could not be
	// read.
	retryFirst = 2 * time.Second
	retryLast  = time.Minute
	// maxAmended limits how many clusters are made from one another: then everything is worked
	// out again, because memories, as of expressions, add up.
	maxAmended = 1000
	// lostFor is how long a list may be without a watch before the cluster is read again: the API
	// may be gone for good. gapsFor is the same for what could not be read at all.
	lostFor = time.Minute
	gapsFor = 30 * time.Minute
	// stuckAfter is the time after which an evaluation that did not end counts as stuck.
	stuckAfter = 10 * time.Minute
)

// Follower follows a cluster and finds the causes in it. It does so only while it leads, and is
// used once.
type Follower struct {
	Clients collect.Clients
	Metrics *Metrics
	// Events publishes the answers about pods; nil for none.
	Events *Publisher
	Log    logr.Logger
	// Every is the least time between two evaluations.
	Every time.Duration

	// evaluating is since when an evaluation takes place, in Unix seconds; 0 while there is none.
	evaluating atomic.Int64
}

// NeedLeaderElection reports whether only the leader follows the cluster, which is always true.
func (f *Follower) NeedLeaderElection() bool { return true }

// Stuck returns an error if an evaluation did not end in time.
func (f *Follower) Stuck() error {
	if since := f.evaluating.Load(); since != 0 && time.Since(time.Unix(since, 0)) > stuckAfter {
		return fmt.Errorf("an evaluation of the cluster takes longer than %s", stuckAfter)
	}
	return nil
}

// Start follows the cluster until the context is done. A cluster that cannot be read is tried
// again; the same error is logged once.
func (f *Follower) Start(ctx context.Context) error {
	logged := ""
	for wait := retryFirst; ctx.Err() == nil; {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || time.Since(began) > retryLast {
			logged = ""
		}
		if time.Since(began) > retryLast {
			wait = retryFirst
		}
		if err != nil {
			f.Metrics.failed()
			if err.Error() != logged {
				f.Log.Error(err, "cannot follow the cluster; trying again until it can be followed")
			}
			logged = err.Error()
		}
		pause(ctx, wait)
		wait = min(2*wait, retryLast)
	}
	return nil
}

// follow reads a cluster and follows it until the context is done, or it has to be read again: after
// a lost connection the API server may be another release, which is read once, and what could not be
// read may be readable by then. It fails if the cluster cannot be read or followed.
func (f *Follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := collect.Watch(ctx, f.Clients, collect.Options{AllNamespaces: true, ComputeDomains: true})
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	f.Log.Info("following the cluster", "server", f.Clients.Address())
	e := &evaluator{Follower: f, watcher: watcher}
	began, lost := time.Now(), false
	for {
		since, trouble := watcher.Trouble()
		switch {
		case trouble != nil && time.Since(since) > lostFor:
			return trouble
		case trouble != nil && !lost:
			lost = true
			e.known = time.Time{}
			f.Metrics.failed()
			f.Log.Error(trouble, "the cluster cannot be followed; what was published is the last that is known")
		case trouble == nil && lost:
			f.Log.Info("connected again")
			return nil
		case trouble == nil && e.gaps != "" && time.Since(began) > gapsFor:
			return nil
		case trouble == nil:
			if err := e.evaluate(ctx); err != nil && ctx.Err() == nil {
				f.Metrics.failed()
				f.Log.Error(err, "evaluate the cluster")
			}
		}
		next := time.Now().Add(e.rest())
		if err := e.tell(ctx, next); err != nil && ctx.Err() == nil {
			f.Log.Error(err, "publish events")
		}
		if !pause(ctx, time.Until(next)) {
			return nil
		}
	}
}

// pause waits, and reports whether the context is not done.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// evaluator evaluates a cluster again and again.
type evaluator struct {
	*Follower
	watcher   *collect.Watcher
	refreshed time.Time
	// gaps has the reasons of what could not be read.
	gaps string

	cluster *cluster.Cluster
	// amended counts the clusters of which this one was made, see [maxAmended].
	amended int
	found   *cause.Found
	// at is when the causes were found, took how long that took. known is the time for which
	// they are known; zero if they are not.
	at, known time.Time
	took      time.Duration
	// worked is how long the last evaluation took.
	worked time.Duration
}

// rest returns how long the next evaluation is put off.
func (e *evaluator) rest() time.Duration {
	rest := max(e.Every, time.Duration(float64(e.worked)/evaluationShare)-e.worked)
	e.Metrics.delayed(rest - e.Every)
	return rest
}

// tell publishes the answers as events. It takes no longer than until the next evaluation.
func (e *evaluator) tell(ctx context.Context, next time.Time) error {
	if e.Events == nil || e.known.IsZero() {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, next)
	defer cancel()
	if err := e.Events.Publish(ctx, answersOf(e.cluster, e.found, e.known), e.known, time.Until(next)); ctx.Err() == nil {
		return err
	}
	// The rest is left to the next snapshot.
	return nil
}

// evaluate publishes the causes of the cluster as it is. They are searched for only if something changed
// that an answer depends on.
func (e *evaluator) evaluate(ctx context.Context) error {
	began := time.Now()
	e.evaluating.Store(began.Unix())
	defer e.evaluating.Store(0)
	e.worked, e.known = 0, time.Time{}
	snap, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	var delta *cluster.Delta
	if e.cluster != nil {
		delta = cluster.Between(e.cluster.Snapshot, snap)
	}
	if e.found == nil || delta.Any() || began.Sub(e.at) >= max(evaluateAgain, evaluateAgainTimes*e.took) {
		if err := e.find(ctx, snap, delta); err != nil {
			return err
		}
		e.worked = time.Since(began)
		e.at, e.took = began, e.worked
		e.Metrics.evaluated(e.took)
	}
	e.report(snap)
	e.known = snap.Now()
	e.Metrics.publish(e.cluster, e.found, e.known)
	return nil
}

// snapshot returns the cluster as it is. From time to time all is read.
func (e *evaluator) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	var snap *snapshot.Snapshot
	if time.Since(e.refreshed) >= refreshEvery {
		e.refreshed = time.Now()
		var err error
		if snap, err = e.watcher.Refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			e.Log.Error(err, "read what is not watched; what was read before stands")
			snap = nil
		}
	}
	if snap == nil {
		snap = e.watcher.Snapshot()
	}
	// Events are read long after they are written.
	snap.AbsoluteTimes = true
	return snap, nil
}

// report logs what could not be read, when that changes.
func (e *evaluator) report(snap *snapshot.Snapshot) {
	reasons := make([]string, 0, len(snap.Gaps))
	for i := range snap.Gaps {
		reasons = append(reasons, snap.Gaps[i].Reason)
	}
	gaps := strings.Join(reasons, "; ")
	if gaps != e.gaps {
		e.Log.Info("what could not be read", "gaps", gaps)
	}
	e.gaps = gaps
}

// find finds the causes in a snapshot, which differs by a delta from the one before.
func (e *evaluator) find(ctx context.Context, snap *snapshot.Snapshot, delta *cluster.Delta) error {
	if delta == nil || e.amended >= maxAmended {
		e.cluster, e.amended = cluster.New(snap), 0
	} else {
		e.cluster, e.amended = e.cluster.With(delta), e.amended+1
	}
	// Until there are new causes, the memory of the earlier ones is of use.
	e.found = nil
	found, err := cause.Find(ctx, e.cluster, cause.Options{})
	if err != nil {
		return err
	}
	if err := forecast.AddPlaceableTo(ctx, e.cluster, found.Status.Capacity); err != nil {
		return err
	}
	e.found = found
	return nil
}
