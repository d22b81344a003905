// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

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
