// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package computedomain

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Kinds of configuration that the driver accepts
// (api/nvidia.com/resource/v1beta1/computedomainconfig.go there).
const (
	// KindChannel is the kind for a pod of the domain, which gets an IMEX channel.
	KindChannel = "ComputeDomainChannelConfig"
	// KindDaemon is the kind for a daemon, which the driver runs on each node of the
	// domain.
	KindDaemon = "ComputeDomainDaemonConfig"
)

// Config is one configuration of a claim for the driver.
type Config struct {
	// Kind is [KindChannel] or [KindDaemon]; DomainID is the UID of a ComputeDomain.
	// Both are empty if there is a Problem.
	Kind, DomainID string
	// AllocationMode is All for all channels.
	AllocationMode string
	// Parameters are the claim's parameters at Path.
	Parameters, Path string
	// Problem says why the driver rejects the parameters, empty if it does not.
	Problem string
}

// Configs lists a claim's configuration for the driver: from its allocation, or, if it has
// none, from its spec. Configuration for other drivers is left out, whatever it is.
func Configs(claim *resourceapi.ResourceClaim) []Config {
	var configs []Config
	add := func(path string, index int, opaque *resourceapi.OpaqueDeviceConfiguration) {
		if opaque == nil || opaque.Driver != snapshot.ComputeDomainDriver {
			return
		}
		config := Parse(opaque.Parameters.Raw)
		config.Parameters, config.Path = string(opaque.Parameters.Raw), fmt.Sprintf("%s.devices.config[%d].opaque.parameters", path, index)
		configs = append(configs, config)
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Config {
			add("status.allocation", i, allocation.Devices.Config[i].Opaque)
		}
		return configs
	}
	for i := range claim.Spec.Devices.Config {
		add("spec", i, claim.Spec.Devices.Config[i].Opaque)
	}
	return configs
}

// parameters has the fields of both kinds.
type parameters struct {
	metav1.TypeMeta `json:",inline"`
	DomainID        string  `json:"domainID"`
	AllocationMode  *string `json:"allocationMode,omitempty"`
}

// Parse parses parameters as strictly as the driver does: it rejects unknown fields, other
// versions, and a missing domain.
func Parse(raw []byte) Config {
	var p parameters
	strict, err := kjson.UnmarshalStrict(raw, &p)
	switch {
	case err != nil:
		return problem("it is no object with parameters: %v", err)
	case len(strict) > 0:
		return problem("%v", strict[0])
	case p.APIVersion != snapshot.ComputeDomainGroup+"/"+snapshot.ComputeDomainVersion:
		return problem("apiVersion is %q, must be %s/%s", p.APIVersion, snapshot.ComputeDomainGroup, snapshot.ComputeDomainVersion)
	case p.Kind != KindChannel && p.Kind != KindDaemon:
		return problem("kind is %q, must be %s or %s", p.Kind, KindChannel, KindDaemon)
	case p.Kind == KindDaemon && p.AllocationMode != nil:
		return problem("%s has no field allocationMode", KindDaemon)
	case p.DomainID == "":
		return problem("domainID is missing, must be the UID of a ComputeDomain")
	}
	config := Config{Kind: p.Kind, DomainID: p.DomainID}
	if p.AllocationMode != nil {
		config.AllocationMode = *p.AllocationMode
	}
	return config
}

func problem(format string, args ...any) Config {
	return Config{Problem: fmt.Sprintf(format, args...)}
}
