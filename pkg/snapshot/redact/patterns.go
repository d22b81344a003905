// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
)

// patterns find things in texts.
type patterns struct {
	// word is a word of a text, or several joined by colons; name is one.
	word, name   *regexp.Regexp
	uuid, serial *regexp.Regexp
	// searches matches functions that look into strings in a CEL expression, or at their
	// order.
	identifier, searches *regexp.Regexp
	quoted, url          *regexp.Regexp
	// token matches text between blanks, quotes or brackets, separator joins parts of a
	// token, and number is a short number with or without a unit.
	token, separator, number *regexp.Regexp
	// secret matches text that looks like a secret, and address a network address.
	secret, address *regexp.Regexp
	// image is whatever could be the name of one.
	image *regexp.Regexp
}

func newPatterns() patterns {
	return patterns{
		word:       regexp.MustCompile(`[0-9A-Za-z:._-]*[0-9A-Za-z]`),
		name:       regexp.MustCompile(`[0-9A-Za-z._-]*[0-9A-Za-z]`),
		uuid:       regexp.MustCompile(`(?i)^([a-z0-9]+-){0,2}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
		serial:     regexp.MustCompile(`(?i)^([0-9a-f]{2}[:-]){5,}[0-9a-f]{2}$|^[0-9]{10,}$`),
		identifier: regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`),
		searches: regexp.MustCompile(`\.(startsWith|endsWith|contains|matches|find|findAll|split|substring|indexOf|` +
			`lastIndexOf|replace|lowerAscii|upperAscii|charAt|trim|join|size)\(|size\(|[<>+]`),
		token:     regexp.MustCompile("[^\\s\"'`(),;<>\\[\\]{}|]+"),
		separator: regexp.MustCompile(`[/:=,&?+*#%@~^]|\.\.\.`),
		number:    regexp.MustCompile(`^-?[0-9]{1,6}(\.[0-9]{1,6})?(%|[A-Za-z]{1,2})?$`),
		// UUIDs, the forms of MAC addresses and of InfiniBand's GUIDs, mail
		// addresses, URLs, keys of AWS, tokens of three parts, long hexadecimal numbers,
		// addresses with hyphens, names in storage networks.
		secret: regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|([0-9a-f]{2}[:-]){5,}[0-9a-f]{2}|` +
			`([0-9a-f]{4}[.:]){2,}[0-9a-f]{4}|\b[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{16,}\b|[^\s@]+@[^\s@]+\.[^\s@]+|://|\b(AKIA|ASIA)[0-9A-Z]{12,}|\beyJ[\w-]+\.|` +
			`(^|[^0-9])[0-9]{1,3}(-[0-9]{1,3}){3}($|[^0-9])|\b[in]qn\.[0-9]{4}-[0-9]{2}\.|\b(eui|naa|wwn|wwpn|wwnn)[.:-](0x)?[0-9a-f]{8,}`),
		address: regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*`),
		quoted:  regexp.MustCompile(`"[^"]*"`),
		url:     regexp.MustCompile(`https?://[^\s"']+`),
		image:   regexp.MustCompile(`[0-9A-Za-z][0-9A-Za-z._/:@-]*[0-9A-Za-z]`),
	}
}
