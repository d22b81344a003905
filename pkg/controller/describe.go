// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// sample is a value of a metric of a snapshot, with the values of its labels in their order.
type sample struct {
	name   string
	value  float64
	labels []string
}

// samples are added up by metric and labels.
type samples struct {
	list []sample
	at   map[string]int
}

func (s *samples) add(name string, value float64, labels ...string) {
	*s.of(name, labels) += value
}

func (s *samples) raise(name string, value float64, labels ...string) {
	to := s.of(name, labels)
	*to = max(*to, value)
}

// of returns the value of a metric, 0 at first.
func (s *samples) of(name string, labels []string) *float64 {
	key := name + "\x00" + strings.Join(labels, "\x00")
	i, ok := s.at[key]
	if !ok {
		i = len(s.list)
		s.at[key] = i
		s.list = append(s.list, sample{name: name, labels: labels})
	}
	return &s.list[i].value
}

// sizes returns the numbers of devices on one node that are asked about.
func sizes() []int { return []int{1, 2, 4, 8, 16} }

// describe returns the samples of a snapshot without what adds up over time.
func describe(c *cluster.Cluster, found *cause.Found, at time.Time, podsMost int) []sample {
	s := &samples{at: map[string]int{}}
	status, inv := found.Status, found.Examination.Inventory
	s.add(snapshotTime, float64(at.UnixNano())/float64(time.Second))
	s.add(gaps, float64(len(c.Snapshot.Gaps)))
	s.capacity(status.Capacity)
	for _, pool := range inv.Usage() {
		s.devices(driverDevices, pool.Driver, pool.Devices)
		s.add(pools, 1, pool.Driver, lower(pool.State))
	}
	s.causes(status)
	evicted, _ := found.Examination.Survey.Evicted()
	s.add(evictionsDue, float64(evicted))
	s.waiting(c, found, at, podsMost)
	for i := range found.Examination.Blocked {
		s.add(blockedPods, 1, string(found.Examination.Blocked[i].Code))
	}
	for _, team := range inv.Teams() {
		s.add(namespaceDevices, float64(team.Used), team.Namespace, team.Class)
		s.add(namespaceIdle, float64(team.Idle), team.Namespace, team.Class)
	}
	return s.list
}

// devices adds the devices of a class or a driver.
func (s *samples) devices(name, of string, counts api.DeviceCounts) {
	for _, state := range inventory.DeviceStates() {
		s.add(name, float64(inventory.CountOf(counts, state)), of, lower(state))
	}
}

func (s *samples) capacity(capacity []api.ClassCapacity) {
	for i := range capacity {
		c := &capacity[i]
		if c.Class == "" {
			continue
		}
		s.devices(classDevices, c.Class, c.Devices)
		if c.Placeable == nil {
			continue
		}
		s.add(placeableDevices, float64(c.Placeable.AtLeast), c.Class)
		for _, size := range sizes() {
			nodes := 0
			for _, n := range c.PlaceableNodes {
				if n.Placeable >= size {
					nodes += n.Nodes
				}
			}
			s.add(placeableNodes, float64(nodes), c.Class, strconv.Itoa(size))
		}
	}
}

func (s *samples) causes(status *api.Status) {
	s.add(pods, float64(status.Pods.Waiting-status.Pods.Starting), "waiting")
	s.add(pods, float64(status.Pods.Starting), "starting")
	s.add(pods, float64(status.Pods.Blocked), "blocked")
	for i := range status.Causes {
		c := &status.Causes[i]
		labels := []string{c.Code, lower(c.Severity), cmp.Or(lower(c.Actor), noActor)}
		s.add(causes, 1, labels...)
		s.add(causePods, float64(c.Pods), labels...)
		s.add(causeDevices, float64(c.Devices), labels...)
		s.add(causeNodes, float64(c.Nodes), labels...)
	}
}

