// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// stage is the stage of a walk through all objects. The same code does all stages, so that
// nothing can be rewritten that was not collected.
type stage int

const (
	// collectNames notes names, and the vocabulary that stays.
	collectNames stage = iota
	// collectTexts notes words that are only known by their form or by the names in them.
	collectTexts
	// rewrite replaces.
	rewrite
)

// Tables of pseudonyms that are not named after a kind.
const (
	tableNamespace = "Namespace"
	tableNode      = "Node" // nodes and pools: the latter mostly have a node's name
	tableUID       = "UID"
	tableIP        = "IP"
	tableImage     = "Image"
	tableValue     = "Value"  // of labels
	tableText      = "Name"   // words that hold a name
	tableSerial    = "Serial" // what looks like one
	tableContainer = "Container"
	tableVolume    = "Volume"
	tablePodClaim  = "PodClaim"
	tableDevice    = "Device"
	tableConfig    = "Config"
	tableGenerate  = "GenerateName"
	tableQualified = "Qualified" // names with a domain

	tableStorageClass = "StorageClass"
)

// pseudonyms has what names are replaced with.
type pseudonyms struct {
	stage stage
	// tables has the pseudonyms by what they are for and the original.
	tables map[string]map[string]string
	// names has the pseudonyms of all names that texts are searched for.
	names map[string]string
	// variants has the names of nodes in lowercase letters, and without a domain.
	variants map[string]string
	// domains are the domains of node names, and their parent domains.
	domains map[string]bool
	// kept is the vocabulary that is never replaced in texts.
	kept map[string]bool
}

func newPseudonyms() *pseudonyms {
	return &pseudonyms{tables: map[string]map[string]string{}, names: map[string]string{}, variants: map[string]string{}, domains: map[string]bool{}, kept: map[string]bool{}}
}

// swap notes an original in the stages that collect, and returns its
// pseudonym when rewriting.
func (p *pseudonyms) swap(table, original string) string {
	if original == "" {
		return ""
	}
	if p.stage == rewrite {
		if pseudonym := p.tables[table][original]; pseudonym != "" {
			return pseudonym
		}
		// Only a word can come to this, that became one with a name in it by
		// what was found after it.
		return numbered(table, 0, len(p.tables[table]))
	}
	if p.tables[table] == nil {
		p.tables[table] = map[string]string{}
	}
	p.tables[table][original] = ""
	return original
}

// keep notes a word that texts keep.
func (p *pseudonyms) keep(word string) {
	if p.stage == collectNames && word != "" {
		p.kept[word] = true
	}
}

// swapAll replaces a list of names.
func (p *pseudonyms) swapAll(table, list string) string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = p.swap(table, names[i])
	}
	return strings.Join(names, ",")
}

// keptNames returns the names of a list that stay anyway, such as names of drivers.
func (p *pseudonyms) keptNames(list string) string {
	if p.stage != rewrite {
		return list
	}
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return !p.kept[name] }), ",")
}

// hasText reports whether texts are searched for the names in a table.
func hasText(table string) bool {
	switch table {
	case tableValue, tableImage, tableConfig, tableSerial, tableContainer, tableVolume, tablePodClaim, tableDevice,
		tableGenerate, tableQualified:
		return false
	default:
		return true
	}
}

// number gives pseudonyms to what a stage has collected.
func (p *pseudonyms) number(after stage) {
	if after == rewrite {
		return
	}
	// The same word may be the name of several things. What the allocator
	// compares has precedence.
	tables := slices.SortedFunc(maps.Keys(p.tables), func(a, b string) int {
		return cmp.Or(cmp.Compare(precedence(a), precedence(b)), strings.Compare(a, b))
	})
	clear(p.names)
	clear(p.variants)
	for _, table := range tables {
		originals := slices.Sorted(maps.Keys(p.tables[table]))
		for i, original := range originals {
			pseudonym := numbered(table, i+1, len(originals))
			p.tables[table][original] = pseudonym
			if _, taken := p.names[original]; hasText(table) && !taken {
				p.names[original] = pseudonym
			}
			if table == tableNode {
				p.addVariants(original, pseudonym)
			}
		}
	}
}

// addVariants notes other spellings of a node's name. A name that is a plain
// word is no name in other letters, nor in front of a domain.
func (p *pseudonyms) addVariants(name, pseudonym string) {
	name = strings.ToLower(name)
	p.variants[name] = pseudonym
	host, domain, _ := strings.Cut(name, ".")
	for strings.Contains(domain, ".") {
		p.domains[domain] = true
		_, domain, _ = strings.Cut(domain, ".")
	}
	if _, taken := p.variants[host]; !taken && strings.ContainsAny(host, "-0123456789") {
		p.variants[host] = pseudonym
	}
}

// belowDomain reports whether a word is a name in the domain of a node, or the domain.
func (p *pseudonyms) belowDomain(word string) bool {
	for word = strings.ToLower(word); strings.Contains(word, "."); _, word, _ = strings.Cut(word, ".") {
		if p.domains[word] {
			return true
		}
	}
	return false
}

func precedence(table string) int {
	switch table {
	case tableNode:
		return 0
	case "Pod":
		return 1
	case "ResourceClaim":
		return 2
	case tableText:
		return 9
	default:
		return 3
	}
}

// numbered makes a pseudonym. All of a table have the same length, so that
// they sort like their numbers.
func numbered(table string, number, of int) string {
	switch table {
	case tableUID:
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", number)
	case "ResourceClaim":
		table = "claim"
	case "ResourceClaimTemplate":
		table = "template"
	case "ResourceSlice":
		table = "slice"
	case "DeviceTaintRule":
		table = "rule"
	case snapshot.KindPoolStatus:
		table = "poolstatus"
	case tableGenerate:
		table = "generated"
	}
	width := max(4, len(fmt.Sprint(of)))
	suffix := ""
	if table == "generated" {
		suffix = "-"
	}
	return fmt.Sprintf("%s-%0*d%s", strings.ToLower(table), width, number, suffix)
}

// name returns the pseudonym of a name, also of one in other letters, and of a
// node with its domain or without it.
func (p *pseudonyms) name(word string) (pseudonym string, found bool) {
	if pseudonym, found := p.names[word]; found {
		return cmp.Or(pseudonym, word), true
	}
	if pseudonym, found := p.variants[strings.ToLower(word)]; found {
		return cmp.Or(pseudonym, word), true
	}
	host, _, qualified := strings.Cut(strings.ToLower(word), ".")
	if pseudonym, found := p.variants[host]; qualified && found {
		return cmp.Or(pseudonym, word), true
	}
	return "", false
}
