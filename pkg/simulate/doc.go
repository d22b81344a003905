// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate takes a cluster through changes one after another: pods are placed
// and get their devices, others leave, nodes come and go. Whether a pod fits the
// allocator decides each time, with all that was reserved before, as kube-scheduler
// does with the pods of its queue.
//
// A cluster never changes; each step is another cluster ([cluster.Cluster.Amended]), which
// shares what the step did not touch. The package chooses neither the order of pods nor the best node, and
// it does not say why a pod does not fit: pkg/explain does. It stands on pkg/allocator
// and pkg/whatif; every package above these may import it.
package simulate
