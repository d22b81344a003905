// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check has the verbs that find faults: doctor in a cluster, and lint in manifests.
// It reads what they look at, and prints or writes what they find.
//
// The checks are in pkg/doctor and pkg/lint. Only pkg/commands imports it.
package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	reading     *cli.ReadingFlags
	output      *cli.OutputFlags
	findings    findingFlags
	commands    bool
	probe, logs bool
	kubelets    bool
	nodeReports []string
	olderThan   time.Duration
}

// doctorOptions are the parsed flags.
type doctorOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	checks  doctor.Options
	// probe, logs and kubelets ask the cluster for more.
	probe, logs, kubelets bool
	// failOn is the severity from which on the exit code is 1.
	failOn  api.Severity
	version string
	streams genericiooptions.IOStreams
}

// NewDoctor makes the verb doctor. The version is the program's.
func NewDoctor(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, version string) *cobra.Command {
	f := &doctorFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	f.output.Reports = cli.ReportFormats()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check drivers, pools, classes, claims and taints for faults",
		Long: `Check the whole cluster for what is wrong with Dynamic Resource Allocation,
also where no pod says so: drivers that run on no node or publish nothing, pools
that the scheduler refuses, classes that select nothing, claims that keep
devices for nobody, rules that were forgotten, pods that can never fit, and
known bugs of the Kubernetes release.

The answer begins with the causes behind errors and warnings, as 'kubectl dra
status' has them. Each finding has the code of its check, the objects, and what
can be done: -o wide lists them, and so does the choice of checks. A
check that needs something you are not permitted to list is named under "Not
checked". docs/checks has a page for each code. -o wide shows the evidence and
the commands.

The annotation ` + checks.IgnoreAnnotation + ` of an object, with codes separated by
commas, suppresses findings that are about that object alone.

The checks always look at all namespaces. With -n, findings that are about
objects of other namespaces alone are left out and do not count; those about
drivers and about what is cluster-wide stay.

The exit code is 1 from the severity of --fail-on upwards, else 2 if a check
could not be made, else 0.`,
		Example: `  # Is anything wrong?
  kubectl dra doctor

  # With the evidence, and the commands of the remedies
  kubectl dra doctor -o wide

  # What matters to a team: its namespace, drivers, and what is cluster-wide
  kubectl dra doctor -n research

  # Only drivers, slices and pools
  kubectl dra doctor --only DRA11,DRA12

  # In a pipeline: fail from warnings on
  kubectl dra doctor --fail-on Warning --min-severity Warning

  # For the list of alerts of a repository, or for a page of test results
  kubectl dra doctor -o sarif > doctor.sarif
  kubectl dra doctor -o junit > doctor.xml

  # Of a saved cluster, the codes of all findings
  kubectl dra doctor --snapshot cluster.yaml.gz -o \
    jsonpath='{range .findings[*]}{.code} {.message}{"\n"}{end}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			o.version = version
			return o.run(cmd.Context())
		},
	}
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	f.findings.addTo(cmd, doctor.Descriptions(), "DRA12,DRA1301", api.SeverityError)
	cmd.Flags().DurationVar(&f.olderThan, "older-than", doctor.RuleAge, "Report DeviceTaintRules that are older than this `DURATION`, such as 168h for a week.")
	cmd.Flags().BoolVar(&f.probe, "probe", false, "Send a claim and a pod to the API server as a dry run, which stores nothing, and see which fields it or a webhook drops.")
	cmd.Flags().BoolVar(&f.logs, "logs", false, "Add the last lines with errors from the logs of driver pods to the evidence; what looks like a secret is left out.")
	cmd.Flags().BoolVar(&f.kubelets, "kubelets", false, "Compare the feature gates of kubelets, too, at most 100 of nodes with devices; takes the right to get nodes/proxy.")
	cmd.Flags().StringArrayVar(&f.nodeReports, "node-report", nil, "Include the problems in this `FILE`, which 'kubectl dra node-probe -o json' wrote; - is standard input. Can be repeated.")
	f.output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.commands, "commands", false, "Show the commands of the remedies.")
	})
	return cmd
}

func (f *doctorFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*doctorOptions, error) {
	o := &doctorOptions{probe: f.probe, logs: f.logs, kubelets: f.kubelets, streams: streams}
	var err error
	if o.checks.Choice, o.failOn, err = f.findings.toChoice(doctor.Descriptions(), doctor.Groups()); err != nil {
		return nil, err
	}
	if f.olderThan <= 0 {
		return nil, cli.Usagef("Give a duration such as 720h.", "read --older-than: expected a duration greater than zero, found %s", f.olderThan)
	}
	o.checks.OlderThan = f.olderThan
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	o.checks.Namespace = o.reader.Only
	if err := f.checkInput(o.reader); err != nil {
		return nil, err
	}
	if err := f.someCheck(&o.checks.Choice); err != nil {
		return nil, err
	}
	if o.checks.NodeReports, err = readNodeReports(f.nodeReports, streams.In); err != nil {
		return nil, err
	}
	if o.printer, err = toFindingsPrinter(f.output, streams); err != nil {
		return nil, err
	}
	o.printer.Text.Commands = f.commands
	return o, nil
}

// checkInput fails for what a file cannot answer, and for two readers of standard
// input.
func (f *doctorFlags) checkInput(reader *cli.Reader) error {
	for name, set := range map[string]bool{"probe": f.probe, "logs": f.logs, "kubelets": f.kubelets} {
		if set && !reader.Live() {
			return cli.Usagef("Leave one of them out.", "--snapshot and --%s: a file has no API server", name)
		}
	}
	return cli.OnceStdin(f.reading.Paths, f.reading.Previews, f.nodeReports)
}

// someCheck fails if no check is left.
func (f *doctorFlags) someCheck(choice *checks.Choice) error {
	given := map[string]bool{"": true, "probe": f.probe, "node-report": len(f.nodeReports) > 0}
	var lacking []string
	for _, check := range doctor.Checks() {
		switch {
		case !choice.Makes(check.Code):
		case given[check.Flag]:
			return nil
		default:
			lacking = append(lacking, check.Code+" takes --"+check.Flag)
		}
	}
	if len(lacking) > 0 {
		return cli.Usagef("Give the flag, too.", "read --only: no check is left: %s", strings.Join(lacking, ", "))
	}
	return cli.Usagef("Skip less than what --only chooses.", "read --only: --skip leaves no check")
}

func (o *doctorOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true}.WithCauses())
	if err != nil {
		return err
	}
	c := cluster.New(from.Snap)
	if o.probe {
		if o.checks.Probes, err = probeServer(ctx, from.Clients); err != nil {
			return err
		}
	}
	if from.Clients != nil && o.checks.Makes(doctor.CodeRights) {
		o.checks.Reviews = reviewRights(ctx, from.Clients, doctor.Rights(c))
	}
	if o.kubelets && o.checks.Makes(doctor.CodeGates) {
		o.checks.Kubelets = askKubelets(ctx, from.Clients, doctor.KubeletNodes(from.Snap))
	}
	found, causes, err := o.look(ctx, c)
	if err != nil {
		return err
	}
	if o.logs {
		addLogs(ctx, from.Clients, from.Snap, found)
	}
	isText, err := o.printer.PrintFindings(found, func() *render.Report { return o.report(found) },
		func(w io.Writer, opts render.Options) error { return render.Diagnosis(w, found, causes, opts) })
	if err != nil {
		return err
	}
	if isText {
		if err := cli.PrintNotes(o.streams, notRead(from.Snap, found.Findings)...); err != nil {
			return err
		}
	}
	return outcome(found.Counts, o.failOn)
}

// look makes the checks. If all are made, for text that is not wide, it finds the causes behind the
// findings, too.
func (o *doctorOptions) look(ctx context.Context, c *cluster.Cluster) (*api.Diagnosis, []api.Cause, error) {
	if !o.printer.IsShort() || !o.checks.All() || o.logs {
		found, err := doctor.Diagnose(ctx, c, o.checks)
		return found, nil, err
	}
	found, err := cause.Find(ctx, c, cause.Options{Namespace: o.checks.Namespace, Checks: o.checks})
	if err != nil {
		return nil, nil, err
	}
	return found.Examination.Within(o.checks.Namespace), found.Status.Causes, nil
}

// report returns the diagnosis for programs that read the reports of linters and tests.
func (o *doctorOptions) report(found *api.Diagnosis) *render.Report {
	return &render.Report{
		Verb: "doctor", Version: o.version, Source: found.Source, Findings: found.Findings, FailOn: o.failOn, Rules: rules(doctor.Descriptions(), found.Checks),
	}
}

const (
	// maxReportBytes bounds a report of a node, maxLogBytes the read part of a log.
	maxReportBytes = 16 << 20
	maxLogBytes    = 256 << 10
	// maxLogTail limits how many lines of a log are looked through, maxLogs of how many
	// pods, maxLogEvidence how many lines a pod has in the evidence.
	maxLogTail     = 500
	maxLogs        = 10
	maxLogEvidence = 20
	// maxReviews limits how many rights, and how many kubelets, are asked about at the same
	// time.
	maxReviews = 8
)

// readNodeReports reads what 'kubectl dra node-probe -o json' wrote.
func readNodeReports(paths []string, stdin io.Reader) ([]*nodeprobe.Report, error) {
	const way = "--node-report takes what 'kubectl dra node-probe -o json' writes."
	var reports []*nodeprobe.Report
	for _, path := range paths {
		text, err := readReport(path, stdin)
		if err != nil {
			return nil, cli.Usagef(way, "read --node-report: %w", err)
		}
		if len(text) > maxReportBytes {
			return nil, cli.Usagef(way, "read --node-report %s: expected at most %d MiB", path, maxReportBytes>>20)
		}
		report := &nodeprobe.Report{}
		if err := json.Unmarshal(text, report); err != nil {
			return nil, cli.Usagef(way, "read --node-report %s: %w", path, err)
		}
		if report.Kind != nodeprobe.Kind || report.APIVersion != api.APIVersion {
			return nil, cli.Usagef(way, "read --node-report %s: expected kind %s of %s, found kind %q of %q", path, nodeprobe.Kind, api.APIVersion, report.Kind, report.APIVersion)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// readReport reads a file, or standard input, and a byte more than is allowed.
func readReport(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxReportBytes+1))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxReportBytes+1))
}

// probeServer sends the objects of a probe as dry runs.
func probeServer(ctx context.Context, clients *collect.Clients) ([]doctor.Probe, error) {
	var probes []doctor.Probe
	for _, object := range doctor.ProbeObjects() {
		resource := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
		if object.GetKind() == api.KindPod {
			resource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		}
		probe := doctor.Probe{Sent: object}
		stored, err := clients.Dynamic.Resource(resource).Namespace(clients.Namespace).Create(ctx, object.DeepCopy(), metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore,
		})
		var status apierrors.APIStatus
		switch {
		case err == nil:
			probe.Stored = stored
		case isRightMissing(err):
			probe.Unknown = fmt.Sprintf("this user may not create %s in namespace %s", resource.Resource, clients.Namespace)
		case apierrors.IsNotFound(err):
			probe.Unknown = fmt.Sprintf("there is no namespace %s, or no %s", clients.Namespace, resource.GroupResource())
		case errors.As(err, &status):
			probe.Refused = status.Status().Message
		default:
			return nil, fmt.Errorf("probe the API server %s: %w", clients.Address(), err)
		}
		probes = append(probes, probe)
	}
	return probes, nil
}

// isRightMissing reports whether RBAC refused, and not an admission plugin, which has
// the same code.
func isRightMissing(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot create resource ")
}

// reviewRights asks the API server about rights of service accounts. That stores
// nothing. The list has a review for each right, and is never nil.
func reviewRights(ctx context.Context, clients *collect.Clients, rights []doctor.Right) []doctor.Review {
	reviews := make([]doctor.Review, len(rights))
	var group errgroup.Group
	group.SetLimit(maxReviews)
	for i, right := range rights {
		group.Go(func() error {
			reviews[i] = reviewRight(ctx, clients, right)
			return nil
		})
	}
	// None of them fails.
	_ = group.Wait()
	return reviews
}

// askKubelets asks the kubelets of nodes for their feature gates.
func askKubelets(ctx context.Context, clients *collect.Clients, nodes []string) []doctor.Kubelet {
	kubelets := make([]doctor.Kubelet, len(nodes))
	var group errgroup.Group
	group.SetLimit(maxReviews)
	for i, node := range nodes {
		group.Go(func() error {
			kubelets[i].Node = node
			gates, err := collect.KubeletGates(ctx, *clients, node)
			if kubelets[i].Gates = gates; err != nil {
				kubelets[i].Unknown = err.Error()
			}
			return nil
		})
	}
	// None of them fails.
	_ = group.Wait()
	return kubelets
}

func reviewRight(ctx context.Context, clients *collect.Clients, right doctor.Right) doctor.Review {
	review := doctor.Review{Right: right}
	answer, err := clients.ReviewsOfOthers().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		// As the API server names them (k8s.io/apiserver/pkg/authentication).
		User:               "system:serviceaccount:" + right.Namespace + ":" + right.ServiceAccount,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + right.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: resourceapi.GroupName, Resource: right.Resource, Verb: right.Verb},
	}}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		review.Unknown = "this user may not create subjectaccessreviews.authorization.k8s.io, which tell what the service account of a driver may do"
	case err != nil:
		review.Unknown = "review the rights of service account " + right.Namespace + "/" + right.ServiceAccount + ": " + err.Error()
	default:
		review.Allowed = answer.Status.Allowed
	}
	return review
}

// addLogs adds the last lines of the logs of driver pods to the findings that advise
// to read them.
func addLogs(ctx context.Context, clients *collect.Clients, snap *snapshot.Snapshot, found *api.Diagnosis) {
	read := 0
	for i := range found.Findings {
		f := &found.Findings[i]
		if !slices.Contains(doctor.LogChecks(), f.Code) {
			continue
		}
		for _, object := range f.Objects {
			pod := snap.Pod(object.Namespace, object.Name)
			if object.Kind != api.KindPod || pod == nil || read == maxLogs {
				continue
			}
			read++
			f.Evidence = append(f.Evidence, logEvidence(ctx, clients, pod)...)
		}
	}
}

// logEvidence returns what the logs of a pod tell of errors, those first that tell most.
func logEvidence(ctx context.Context, clients *collect.Clients, pod *corev1.Pod) []api.Evidence {
	var found []api.Evidence
	object := api.RefTo(api.KindPod, pod)
	for _, log := range doctor.Logs(pod) {
		text, err := readLog(ctx, clients, pod, log)
		if err != nil {
			found = append(found, api.Evidence{Object: object, Path: log.Path(), Found: "could not be read: " + err.Error()})
		}
		for _, line := range doctor.LogLines(text) {
			found = append(found, api.Evidence{Object: object, Path: log.Path(), Found: line})
		}
		if len(found) >= maxLogEvidence {
			return found[:maxLogEvidence]
		}
	}
	return found
}

// readLog reads the end of the log of a container.
func readLog(ctx context.Context, clients *collect.Clients, pod *corev1.Pod, log doctor.Log) (string, error) {
	request := clients.Discovery.RESTClient().Get().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		Param("container", log.Container).Param("previous", strconv.FormatBool(log.Previous)).
		Param("tailLines", strconv.Itoa(maxLogTail)).Param("limitBytes", strconv.Itoa(maxLogBytes))
	body, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, maxLogBytes))
	return string(text), err
}
