// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp is the verb mcp: a server of the Model Context Protocol on standard input and
// output, so that agents can ask what the other verbs answer.
//
// It computes nothing. A tool is a verb: its arguments become a command line, which runs in
// this process, and what that prints is the answer, within a limit and marked as data. The
// client names objects, times and expressions, and no files of the machine. Only pkg/commands
// may import it.
package mcp
