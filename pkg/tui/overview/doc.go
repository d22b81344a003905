// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview is the first page of the dashboard: a line with the verdict, how much of
// each class is used, which pods are stuck and who can act, the namespaces, and problems
// that need somebody.
//
// A [Page] draws a [Model], which is plain data: it knows no cluster and works nothing out.
// Each row has a value that the page gives back when the row is opened. Only pkg/tui may
// import it.
package overview
