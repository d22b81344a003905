// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/netip"
	"slices"
	"strings"
)

// hidden stands for a part of a text that may be anything.
const hidden = "…"

// texts knows what of a text stays: names get their pseudonyms wherever they are.
type texts struct {
	*pseudonyms
	patterns patterns
	// expressions has what became of each expression in a stage, and secrets
	// whether a value holds one.
	expressions map[string]string
	secrets     map[string]bool
	// words are the words of known messages.
	words map[string]bool
	// literals are the strings in CEL expressions, and searched the names of
	// attributes in expressions that do more than compare for equality.
	literals, searched map[string]bool
	// hushed are values of attributes that are called like secrets, looked those that
	// expressions look into.
	hushed, looked map[string]bool
	// broken are the expressions that do not compile.
	broken map[string]bool
}

func newTexts() *texts {
	return &texts{
		pseudonyms: newPseudonyms(), patterns: newPatterns(), words: templateWords(),
		expressions: map[string]string{}, secrets: map[string]bool{}, literals: map[string]bool{}, searched: map[string]bool{},
		hushed: map[string]bool{}, looked: map[string]bool{}, broken: map[string]bool{},
	}
}

// text redacts a text for people. Names, UIDs, images and addresses get their
// pseudonyms; the words of known messages stay, and so do the vocabulary of
// drivers and short numbers. Everything else is hidden.
func (t *texts) text(s string) string {
	if s == "" || t.stage == collectNames {
		return s
	}
	redacted := t.patterns.token.ReplaceAllStringFunc(s, func(token string) string {
		core := strings.TrimRight(strings.TrimLeft(token, ":.-"), ".:!?…")
		if core == "" {
			return token
		}
		before, after, _ := strings.Cut(token, core)
		return before + t.token(core) + after
	})
	if t.stage != rewrite {
		return s
	}
	return redacted
}

