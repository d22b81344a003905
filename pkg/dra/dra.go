// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Types of errors.
type (
	// InputError is the fault of a file or a manifest, with its place.
	InputError = files.InputError
	// TargetError tells that the object of a question does not exist or has no claims.
	TargetError = target.Error

	// UnauthorizedError tells that the API server does not know the user.
	UnauthorizedError = collect.UnauthorizedError
	// ForbiddenError tells that the user may read nothing.
	ForbiddenError = collect.ForbiddenError
	// NoDRAError tells that the API server does not serve resource.k8s.io.
	NoDRAError = collect.NoDRAError
	// ServerError tells that a request to the API server failed.
	ServerError = collect.ServerError
	// UnknownResourceError tells that the API server does not have the kind, for [ReadFor].
	UnknownResourceError = collect.UnknownResourceError
	// NoTemplateError tells that the object has no pod template, for [ReadFor].
	NoTemplateError = collect.NoTemplateError
)

// Cluster is the state of a cluster at one time. It never changes, and is safe for concurrent
// use. It remembers what it has found out: ask one cluster several questions rather than
// making one for each.
type Cluster struct {
	state *cluster.Cluster
}

// Load reads a cluster from files or directories: what "kubectl dra snapshot" or "kubectl get -o
// yaml" wrote, or manifests. Recordings are not read. Whatever is wrong with the files is an
// [*InputError].
func Load(ctx context.Context, paths ...string) (*Cluster, error) {
	snap, err := files.Load(ctx, paths, files.Options{})
	if err != nil {
		return nil, err
	}
	return &Cluster{cluster.New(snap)}, nil
}

// Read reads a cluster once, with the rights of the user of a connection, which docs/rbac.md
// lists. What that user may not read is missing; answers that depend on it say so. Of
// workloads it reads the pods; use [ReadFor] to ask about one that has none.
func Read(ctx context.Context, config *rest.Config) (*Cluster, error) {
	return read(ctx, config, nil)
}

// ReadFor reads a cluster as [Read] does, for a question about one object: its events and, if
// it has a pod template, the object itself are read, too. Where a user may not read all
// namespaces, only the namespace of the object is read.
func ReadFor(ctx context.Context, config *rest.Config, object api.ObjectRef) (*Cluster, error) {
	about := &snapshot.Argument{Resource: object.Kind, Namespace: object.Namespace, Name: object.Name}
	if object.APIGroup != "" {
		about.Resource += "." + object.APIGroup
	}
	return read(ctx, config, about)
}

func read(ctx context.Context, config *rest.Config, about *snapshot.Argument) (*Cluster, error) {
	clients, err := collect.NewClientsOf(config)
	if err != nil {
		return nil, err
	}
	snap, err := collect.Collect(ctx, clients, collect.Options{
		AllNamespaces: about == nil, Target: about, Scaling: about != nil,
		Creates: true, UsesVolumes: true, Evicts: true, Ends: true,
		Starting: true, Health: true, Admission: true, ComputeDomains: true,
	})
	if err != nil {
		return nil, err
	}
	return &Cluster{cluster.New(snap)}, nil
}

// With returns the cluster as if a manifest, YAML or JSON with any number of objects, was
// applied. Objects without a namespace are in the given one, or in "default" if that is empty.
// It fails with an [*InputError] for what the API server would reject.
func (c *Cluster) With(ctx context.Context, manifest []byte, namespace string) (*Cluster, error) {
	after, _, err := c.with(ctx, manifest, namespace)
	return after, err
}

// with also returns the objects of the manifest.
func (c *Cluster) with(ctx context.Context, manifest []byte, namespace string) (*Cluster, *snapshot.Snapshot, error) {
	options := files.Options{Stdin: bytes.NewReader(manifest), StdinName: "manifest"}
	objects, err := files.Manifests(ctx, []string{"-"}, options)
	if err != nil {
		return nil, nil, err
	}
	objects = objects.InNamespace(cmp.Or(namespace, metav1.NamespaceDefault))
	return &Cluster{c.state.Amended(target.Apply(c.state.Snapshot, objects))}, objects, nil
}

// Why explains why a pod, a claim, a template, a PodGroup or anything with a pod template gets
// its devices or not, as "kubectl dra why TYPE/NAME" does: pods that wait are decided in the
// order of the scheduling queue. [api.Ref] makes the reference. It fails with a [*TargetError]
// if there is no such object or it has no claims.
func (c *Cluster) Why(ctx context.Context, object api.ObjectRef) (*api.Explanation, error) {
	answers, err := explain.ExplainEach(ctx, c.state, []explain.Options{{Object: object}})
	if err != nil {
		return nil, err
	}
	return answers[0].Explanation, answers[0].Err
}

// Status finds the causes behind all pods that do not run, as "kubectl dra status" does, with
// the capacity of each DeviceClass.
func (c *Cluster) Status(ctx context.Context) (*api.Status, error) {
	found, err := cause.Find(ctx, c.state, cause.Options{})
	if err != nil {
		return nil, err
	}
	return found.Status, forecast.AddPlaceableTo(ctx, c.state, found.Status.Capacity)
}

// Fit counts how many copies of a claim, a template, a pod or a workload fit, as "kubectl dra
// fit -f FILE" does. The manifest has that object and those that it needs; for the namespace
// and for errors see [Cluster.With]. It fails with a [*TargetError] if the manifest does not
// have exactly one object to copy; claims and templates go with the pod that uses them.
func (c *Cluster) Fit(ctx context.Context, manifest []byte, namespace string) (*api.Fit, error) {
	after, objects, err := c.with(ctx, manifest, namespace)
	if err != nil {
		return nil, err
	}
	targets, skipped := target.Among(objects, after.state.WantsDevices)
	if len(targets) != 1 {
		found := skipped
		for i := range targets {
			found = append(found, targets[i].Object.Title())
		}
		return nil, &TargetError{
			Message: fmt.Sprintf("find an object to copy in the manifest: expected one that uses devices, found %d", len(targets)),
			Hint:    "it has: " + english.Sample(found, 10),
		}
	}
	shape, snap, err := forecast.ShapeFor(after.state, targets[0])
	if err != nil {
		return nil, err
	}
	return forecast.CountShape(ctx, after.state.Amended(snap), shape, 1)
}
