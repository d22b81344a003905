// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeHealth draws the drivers' reports about their devices; now is the time up to which
// ages are counted.
func writeHealth(w io.Writer, h *driver.Health, now time.Time, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, "Health of the devices on this node, as their drivers say")
	lines := [][]string{{"DRIVER", "POOL", "DEVICE", "HEALTH", "UPDATED", "PODS", "MESSAGE"}}
	for i := range h.Drivers {
		d := &h.Drivers[i]
		for j := range d.Devices {
			lines = append(lines, healthLine(d.Driver, &d.Devices[j], now))
		}
	}
	if len(lines) > 1 {
		p.Blank()
		p.grid(0, lines)
	}
	p.nodeChecks(h.Checks)
	return p.write(w)
}

func healthLine(name string, d *driver.DeviceHealth, now time.Time) []string {
	updated := ""
	if d.UpdatedAt != nil {
		updated = duration.HumanDuration(max(now.Sub(d.UpdatedAt.Time), 0)) + " ago"
	}
	pods := make([]string, 0, len(d.Pods))
	for _, pod := range d.Pods {
		pods = append(pods, pod.Namespace+"/"+pod.Pod+" reports "+string(pod.Health))
	}
	return []string{name, d.Pool, d.Device, string(d.Health), updated, strings.Join(pods, ", "), d.Message}
}

// writeHealthChanges writes a line for each device whose health changed.
func writeHealthChanges(w io.Writer, changes []driver.HealthChange, now time.Time, opts render.Options) error {
	p := newPage(opts)
	for i := range changes {
		c := &changes[i]
		text := now.Format(time.TimeOnly) + " " + c.Driver + "/" + c.Pool + "/" + c.Device + " is " + string(c.Health)
		if c.From != "" && c.From != c.Health {
			text += ", was " + string(c.From)
		}
		if c.Message != "" {
			text += ": " + c.Message
		}
		p.Text(0, healthMark(c.Health), text)
	}
	return p.write(w)
}

func healthMark(health driver.HealthStatus) render.Mark {
	switch health {
	case driver.Healthy:
		return render.Good
	case driver.Unhealthy:
		return render.Bad
	case driver.UnknownHealth:
		return render.Unsure
	default:
		return render.Unsure
	}
}