// token redacts what stands between blanks, quotes or brackets.
func (t *texts) token(token string) string {
	if t.stage == rewrite {
		if image := t.image(token); image != token {
			return image
		}
	}
	if redacted, known := t.part(token); known {
		return redacted
	}
	if strings.Contains(token, "://") {
		return hidden
	}
	if address, rest, found := strings.Cut(token, "/"); found && isAddress(address) && t.patterns.number.MatchString(rest) {
		return t.swap(tableIP, address) + "/" + rest
	}
	separators := t.patterns.separator.FindAllString(token, -1)
	if len(separators) == 0 {
		return hidden
	}
	parts := t.patterns.separator.Split(token, -1)
	var text strings.Builder
	for i, part := range parts {
		redacted, known := t.part(part)
		// More numbers than two may be an address of any kind.
		if !known && part != "" || len(parts) > 2 && t.patterns.number.MatchString(part) {
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
func (t *texts) part(part string) (redacted string, known bool) {
	if isAddress(part) {
		return t.swap(tableIP, part), true
	}
	if t.kept[part] || t.kept[strings.TrimPrefix(part, "k8s.")] {
		return part, true
	}
	if pseudonym, found := t.name(part); found {
		return pseudonym, true
	}
	switch {
	case t.isUUID(part):
		return t.swap(tableUID, part), true
	case t.words[strings.ToLower(part)], t.patterns.number.MatchString(part):
		return part, true
	case t.holdsName(part):
		return t.swap(tableText, part), true
	default:
		return "", false
	}
}

// replaceNames replaces the names, UIDs and addresses in a value, and nothing
// else.
func (t *texts) replaceNames(s string) string {
	if s == "" || t.stage == collectNames {
		return s
	}
	redacted := t.patterns.word.ReplaceAllStringFunc(s, t.word)
	if t.stage != rewrite {
		return s
	}
	return redacted
}

// value redacts a value that something compares with others.
func (t *texts) value(s string) string {
	switch {
	case t.stage == collectNames:
		return s
	case t.isName(s) || t.hidesName(s):
		return t.replaceNames(s)
	case t.holdsSecret(s):
		return t.swap(tableSerial, s)
	default:
		return s
	}
}

// image replaces what stands between blanks or quotes if it is an image, with
// or without the registry that a runtime puts in front. An image whose name is
// a plain word is not told from that word.
func (t *texts) image(token string) string {
	rest := token
	for {
		if pseudonym := t.tables[tableImage][rest]; pseudonym != "" && strings.ContainsAny(rest, "/:@") {
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
func (t *texts) word(word string) string {
	if isAddress(word) {
		return t.swap(tableIP, word)
	}
	parts := strings.Split(word, ":")
	for i, part := range parts {
		switch {
		case part == "" || t.kept[part]:
		case isAddress(part):
			parts[i] = t.swap(tableIP, part)
		case t.isName(part):
			parts[i], _ = t.name(part)
		case t.isUUID(part):
			parts[i] = t.swap(tableUID, part)
		case t.holdsName(part):
			parts[i] = t.swap(tableText, part)
		}
	}
	return strings.Join(parts, ":")
}

func (t *texts) isName(word string) bool {
	_, ok := t.name(word)
	return ok
}

// holdsName reports whether a word that is not a name itself has one in it,
// between hyphens or dots, as generated names have. Short and plain words that
// happen to be names are not meant.
func (t *texts) holdsName(word string) bool {
	if t.belowDomain(word) {
		return true
	}
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
			if t.isName(part) && !t.kept[part] && len(part) > 4 && strings.ContainsAny(part, "-.0123456789") {
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

func (t *texts) isUUID(word string) bool {
	const shortest = 36
	return len(word) >= shortest && t.patterns.uuid.MatchString(word)
}

// namesSecret reports whether an attribute has a name that promises a secret.
func namesSecret(attribute string) bool {
	attribute = strings.ToLower(attribute)
	return slices.ContainsFunc([]string{
		"uuid", "guid", "serial", "macaddr", "hwaddr", "ipaddr", "addr", "host", "passw", "secret", "token", "key", "bmc", "switch", "wwn", "wwpn", "iqn",
	}, func(hint string) bool { return strings.Contains(attribute, hint) })
}

// Secrets returns a function that reports whether there is an address, a UUID, a serial
// number, a URL or a token anywhere in a word of a text.
func Secrets() func(word string) bool { return newTexts().holdsSecret }

// holdsSecret reports whether there is an address, a UUID, a serial number, a
// password or a token anywhere in a value.
func (t *texts) holdsSecret(value string) bool {
	secret, known := t.secrets[value]
	if !known {
		secret = t.looksLikeSecret(value)
		t.secrets[value] = secret
	}
	return secret
}

func (t *texts) looksLikeSecret(value string) bool {
	if t.patterns.secret.MatchString(value) || t.patterns.serial.MatchString(value) {
		return true
	}
	return slices.ContainsFunc(t.patterns.address.FindAllString(value, -1), func(address string) bool {
		return isAddress(address) || isAddress(strings.TrimRight(address, ":"))
	})
}

// attribute redacts the value of a device's attribute so that every expression
// and constraint sees the same.
func (t *texts) attribute(name, value string) string {
	if t.stage == collectNames {
		return value
	}
	short := name[strings.LastIndexByte(name, '/')+1:]
	if t.stage == collectTexts && namesSecret(short) {
		t.hushed[value] = true
	}
	if t.stage == collectTexts && t.searched[short] {
		t.looked[value] = true
	}
	switch {
	case t.isName(value) || t.hidesName(value):
		return t.replaceNames(value)
	case t.isHushed(value):
		return t.swap(tableSerial, value)
	case t.literals[value] || t.searched[short]:
		return value
	case t.holdsSecret(value):
		return t.swap(tableSerial, value)
	default:
		return value
	}
}

// isHushed reports whether a value is one of an attribute that is called like a secret. It
// is replaced wherever it is, also in expressions, unless one looks into it.
func (t *texts) isHushed(value string) bool { return t.hushed[value] && !t.looked[value] }

// hidesName reports whether a text has a word that is or holds a name.
func (t *texts) hidesName(s string) bool {
	for _, part := range t.patterns.name.FindAllString(s, -1) {
		if !t.kept[part] && (t.isName(part) || t.holdsName(part)) {
			return true
		}
	}
	return false
}
