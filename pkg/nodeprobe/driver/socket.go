// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Answer is what came of talking to a socket.
type Answer string

const (
	// Answers is a socket with a server that answered a call.
	Answers Answer = "Answers"
	// Stale is a socket that nobody listens on.
	Stale Answer = "Stale"
	// Silent is one that takes connections, or not even that, and did not answer
	// in time.
	Silent Answer = "Silent"
	// Broken is one that answered, but with an error or not in gRPC.
	Broken Answer = "Broken"
	// NotSocket is a file or something else that is no socket.
	NotSocket Answer = "NotSocket"
	// LeadsOut is a link out of the directory of the kubelet; it was not
	// followed.
	LeadsOut Answer = "LeadsOut"
	// Missing is nothing at all.
	Missing Answer = "Missing"
	// Denied is a socket that this user may not connect to.
	Denied Answer = "Denied"
	// NotAsked is a socket that was left alone: the message says why.
	NotAsked Answer = "NotAsked"
)

// Socket is a socket of the node and what came of talking to it.
type Socket struct {
	// Path is that of the node.
	Path   string `json:"path"`
	Answer Answer `json:"answer"`
	// Mode is type and permissions as ls shows them, empty if unknown.
	Mode string `json:"mode,omitempty"`
	// AnswerMillis is how long the first call took, in milliseconds.
	AnswerMillis float64 `json:"answerMillis,omitempty"`
	// Message says what went wrong, empty if nothing did.
	Message string `json:"message,omitempty"`
	// Services are those that were asked for, see [Service].
	Services []Service `json:"services,omitempty"`
}

// SocketError is a socket that did not answer as it should.
//
// +k8s:deepcopy-gen=false
type SocketError struct {
	Path   string
	Answer Answer
	Err    error
}

// Error says it in one line.
func (e *SocketError) Error() string { return e.Path + ": " + e.Reason() }

// Reason is the error without the path.
func (e *SocketError) Reason() string {
	switch e.Answer {
	case Stale:
		return "nobody listens on the socket"
	case Missing:
		return "there is no such socket"
	case NotSocket:
		return "is no socket"
	case Denied:
		return "no permission to connect"
	default:
		return e.Err.Error()
	}
}

// Unwrap gives what the system or gRPC said.
func (e *SocketError) Unwrap() error { return e.Err }

// Is makes missing rights and missing files what they are for files.
func (e *SocketError) Is(target error) bool {
	return target == fs.ErrPermission && e.Answer == Denied || target == fs.ErrNotExist && e.Answer == Missing
}

var (
	errNotSocket = errors.New("is no socket")
	errTooLong   = errors.New("the path is longer than this system can connect to")
)

const (
	// maxReply is how many bytes a reply may have: what the kubelet takes.
	maxReply = 4 << 20
	// maxHeaders is how many bytes the headers of a reply may have; the texts of
	// errors are among them.
	maxHeaders = 64 << 10
	// maxText is how many bytes of a text of a driver are kept.
	maxText = 4 << 10
)

// open connects to a socket of the node, once it is clear that it is one. A link
// is followed as the node would, but not out of inside, if that is given.
func open(ctx context.Context, host *node.Host, path, inside string) (net.Conn, error) {
	fail := func(answer Answer, err error) (net.Conn, error) {
		return nil, &SocketError{Path: path, Answer: answer, Err: err}
	}
	if inside != "" {
		target, leaves, err := host.Leaves(path, inside)
		switch {
		case err != nil:
			return fail(Broken, err)
		case leaves:
			return fail(LeadsOut, fmt.Errorf("leads out of %s to %s, and was not followed", inside, target))
		}
	}
	here, err := host.Here(path)
	if err != nil {
		return fail(Broken, err)
	}
	conn, err := connect(ctx, here)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, errNotSocket):
		return fail(NotSocket, err)
	case errors.Is(err, errTooLong):
		return fail(NotAsked, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fail(Missing, err)
	case errors.Is(err, fs.ErrPermission):
		return fail(Denied, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(Stale, err)
	case errors.Is(err, syscall.EAGAIN):
		return fail(Silent, errors.New("takes no more connections: its queue is full"))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fail(Silent, errors.New("takes no connection in time"))
	default:
		return fail(Broken, bare(err))
	}
}

// bare takes off what the network library adds to an error of the system: the
// path would be that of a file descriptor.
func bare(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call
	}
	return err
}

// client is a gRPC connection to one socket.
type client struct {
	*grpc.ClientConn

	path string
}

// dial connects to the gRPC server behind a socket. The error is a
// [SocketError].
func dial(ctx context.Context, host *node.Host, path, inside string) (*client, error) {
	first, err := open(ctx, host, path, inside)
	if err != nil {
		return nil, err
	}
	connections := make(chan net.Conn, 1)
	connections <- first
	conn, err := grpc.NewClient("passthrough:///node",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case conn := <-connections:
				return conn, nil
			default:
				return open(ctx, host, path, inside)
			}
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("kubectl-dra"),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		_ = first.Close()
		return nil, &SocketError{Path: path, Answer: Broken, Err: err}
	}
	return &client{ClientConn: conn, path: path}, nil
}

// close ends the connection; there is nobody to tell that it failed.
func (c *client) close() { _ = c.Close() }

// failed turns what gRPC says about a call into a [SocketError].
func (c *client) failed(err error) error {
	answer := Broken
	said := status.Convert(err)
	message := said.Message()
	switch said.Code() {
	case codes.DeadlineExceeded:
		answer, message = Silent, "does not answer in time"
	case codes.Canceled:
		return err
	case codes.Unavailable:
		message = "closes the connection or does not speak gRPC: " + message
	case codes.ResourceExhausted:
		message = "sends too much: " + message
	default:
		message = fmt.Sprintf("answers %s: %s", said.Code(), message)
	}
	return &SocketError{Path: c.path, Answer: answer, Err: errors.New(clip(message))}
}

// clip shortens a text that only somebody who means harm writes.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:maxText], len(text))
}

// millis is a duration in milliseconds, to a microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// outcome notes in a socket what came of talking to it.
func (s *Socket) outcome(took time.Duration, err error) {
	if err == nil {
		s.Answer, s.AnswerMillis = Answers, millis(took)
		return
	}
	s.Answer, s.Message = Broken, reason(err)
	var failure *SocketError
	if errors.As(err, &failure) {
		s.Answer = failure.Answer
	}
}

// reason is what an error says besides the path of the socket.
func reason(err error) string {
	var failure *SocketError
	if errors.As(err, &failure) {
		return clip(failure.Reason())
	}
	return clip(err.Error())
}
