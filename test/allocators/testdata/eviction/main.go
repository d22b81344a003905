// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// This file is compiled together with the device taint eviction controller of one release. It
// reads clusters from its standard input, one JSON object each, and writes when and why each
// pod is evicted.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

func main() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var cluster struct{ Slices, Rules, Claims, Pods []json.RawMessage }
		err := in.Decode(&cluster)
		if err == io.EOF {
			return
		}
		check(err)
		pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		tc := &Controller{
			podLister:       corelisters.NewPodLister(pods),
			workqueue:       &NOPQueue[workItem]{},
			deletePodAt:     make(map[tainteviction.NamespacedObject]evictionAndReason),
			allocatedClaims: make(map[types.NamespacedName]allocatedClaim),
			pools:           make(map[poolID]pool),
			taintRuleStats:  make(map[types.UID]taintRuleStats),
		}
		tc.evictingRules = empty(tc.evictingRules)
		each(cluster.Slices, tc.handleSliceChange)
		each(cluster.Rules, tc.handleRuleChange)
		each(cluster.Claims, tc.handleClaimChange)
		each(cluster.Pods, func(_, pod *v1.Pod) { check(pods.Add(pod)) })
		each(cluster.Pods, tc.handlePodChange)
		found := map[string][]string{}
		for pod, eviction := range tc.deletePodAt {
			found[pod.Name] = append(reasons(eviction.reason), eviction.when.UTC().Format(time.RFC3339))
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

func empty[M ~map[K]V, K comparable, V any](M) M { return M{} }

// each handles new objects, in the API version that the release reads.
func each[Object any](raw []json.RawMessage, handle func(_, added *Object)) {
	for _, r := range raw {
		object := new(Object)
		check(json.Unmarshal(r, object))
		handle(nil, object)
	}
}

func reasons(all evictionReason) []string {
	var texts []string
	for _, r := range all {
		taint := r.deviceTaint()
		text := fmt.Sprintf("%s=%s:%s of ", taint.Key, taint.Value, taint.Effect)
		if r.rule != nil {
			text += "rule " + r.rule.Name
		} else {
			text += strings.Join([]string{r.slice.slice.Spec.Driver, r.slice.slice.Spec.Pool.Name, r.slice.deviceName}, "/")
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
