// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Lists are long, and of each object the program looks at little. What it does
// not look at is taken out of a list in the protobuf format while that arrives,
// object by object, so that it is never decoded. A list in another format, or
// of another API version, stays as it is: nobody looks at these fields.

// unusedKey is the context key of [withUnused].
type unusedKey struct{}

// withUnused returns a context for reading without some fields, by resource.
func withUnused(ctx context.Context, unused map[string][]kinds.Field) context.Context {
	return context.WithValue(ctx, unusedKey{}, unused)
}

// nextChunkKey is the context key of [withNextChunk].
type nextChunkKey struct{}

// withNextChunk returns a context with which found is called as soon as the server says
// where the next chunk of a list starts, unless the chunk that is read is the last.
func withNextChunk(ctx context.Context, found func(token string)) context.Context {
	return context.WithValue(ctx, nextChunkKey{}, found)
}

// pruneUnused wraps a connection to the API server.
func pruneUnused(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusOK ||
			request.URL.Query().Get("watch") != "" || response.Header.Get("Content-Type") != protobufType {
			return response, err
		}
		resource, object := listedAt(request.URL.Path)
		if object == nil {
			return response, nil
		}
		unused, _ := request.Context().Value(unusedKey{}).(map[string][]kinds.Field)
		fields := slices.Concat(kinds.NeverRead(resource), unused[resource])
		nextChunk, _ := request.Context().Value(nextChunkKey{}).(func(string))
		response.Body = &withoutFields{kinds.NewReader(response.Body, object, fields, nextChunk), response.Body}
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const protobufType = "application/vnd.kubernetes.protobuf"

// listedAt tells of which resource there is a list at a path, and what its
// objects are.
func listedAt(path string) (resource string, object reflect.Type) {
	for _, list := range []struct {
		version, plural, resource string
		object                    reflect.Type
	}{
		{"/api/v1/", "nodes", snapshot.ResourceNodes, reflect.TypeFor[corev1.Node]()},
		{"/api/v1/", "pods", snapshot.ResourcePods, reflect.TypeFor[corev1.Pod]()},
		{"/apis/resource.k8s.io/v1/", "resourceslices", snapshot.ResourceSlices, reflect.TypeFor[resourceapi.ResourceSlice]()},
		{"/apis/resource.k8s.io/v1/", "resourceclaims", snapshot.ResourceClaims, reflect.TypeFor[resourceapi.ResourceClaim]()},
	} {
		_, rest, found := strings.Cut(path, list.version)
		parts := strings.Split(rest, "/")
		if found && (len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces") && parts[len(parts)-1] == list.plural {
			return list.resource, list.object
		}
	}
	return "", nil
}

// withoutFields is the body of a response with a list.
type withoutFields struct {
	io.Reader
	io.Closer
}
