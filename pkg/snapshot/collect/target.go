// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Resolve turns a resource type as users type it ("deploy", "jobs.batch",
// "deployments.v1.apps", a kind) into what the server has. "claim" and
// "template" stand for ResourceClaim and ResourceClaimTemplate. The error is
// *[UnknownResourceError] if there is no such type.
func (c Clients) Resolve(resource string) (*meta.RESTMapping, error) {
	name := strings.ToLower(resource)
	switch name {
	case "claim", "claims":
		name = snapshot.ResourceClaims
	case "template", "templates":
		name = snapshot.ResourceTemplates
	}
	kind, err := c.kindFor(name)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	if err == nil {
		return c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	// Kinds are case-sensitive: "Deployment", "Deployment.v1.apps".
	versioned, groupKind := schema.ParseKindArg(resource)
	if versioned != nil {
		if mapping, err := c.Mapper.RESTMapping(versioned.GroupKind(), versioned.Version); err == nil {
			return mapping, nil
		}
	}
	mapping, err := c.Mapper.RESTMapping(groupKind)
	if meta.IsNoMatchError(err) {
		return nil, &UnknownResourceError{Resource: resource, Err: err}
	}
	return mapping, err
}

func (c Clients) kindFor(resource string) (schema.GroupVersionKind, error) {
	versioned, groupResource := schema.ParseResourceArg(resource)
	if versioned != nil {
		if kind, err := c.Mapper.KindFor(*versioned); err == nil {
			return kind, nil
		}
	}
	return c.Mapper.KindFor(groupResource.WithVersion(""))
}

// Names asks a cluster for the names of all objects of a type, written as for
// [Clients.Resolve]. An empty namespace stands for all of them. It is for
// callers that offer a choice: no more than the names is read, and an error
// leaves nothing.
func (c Clients) Names(ctx context.Context, resource, namespace string) ([]string, error) {
	// Whatever finds out what a type stands for heeds no context, and logs that
	// a server is not there.
	if _, err := c.Discovery.ServerVersionWithContext(ctx); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("ask API server %s: %w", c.Address(), err)
	}
	mapping, err := c.Resolve(resource)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("set up connection to %s: %w", c.Address(), err)
	}
	var api metadata.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		api = client.Resource(mapping.Resource).Namespace(namespace)
	}
	var names []string
	var end endlessness
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		list, err := api.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names, nil
		}
		if err := end.check(list.Continue, len(names)); err != nil {
			return nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
	}
}

// readTarget gets the object that the question is about, unless the lists
// have it anyway. One that does not exist is left out: the explanation
// says so.
func readTarget(ctx context.Context, r *reader, s *snapshot.Snapshot, target *snapshot.Argument) error {
	if isListed(target.Resource) {
		return nil
	}
	mapping, err := r.clients.Resolve(target.Resource)
	if err != nil {
		return err
	}
	var api dynamic.ResourceInterface = r.clients.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		api = r.clients.Dynamic.Resource(mapping.Resource).Namespace(r.namespace)
	}
	object, err := api.Get(ctx, target.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		resource := mapping.Resource.GroupResource().String()
		r.gap(snapshot.Gap{Resource: resource, Reason: fmt.Sprintf("this user may not get %s in namespace %s", resource, r.namespace)})
		return nil
	case err != nil:
		return err
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	shape := kinds.KnownWorkload(mapping.GroupVersionKind.Group, mapping.GroupVersionKind.Kind)
	if shape == kinds.NotWorkload && !kinds.LooksLikeWorkload(data) {
		if strings.Contains(mapping.GroupVersionKind.Group, ".") {
			kind := mapping.GroupVersionKind
			if outline := kinds.DecodeOutline(data, kind.GroupVersion().String(), kind.Kind); outline != nil {
				s.Outlines = []*snapshot.Outline{outline}
				return nil
			}
		}
		return &NoTemplateError{Resource: mapping.Resource.GroupResource().String(), Name: target.Name}
	}
	workload, err := kinds.DecodeWorkload(data, shape)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", mapping.Resource.GroupResource(), target.Name, err)
	}
	kinds.Strip(workload)
	s.Workloads = []*snapshot.Workload{workload}
	return nil
}

