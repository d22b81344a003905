// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ServerError tells that the API server could not be asked: it was not
// reached, did not answer in time, or answered nonsense.
type ServerError struct {
	// Server is the address of the API server.
	Server string
	// Problem is the sentence for people, Err what it was derived from.
	Problem string
	Err     error
}

// Error returns one sentence with the server's address.
func (e *ServerError) Error() string {
	return fmt.Sprintf("ask API server %s: %s", e.Server, e.Problem)
}

// Unwrap returns the error of the client library.
func (e *ServerError) Unwrap() error { return e.Err }

// UnauthorizedError tells that the API server does not know the user: there
// are no credentials, they have expired, or they could not be obtained.
type UnauthorizedError struct {
	Server string
	Err    error
}

// Error ends with a second line that tells what to do.
func (e *UnauthorizedError) Error() string {
	return fmt.Sprintf("log in to API server %s: %s\nsee who you are with: kubectl auth whoami; then log in again, or choose another --context",
		e.Server, unauthorizedReason(e.Err))
}

// Unwrap returns the error of the client library.
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// ForbiddenError tells that the user may read none of what a snapshot is made
// of. Where only something is forbidden, the snapshot has a [snapshot.Gap] instead.
type ForbiddenError struct {
	Server string
	// Namespace is where it was tried after the whole cluster was refused,
	// empty if it was not.
	Namespace string
	// Resources are the resources that may not be read, named as in [Gap.Resource].
	Resources []string
}

// Error ends with a second line that tells what to do.
func (e *ForbiddenError) Error() string {
	scope := "at the cluster scope"
	if e.Namespace != "" {
		scope = fmt.Sprintf("at the cluster scope, nor in namespace %s", e.Namespace)
	}
	return fmt.Sprintf("read from API server %s: this user may list none of %s %s\n"+
		"ask for a ClusterRole that may list these, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz; see who you are with: kubectl auth whoami",
		e.Server, strings.Join(e.Resources, ", "), scope)
}

// NoDRAError tells that the cluster has no Dynamic Resource Allocation that
// this program understands.
type NoDRAError struct {
	Server string
	// Version is the version of the API server, empty if it is not known.
	Version string
	// Served are the versions of resource.k8s.io that the server has, all of
	// them too old. Mostly empty.
	Served []string
}

// Error ends with a second line that tells what to do.
func (e *NoDRAError) Error() string {
	version := "of unknown version"
	if e.Version != "" {
		version = "(" + e.Version + ")"
	}
	has := "has no API group resource.k8s.io"
	if len(e.Served) > 0 {
		has = fmt.Sprintf("has resource.k8s.io only as %s", strings.Join(e.Served, ", "))
	}
	advice := "Dynamic Resource Allocation is on by default since Kubernetes 1.34; upgrade the cluster"
	if minor, ok := snapshot.MinorVersion(e.Version); ok && minor >= snapshot.OldestMinor {
		advice = "Dynamic Resource Allocation is on by default since Kubernetes 1.34: see whether --runtime-config of the API server turns it off"
	}
	return fmt.Sprintf("find the Dynamic Resource Allocation API: cluster %s %s %s\n%s", e.Server, version, has, advice)
}

// UnknownResourceError tells that the server has no such resource type.
type UnknownResourceError struct {
	// Resource is the resource as the user typed it.
	Resource string
	Err      error
}

// Error ends with a second line that tells what to do.
func (e *UnknownResourceError) Error() string {
	return fmt.Sprintf("find resource type: the server has no %q\nsee what it has with: kubectl api-resources", e.Resource)
}

// Unwrap returns the error of the client library.
func (e *UnknownResourceError) Unwrap() error { return e.Err }

// NoTemplateError tells that the target is an object of which no pods are made.
type NoTemplateError struct {
	// Resource is the type with its group, Name the object.
	Resource, Name string
}

// Error ends with a second line that tells what to do.
func (e *NoTemplateError) Error() string {
	return fmt.Sprintf("read %s %s: it has no pod template\nask about one of its pods or claims instead", e.Resource, e.Name)
}

// serverAddress returns the address without a user's name and password.
func serverAddress(config *rest.Config) string {
	if config == nil || config.Host == "" {
		return "(no address)"
	}
	parsed, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "(invalid address)"
	}
	parsed.User = nil
	return parsed.String()
}

