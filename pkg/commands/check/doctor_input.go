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

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

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
