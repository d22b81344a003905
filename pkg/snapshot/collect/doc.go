// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collect is the way from an API server into a snapshot: it finds out what
// the server has, lists it in parallel, and, for a dashboard, follows it by watches.
// What the user may not read becomes a gap.
//
// It writes nothing, but for the requests of [AskPoolStatus], which it deletes.
// Apart from pkg/commands, which imports it, no other package talks to the API
// server.
package collect
