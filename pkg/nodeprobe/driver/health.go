// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// defaultHealthTimeout is the default of the kubelet, in seconds.
	defaultHealthTimeout = 30
	// maxMessage limits how much of a message the kubelet takes.
	maxMessage = 1024
	// maxHealthDevices limits how many devices of a driver are kept: a driver that invents
	// devices in every report must not fill the memory.
	maxHealthDevices = 10000
)

// AskHealth waits for the first report of the named driver, or of every driver. The driver
// sees a second listener beside the kubelet.
func AskHealth(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, driver string, opts Options) (*Health, error) {
	var last *Health
	err := follow(ctx, host, driver, opts, func(h *Health, complete bool) error {
		last = h
		if complete {
			return errEnough
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	for i := range last.Drivers {
		if d := &last.Drivers[i]; d.ReportedAt == nil && d.Error == "" && !d.NoService {
			d.Error = noReport
		}
	}
	last.judge(snap)
	return last, nil
}

// noReport is the error of a driver that has sent no report.
const noReport = "sends no report in time"

// WatchHealth calls tell once every driver has sent a report or timed out, and then for
// each report and each end of a stream, until ctx ends or no stream is left. tell gets its
// own copy.
func WatchHealth(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, driver string, opts Options, tell func(*Health) error) error {
	return follow(ctx, host, driver, opts, func(h *Health, complete bool) error {
		if !complete {
			return nil
		}
		h.judge(snap)
		return tell(h)
	})
}

// errEnough ends following.
var errEnough = errors.New("everything was heard that there will be")

// news is a report or an error from one driver.
type news struct {
	index  int
	report *healthv1.NodeWatchResourcesResponse
	err    error
}

// follow listens to all drivers at once. complete is true once every driver has sent a
// report, has failed, or has timed out.
func follow(ctx context.Context, host *node.Host, driver string, opts Options, tell func(h *Health, complete bool) error) error {
	h := &Health{TypeMeta: typeMeta("NodeHealth"), Drivers: []DriverHealth{}}
	plugins := h.find(ctx, host, driver, opts)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A deadline of the context would be sent to the drivers, and race with their error
	// about it.
	late := time.NewTimer(opts.timeout())
	defer late.Stop()
	incoming := make(chan news)
	send := func(n news) {
		select {
		case incoming <- n:
		case <-ctx.Done():
		}
	}
	running := 0
	for i, p := range plugins {
		h.Drivers = append(h.Drivers, DriverHealth{Driver: p.Name, Endpoint: p.Endpoint, Service: chooseHealth(p.Versions)})
		switch {
		case p.Service.Answer != node.Answers:
			h.Drivers[i].Error = p.Service.Message
		case h.Drivers[i].Service == "":
			h.Drivers[i].NoService = true
		default:
			running++
			go listen(ctx, host, p, h.Drivers[i].Service, opts, i, send)
		}
	}
	waiting, complete := running, running == 0
	if err := tell(h.DeepCopy(), complete); err != nil {
		return err
	}
	for running > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			if complete {
				continue
			}
			complete = true
			if err := tell(h.DeepCopy(), true); err != nil {
				return err
			}
		case n := <-incoming:
			d := &h.Drivers[n.index]
			if d.ReportedAt == nil && d.Error == "" {
				waiting--
			}
			complete = complete || waiting == 0
			switch {
			case errors.Is(n.err, errNoHealth):
				running--
				d.NoService = true
			case n.err != nil:
				running--
				d.Error = reason(n.err)
			default:
				d.take(n.report, time.Now())
			}
			if err := tell(h.DeepCopy(), complete); err != nil {
				return err
			}
		}
	}
	return nil
}

// find finds the plugins. Errors of the search are checks.
func (h *Health) find(ctx context.Context, host *node.Host, driver string, opts Options) []*Plugin {
	registry := path.Join(host.Kubelet, registryDir)
	found := registeredDrivers(ctx, host, opts)
	var plugins []*Plugin
	for _, name := range sorted(found.drivers) {
		if driver == "" || name == driver {
			plugins = append(plugins, found.drivers[name]...)
		}
	}
	switch {
	case len(plugins) > 0:
	case found.uncertainty != "":
		h.Checks = append(h.Checks, node.NotKnown(checkStream, registry, "which drivers register here is not known: %s", found.uncertainty))
	case driver != "":
		h.Checks = append(h.Checks, node.Bad(checkStream, registry, "driver %s does not register here", driver))
	default:
		h.Checks = append(h.Checks, node.Good(checkStream, registry, "no driver registers here, so there is no health to report"))
	}
	return plugins
}

// chooseHealth returns the version that the kubelet would take, empty for none.
func chooseHealth(advertised []string) string {
	for _, a := range healthAPIs() {
		if slices.Contains(advertised, a.name) {
			return a.name
		}
	}
	return ""
}

// listen passes on the reports of one driver, and in the end why there are no more.
func listen(ctx context.Context, host *node.Host, p *Plugin, service string, opts Options, index int, send func(news)) {
	fail := func(err error) { send(news{index: index, err: err}) }
	connecting, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	c, err := dial(connecting, host, p.Endpoint, inside(host, p.Endpoint))
	if err != nil {
		fail(err)
		return
	}
	defer c.close()
	stream, err := c.healthStream(ctx, service)
	for err == nil {
		var report *healthv1.NodeWatchResourcesResponse
		if report, err = stream.Recv(); err == nil {
			send(news{index: index, report: report})
		}
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, io.EOF):
		fail(errors.New("ends the stream, which the kubelet opens again after 5 seconds"))
	case status.Code(err) == codes.Unimplemented:
		fail(errNoHealth)
	default:
		fail(c.failed(err))
	}
}

