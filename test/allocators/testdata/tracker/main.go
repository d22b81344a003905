// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// This file is compiled together with the ResourceSlice tracker of one release. It reads
// clusters from its standard input, one JSON object each, and writes the taints of the
// devices of each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
)

func main() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var cluster struct {
			Slices []*resourceapi.ResourceSlice
			Rules  json.RawMessage
		}
		err := in.Decode(&cluster)
		if err == io.EOF {
			return
		}
		check(err)
		found := map[string][]string{}
		for _, slice := range cluster.Slices {
			taints(found, patch((&Tracker{}).applyPatches, slice, cluster.Rules))
		}
		for _, of := range found {
			slices.Sort(of)
		}
		check(out.Encode(found))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patch applies rules, in the API version that the release reads.
func patch[Rule any](apply func(context.Context, *resourceapi.ResourceSlice, []*Rule) (*resourceapi.ResourceSlice, error), slice *resourceapi.ResourceSlice, raw json.RawMessage) *resourceapi.ResourceSlice {
	var rules []*Rule
	check(json.Unmarshal(raw, &rules))
	patched, err := apply(klog.NewContext(context.Background(), klog.Logger{}), slice, rules)
	check(err)
	return patched
}

// taints adds the taints of the devices of a slice.
func taints(to map[string][]string, slice *resourceapi.ResourceSlice) {
	for _, d := range slice.Spec.Devices {
		id := slice.Name + " " + d.Name
		for _, t := range d.Taints {
			at := "never"
			if t.TimeAdded != nil {
				at = t.TimeAdded.UTC().Format(time.RFC3339)
			}
			to[id] = append(to[id], fmt.Sprintf("%s=%s:%s %s", t.Key, t.Value, t.Effect, at))
		}
	}
}
