// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// State is a cluster at one moment: a snapshot, and an allocator for its facts.
type State struct {
	Snap  *snapshot.Snapshot
	Alloc *allocator.Allocator
}

// New is the state before the first step. It fails only if ctx is done.
func New(ctx context.Context, snap *snapshot.Snapshot, opts ...allocator.Option) (*State, error) {
	alloc, err := allocator.New(ctx, cluster.New(snap), opts...)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return &State{Snap: snap, Alloc: alloc}, nil
}

// After is the state with another snapshot, for changes that pkg/whatif makes and that
// have no step of their own. What the snapshots share is not looked at again. It fails
// only if ctx is done.
func (s *State) After(ctx context.Context, snap *snapshot.Snapshot) (*State, error) {
	alloc, err := s.Alloc.Amended(ctx, snap)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return &State{Snap: snap, Alloc: alloc}, nil
}

// Reserve gives a pod what [State.Place] found for it in this state.
func (s *State) Reserve(ctx context.Context, r *whatif.Reservation) (*State, error) {
	return s.After(ctx, whatif.Reserve(s.Snap, *r))
}

// Evict takes pods from their nodes: they wait again, and their claims are released
// where nobody else uses them.
func (s *State) Evict(ctx context.Context, pods ...*corev1.Pod) (*State, error) {
	return s.After(ctx, whatif.Evict(s.Snap, pods))
}

// Delete removes pods for good, and releases the claims that only they used.
func (s *State) Delete(ctx context.Context, pods ...*corev1.Pod) (*State, error) {
	return s.After(ctx, whatif.Delete(s.Snap, pods))
}

// Amend makes edits of objects, and turns feature gates on. It fails for an object
// that does not exist.
func (s *State) Amend(ctx context.Context, edits []api.Edit, gates ...string) (*State, error) {
	snap, err := whatif.Amend(s.Snap, edits, gates...)
	if err != nil {
		return nil, err
	}
	return s.After(ctx, snap)
}

// AddNodes adds empty nodes like one of the cluster, with pools of their own.
func (s *State) AddNodes(ctx context.Context, like string, count int) (*State, error) {
	return s.After(ctx, whatif.AddNodes(s.Snap, like, count))
}

// RemoveNode removes a node with the slices that only it has. Pods that are there stay
// as they are: see [State.Evict].
func (s *State) RemoveNode(ctx context.Context, name string) (*State, error) {
	return s.After(ctx, whatif.RemoveNode(s.Snap, name))
}
