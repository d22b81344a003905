// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package widget has the parts that screens of the dashboard are made of: colors and styles,
// tables, heat maps, the search in a text, questions, and short words. A widget knows
// nothing of clusters.
package widget
