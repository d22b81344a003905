// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Limits of arguments, which are more than any name or expression of the API has.
const (
	mostOfArgument = 16 << 10
	mostOfManifest = 4 << 20
)

// commandLine is the command line of a verb while it is made from the arguments of a tool.
type commandLine struct {
	// words are the verb, flags its flags, and operands the words that are no flags.
	words, flags, operands []string
	// input is standard input.
	input string
	// everywhere is true for a question about all namespaces, unless one is chosen.
	everywhere bool
	// alone is true for a question that the cluster is not needed for, and cluster for one
	// where it has to be asked for.
	alone, cluster bool
	// compares is true for a comparison with the old state, which is the recording at the
	// time from or the snapshot of the server.
	compares bool
	from     string
	// moments are the arguments that are times of a recording.
	moments []string
	// problems are the errors in the arguments.
	problems []error
}

func newCommandLine(verb string) *commandLine { return &commandLine{words: []string{verb}} }

// refuse records an error in the arguments.
func (c *commandLine) refuse(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// flag adds a flag for each value that is not empty.
func (c *commandLine) flag(name string, values ...string) *commandLine {
	for _, value := range values {
		if value != "" {
			c.flags = append(c.flags, "--"+name+"="+c.checked(argumentOf(name), value))
		}
	}
	return c
}

// is adds a flag that is on or off.
func (c *commandLine) is(name string, on bool) *commandLine {
	if on {
		c.flags = append(c.flags, "--"+name)
	}
	return c
}

// number adds a flag for a number that is not 0.
func (c *commandLine) number(name string, n int) *commandLine {
	if n != 0 {
		c.flags = append(c.flags, "--"+name+"="+strconv.Itoa(n))
	}
	return c
}

// time adds a flag for a time, if there is one.
func (c *commandLine) time(name, value string) *commandLine {
	if value = c.checkedTime(name, value); value != "" {
		c.moments = append(c.moments, name)
		c.flags = append(c.flags, "--"+name+"="+value)
	}
	return c
}

// target adds operands. None can be read as a flag or as standard input.
func (c *commandLine) target(values ...string) *commandLine {
	for _, value := range values {
		switch {
		case strings.HasPrefix(value, "-"):
			c.refuse("read %q: expected the name of an object, which does not begin with -", value)
		case value != "":
			c.operands = append(c.operands, c.checked("the target", value))
		}
	}
	return c
}

// expression adds a flag for a CEL expression, which may have lines, if there is one; without a
// name, an operand.
func (c *commandLine) expression(name, text string) *commandLine {
	switch {
	case text == "":
	case name == "":
		c.operands = append(c.operands, c.short("expression", text))
	default:
		c.flags = append(c.flags, "--"+name+"="+c.short(argumentOf(name), text))
	}
	return c
}

// manifest makes a text standard input, and adds the flag that reads it.
func (c *commandLine) manifest(flag, text string) *commandLine {
	if text == "" {
		return c
	}
	if len(text) > mostOfManifest {
		c.refuse("read manifest: it has %d bytes; at most %d are read", len(text), mostOfManifest)
	}
	c.input = text
	c.flags = append(c.flags, "--"+flag+"=-")
	return c
}

// one refuses a value that is not among the allowed ones.
func (c *commandLine) one(name, value string, allowed ...string) *commandLine {
	if !slices.Contains(allowed, value) {
		c.refuse("read %s: %q is not one of %s", name, value, strings.Join(allowed, ", "))
	}
	return c
}

// needs refuses an argument that is empty.
func (c *commandLine) needs(name, value string) {
	if value == "" {
		c.refuse("read %s: expected one, found none", name)
	}
}

// short returns a value, and refuses a very long one.
func (c *commandLine) short(name, value string) string {
	if len(value) > mostOfArgument {
		c.refuse("read %s: it has %d bytes; at most %d are read", name, len(value), mostOfArgument)
	}
	return value
}

// checked returns a value, and refuses what cannot be a name.
func (c *commandLine) checked(name, value string) string {
	if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		c.refuse("read %s: it has a control character at position %d", name, i)
	}
	return c.short(name, value)
}

// times matches the forms of times. None can be a part of a path, since none has a slash.
var times = regexp.MustCompile(`^[0-9][0-9A-Za-z:.+-]*$`) //nolint:gochecknoglobals // It never changes.

// checkedTime returns a time, and refuses what cannot be one.
func (c *commandLine) checkedTime(name, value string) string {
	if value != "" && !times.MatchString(value) {
		c.refuse("read %s: %q is not a time such as 2h, 09:14 or 2026-09-01T09:14:00Z", name, value)
	}
	return value
}

// args returns the words of the command line, with the flags that all tools share.
func (c *commandLine) args(o *options, in common) ([]string, error) {
	c.flag("namespace", in.Namespace)
	if in.Detail != "" {
		c.one("detail", in.Detail, "short", "wide", "json")
	}
	if in.Detail == "wide" || in.Detail == "json" {
		c.flags = append(c.flags, "--output="+in.Detail)
	}
	at := c.checkedTime("at", in.At)
	if at != "" {
		c.moments = append(c.moments, "at")
	}
	if o.recording == "" {
		for _, name := range c.moments {
			c.refuse("read %s: it needs a recording, and no recording is served; leave it out", name)
		}
	}
	var reads []string
	switch {
	case c.alone:
		reads = o.settings
	case at == "":
		reads = slices.Concat(o.settings, o.reads, o.at)
	default:
		reads = slices.Concat(o.settings, o.reads, []string{"--at=" + at})
	}
	if c.compares {
		old := o.before
		switch {
		case o.recording != "" && c.from != "":
			old = o.recording + "@" + c.from
		case c.from != "":
			c.refuse("read from: it needs a recording, and no recording is served; leave it out")
		case old == "":
			c.refuse("read from: expected a time of the recording, such as 2h; found none")
		}
		c.operands = append(c.operands, old)
	}
	if c.cluster && o.live {
		c.flags = append(c.flags, "--cluster")
	}
	if in.Namespace == "" && !c.alone && (o.everywhere || c.everywhere && !o.hasNamespace) {
		c.flags = append(c.flags, "--all-namespaces")
	}
	var lines []string
	for _, problem := range c.problems {
		lines = append(lines, render.Escape(problem.Error()))
	}
	if len(lines) > 0 {
		return nil, errors.New(strings.Join(lines, "\n"))
	}
	// The last value of a flag counts: the flags of the client come after the flags of the server.
	return slices.Concat(c.words, reads, c.flags, []string{"--"}, c.operands), nil
}
