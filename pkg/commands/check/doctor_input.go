// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

const (
	// maxReportBytes bounds a report of a node, maxLogBytes what is read of a log.
	maxReportBytes = 16 << 20
	maxLogBytes    = 256 << 10
	// maxLogTail is how many lines of a log are looked through, maxLogs of how many
	// pods.
	maxLogTail = 500
	maxLogs    = 10
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

// addLogs adds the last lines of the logs of driver pods to the findings that advise
// to read them.
func addLogs(ctx context.Context, clients *collect.Clients, found *api.Diagnosis) {
	read := 0
	for i := range found.Findings {
		f := &found.Findings[i]
		if !slices.Contains(doctor.LogChecks(), f.Code) {
			continue
		}
		for _, object := range f.Objects {
			namespaced, isPod := strings.CutPrefix(object, api.KindPod+"/")
			namespace, name, _ := strings.Cut(namespaced, "/")
			if !isPod || read == maxLogs {
				continue
			}
			read++
			log, err := readLog(ctx, clients, namespace, name)
			if err != nil {
				f.Evidence = append(f.Evidence, api.Evidence{Object: object, Path: "log", Found: "could not be read: " + err.Error()})
			}
			for _, line := range doctor.LogLines(log) {
				f.Evidence = append(f.Evidence, api.Evidence{Object: object, Path: "log", Found: line})
			}
		}
	}
}

// readLog reads the end of the log of a pod's first container.
func readLog(ctx context.Context, clients *collect.Clients, namespace, name string) (string, error) {
	request := clients.Discovery.RESTClient().Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name).SubResource("log").
		Param("tailLines", strconv.Itoa(maxLogTail)).Param("limitBytes", strconv.Itoa(maxLogBytes))
	body, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, maxLogBytes))
	return string(text), err
}
