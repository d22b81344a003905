// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// readyNode is the status of a node that is ready, with room for pods.
const readyNode = `status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady}]
`

// decisionTimeout bounds how long anything may take that the cluster does by
// itself, such as the scheduler for one pod: all scenarios share one scheduler, and
// one of them keeps it busy for 10 seconds. Nothing takes minutes, except on a
// machine that has a lot of other work to do.
const decisionTimeout = 5 * time.Minute

// cluster is a running control plane with what the tests need to use it.
type cluster struct {
	plane *controlplane.ControlPlane
	// kubeconfig is the kubeconfig of a user who may do everything.
	kubeconfig string
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	// pods and claims follow the API server. Claims are only there if it has
	// resource.k8s.io/v1.
	pods   corelisters.PodLister
	claims resourcelisters.ResourceClaimLister
}

// startCluster runs a control plane until the end of the test. A failed test
// shows the end of its logs.
func startCluster(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	ctx := t.Context()
	var err error
	if options.Binaries == "" {
		if options.Binaries, err = controlplane.Binaries(ctx); err != nil {
			t.Fatal(err)
		}
	}
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(plane.Logs())
		}
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{plane: plane}
	if c.kubeconfig, err = plane.Kubeconfig("admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	if c.kube, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		t.Fatal(err)
	}
	if c.dynamic, err = dynamic.NewForConfig(plane.Config()); err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kube.Discovery()))

	factory := informers.NewSharedInformerFactory(c.kube, 0)
	c.pods = factory.Core().V1().Pods().Lister()
	if discovery.ServerSupportsVersion(c.kube.Discovery(), resourceapi.SchemeGroupVersion) == nil {
		c.claims = factory.Resource().V1().ResourceClaims().Lister()
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return c
}

// create creates an object, and writes its status if that is a subresource: the API server
// accepts other kinds with their status. An object that the API server stores without some
// of its fields, as it does when a gate is off, is an error.
func (c *cluster) create(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	name := object.GetKind() + " " + object.GetName()
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	var client dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == "namespace" {
		client = c.dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	var created *unstructured.Unstructured
	// Admission may not have seen a node yet that was made just before.
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, decisionTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		created, err = client.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not found") {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	withStatus := []string{"ResourceClaim", "ResourceQuota", "PersistentVolume", "PersistentVolumeClaim"}
	if status, found := object.Object["status"]; found && slices.Contains(withStatus, object.GetKind()) {
		created.Object["status"] = status
		if created, err = client.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write the status of %s: %w", name, err)
		}
	}
	if path, ok := contains(created.Object, object.Object); !ok {
		return fmt.Errorf("create %s: the API server dropped or changed %s", name, path)
	}
	return nil
}

// contains reports whether got has everything that want has, and if not, the
// path of the first thing that is missing.
func contains(got, want any) (path string, ok bool) {
	switch want := want.(type) {
	case map[string]any:
		got, isMap := got.(map[string]any)
		if !isMap {
			return "", false
		}
		for key, value := range want {
			if path, ok := contains(got[key], value); !ok {
				return "." + key + path, false
			}
		}
		return "", true
	case []any:
		got, isList := got.([]any)
		if !isList || len(got) != len(want) {
			return "", false
		}
		for i := range want {
			if path, ok := contains(got[i], want[i]); !ok {
				return fmt.Sprintf("[%d]%s", i, path), false
			}
		}
		return "", true
	default:
		return "", equality.Semantic.DeepEqual(got, want)
	}
}

// waitForClaims returns when the resourceclaim controller has generated all
// claims of a pod.
func (c *cluster) waitForClaims(ctx context.Context, namespace, name string) error {
	var missing string
	err := poll(ctx, func() bool {
		pod, err := c.pods.Pods(namespace).Get(name)
		if err != nil {
			missing = err.Error()
			return false
		}
		for _, entry := range pod.Spec.ResourceClaims {
			if _, ok := c.claimOf(pod, entry); !ok {
				missing = "claim " + entry.Name
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("wait for the claims of pod %s/%s: missing: %s: %w", namespace, name, missing, err)
	}
	return nil
}

// claimOf returns the claim for an entry of a pod. It may be nil: the
// controller decided that none is needed.
func (c *cluster) claimOf(pod *corev1.Pod, entry corev1.PodResourceClaim) (claim *resourceapi.ResourceClaim, ok bool) {
	name := entry.ResourceClaimName
	if name == nil {
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == entry.Name {
				if status.ResourceClaimName == nil {
					return nil, true
				}
				name = status.ResourceClaimName
			}
		}
	}
	if name == nil {
		return nil, false
	}
	claim, err := c.claims.ResourceClaims(pod.Namespace).Get(*name)
	return claim, err == nil
}

// release takes the scheduling gate away.
func (c *cluster) release(ctx context.Context, namespace, name string) error {
	patch := []byte(`{"spec":{"schedulingGates":null}}`)
	_, err := c.kube.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// decision is the scheduler's decision about a pod.
type decision struct {
	reason decisionReason
	// node is where the pod went.
	node string
	// message is the message of condition PodScheduled.
	message string
	// claims are the claims of the pod in its order, followed by the claim that the
	// scheduler made for extended resources.
	claims []*resourceapi.ResourceClaim
}

// decision waits until the scheduler has decided about a pod as is awaited, or
// scheduled it against expectation. Another failure than the awaited one only
// counts when the time is over: the scheduler may not have seen all objects yet
// when it first tried.
func (c *cluster) decision(ctx context.Context, namespace, name string, awaited func(decision) bool) decision {
	var last decision
	err := poll(ctx, func() bool {
		pod, err := c.pods.Pods(namespace).Get(name)
		if err != nil {
			return false
		}
		last = c.decided(pod)
		return last.reason == scheduled || awaited(last)
	})
	if err != nil && last.reason == "" {
		last.message = err.Error()
	}
	return last
}

func (c *cluster) decided(pod *corev1.Pod) decision {
	d := decision{node: pod.Spec.NodeName}
	complete := true
	for _, entry := range pod.Spec.ResourceClaims {
		claim, ok := c.claimOf(pod, entry)
		complete = complete && ok
		if claim != nil {
			d.claims = append(d.claims, claim)
		}
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claim, err := c.claims.ResourceClaims(pod.Namespace).Get(status.ResourceClaimName)
		complete = complete && err == nil
		if err == nil {
			d.claims = append(d.claims, claim)
		}
	}
	for _, claim := range d.claims {
		complete = complete && claim.Status.Allocation != nil
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason != corev1.PodReasonSchedulingGated {
			d.reason = decisionReason(condition.Reason)
			d.message = condition.Message
		}
	}
	switch {
	case d.node != "" && complete:
		d.reason = scheduled
	case len(d.claims) > 0 && complete && d.reason == "":
		d.reason = allocated
	}
	return d
}

// poll asks until the answer is yes. It only looks at the caches, which follow
// the API server with a watch.
func poll(ctx context.Context, condition func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, decisionTimeout, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
}