// readAutoscaler finds the HorizontalPodAutoscaler of a target whose number of pods
// can be set.
func readAutoscaler(ctx context.Context, r *reader, s *snapshot.Snapshot, name string) {
	if len(s.Workloads) == 0 || s.Workloads[0].Replicas == nil {
		return
	}
	target := s.Workloads[0]
	if kind := target.GroupVersionKind(); kind.Group == "batch" || target.Name != name {
		return
	}
	mapping, err := r.clients.Mapper.RESTMapping(snapshot.AutoscalerKind())
	if err != nil {
		if meta.IsNoMatchError(err) {
			listed(s, snapshot.ResourceAutoscalers)
		}
		return
	}
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := r.clients.Dynamic.Resource(mapping.Resource).Namespace(r.namespace).List(ctx, options)
		if err != nil {
			r.gap(snapshot.Gap{Resource: snapshot.ResourceAutoscalers, Reason: readFailure(err, snapshot.ResourceAutoscalers, r.namespace)})
			return
		}
		for i := range page.Items {
			data, err := page.Items[i].MarshalJSON()
			if err != nil {
				continue
			}
			outline := kinds.DecodeOutline(data, mapping.GroupVersionKind.GroupVersion().String(), mapping.GroupVersionKind.Kind)
			if outline != nil && outline.Scales(target.GroupVersionKind().GroupKind(), r.namespace, target.Name) {
				s.Outlines = snapshot.Overlay(s.Outlines, []*snapshot.Outline{outline})
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			listed(s, snapshot.ResourceAutoscalers)
			return
		}
	}
}

// listed notes that a list was read that is not always read.
func listed(s *snapshot.Snapshot, resource string) {
	if !slices.Contains(s.Listed, resource) {
		s.Listed = append(s.Listed, resource)
		slices.Sort(s.Listed)
	}
}

// readFailure says why objects of a namespace could not be listed.
func readFailure(err error, resource, namespace string) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("this user may not list %s in namespace %s", resource, namespace)
	}
	return fmt.Sprintf("%s in namespace %s could not be listed: %v", resource, namespace, err)
}

// isListed reports whether a snapshot has all objects of a type, so that there
// is no need to ask what the server calls it. The type may have a group, and a
// version before that.
func isListed(resource string) bool {
	name, group, _ := strings.Cut(strings.ToLower(resource), ".")
	if version, rest, found := strings.Cut(group, "."); found && isVersion(version) {
		group = rest
	}
	switch name {
	case "claim", "claims", "template", "templates", "po":
		return group == ""
	case "resourceclaim", "resourceclaims", "resourceclaimtemplate", "resourceclaimtemplates":
		return group == "" || group == draGroup
	case "pod", "pods":
		return group == "" || group == "v1"
	case "podgroup", "podgroups":
		return group == "" || group == schedulingGroup
	}
	return false
}

// isVersion reports whether a part of a resource type is an API version.
func isVersion(part string) bool {
	return len(part) > 1 && part[0] == 'v' && part[1] >= '0' && part[1] <= '9'
}

// eventSelectors returns selectors for the events to read: events of the target and of
// claims, and events that explain the claims of the pods next to the target, or why some
// are not created, since these may be the target's.
func eventSelectors(target string) []fields.Selector {
	selectors := []fields.Selector{
		fields.OneTermEqualSelector("involvedObject.name", target),
		fields.OneTermEqualSelector("involvedObject.kind", "ResourceClaim"),
		fields.OneTermEqualSelector("reason", "FailedScheduling"),
	}
	for _, reason := range []string{failedCreate, "NotTriggerScaleUp", "FailedResourceClaimCreation", "FailedPrepareDynamicResources", "FailedCreatePodSandBox"} {
		selectors = append(selectors, fields.OneTermEqualSelector("reason", reason))
	}
	return selectors
}

// targetEvents returns a task that reads the events about the target. They are in the
// namespace of their object.
func targetEvents(r *reader, target string, into *[]*corev1.Event) func(context.Context) error {
	l := r.progress.list(snapshot.ResourceEvents)
	return func(ctx context.Context) error {
		defer l.finished()
		found := map[string]*corev1.Event{}
		for _, selector := range eventSelectors(target) {
			var events []*corev1.Event
			err := fetchSelected(ctx, l, metav1.ListOptions{FieldSelector: selector.String()}, eventAPI(r.clients, r.namespace), &events)
			if apierrors.IsForbidden(err) {
				r.gap(snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: "this user may not list events in namespace " + r.namespace})
				return nil
			}
			if err != nil {
				return err
			}
			for _, event := range events {
				if !snapshot.IsAnswer(event) {
					found[cmp.Or(string(event.UID), event.Name)] = event
				}
			}
		}
		for _, event := range found {
			*into = append(*into, event)
		}
		return nil
	}
}

// failedCreate is the reason of the event with which a controller reports that the API server
// refuses a pod.
const failedCreate = "FailedCreate"
