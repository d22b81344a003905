// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// endpoint is where the objects of one resource come from, in the version of the
// API that the server has.
type endpoint[P metav1.Object] struct {
	list  listFunc
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is of the type that the server's objects get, nil for any.
	example any
	// convert makes the object of a snapshot. The error is errNotKept for an object that is
	// not for a snapshot, and another one for an object that cannot be converted.
	convert func(object any) (P, error)
}

// typedAPI reads objects of one of [typedVersions] in a namespace; none is all
// of them. An empty object and an empty list tell of which types these are. The
// client has interfaces in their place: one for each type would be as many
// times in the program.
func typedAPI[P metav1.Object](
	c Clients, version schema.GroupVersion, resource, namespace string, object apiObject, list runtime.Object, convert func(object any) (P, error),
) endpoint[P] {
	client := gentype.NewClientWithList(resource, c.typed[version], scheme.ParameterCodec, namespace,
		func() apiObject { return object }, list.DeepCopyObject, gentype.PrefersProtobuf[apiObject]())
	return endpoint[P]{list: client.List, watch: client.Watch, example: object, convert: sharing(bounded(convert))}
}

// sharing makes the objects of a list share what they have in common.
func sharing[P metav1.Object](convert func(object any) (P, error)) func(object any) (P, error) {
	sharer := kinds.NewSharer()
	return func(object any) (P, error) {
		converted, err := convert(object)
		if err == nil {
			sharer.Object(converted)
		}
		return converted, err
	}
}

// untypedAPI reads objects of a version that there are no types for.
func untypedAPI[P metav1.Object](client dynamic.ResourceInterface, convert func(object any) (P, error)) endpoint[P] {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}
	return endpoint[P]{list: list, watch: client.Watch, convert: convert}
}

// as keeps an object as it is, without the dead weight.
func as[P metav1.Object](object any) (P, error) {
	kept, ok := object.(P)
	if !ok {
		return kept, otherType(object)
	}
	kinds.Strip(kept)
	return kept, nil
}

// from converts an object of an older version with a function of
// k8s.io/dynamic-resource-allocation/api.
func from[Old, New any, P interface {
	*New
	metav1.Object
}](convert func(*Old, *New, conversion.Scope) error) func(object any) (P, error) {
	return func(object any) (P, error) {
		old, ok := object.(*Old)
		if !ok {
			return nil, otherType(object)
		}
		converted := P(new(New))
		if err := convert(old, converted, nil); err != nil {
			return nil, fmt.Errorf("convert to the newest version: %w", err)
		}
		kinds.Strip(converted)
		return converted, nil
	}
}

func otherType(object any) error {
	return fmt.Errorf("read the answer of the server: %T is not expected", object)
}

// listFunc asks for a list, or a chunk of it.
type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)
