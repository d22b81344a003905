// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads the file with which a user sets up the dashboard.
//
// It is strict: what it does not know is an error with the file, the line and the field.
// It knows neither views nor keys by itself: [Known] has their names. Only pkg/tui and
// pkg/commands/top may import it.
package config
