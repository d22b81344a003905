// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// patterns find things in texts.
type patterns struct {
	// word is a word of a text, or several joined by colons; name is one.
	word, name   *regexp.Regexp
	uuid, serial *regexp.Regexp
	// searches is what looks into strings in a CEL expression, or at their order.
	identifier, searches *regexp.Regexp
	quoted, url          *regexp.Regexp
	// token is what stands between blanks, quotes or brackets, separator what
	// joins parts of one, and number a short number with or without a unit.
	token, separator, number *regexp.Regexp
	// secret is what looks like one, and address like one of a network.
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
		// addresses, URLs, keys of AWS, tokens of three parts, long hexadecimal numbers.
		secret: regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|([0-9a-f]{2}[:-]){5,}[0-9a-f]{2}|` +
			`([0-9a-f]{4}[.:]){2,}[0-9a-f]{4}|\b[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{16,}\b|[^\s@]+@[^\s@]+\.[^\s@]+|://|\b(AKIA|ASIA)[0-9A-Z]{12,}|\beyJ[\w-]+\.`),
		address: regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*`),
		quoted:  regexp.MustCompile(`"[^"]*"`),
		url:     regexp.MustCompile(`https?://[^\s"']+`),
		image:   regexp.MustCompile(`[0-9A-Za-z][0-9A-Za-z._/:@-]*[0-9A-Za-z]`),
	}
}

// hidden stands for a part of a text that may be anything.
const hidden = "…"

// text redacts a text for people. Names, UIDs, images and addresses get their
// pseudonyms; the words of known messages stay, and so do the vocabulary of
// drivers and short numbers. Everything else is hidden.
func (r *redactor) text(s string) string {
	if s == "" || r.stage == collectNames {
		return s
	}
	redacted := r.patterns.token.ReplaceAllStringFunc(s, func(token string) string {
		core := strings.TrimRight(strings.TrimLeft(token, ":.-"), ".:!?…")
		if core == "" {
			return token
		}
		before, after, _ := strings.Cut(token, core)
		return before + r.token(core) + after
	})
	if r.stage != rewrite {
		return s
	}
	return redacted
}

// token redacts what stands between blanks, quotes or brackets.
func (r *redactor) token(token string) string {
	if r.stage == rewrite {
		if image := r.image(token); image != token {
			return image
		}
	}
	if redacted, known := r.part(token); known {
		return redacted
	}
	if strings.Contains(token, "://") {
		return hidden
	}
	if address, rest, found := strings.Cut(token, "/"); found && isAddress(address) && r.patterns.number.MatchString(rest) {
		return r.swap(tableIP, address) + "/" + rest
	}
	separators := r.patterns.separator.FindAllString(token, -1)
	if len(separators) == 0 {
		return hidden
	}
	parts := r.patterns.separator.Split(token, -1)
	var text strings.Builder
	for i, part := range parts {
		redacted, known := r.part(part)
		// More numbers than two may be an address of any kind.
		if !known && part != "" || len(parts) > 2 && r.patterns.number.MatchString(part) {
			redacted = hidden
		}
		text.WriteString(redacted)
		if i < len(separators) {
			text.WriteString(separators[i])
		}
	}
	return text.String()
}

// part redacts a part of a token. It is not known if it may be anything.
func (r *redactor) part(part string) (redacted string, known bool) {
	if isAddress(part) {
		return r.swap(tableIP, part), true
	}
	if r.kept[part] || r.kept[strings.TrimPrefix(part, "k8s.")] {
		return part, true
	}
	if pseudonym, found := r.name(part); found {
		return pseudonym, true
	}
	switch {
	case r.isUUID(part):
		return r.swap(tableUID, part), true
	case r.words[strings.ToLower(part)], r.patterns.number.MatchString(part):
		return part, true
	case r.holdsName(part):
		return r.swap(tableText, part), true
	default:
		return "", false
	}
}

// name returns the pseudonym of a name, also of one in other letters, and of a
// node with its domain or without it.
func (r *redactor) name(word string) (pseudonym string, found bool) {
	if pseudonym, found := r.names[word]; found {
		return cmp.Or(pseudonym, word), true
	}
	if pseudonym, found := r.variants[strings.ToLower(word)]; found {
		return cmp.Or(pseudonym, word), true
	}
	host, _, qualified := strings.Cut(strings.ToLower(word), ".")
	if pseudonym, found := r.variants[host]; qualified && found {
		return cmp.Or(pseudonym, word), true
	}
	return "", false
}

// replaceNames replaces the names, UIDs and addresses in a value, and nothing
// else.
func (r *redactor) replaceNames(s string) string {
	if s == "" || r.stage == collectNames {
		return s
	}
	redacted := r.patterns.word.ReplaceAllStringFunc(s, r.word)
	if r.stage != rewrite {
		return s
	}
	return redacted
}

// value redacts a value that something compares with others.
func (r *redactor) value(s string) string {
	switch {
	case r.stage == collectNames:
		return s
	case r.isName(s) || r.hidesName(s):
		return r.replaceNames(s)
	case r.holdsSecret(s):
		return r.swap(tableSerial, s)
	default:
		return s
	}
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
			parts[i], _ = r.name(part)
		case r.isUUID(part):
			parts[i] = r.swap(tableUID, part)
		case r.holdsName(part):
			parts[i] = r.swap(tableText, part)
		}
	}
	return strings.Join(parts, ":")
}

func (r *redactor) isName(word string) bool {
	_, ok := r.name(word)
	return ok
}

// holdsName reports whether a word that is not a name itself has one in it,
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
	return r.holdsSecret(value)
}

// holdsSecret reports whether there is an address, a UUID, a serial number, a
// password or a token anywhere in a value.
func (r *redactor) holdsSecret(value string) bool {
	secret, known := r.secrets[value]
	if !known {
		secret = r.looksLikeSecret(value)
		r.secrets[value] = secret
	}
	return secret
}

func (r *redactor) looksLikeSecret(value string) bool {
	if r.patterns.secret.MatchString(value) || r.patterns.serial.MatchString(value) {
		return true
	}
	return slices.ContainsFunc(r.patterns.address.FindAllString(value, -1), func(address string) bool {
		return isAddress(address) || isAddress(strings.TrimRight(address, ":"))
	})
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
		return r.replaceNames(value)
	case r.literals[value] || r.searched[short]:
		return value
	case r.looksSecret(short, value):
		return r.swap(tableSerial, value)
	default:
		return value
	}
}

// hidesName reports whether a text has a word that is or holds a name.
func (r *redactor) hidesName(s string) bool {
	for _, part := range r.patterns.name.FindAllString(s, -1) {
		if !r.kept[part] && (r.isName(part) || r.holdsName(part)) {
			return true
		}
	}
	return false
}