// errNoHealth is the error of a driver that uses the upstream helper and reports no health.
var errNoHealth = errors.New("does not report health")

func (c *client) healthStream(ctx context.Context, service string) (healthv1.DRAResourceHealth_NodeWatchResourcesClient, error) {
	if service == healthv1alpha1.DRAResourceHealthService {
		return healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(c)}.NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
	}
	return healthv1.NewDRAResourceHealthClient(c).NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
}

// take merges a report, which has all devices or the devices of one source of the driver.
func (d *DriverHealth) take(report *healthv1.NodeWatchResourcesResponse, now time.Time) {
	d.ReportedAt = &metav1.Time{Time: now}
	at := map[[2]string]int{}
	for i := range d.Devices {
		at[[2]string{d.Devices[i].Pool, d.Devices[i].Device}] = i
	}
	for _, device := range report.GetDevices() {
		one := deviceHealth(device)
		key := [2]string{one.Pool, one.Device}
		i, known := at[key]
		switch {
		case known:
			d.Devices[i] = one
		case len(d.Devices) < maxHealthDevices:
			at[key] = len(d.Devices)
			d.Devices = append(d.Devices, one)
		}
	}
	slices.SortFunc(d.Devices, func(a, b DeviceHealth) int {
		return cmp.Or(english.CompareNames(a.Pool, b.Pool), english.CompareNames(a.Device, b.Device))
	})
}

// deviceHealth reads the report on a device as the kubelet does.
func deviceHealth(in *healthv1.DeviceHealth) DeviceHealth {
	out := DeviceHealth{
		Pool: clip(in.GetDevice().GetPoolName()), Device: clip(in.GetDevice().GetDeviceName()),
		Health: UnknownHealth, Message: in.GetMessage(), TimeoutSeconds: in.GetHealthCheckTimeoutSeconds(),
	}
	switch in.GetHealth() {
	case healthv1.HealthStatus_HEALTHY:
		out.Health = Healthy
	case healthv1.HealthStatus_UNHEALTHY:
		out.Health = Unhealthy
	case healthv1.HealthStatus_UNKNOWN:
	}
	if len(out.Message) > maxMessage {
		out.Message = out.Message[:maxMessage-3] + "..."
	}
	if out.TimeoutSeconds <= 0 {
		out.TimeoutSeconds = defaultHealthTimeout
	}
	if seconds := in.GetLastUpdatedTime(); seconds > 0 {
		out.UpdatedAt = &metav1.Time{Time: time.Unix(seconds, 0).UTC()}
	}
	return out
}
