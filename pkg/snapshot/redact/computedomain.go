// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-dra/kubectl-dra/pkg/computedomain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func redactComputeDomain(r *redactor, domain *snapshot.ComputeDomain) {
	r.meta(&domain.ObjectMeta, snapshot.KindComputeDomain)
	if channel := domain.Spec.Channel; channel != nil {
		channel.ResourceClaimTemplate.Name = r.swap("ResourceClaimTemplate", channel.ResourceClaimTemplate.Name)
	}
	for i := range domain.Status.Nodes {
		node := &domain.Status.Nodes[i]
		node.Name, node.IPAddress, node.CliqueID = r.swap(tableNode, node.Name), r.swap(tableIP, node.IPAddress), r.labelValue(snapshot.CliqueLabel, node.CliqueID)
	}
}

func redactClique(r *redactor, clique *snapshot.ComputeDomainClique) {
	r.meta(&clique.ObjectMeta, snapshot.KindClique)
	for i := range clique.Daemons {
		daemon := &clique.Daemons[i]
		daemon.NodeName, daemon.IPAddress, daemon.CliqueID = r.swap(tableNode, daemon.NodeName), r.swap(tableIP, daemon.IPAddress), r.labelValue(snapshot.CliqueLabel, daemon.CliqueID)
	}
}

// domainConfig replaces the UID of a ComputeDomain in parameters, and keeps the rest: what
// the driver accepts has no other names. It reports whether they are such parameters.
func (r *redactor) domainConfig(parameters *runtime.RawExtension) bool {
	config := computedomain.Parse(parameters.Raw)
	if config.Problem != "" || config.AllocationMode != "" && config.AllocationMode != "All" && config.AllocationMode != "Single" {
		return false
	}
	pseudonym := r.swap(tableUID, config.DomainID)
	if r.stage != rewrite {
		return true
	}
	fields := map[string]string{"apiVersion": snapshot.ComputeDomainGroup + "/" + snapshot.ComputeDomainVersion, "kind": config.Kind, "domainID": pseudonym}
	if config.AllocationMode != "" {
		fields["allocationMode"] = config.AllocationMode
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return false
	}
	parameters.Raw = encoded
	return true
}