// serverError turns an error of client-go into one for people. Cancellation
// stays what it is, so that a caller can tell it from a failure.
func serverError(ctx context.Context, server string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("ask API server %s: %w", server, cause)
	}
	var (
		noDRA      *NoDRAError
		unknown    *UnknownResourceError
		noTemplate *NoTemplateError
	)
	if errors.As(err, &noDRA) || errors.As(err, &unknown) || errors.As(err, &noTemplate) {
		return err
	}
	if apierrors.IsUnauthorized(err) || credentialsProblem(err) != "" {
		return &UnauthorizedError{Server: server, Err: err}
	}
	return &ServerError{Server: server, Problem: describe(err), Err: err}
}

// credentialsProblem returns what a failing credential plugin says, in one
// line. client-go has no type for it, only these texts in front.
func credentialsProblem(err error) string {
	for _, marker := range []string{"getting credentials: ", "exec: executable "} {
		if _, problem, found := strings.Cut(err.Error(), marker); found {
			problem, _, _ = strings.Cut(strings.TrimPrefix(problem, "exec: "), "\n")
			return problem
		}
	}
	return ""
}

func unauthorizedReason(err error) string {
	if problem := credentialsProblem(err); problem != "" {
		return "the credential plugin failed: " + problem
	}
	return "it does not accept the credentials; they are missing, wrong or expired"
}

// describe says in one sentence what went wrong between here and the server.
func describe(err error) string {
	var (
		status      apierrors.APIStatus
		unknownCA   x509.UnknownAuthorityError
		badHost     x509.HostnameError
		invalidCert x509.CertificateInvalidError
		badCert     *tls.CertificateVerificationError
		noTLS       tls.RecordHeaderError
		alert       tls.AlertError
		lookup      *net.DNSError
		network     net.Error
		noAnswer    *noAnswerError
		refused     *refusedError
	)
	switch {
	case errors.As(err, &refused):
		return refused.problem
	case errors.As(err, &noAnswer):
		return describe(noAnswer.err)
	case errors.As(err, &unknownCA):
		return "its certificate is signed by an unknown authority; the kubeconfig needs the cluster's certificate-authority"
	case errors.As(err, &badHost):
		return "its certificate is for another name: " + badHost.Error()
	case errors.As(err, &invalidCert):
		return "its certificate is not valid: " + invalidCert.Error()
	case errors.As(err, &badCert):
		return "its certificate is not valid: " + badCert.Err.Error()
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS; is this https address really an API server?"
	case errors.As(err, &alert):
		return "it refused the TLS connection: " + alert.Error()
	case errors.As(err, &lookup):
		return fmt.Sprintf("its name %q could not be resolved", lookup.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused; is the address right, and the server running?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), lostHTTP2Connection(err):
		return "it closed the connection"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it from here"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "no answer in time; it is overloaded, or --request-timeout is too short"
	case errors.As(err, &status):
		return describeStatus(err, status)
	}
	// The rest is mostly an answer that could not be decoded. The URL in front of a
	// url.Error repeats the address.
	var request *url.Error
	if errors.As(err, &request) {
		return "the request failed: " + request.Err.Error()
	}
	return "it answered with something that is no Kubernetes object; is there a proxy in between? (" + firstLine(err.Error()) + ")"
}

// lostHTTP2Connection reports whether requests ended with the HTTP/2 connection that
// they shared. net/http has no types for it, only these texts (h2_bundle.go).
func lostHTTP2Connection(err error) bool {
	for _, text := range []string{
		"http2: client conn is closed",
		"http2: client conn not usable",
		"http2: client conn could not be established",
		"http2: client connection force closed",
		"http2: client connection lost",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func describeStatus(err error, status apierrors.APIStatus) string {
	code, message := status.Status().Code, status.Status().Message
	// An answer of something that is no API server is in the details.
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse && cause.Message != "" {
				message = firstLine(cause.Message)
			}
		}
	}
	const most = 2000
	if runes := []rune(message); len(runes) > most {
		message = string(runes[:most]) + "…"
	}
	switch {
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "it gave up on the request: " + message
	case apierrors.IsTooManyRequests(err):
		return "it is overloaded (429 Too Many Requests); try again later"
	case apierrors.IsServiceUnavailable(err):
		return "it is not ready (503 Service Unavailable): " + message
	case code != 0:
		return fmt.Sprintf("it answered %d: %s", code, message)
	default:
		return message
	}
}

// firstLine bounds text that came from who knows where.
func firstLine(text string) string {
	const most = 200
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// noAnswerError is a connection that was closed, or could not be made in time, before
// there was an answer. client-go tries such a request eleven times, a second or a
// timeout apart, and treats a watch that still fails then as ended well.
// It decides by the errors of the standard library and by their texts: this one
// has neither.
type noAnswerError struct{ err error }

func (e *noAnswerError) Error() string { return "no answer: " + describe(e.err) }

// refusedError is an answer of the server that is not taken, as a sentence about it.
type refusedError struct{ problem string }
