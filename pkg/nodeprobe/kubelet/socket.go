// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	// maxReply is what the kubelet's own client takes
	// (defaultPodResourcesMaxSize, pkg/kubelet/kubelet.go).
	maxReply = 16 << 20
	// maxHeaders bounds what comes beside it, texts of errors among it.
	maxHeaders = 64 << 10
	// longestSocket is what an address of a UNIX socket has room for on Linux.
	longestSocket = 107
)

// dial connects to a socket of the kubelet, which must be one and be where it
// belongs.
func dial(ctx context.Context, host *node.Host, path string) (*grpc.ClientConn, error) {
	if target, leaves, err := host.Leaves(path, host.Kubelet); err != nil {
		return nil, err
	} else if leaves {
		return nil, fmt.Errorf("it leads out of %s to %s, and was not followed", host.Kubelet, target)
	}
	info, err := host.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return nil, errors.New("it is no socket")
	}
	here, err := host.Here(path)
	if err != nil {
		return nil, err
	}
	if len(here) > longestSocket {
		return nil, fmt.Errorf("connect to %s: the path is longer than %d bytes", here, longestSocket)
	}
	first, err := (&net.Dialer{}).DialContext(ctx, "unix", here)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, errors.New("nobody listens on the socket")
	case errors.Is(err, fs.ErrPermission):
		return nil, fs.ErrPermission
	case err != nil:
		return nil, err
	}
	connections := make(chan net.Conn, 1)
	connections <- first
	conn, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case conn := <-connections:
				return conn, nil
			default:
				return (&net.Dialer{}).DialContext(ctx, "unix", here)
			}
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	return conn, nil
}

// longestText is how much of a server's message is shown.
const longestText = 1000

// failed is the check for a call that failed.
func failed(name, path, call string, err error) node.Check {
	said := status.Convert(err)
	message := said.Message()
	if len(message) > longestText {
		message = fmt.Sprintf("%s… (%d bytes)", message[:longestText], len(message))
	}
	switch said.Code() {
	case codes.Unimplemented:
		return node.Unseen(name, path, "the kubelet does not offer %s: %s", call, message)
	case codes.Canceled:
		return node.Unseen(name, path, "%s was interrupted", call)
	case codes.DeadlineExceeded:
		return node.Bad(name, path, "%s got no answer in time", call)
	case codes.ResourceExhausted:
		return node.Bad(name, path, "%s got more than it takes, or asked too often: %s", call, message)
	case codes.Unavailable:
		return node.Bad(name, path, "%s: the server closed the connection, or does not speak gRPC: %s", call, message)
	case codes.PermissionDenied, codes.Unauthenticated:
		return node.Unseen(name, path, "%s is not permitted: %s", call, message)
	default:
		return node.Bad(name, path, "%s failed: %s", call, message)
	}
}
