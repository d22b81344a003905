// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"
)

// FuzzDecode compares the decoder with the API server's: but for duplicate fields, both
// accept the same texts with the same result. A [Decoder] that has seen the text before
// gives the same result, errors included.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.example.com"}}`,
		`{"metadata":null,"spec":{"devices":[{"name":"a","capacity":{"memory":{"value":"80Gi"},"x":{"value":1.5},"y":null}}]}}`,
		`{"metadata":{"creationTimestamp":null,"generation":-0,"labels":{"a":null}},"spec":null}`,
		`{"Metadata":{"name":"a"},"METADATA":1,"unknown":[{"a":1.0e5}]}`,
		`{"metadata":{"generation":1.0}}`, `{"metadata":{"generation":1e2}}`, `{"metadata":{"generation":9223372036854775808}}`,
		`{"metadata":{"creationTimestamp":"2026-01-02T03:04:05.678Z","managedFields":[{"fieldsV1":{"f:a":{}}}]}}`,
		"{\"metadata\":{\"name\":\"a\xff\\ud800\\u0000\"}}", " {} ", "{}x", "[]", "null", "\"\"", "",
		`{"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":{"b":[1,9007199254740993],"a":null}}}]}}}`,
		`{"spec":{"containers":[{"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"x"}},"resources":{"limits":{"cpu":"500m"}}}],"terminationGracePeriodSeconds":null}}`,
		`{"status":{"allocatable":{"cpu":"4","memory":" 1Gi "},"conditions":[{"lastHeartbeatTime":""}]}}`,
		`{"spec":{"devices":[{"attributes":{"a":{"string":"x"},"b":{"int":-7},"c":{"bool":true},"d":{"version":"1.2.3"}}},{"attributes":{"a":{"string":"x"},"b":{"int":-7},"c":{"bool":false},"d":{"string":"1.2.3"}}}]}}`,
		`{"spec":{"devices":[{"attributes":{"a":{"string":"\u0041"},"b\n":{"int":1}}},{"attributes":{"a":{"int":01}}},{"attributes":{"a":{"int":1e2},"b":{"int":9223372036854775808}}}]}}`,
		`{"spec":{"devices":[{"attributes":{"a":{"strings":["x"]},"b":{},"c":null,"d":{"bool":1}}},{"attributes":null},{"attributes":{}},{"attributes":[]}]}}`,
		`{"spec":{"devices":[{"attributes":{"a":{"string":"x"},"a":{"string":"y"}}},{"attributes":{"a":{"string":"x","int":1}}},{"attributes":{"a":{"string":"x"}}`,
		`{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","count":2}},{"name":"s"}]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if anyLongExponent.Match(data) {
			t.Skip("the decoder of the API server may not come back")
		}
		requireSameObject[resourceapi.ResourceSlice](t, data)
		requireSameObject[resourceapi.ResourceClaim](t, data)
		requireSameObject[corev1.Pod](t, data)
		requireSameObject[corev1.Node](t, data)
	})
}

var anyLongExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)

func requireSameObject[T any](t *testing.T, data []byte) {
	t.Helper()
	var want T
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, err := DecodeAs[T](data)
	decoder := NewDecoder()
	for range 2 {
		again, againErr := decodeWith[T](data, decoder.options)
		if fmt.Sprint(err) != fmt.Sprint(againErr) {
			t.Fatalf("%T of %s:\n got error %v\nwant error %v", want, data, againErr, err)
		}
		if err == nil && !equality.Semantic.DeepEqual(again, got) {
			t.Fatalf("%T of %s:\n got %+v\nwant %+v", want, data, *again, *got)
		}
	}
	if errors.Is(err, ErrDuplicateKey) {
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%T of %s:\n got error %v\nwant error %v", want, data, err, wantErr)
	}
	if err == nil && !equality.Semantic.DeepEqual(*got, want) {
		t.Fatalf("%T of %s:\n got %+v\nwant %+v", want, data, *got, want)
	}
}