// waiting adds the pods that wait by class and code, and the oldest of them one by one.
func (s *samples) waiting(c *cluster.Cluster, found *cause.Found, at time.Time, podsMost int) {
	type waits struct {
		labels  []string
		seconds float64
	}
	var oldest []waits
	for i, pod := range c.Waiting() {
		code := "Unknown"
		if e := found.Examination.Answers[i].Explanation; e != nil {
			code = codeOf(e)
		}
		seconds := 0.0
		if !pod.CreationTimestamp.IsZero() {
			seconds = at.Sub(pod.CreationTimestamp.Time).Seconds()
		}
		oldest = append(oldest, waits{[]string{pod.Namespace, pod.Name, code}, seconds})
		s.add(waitingPods, 1, code)
		classes := inventory.AskedClasses(found.Examination.Inventory.Asks(pod))
		if len(classes) == 0 {
			classes = []string{noClass}
		}
		for _, class := range classes {
			s.add(classWaitingPods, 1, class, code)
			if code != cause.SchedulingGated && code != cause.OtherScheduler {
				s.raise(longestWait, seconds, class)
			}
		}
	}
	slices.SortStableFunc(oldest, func(a, b waits) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, pod := range oldest[:min(len(oldest), podsMost)] {
		s.add(waitingPodSeconds, pod.seconds, pod.labels...)
	}
}

const (
	// noClass stands for the class of a pod whose claims are not known yet.
	noClass = "(none)"
	// noActor stands for who can act on a cause where nothing is known that helps.
	noActor = "unknown"
)

// codeOf returns the reason code of a pod that waits or, if it fits, what else it waits for.
func codeOf(e *api.Explanation) string {
	switch {
	case len(e.SchedulingGates) > 0:
		return cause.SchedulingGated
	case e.OtherScheduler != nil:
		return cause.OtherScheduler
	default:
		return explain.Word(e)
	}
}

func lower[T ~string](state T) string { return strings.ToLower(string(state)) }

type usageKey struct{ namespace, class string }

// usageTime is the time of a usage, and when it was last there.
type usageTime struct {
	seconds float64
	seen    time.Time
}

// deviceSeconds adds up the time for which namespaces have devices.
type deviceSeconds struct {
	of map[usageKey]*usageTime
	// last is the usage at the time at.
	last []inventory.Team
	at   time.Time
}

const (
	// knownFor is the longest time between two snapshots in which the usage counts as known:
	// evaluations of large clusters are minutes apart.
	knownFor = 5 * time.Minute
	// forgetAfter is the time after which names are forgotten that are in no snapshot.
	forgetAfter = time.Hour
)

// add adds the time since the last usage, and returns the sums.
func (d *deviceSeconds) add(usage []inventory.Team, at time.Time) []sample {
	if passed := at.Sub(d.at); passed > 0 && passed <= knownFor {
		for i := range d.last {
			d.of[usageKey{d.last[i].Namespace, d.last[i].Class}].seconds += passed.Seconds() * float64(d.last[i].Used)
		}
	}
	d.last, d.at = usage, at
	for i := range usage {
		key := usageKey{usage[i].Namespace, usage[i].Class}
		if d.of[key] == nil {
			d.of[key] = &usageTime{}
		}
		d.of[key].seen = at
	}
	list := make([]sample, 0, len(d.of))
	for key, sum := range d.of {
		if at.Sub(sum.seen) > forgetAfter {
			delete(d.of, key)
			continue
		}
		list = append(list, sample{namespaceSeconds, sum.seconds, []string{key.namespace, key.class}})
	}
	return list
}

const (
	// maxNames limits the values of a label that are names from the cluster.
	maxNames = 500
	// otherNames is the value for all further names. No object has such a name.
	otherNames = "(other)"
)

// names has the first names of each label that is bounded, and when they were last there. A name
// that is known stays.
type names map[string]map[string]time.Time

// bound joins the samples of a time whose labels have more names than there may be.
func (n names) bound(list []sample, families map[string]Family, at time.Time) []sample {
	for _, known := range n {
		maps.DeleteFunc(known, func(_ string, seen time.Time) bool { return at.Sub(seen) > forgetAfter })
	}
	out := &samples{at: map[string]int{}}
	for _, s := range list {
		labels := slices.Clone(s.labels)
		for i, label := range families[s.name].Labels {
			switch label {
			case "class", "driver", "namespace":
				labels[i] = n.known(label, labels[i], at)
			}
		}
		if s.name == longestWait || s.name == waitingPodSeconds {
			out.raise(s.name, s.value, labels...)
		} else {
			out.add(s.name, s.value, labels...)
		}
	}
	return out.list
}

func (n names) known(label, name string, at time.Time) string {
	if n[label] == nil {
		n[label] = map[string]time.Time{}
	}
	if _, known := n[label][name]; !known && len(n[label]) >= maxNames {
		return otherNames
	}
	n[label][name] = at
	return name
}
