// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationapi "k8s.io/api/authorization/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

const (
	// statusGate is the gate for the controller.
	statusGate = "DRAResourcePoolStatus"
	// statusTimeout is how long the controller is waited for, unless the
	// connection has a timeout of its own. It answers within milliseconds. The end
	// of the program is held up as long to make and delete one object, so that
	// none is left behind.
	statusTimeout = 10 * time.Second
	// concurrentStatusRequests is how many requests there are at the same time.
	concurrentStatusRequests = 4
)

// statusVerbs returns the rights that asking for the status of pools takes.
func statusVerbs() []string { return []string{"create", "watch", "delete"} }

// AskPoolStatus asks the cluster to count the devices of the pools that are
// wanted, nil for all, and returns the snapshot with the answers in
// [Snapshot.PoolStatuses], and how many requests it made. Why something could
// not be asked, or was not answered, becomes a [snapshot.Gap] for
// [snapshot.ResourcePoolStatuses]. The snapshot must be one of the same cluster; it is
// not changed.
//
// This writes: for each driver it creates a ResourcePoolStatusRequest (KEP-5677,
// resource.k8s.io/v1alpha3, feature gate DRAResourcePoolStatus), waits until a
// controller has filled in its status, and deletes it, also when the context
// ends meanwhile. Nothing is created for a user who may not create, watch and
// delete them. It fails only if the context is done or the server cannot be
// asked.
func AskPoolStatus(ctx context.Context, clients Clients, snap *snapshot.Snapshot, wanted func(driver, pool string) bool) (with *snapshot.Snapshot, made int, err error) {
	if !klog.V(1).Enabled() {
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	asked := *snap
	asked.Gaps = slices.Clone(snap.Gaps)
	gap := func(format string, args ...any) {
		asked.Gaps = append(asked.Gaps, snapshot.Gap{Resource: snapshot.ResourcePoolStatuses, Reason: fmt.Sprintf(format, args...)})
	}
	questions, unasked := statusQuestions(snap, wanted)
	if len(questions) == 0 {
		return &asked, 0, nil
	}
	server := serverAddress(clients.Config)
	obstacle, err := statusObstacle(ctx, clients, snap)
	if err != nil {
		return nil, made, serverError(ctx, server, err)
	}
	if obstacle != "" {
		gap("%s", obstacle)
		return &asked, 0, nil
	}
	asked.Gaps = append(asked.Gaps, unasked...)

	timeout := statusTimeout
	if clients.Config.Timeout > 0 {
		timeout = clients.Config.Timeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var mutex sync.Mutex
	asker := &statusAsker{api: clients.statusRequests(), timeout: timeout}
	// Without errgroup's context: one failure is no reason to give up the others.
	group := errgroup.Group{}
	group.SetLimit(concurrentStatusRequests)
	for _, question := range questions {
		group.Go(func() error {
			request, created, problems := asker.ask(limited, question)
			mutex.Lock()
			defer mutex.Unlock()
			if created {
				made++
			}
			for _, problem := range problems {
				gap("%s", problem)
			}
			if request != nil {
				asked.PoolStatuses = append(slices.Clip(asked.PoolStatuses), request)
			}
			return nil
		})
	}
	if err := cmp.Or(group.Wait(), ctx.Err()); err != nil {
		return nil, made, serverError(ctx, server, err)
	}
	snapshot.SortByName(asked.PoolStatuses)
	slices.SortStableFunc(asked.Gaps, func(a, b snapshot.Gap) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Reason, b.Reason))
	})
	return &asked, made, nil
}

