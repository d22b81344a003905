// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects decodes the objects of a snapshot, one at a time: any version
// that a server or a file has becomes the newest one, with the defaults that the
// API server sets. Errors name the field.
//
// It never judges values, and reads neither files nor servers. The packages
// collect, load, save, strip and validate import it.
package objects
