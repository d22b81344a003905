// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live follows a cluster for the dashboard: it takes a picture whenever the cluster
// changed, works out in the background why pods wait and what doctor finds, keeps what
// happened, and says how fresh all of this is.
//
// [Cluster] is a component in the style of Bubble Tea. Each kind of work is done one at a
// time and at a pace that leaves most of a processor to others. The package knows no screen:
// [Seen] says what somebody looks at, and [News] what has to be drawn again. Only pkg/tui may
// import it.
package live
