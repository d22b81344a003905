// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func newHealth(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	var (
		timeout time.Duration
		watch   bool
	)
	cmd := &cobra.Command{
		Use:   "health [DRIVER]",
		Short: "Ask the drivers of this node about the health of their devices",
		Long: `Ask the drivers of this node, or one of them, how healthy their devices are, by
the stream that the kubelet listens to, and put beside it what the status of
pods says (allocatedResourcesStatus).

For a driver this is a second listener besides the kubelet. The upstream helper
for drivers serves each of them; a driver of its own making may not.`,
		Example: `  # How healthy are the devices of this node?
  kubectl dra node-probe health

  # A line whenever something changes
  kubectl dra node-probe health gpu.nvidia.com --watch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTimeout(timeout); err != nil {
				return err
			}
			printer, err := flags.output.ToPrinter(streams)
			if err != nil {
				return err
			}
			snap, err := flags.cluster(cmd, streams)
			if err != nil {
				return err
			}
			name, opts := "", driver.Options{Timeout: timeout}
			if len(args) > 0 {
				name = args[0]
			}
			draw := func(h *driver.Health) func(render.Options) error {
				return func(o render.Options) error { return writeHealth(streams.Out, h, time.Now(), o) }
			}
			if !watch {
				health, err := driver.AskHealth(cmd.Context(), flags.host(), snap, name, opts)
				if err != nil {
					return err
				}
				return flags.print(streams, health, health.Checks, draw(health))
			}
			var last *driver.Health
			var outcome error
			err = driver.WatchHealth(cmd.Context(), flags.host(), snap, name, opts, func(health *driver.Health) error {
				defer func() { last = health }()
				var code *cli.OutcomeError
				switch {
				case printer.Machine != nil || last == nil:
					if outcome = flags.print(streams, health, health.Checks, draw(health)); outcome != nil && !errors.As(outcome, &code) {
						return outcome
					}
					return nil
				default:
					return writeHealthChanges(streams.Out, health.Since(last), time.Now(), printer.Text)
				}
			})
			if cmd.Context().Err() != nil {
				return nil
			}
			if err == nil && !last.Reports() {
				return outcome
			}
			if err == nil {
				err = fmt.Errorf("watch the health of devices: no driver sends reports any more")
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", driver.DefaultTimeout, "How long a driver may take to answer.")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "After listing, print whatever changes, until Ctrl-C.")
	return cmd
}

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
