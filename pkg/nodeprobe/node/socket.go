// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Answer is the outcome of a connection to a socket.
type Answer string

const (
	// Answers is a socket with a server that answered a call.
	Answers Answer = "Answers"
	// Stale is a socket that nobody listens on.
	Stale Answer = "Stale"
	// Silent is a socket that did not answer in time.
	Silent Answer = "Silent"
	// Broken is a socket that answered with an error or not in gRPC.
	Broken Answer = "Broken"
	// NotSocket is a file that is not a socket.
	NotSocket Answer = "NotSocket"
	// LeadsOut is a link out of the directory of the kubelet; it was not followed.
	LeadsOut Answer = "LeadsOut"
	// Missing is a path that does not exist.
	Missing Answer = "Missing"
	// Denied is a socket that this user may not connect to.
	Denied Answer = "Denied"
	// NotAsked is a socket that was not asked: the message says why.
	NotAsked Answer = "NotAsked"
)

// State returns the state of a required socket with this answer.
func (a Answer) State() State {
	switch a {
	case Answers:
		return OK
	case LeadsOut, Denied, NotAsked:
		return Unknown
	case Stale, Silent, Broken, NotSocket, Missing:
		return Problem
	default:
		return Unknown
	}
}

// SocketError means that a socket did not answer as it should.
type SocketError struct {
	Path   string
	Answer Answer
	Err    error
}

// Error describes it in one line.
func (e *SocketError) Error() string { return e.Path + ": " + e.Reason() }

// Reason returns the error without the path.
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

// Unwrap returns the error of the system or gRPC.
func (e *SocketError) Unwrap() error { return e.Err }

// Is reports whether target is the file error for missing rights or a missing file, as err
// is.
func (e *SocketError) Is(target error) bool {
	return target == fs.ErrPermission && e.Answer == Denied || target == fs.ErrNotExist && e.Answer == Missing
}

// maxHeaders limits the size of the headers of a reply, which include the texts of errors.
const maxHeaders = 64 << 10

// Dial connects to the gRPC server behind a socket of the node, after checking that it is
// one. A link is followed as the node would, but not out of inside, if that is given.
// maxReply limits the size of a reply. The error is a [*SocketError].
func (h *Host) Dial(ctx context.Context, path, inside string, maxReply int) (*grpc.ClientConn, error) {
	first, err := h.connect(ctx, path, inside)
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
				return h.connect(ctx, path, inside)
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
	return conn, nil
}

// connect connects to a socket.
func (h *Host) connect(ctx context.Context, path, inside string) (net.Conn, error) {
	fail := func(answer Answer, err error) (net.Conn, error) {
		return nil, &SocketError{Path: path, Answer: answer, Err: err}
	}
	if inside != "" {
		target, leaves, err := h.Leaves(path, inside)
		switch {
		case err != nil:
			return fail(Broken, err)
		case leaves:
			return fail(LeadsOut, fmt.Errorf("leads out of %s to %s, and was not followed", inside, target))
		}
	}
	here, err := h.Here(path)
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

// bare removes what the network library adds to a system error: it would name the path of a
// file descriptor.
func bare(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call
	}
	return err
}
