// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
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
