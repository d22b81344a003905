// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Socket is a socket of the node and the outcome of a connection.
type Socket struct {
	// Path is the path on the node.
	Path   string      `json:"path"`
	Answer node.Answer `json:"answer"`
	// Mode is type and permissions as ls shows them, empty if unknown.
	Mode string `json:"mode,omitempty"`
	// AnswerMillis is the duration of the first call.
	AnswerMillis float64 `json:"answerMillis,omitempty"`
	// Message describes the error, empty if there is none.
	Message string `json:"message,omitempty"`
	// Services are the services that were asked for, see [Service].
	Services []Service `json:"services,omitempty"`
}

const (
	// maxReply limits the size of a reply, as the kubelet does.
	maxReply = 4 << 20
	// maxText limits the kept bytes of a text from a driver.
	maxText = 4 << 10
)

// client is a gRPC connection to one socket.
type client struct {
	*grpc.ClientConn

	path string
}

// dial connects to the gRPC server behind a socket. The error is a
// [*node.SocketError].
func dial(ctx context.Context, host *node.Host, path, inside string) (*client, error) {
	conn, err := host.Dial(ctx, path, inside, maxReply)
	if err != nil {
		return nil, err
	}
	return &client{ClientConn: conn, path: path}, nil
}

// close ends the connection and ignores errors.
func (c *client) close() { _ = c.Close() }

// failed turns a gRPC error of a call into a [*node.SocketError].
func (c *client) failed(err error) error {
	answer := node.Broken
	said := status.Convert(err)
	message := said.Message()
	switch said.Code() {
	case codes.DeadlineExceeded:
		answer, message = node.Silent, "does not answer in time"
	case codes.Canceled:
		return err
	case codes.Unavailable:
		message = "closes the connection or does not speak gRPC: " + message
	case codes.ResourceExhausted:
		message = "sends too much: " + message
	default:
		message = fmt.Sprintf("answers %s: %s", said.Code(), message)
	}
	return &node.SocketError{Path: c.path, Answer: answer, Err: errors.New(clip(message))}
}

// clip shortens texts that only a malicious driver writes.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:maxText], len(text))
}

// millis returns a duration in milliseconds, with microseconds.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// outcome records the outcome of a connection.
func (s *Socket) outcome(took time.Duration, err error) {
	if err == nil {
		s.Answer, s.AnswerMillis = node.Answers, millis(took)
		return
	}
	s.Answer, s.Message = node.Broken, reason(err)
	var failure *node.SocketError
	if errors.As(err, &failure) {
		s.Answer = failure.Answer
	}
}

// reason returns an error without the path of the socket.
func reason(err error) string {
	var failure *node.SocketError
	if errors.As(err, &failure) {
		return clip(failure.Reason())
	}
	return clip(err.Error())
}

// Served reports whether a server has a service.
type Served string

// Answers of a server about a service. Servers need not give one.
const (
	ServedYes     Served = "Yes"
	ServedNo      Served = "No"
	ServedUnknown Served = "Unknown"
)

// Service is a version of one of the services of a driver.
type Service struct {
	// Name is the advertised name: v1.DRAPlugin, v1beta1.DRAPlugin, v1.DRAResourceHealth,
	// v1alpha1.DRAResourceHealth.
	Name string `json:"name"`
	// Advertised is true if the driver names it when it registers.
	Advertised bool `json:"advertised"`
	// Served is the server's answer.
	Served Served `json:"served"`
}