// statusObstacle tells why no status can be asked for, empty if it can.
func statusObstacle(ctx context.Context, clients Clients, snap *snapshot.Snapshot) (string, error) {
	// The server has the requests without the gate, too, but nobody answers.
	if gate := snap.Gate(statusGate); !gate.Enabled && gate.Source != snapshot.GateFromDefault {
		return fmt.Sprintf("the feature gate %s is off: the cluster answers no %s, which would tell how many devices are in use", statusGate, snapshot.KindPoolStatus), nil
	}
	const groupVersion = draGroup + "/v1alpha3"
	list, err := clients.Discovery.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		if served([]string{groupVersion}, []*metav1.APIResourceList{list}, "resourcepoolstatusrequests") == "" {
			return fmt.Sprintf("the server has no %s (%s, feature gate %s), which would tell how many devices are in use",
				snapshot.KindPoolStatus, groupVersion, statusGate), nil
		}
	case !apierrors.IsForbidden(err):
		return "", err
	}
	for _, verb := range statusVerbs() {
		review, err := clients.AccessReviews().Create(ctx, &authorizationapi.SelfSubjectAccessReview{
			Spec: authorizationapi.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationapi.ResourceAttributes{
				Verb: verb, Group: draGroup, Version: "v1alpha3", Resource: "resourcepoolstatusrequests",
			}},
		}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("this user may not find out whether it may create %s", snapshot.ResourcePoolStatuses), nil
		case err != nil:
			return "", err
		case !review.Status.Allowed:
			return fmt.Sprintf("this user may not %s %s, which would tell how many devices are in use", verb, snapshot.ResourcePoolStatuses), nil
		}
	}
	return "", nil
}

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

// statusAsker makes requests and takes them away again.
type statusAsker struct {
	api     *gentype.Client[*resourcev1alpha3.ResourcePoolStatusRequest]
	timeout time.Duration
}

// ask makes one request and says what went wrong. There can be an answer all
// the same.
func (a *statusAsker) ask(ctx context.Context, question statusQuestion) (answer *resourcev1alpha3.ResourcePoolStatusRequest, made bool, problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if ctx.Err() != nil {
		problem("the status of %s was not asked for: the time for it, %s, was over", question, a.timeout)
		return nil, false, problems
	}
	request := &resourcev1alpha3.ResourcePoolStatusRequest{
		// The name is known before the object is, so that it can be deleted even
		// if the answer of the server gets lost.
		ObjectMeta: metav1.ObjectMeta{Name: "kubectl-dra-" + rand.String(10), Labels: map[string]string{"app.kubernetes.io/managed-by": "kubectl-dra"}},
		Spec:       resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: question.driver, Limit: ptr.To(int32(maxPoolsInStatus))},
	}
	if question.pool != "" {
		request.Spec.PoolName, request.Spec.Limit = &question.pool, ptr.To(int32(1))
	}
	// What has begun is brought to its end, even if the program is to stop.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.timeout)
	defer cancel()
	created, err := a.api.Create(creating, request, metav1.CreateOptions{})
	var refusal apierrors.APIStatus
	refused := errors.As(err, &refusal)
	if err == nil {
		answer, err = a.wait(ctx, created)
	}
	if err != nil {
		problem("ask for the status of %s: %s", question, describeAsking(err))
	}
	if !refused {
		if err := a.remove(ctx, request.Name); err != nil {
			problem("%s %s could not be deleted, and is for somebody else to delete: %s", snapshot.KindPoolStatus, request.Name, describe(err))
		}
	}
	return answer, !refused, problems
}

// wait returns the request with its status.
func (a *statusAsker) wait(ctx context.Context, request *resourcev1alpha3.ResourcePoolStatusRequest) (*resourcev1alpha3.ResourcePoolStatusRequest, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, request.Name).String()
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = selector
		return a.api.Watch(ctx, options)
	}}
	var answered *resourcev1alpha3.ResourcePoolStatusRequest
	_, err := watchtools.Until(ctx, request.ResourceVersion, source, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, statusError("somebody else deleted the request")
		}
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		found, ok := event.Object.(*resourcev1alpha3.ResourcePoolStatusRequest)
		if ok && found.Status != nil {
			answered = found
		}
		return answered != nil, nil
	})
	switch {
	case answered == nil && ctx.Err() != nil:
		return nil, statusError(fmt.Sprintf("no answer within %s; the controller for it may not run, or found that a pool lacks slices", a.timeout))
	case answered == nil:
		return nil, err
	}
	for _, c := range answered.Status.Conditions {
		if c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionFailed && c.Status == metav1.ConditionTrue {
			return nil, statusError("the cluster failed: " + firstLine(c.Message))
		}
	}
	answered.TypeMeta = metav1.TypeMeta{}
	kinds.Strip(answered)
	return answered, nil
}

// remove deletes a request, even if the program is to stop.
func (a *statusAsker) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.timeout)
	defer cancel()
	if err := a.api.Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// statusError is a reason that is a sentence for people already.
type statusError string

func (e statusError) Error() string { return string(e) }

func describeAsking(err error) string {
	var said statusError
	if errors.As(err, &said) {
		return string(said)
	}
	return describe(err)
}
