// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Redaction names the fields of a type that a redacted snapshot does not have as they are, one
// a line: the name, a verb of package redact, and what the verb has to know. A test of that
// package fails for each field with texts that has no line and no reason to stay.
type Redaction struct {
	Of     reflect.Type
	Fields string
}

func redacted[T any](fields string) Redaction { return Redaction{reflect.TypeFor[T](), fields} }

// Redactions lists the types with such fields. The types of one kind stand in its file.
func Redactions() []Redaction {
	return slices.Concat(redactedEverywhere(), redactedNodes(), redactedSlices(), redactedClaims(), redactedPods(), redactedGroups(),
		redactedQueues(), redactedDomains(), redactedQuotas(), redactedVolumes(), redactedEvents())
}

func redactedEverywhere() []Redaction {
	return []Redaction{
		redacted[snapshot.Gap](`
			namespace  name Namespace
			reason     reason`),
		redacted[corev1.Namespace](`metadata  meta Namespace`),
		redacted[corev1.NamespaceCondition](`message  text`),
		redacted[metav1.Condition](`message  text`),
		redacted[metav1.LabelSelector](`matchLabels  labels`),
	}
}

func redactedGroups() []Redaction {
	return []Redaction{
		redacted[schedulingapi.PodGroup](`metadata  meta PodGroup`),
		redacted[schedulingapi.PodGroupSpec](`
			parentCompositePodGroupName  name CompositePodGroup
			priorityClassName            priorityClass`),
		redacted[schedulingapi.WorkloadReference](`
			workloadName  name Workload
			templateName  name PodGroupTemplate`),
		redacted[schedulingapi.PodGroupResourceClaim](`
			name                       name PodClaim
			resourceClaimName          name ResourceClaim
			resourceClaimTemplateName  name ResourceClaimTemplate`),
		redacted[schedulingapi.PodGroupResourceClaimStatus](`
			name               name PodClaim
			resourceClaimName  name ResourceClaim`),
		redacted[schedulingv1alpha3.CompositePodGroup](`metadata  meta CompositePodGroup`),
		redacted[schedulingv1alpha3.CompositePodGroupSpec](`
			parentCompositePodGroupName  name CompositePodGroup
			priorityClassName            priorityClass`),
		redacted[schedulingv1alpha3.WorkloadReference](`
			workloadName  name Workload
			templateName  name PodGroupTemplate`),
	}
}

// The type of an outline stays: owners have it in their references, too.
func redactedQueues() []Redaction {
	return []Redaction{
		redacted[snapshot.QueuedWorkload](`metadata  meta Workload`),
		redacted[snapshot.QueuedWorkloadSpec](`queueName  name LocalQueue`),
		redacted[snapshot.QueuedAdmission](`clusterQueue  name ClusterQueue`),
		redacted[snapshot.AdmissionCheck](`
			name     name AdmissionCheck
			message  text`),
		redacted[snapshot.OutlineSpec](`clusterQueue  name ClusterQueue`),
	}
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

// redactedQuotas returns the tables for quotas. The names of counted resources stay: they name
// classes.
func redactedQuotas() []Redaction {
	return []Redaction{
		redacted[corev1.ResourceQuota](`metadata  meta ResourceQuota`),
		redacted[corev1.ResourceQuotaSpec](`hard  quantities`),
		redacted[corev1.ResourceQuotaStatus](`
			hard  quantities
			used  quantities`),
		redacted[corev1.ScopedResourceSelectorRequirement](`values  priorityClass`),
		redacted[corev1.LimitRange](`metadata  meta LimitRange`),
		redacted[policyapi.PodDisruptionBudget](`metadata  meta PodDisruptionBudget`),
		// How many it allows is in its status.
		redacted[policyapi.PodDisruptionBudgetSpec](`
			minAvailable    drop
			maxUnavailable  drop`),
		redacted[policyapi.PodDisruptionBudgetStatus](`disruptedPods  drop`),
	}
}

func redactedEvents() []Redaction {
	return []Redaction{
		redacted[corev1.Event](`
			metadata            meta Event
			message             eventMessage
			action              text
			reportingComponent  component
			reportingInstance   text`),
		redacted[corev1.EventSource](`
			host       name Node
			component  component`),
	}
}
