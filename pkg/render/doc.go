// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render draws the models of the packages below it for people. It has the page with
// its columns, lists and words, and on it the answers about a cluster: how it is, what comes,
// what has changed, what was tried out. Answers to "why" are drawn by pkg/render/explanation,
// the tables of what there is by pkg/render/tables, both on the same page.
//
// It computes nothing and decides nothing: what it prints is in the model. It
// is also the one place that makes text from a cluster safe for a terminal, see
// [Escape]. Machines get the models themselves, through the printers of
// cli-runtime. pkg/tui and pkg/commands may import this package.
package render
