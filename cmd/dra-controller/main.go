// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dra-controller says in a cluster's metrics and events why pods wait for devices.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubectl-dra/kubectl-dra/pkg/controller"
	"github.com/kubectl-dra/kubectl-dra/pkg/garbage"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// The linker sets it for a release.
var version = "v0.0.0-dev" //nolint:gochecknoglobals // There is no other way.

func main() { os.Exit(run()) }

// run runs the program and returns its exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the next one kills.
	context.AfterFunc(ctx, stop)
	defer garbage.Limit(ctx, true)()
	err := newCommand(os.Stderr).ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(os.Stderr, "error: "+render.Escape(err.Error()))
	if failed := (*runError)(nil); errors.As(err, &failed) {
		return 1
	}
	_, _ = fmt.Fprintln(os.Stderr, "See '"+controller.ControllerName+" --help'.")
	return exitUsage
}

// exitUsage is the exit code for wrong usage, as in kubectl-dra.
const exitUsage = 3

// runError is an error of the running controller: the usage is right.
type runError struct{ error }

func (e *runError) Unwrap() error { return e.error }

// newCommand returns the command, which logs to w.
func newCommand(w io.Writer) *cobra.Command {
	opts := controller.Options{}
	flags := genericclioptions.NewConfigFlags(true)
	verbosity := 0
	cmd := &cobra.Command{
		Use:   controller.ControllerName,
		Short: "Say in metrics and events why pods wait for devices",
		Long: `dra-controller follows a cluster and says why pods wait for devices (Dynamic
Resource Allocation): in metrics and, with --events, in events on the pods,
which 'kubectl describe pod' prints. The answers are the ones of 'kubectl dra
why' and 'kubectl dra status'.

It reads the cluster, and writes events about pods and its Lease, nothing else.
In a pod, it uses the service account; elsewhere, the kubeconfig.`,
		Example: `  # Metrics of the cluster of the kubeconfig, on this machine alone
  dra-controller --metrics-bind-address 127.0.0.1:8080 --metrics-secure=false

  # In a cluster: one of several replicas works, and pods get events
  dra-controller --leader-elect --events`,
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(opts); err != nil {
				return err
			}
			opts.Log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w), textlogger.Verbosity(verbosity)))
			klog.SetLogger(opts.Log)
			if err := controller.Run(cmd.Context(), flags, opts); err != nil {
				return &runError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.MetricsAddress, "metrics-bind-address", ":8443", "Serve /metrics at this `ADDRESS`; 0 serves none.")
	secure := true
	f.BoolVar(&secure, "metrics-secure", true, "Serve metrics over HTTPS, to those who may get /metrics (TokenReview, SubjectAccessReview).")
	f.StringVar(&opts.CertDir, "metrics-cert-dir", "", "`DIRECTORY` with tls.crt and tls.key of the metrics; without it the certificate is self-signed.")
	f.StringVar(&opts.ProbeAddress, "health-probe-bind-address", ":8081", "Serve /healthz and /readyz at this `ADDRESS`; 0 serves none.")
	f.BoolVar(&opts.LeaderElection, "leader-elect", false, "Elect a leader among several replicas, with a Lease in the namespace of the pod.")
	f.BoolVar(&opts.Events, "events", false, "Publish an event about each pod that waits for devices or cannot work with them.")
	f.IntVar(&opts.PodMetrics, "pod-metrics", 0, "Give this `NUMBER` of waiting pods, the oldest ones, a metric with their names.")
	f.DurationVar(&opts.Every, "interval", controller.DefaultInterval, "Least `DURATION` between two evaluations of the cluster.")
	f.IntVarP(&verbosity, "v", "v", 0, "`NUMBER` for how much is logged.")
	for name, usage := range map[string]string{
		"kubeconfig": "Kubeconfig `FILE`; not needed in a pod.", "context": "`CONTEXT` of the kubeconfig.",
		"namespace": "`NAMESPACE` of the Lease where the program does not run in a pod.",
	} {
		all := cobra.Command{}
		flags.AddFlags(all.Flags())
		flag := all.Flags().Lookup(name)
		flag.Usage = usage
		f.AddFlag(flag)
	}
	f.BoolP("help", "h", false, "Explain this program.")
	f.Bool("version", false, "Show the version of this program.")
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	cmd.PreRun = func(*cobra.Command, []string) { opts.Insecure = !secure }
	return cmd
}

// helpWidth is the width of the help in columns.
const helpWidth = 80

// check checks what the flags say before anything starts.
func check(opts controller.Options) error {
	if opts.PodMetrics < 0 {
		return fmt.Errorf("read --pod-metrics: expected a number from 0 on, found %d", opts.PodMetrics)
	}
	if opts.Every < time.Second {
		return fmt.Errorf("read --interval: expected a duration from 1s on, found %s", opts.Every)
	}
	for flag, address := range map[string]string{"--metrics-bind-address": opts.MetricsAddress, "--health-probe-bind-address": opts.ProbeAddress} {
		if address == "0" {
			continue
		}
		if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
			return fmt.Errorf("read %s: expected [HOST]:PORT, or 0 for none, found %q", flag, address)
		}
	}
	if opts.CertDir != "" {
		for _, name := range []string{"tls.crt", "tls.key"} {
			if _, err := os.Stat(filepath.Join(opts.CertDir, name)); err != nil {
				return fmt.Errorf("read --metrics-cert-dir: %w", err)
			}
		}
	}
	return nil
}
