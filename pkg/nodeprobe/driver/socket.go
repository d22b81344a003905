// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

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

// Served reports whether a server has a service.
type Served string

// Answers of a server about a service. Servers need not give one.
const (
	ServedYes     Served = "Yes"
	ServedNo      Served = "No"
	ServedUnknown Served = "Unknown"
)

// The directories of the kubelet with sockets, below its root.
const (
	registryDir = "plugins_registry"
	pluginsDir  = "plugins"
)

// devicePluginsDir is the same for every kubelet, whatever its root directory
// (NewManagerImpl, pkg/kubelet/cm/devicemanager).
const devicePluginsDir = devicepluginv1beta1.DevicePluginPath

// looked records the type of the file at a path, and reports whether everyone may connect
// to it.
func (s *Socket) looked(host *node.Host) (exposed bool) {
	info, err := host.Stat(s.Path)
	if err != nil {
		return false
	}
	s.Mode = info.Mode().String()
	if info.Mode().Type() != fs.ModeSocket || info.Mode().Perm()&0o002 == 0 {
		return false
	}
	// A process that may not enter one of the directories does not reach it.
	here, err := host.Here(s.Path)
	if err != nil {
		return false
	}
	for dir := path.Dir(here); len(dir) > len(path.Clean(host.Root)); dir = path.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

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

// askServices finds out whether a socket answers and which of the services it has.
func (s *Socket) askServices(ctx context.Context, c *client, advertised []string) {
	started := time.Now()
	for i, a := range append(draAPIs(), healthAPIs()...) {
		served, err := c.serves(ctx, a.grpc)
		if i == 0 || err != nil {
			s.outcome(time.Since(started), err)
		}
		if err != nil {
			s.Services = nil
			return
		}
		named := slices.Contains(advertised, a.name)
		if named || served == ServedYes {
			s.Services = append(s.Services, Service{Name: a.name, Advertised: named, Served: served})
		}
	}
}

// draAPI is a service of a driver in gRPC.
type draAPI struct{ name, grpc string }

// draAPIs returns the versions of the service that prepares claims, newest first: the
// kubelet uses the first that a driver advertises.
func draAPIs() []draAPI {
	return []draAPI{
		{drav1.DRAPluginService, drav1.DRAPlugin_ServiceDesc.ServiceName},
		{drav1beta1.DRAPluginService, drav1beta1.DRAPlugin_ServiceDesc.ServiceName},
	}
}

// healthAPIs returns the versions of the service for health, newest first.
func healthAPIs() []draAPI {
	return []draAPI{
		{healthv1.DRAResourceHealthService, healthv1.DRAResourceHealth_ServiceDesc.ServiceName},
		{healthv1alpha1.DRAResourceHealthService, healthv1alpha1.DRAResourceHealth_ServiceDesc.ServiceName},
	}
}

// noMethod is a method that no service has. Servers on grpc-go answer differently for an
// unknown method of a known service and for an unknown service, and do nothing else.
const noMethod = "KubectlDRALooks"

// serves asks whether the server has a service, without calling it.
func (c *client) serves(ctx context.Context, service string) (Served, error) {
	err := c.Invoke(ctx, "/"+service+"/"+noMethod, &registerv1.InfoRequest{}, &registerv1.InfoRequest{})
	said := status.Convert(err)
	switch {
	case said.Code() == codes.Unimplemented && strings.HasPrefix(said.Message(), "unknown service"):
		return ServedNo, nil
	case said.Code() == codes.Unimplemented && strings.HasPrefix(said.Message(), "unknown method"):
		return ServedYes, nil
	case said.Code() == codes.Unimplemented, said.Code() == codes.OK:
		return ServedUnknown, nil
	default:
		return ServedUnknown, c.failed(err)
	}
}

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

// reason returns an error without the path of the socket.
func reason(err error) string {
	var failure *node.SocketError
	if errors.As(err, &failure) {
		return clip(failure.Reason())
	}
	return clip(err.Error())
}

const (
	// maxReply limits the size of a reply, as the kubelet does.
	maxReply = 4 << 20
	// maxText limits the kept bytes of a text from a driver.
	maxText = 4 << 10
)

// clip shortens texts that only a malicious driver writes.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:maxText], len(text))
}

// millis returns a duration in milliseconds, with microseconds.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
