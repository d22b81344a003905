// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// writeLimit limits creating and deleting one object, which goes on after an interruption.
const writeLimit = 15 * time.Second

// rights returns the rights for a test besides reading the cluster. docs/rbac.md has them
// as a ClusterRole.
func (o *options) rights() []authorizationv1.ResourceAttributes {
	const namespace = NamespacePrefix + "rights"
	rights := []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "namespaces"},
		{Verb: "list", Resource: "namespaces"},
		{Verb: "delete", Resource: "namespaces"},
		{Verb: "create", Group: resourceapi.GroupName, Resource: "resourceclaimtemplates", Namespace: namespace},
		{Verb: "create", Resource: "pods", Namespace: namespace},
		{Verb: "delete", Resource: "pods", Namespace: namespace},
		{Verb: "watch", Resource: "pods", Namespace: namespace},
		{Verb: "watch", Group: resourceapi.GroupName, Resource: "resourceclaims", Namespace: namespace},
		{Verb: "list", Resource: "events", Namespace: namespace},
		{Verb: "watch", Resource: "events", Namespace: namespace},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: namespace},
	}
	if o.probe.look {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: namespace})
	}
	return rights
}

func (o *options) checkRights(ctx context.Context, clients collect.Clients) error {
	missing, err := cli.MissingRights(ctx, clients, o.rights(), "make a test")
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		for i := range missing {
			missing[i] = strings.TrimSuffix(missing[i], " in namespace "+NamespacePrefix+"rights")
		}
		return fmt.Errorf("make a test: not permitted to %s; ask an admin for these rights: docs/rbac.md has them as a ClusterRole", strings.Join(missing, ", "))
	}
	return nil
}

func namespaces(clients collect.Clients) dynamic.NamespaceableResourceInterface {
	return clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}

func templates(clients collect.Clients, namespace string) dynamic.ResourceInterface {
	return clients.Dynamic.Resource(schema.GroupVersionResource{Group: resourceapi.GroupName, Version: "v1", Resource: "resourceclaimtemplates"}).Namespace(namespace)
}

// create creates an object. It does not stop halfway when ctx ends: nobody would know then
// whether it exists.
func create(ctx context.Context, client dynamic.ResourceInterface, object runtime.Object, dryRun ...string) (*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return client.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: cli.FieldManager, DryRun: dryRun})
}

// createPod creates the pod of a trial.
func createPod(ctx context.Context, clients collect.Clients, pod *corev1.Pod) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := clients.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: cli.FieldManager})
	return err
}

// deletePod deletes the pod of a trial, even if ctx has ended.
func deletePod(ctx context.Context, clients collect.Clients, namespace, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	err := clients.Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// deleteNamespace deletes the namespace of a test, even if ctx has ended.
func deleteNamespace(ctx context.Context, clients collect.Clients, name, uid string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	err := namespaces(clients).Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(uid)})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// deleteLeftovers deletes the namespaces of abandoned tests, or of all.
func (o *options) deleteLeftovers(ctx context.Context, clients collect.Clients, all bool) error {
	list, err := namespaces(clients).List(ctx, metav1.ListOptions{LabelSelector: Selector})
	if err != nil {
		return fmt.Errorf("look for what earlier tests left: %w", err)
	}
	for i := range list.Items {
		namespace := &corev1.Namespace{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, namespace); err != nil {
			return fmt.Errorf("read namespace %s: %w", list.Items[i].GetName(), err)
		}
		if !OfTest(namespace) || namespace.DeletionTimestamp != nil {
			continue
		}
		left, why := Leftover(namespace, hostname(), runs, time.Now())
		if !left && !all {
			if err := cli.PrintNotes(o.streams, why+"; if it does not, delete it with: kubectl dra test --cleanup"); err != nil {
				return err
			}
			continue
		}
		if o.dryRun == cli.DryRunNone {
			if err := deleteNamespace(ctx, clients, namespace.Name, string(namespace.UID)); err != nil {
				return fmt.Errorf("delete namespace %s, which an earlier test left: %w", namespace.Name, err)
			}
		}
		would := map[bool]string{true: "deleted", false: "would delete"}[o.dryRun == cli.DryRunNone]
		if err := cli.PrintNotes(o.streams, fmt.Sprintf("%s namespace %s of an earlier test", would, namespace.Name)); err != nil {
			return err
		}
	}
	return nil
}

// onlyCleanUp runs test --cleanup.
func (o *options) onlyCleanUp(ctx context.Context) error {
	clients, err := collect.NewClients(o.reader.Config)
	if err != nil {
		return cli.Usagef("Check --kubeconfig, --context and the other flags.", "%w", err)
	}
	return o.deleteLeftovers(ctx, clients, true)
}

// sendDry lets the API server check the objects to create. The namespace of the test does
// not exist, so that namespaced objects are checked in the user's.
func (o *options) sendDry(ctx context.Context, clients collect.Clients, plan *Plan) error {
	if _, err := create(ctx, namespaces(clients), plan.Namespace, metav1.DryRunAll); err != nil {
		return fmt.Errorf("create namespace %s (dry run): %w", plan.Namespace.Name, err)
	}
	pods := clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(clients.Namespace)
	for i := range plan.Groups {
		group := &plan.Groups[i]
		template, pod := group.Template.DeepCopy(), group.Trials[0].Pod.DeepCopy()
		template.Namespace, pod.Namespace = clients.Namespace, clients.Namespace
		if _, err := create(ctx, templates(clients, clients.Namespace), template, metav1.DryRunAll); err != nil {
			return fmt.Errorf("create ResourceClaimTemplate %s in namespace %s (dry run): %w", template.Name, clients.Namespace, err)
		}
		if _, err := create(ctx, pods, pod, metav1.DryRunAll); err != nil {
			return fmt.Errorf("create pod %s in namespace %s (dry run): %w", pod.Name, clients.Namespace, err)
		}
	}
	return nil
}

// maxContents bounds the output of a container, which may be anybody's.
const maxContents = 4 << 20

// lookInto runs a command in a container and reads its contents.
func lookInto(ctx context.Context, clients collect.Clients, namespace, pod, container string, paths []string) (*Contents, error) {
	executor, err := clients.Executor(namespace, pod, &corev1.PodExecOptions{
		Container: container, Command: LookCommand(paths), Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, err
	}
	var out, errOut limited
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
	if err != nil {
		return nil, errors.Join(err, errOut.said())
	}
	return ParseContents(out.String())
}

// limited keeps the text written to it, up to a limit.
type limited struct{ bytes.Buffer }

func (b *limited) Write(data []byte) (int, error) {
	if b.Len()+len(data) > maxContents {
		return 0, fmt.Errorf("expected at most %d MiB", maxContents>>20)
	}
	return b.Buffer.Write(data)
}

func (b *limited) said() error {
	if text := strings.TrimSpace(b.String()); text != "" {
		return errors.New(text[:min(len(text), 200)])
	}
	return nil
}
