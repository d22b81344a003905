// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// untyped removes apiVersion and kind, as a client does: all objects are of
// the newest version anyway.
func untyped[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object *T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	P(object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return P(object), nil
}

// decodeConverted decodes an object of an older version and converts it.
func decodeConverted[From, To any](data []byte, convert func(*From, *To, conversion.Scope) error) (*To, error) {
	from, err := DecodeAs[From](data)
	if err != nil {
		return nil, err
	}
	to := new(To)
	if err := convert(from, to, nil); err != nil {
		return nil, fmt.Errorf("convert to the newest version: %w", err)
	}
	return to, nil
}

// orNil makes an untyped nil of a typed one.
func orNil(workload *snapshot.Workload, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return workload, nil
}
