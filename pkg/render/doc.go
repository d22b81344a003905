// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render draws the models of the packages below it for people: an
// explanation as a headline, funnels and next steps.
//
// It computes nothing and decides nothing: what it prints is in the model. It
// is also the one place that makes text from a cluster safe for a terminal, see
// [Escape]. Machines get the models themselves, through the printers of
// cli-runtime. pkg/tui and pkg/commands may import this package.
package render
