// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// maxStatusRequests limits how many requests are made at most for one question. The
	// controller takes them one by one.
	maxStatusRequests = 32
	// maxPoolsInStatus limits how many pools one request tells about at most.
	maxPoolsInStatus = int(resourcev1alpha3.ResourcePoolStatusRequestLimitMax)
)

// statusQuestion is the subject of one request: a pool, or, without a name, the first pools
// of a driver.
type statusQuestion struct{ driver, pool string }

func (q statusQuestion) String() string {
	if q.pool == "" {
		return "driver " + q.driver
	}
	return "pool " + q.driver + "/" + q.pool
}

// knownPool is a pool as far as a request is concerned.
type knownPool struct {
	name               string
	generation         int64
	slices, sliceCount int64
}

// poolsByDriver sums up the slices, the pools of each driver by name.
func poolsByDriver(s *snapshot.Snapshot) map[string][]*knownPool {
	type id struct{ driver, pool string }
	pools := map[id]*knownPool{}
	for _, slice := range s.Slices {
		key := id{slice.Spec.Driver, slice.Spec.Pool.Name}
		p := pools[key]
		if p == nil || slice.Spec.Pool.Generation > p.generation {
			p = &knownPool{name: key.pool, generation: slice.Spec.Pool.Generation, sliceCount: slice.Spec.Pool.ResourceSliceCount}
			pools[key] = p
		}
		if slice.Spec.Pool.Generation == p.generation {
			p.slices++
		}
	}
	drivers := map[string][]*knownPool{}
	for key, pool := range pools {
		drivers[key.driver] = append(drivers[key.driver], pool)
	}
	for _, list := range drivers {
		slices.SortFunc(list, func(a, b *knownPool) int { return cmp.Compare(a.name, b.name) })
	}
	return drivers
}

// statusQuestions plans the requests: one for each driver as far as possible.
//
// The controller of Kubernetes v1.37.1 leaves a request unanswered as long as
// one of its pools lacks slices, so the complete pools of such a driver are
// asked for one by one. The same goes for pools beyond the first thousand. What
// would take too many requests is left out, which the gaps tell.
func statusQuestions(s *snapshot.Snapshot, wanted func(driver, pool string) bool) (questions []statusQuestion, gaps []snapshot.Gap) {
	drivers := poolsByDriver(s)
	var single []statusQuestion
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		var names []string
		incomplete := false
		beyond := map[string]bool{}
		for i, pool := range drivers[driver] {
			lacking := pool.slices < pool.sliceCount
			incomplete = incomplete || lacking
			beyond[pool.name] = i >= maxPoolsInStatus
			if !lacking && (wanted == nil || wanted(driver, pool.name)) {
				names = append(names, pool.name)
			}
		}
		whole := !incomplete && len(names) > 1
		if whole && slices.ContainsFunc(names, func(name string) bool { return !beyond[name] }) {
			questions = append(questions, statusQuestion{driver: driver})
		}
		for _, name := range names {
			if !whole || beyond[name] {
				single = append(single, statusQuestion{driver, name})
			}
		}
	}
	questions = append(questions, single...)
	if left := questions[min(len(questions), maxStatusRequests):]; len(left) > 0 {
		rest := ""
		if len(left) > 1 {
			rest = fmt.Sprintf(" and %d more", len(left)-1)
		}
		gaps = append(gaps, snapshot.Gap{Resource: snapshot.ResourcePoolStatuses, Reason: fmt.Sprintf(
			"the status of %s%s was not asked for: no more than %d %ss are made at a time", left[0], rest, maxStatusRequests, snapshot.KindPoolStatus)})
		questions = questions[:maxStatusRequests]
	}
	return questions, gaps
}
