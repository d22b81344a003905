// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// maxReply is the limit of the kubelet's own client (defaultPodResourcesMaxSize,
// pkg/kubelet/kubelet.go).
const maxReply = 16 << 20

// longestText limits the shown part of a server's message.
const longestText = 1000

// failed returns the check for a call that failed.
func failed(name, path, call string, err error) node.Check {
	said := status.Convert(err)
	message := said.Message()
	if len(message) > longestText {
		message = fmt.Sprintf("%s… (%d bytes)", message[:longestText], len(message))
	}
	switch said.Code() {
	case codes.Unimplemented:
		return node.NotKnown(name, path, "the kubelet does not offer %s: %s", call, message)
	case codes.Canceled:
		return node.NotKnown(name, path, "%s was interrupted", call)
	case codes.DeadlineExceeded:
		return node.Bad(name, path, "%s got no answer in time", call)
	case codes.ResourceExhausted:
		return node.NotKnown(name, path, "%s got more than it takes, or asked too often: %s", call, message)
	case codes.Unavailable:
		return node.Bad(name, path, "%s: the server closed the connection, or does not speak gRPC: %s", call, message)
	case codes.PermissionDenied, codes.Unauthenticated:
		return node.NotKnown(name, path, "%s is not permitted: %s", call, message)
	default:
		return node.Bad(name, path, "%s failed: %s", call, message)
	}
}
