// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"net/netip"
	"regexp"
	"strings"
)

// patterns find things in texts.
type patterns struct {
	// word is a word of a text, or several joined by colons; name is one.
	word, name   *regexp.Regexp
	uuid, serial *regexp.Regexp
	// literal is a string in a CEL expression, and searches what looks into
	// strings or at their order.
	literal, identifier, searches *regexp.Regexp
	quoted, url                   *regexp.Regexp
	// image is whatever could be the name of one.
	image *regexp.Regexp
}

func newPatterns() patterns {
	return patterns{
		word:       regexp.MustCompile(`[0-9A-Za-z:._-]*[0-9A-Za-z]`),
		name:       regexp.MustCompile(`[0-9A-Za-z._-]*[0-9A-Za-z]`),
		uuid:       regexp.MustCompile(`(?i)^([a-z0-9]+-){0,2}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
		serial:     regexp.MustCompile(`(?i)^([0-9a-f]{2}[:-]){5,}[0-9a-f]{2}$|^[0-9]{10,}$`),
		literal:    regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`),
		identifier: regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`),
		searches: regexp.MustCompile(`\.(startsWith|endsWith|contains|matches|find|findAll|split|substring|indexOf|` +
			`lastIndexOf|replace|lowerAscii|upperAscii|charAt|trim|join|size)\(|size\(|[<>+]`),
		quoted: regexp.MustCompile(`"[^"]*"`),
		url:    regexp.MustCompile(`https?://[^\s"']+`),
		image:  regexp.MustCompile(`[0-9A-Za-z][0-9A-Za-z._/:@-]*[0-9A-Za-z]`),
	}
}

// text replaces the names, UIDs, images and addresses in a text for people.
func (r *redactor) text(s string) string {
	if s == "" || r.stage == collectNames {
		return s
	}
	if r.stage == rewrite {
		s = r.patterns.image.ReplaceAllStringFunc(s, r.image)
	}
	return r.patterns.word.ReplaceAllStringFunc(s, r.word)
}

// image replaces what stands between blanks or quotes if it is an image, with
// or without the registry that a runtime puts in front. An image whose name is
// a plain word is not told from that word.
func (r *redactor) image(token string) string {
	rest := token
	for {
		if pseudonym := r.tables[tableImage][rest]; pseudonym != "" && strings.ContainsAny(rest, "/:@") {
			return pseudonym
		}
		_, after, found := strings.Cut(rest, "/")
		if !found {
			return token
		}
		rest = after
	}
}

// word replaces one word of a text, which may be several joined by colons.
func (r *redactor) word(word string) string {
	if isAddress(word) {
		return r.swap(tableIP, word)
	}
	parts := strings.Split(word, ":")
	for i, part := range parts {
		switch {
		case part == "" || r.kept[part]:
		case isAddress(part):
			parts[i] = r.swap(tableIP, part)
		case r.isName(part):
			if r.stage == rewrite {
				parts[i] = r.names[part]
			}
		case r.isUUID(part):
			parts[i] = r.swap(tableUID, part)
		case r.holdsName(part):
			parts[i] = r.swap(tableText, part)
		}
	}
	return strings.Join(parts, ":")
}

func (r *redactor) isName(word string) bool {
	_, ok := r.names[word]
	return ok
}

// holdsName tells whether a word that is not a name itself has one in it,
// between hyphens or dots, as generated names have. Short and plain words that
// happen to be names are not meant.
func (r *redactor) holdsName(word string) bool {
	var ends []int
	for i := range len(word) {
		if word[i] == '-' || word[i] == '.' {
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 || len(ends) > 30 {
		return false
	}
	starts := []int{0}
	for _, end := range ends {
		starts = append(starts, end+1)
	}
	ends = append(ends, len(word))
	for i, start := range starts {
		for _, end := range ends[i:] {
			part := word[start:end]
			if r.isName(part) && !r.kept[part] && len(part) > 4 && strings.ContainsAny(part, "-.0123456789") {
				return true
			}
		}
	}
	return false
}

func isAddress(word string) bool {
	if strings.Count(word, ".") != 3 && strings.Count(word, ":") < 2 {
		return false
	}
	_, err := netip.ParseAddr(word)
	return err == nil
}

func (r *redactor) isUUID(word string) bool {
	const shortest = 36
	return len(word) >= shortest && r.patterns.uuid.MatchString(word)
}

// looksSecret tells values that identify one piece of hardware.
func (r *redactor) looksSecret(attribute, value string) bool {
	attribute = strings.ToLower(attribute)
	for _, hint := range []string{"uuid", "guid", "serial", "macaddr", "hwaddr", "hostname", "ipaddr"} {
		if strings.Contains(attribute, hint) {
			return true
		}
	}
	return r.isUUID(value) || isAddress(value) || r.patterns.serial.MatchString(value)
}

// attribute redacts the value of a device's attribute so that every expression
// and constraint sees the same.
func (r *redactor) attribute(name, value string) string {
	if r.stage == collectNames {
		return value
	}
	short := name[strings.LastIndexByte(name, '/')+1:]
	switch {
	case r.isName(value) || r.hidesName(value):
		return r.text(value)
	case r.literals[value] || r.searched[short]:
		return value
	case r.looksSecret(short, value):
		return r.swap(tableSerial, value)
	default:
		return value
	}
}

// hidesName tells whether a text has a word that is or holds a name.
func (r *redactor) hidesName(s string) bool {
	for _, part := range r.patterns.name.FindAllString(s, -1) {
		if !r.kept[part] && (r.isName(part) || r.holdsName(part)) {
			return true
		}
	}
	return false
}

// expression redacts the names in the string literals of a CEL expression,
// just as attribute does in values.
func (r *redactor) expression(s string) string {
	if r.stage == collectNames {
		if r.patterns.searches.MatchString(s) {
			for _, identifier := range r.patterns.identifier.FindAllString(s, -1) {
				r.searched[identifier] = true
			}
		}
	}
	return r.patterns.literal.ReplaceAllStringFunc(s, func(literal string) string {
		quote, content := literal[:1], literal[1:len(literal)-1]
		if r.stage == collectNames {
			r.literals[content] = true
			return literal
		}
		if r.kept[content] || !r.isName(content) && !r.hidesName(content) {
			return literal
		}
		return quote + r.text(content) + quote
	})
}
