// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Kinds of configuration that NVIDIA's driver for ComputeDomains accepts
// (api/nvidia.com/resource/v1beta1/computedomainconfig.go there).
const (
	// KindChannel is the kind for a pod of the domain, which gets an IMEX channel.
	KindChannel = "ComputeDomainChannelConfig"
	// KindDaemon is the kind for a daemon, which the driver runs on each node of the
	// domain.
	KindDaemon = "ComputeDomainDaemonConfig"
)

// DomainConfig is one configuration of a claim for the driver.
type DomainConfig struct {
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

// DomainConfigs lists a claim's configuration for the driver: from its allocation, or, if it has
// none, from its spec. Configuration for other drivers is left out, whatever it is.
func DomainConfigs(claim *resourceapi.ResourceClaim) []DomainConfig {
	var configs []DomainConfig
	add := func(path string, index int, opaque *resourceapi.OpaqueDeviceConfiguration) {
		if opaque == nil || opaque.Driver != snapshot.ComputeDomainDriver {
			return
		}
		config := ParseDomainConfig(opaque.Parameters.Raw)
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

// domainParameters has the fields of both kinds.
type domainParameters struct {
	metav1.TypeMeta `json:",inline"`
	DomainID        string  `json:"domainID"`
	AllocationMode  *string `json:"allocationMode,omitempty"`
}

// ParseDomainConfig parses parameters as strictly as the driver does: it rejects unknown
// fields, other versions, and a missing domain.
func ParseDomainConfig(raw []byte) DomainConfig {
	var p domainParameters
	strict, err := kjson.UnmarshalStrict(raw, &p)
	switch {
	case err != nil:
		return domainProblem("it is no object with parameters: %v", err)
	case len(strict) > 0:
		return domainProblem("%v", strict[0])
	case p.APIVersion != snapshot.ComputeDomainGroup+"/"+snapshot.ComputeDomainVersion:
		return domainProblem("apiVersion is %q, must be %s/%s", p.APIVersion, snapshot.ComputeDomainGroup, snapshot.ComputeDomainVersion)
	case p.Kind != KindChannel && p.Kind != KindDaemon:
		return domainProblem("kind is %q, must be %s or %s", p.Kind, KindChannel, KindDaemon)
	case p.Kind == KindDaemon && p.AllocationMode != nil:
		return domainProblem("%s has no field allocationMode", KindDaemon)
	case p.DomainID == "":
		return domainProblem("domainID is missing, must be the UID of a ComputeDomain")
	}
	config := DomainConfig{Kind: p.Kind, DomainID: p.DomainID}
	if p.AllocationMode != nil {
		config.AllocationMode = *p.AllocationMode
	}
	return config
}

func domainProblem(format string, args ...any) DomainConfig {
	return DomainConfig{Problem: fmt.Sprintf(format, args...)}
}

func redactedDomains() []Redaction {
	return []Redaction{
		redacted[snapshot.ComputeDomain](`metadata  meta ComputeDomain`),
		redacted[snapshot.ComputeDomainTemplate](`name  name ResourceClaimTemplate`),
		redacted[snapshot.ComputeDomainNode](`
			name       name Node
			ipAddress  name IP
			cliqueID   label ` + snapshot.CliqueLabel),
		redacted[snapshot.ComputeDomainClique](`metadata  meta ComputeDomainClique`),
		redacted[snapshot.ComputeDomainDaemon](`
			nodeName   name Node
			ipAddress  name IP
			cliqueID   label ` + snapshot.CliqueLabel),
	}
}
