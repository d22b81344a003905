// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/strip"
)

// Snapshot returns a snapshot that answers every question like s does, but does
// not tell whose cluster it is. s is not changed.
//
// Pseudonyms replace the names of namespaces, nodes, pools and all objects but
// device classes, of containers, volumes and a pod's claims, UIDs, images,
// addresses, values of labels and of taints of nodes, opaque parameters and
// device status data. Equal values get equal pseudonyms wherever they are, also
// in messages and CEL expressions. Names of one kind are numbered in their
// order, since the allocator takes pools, slices and nodes in that order.
// Annotations are removed.
//
// What drivers and requests are written with stays: driver, class, request,
// attribute, capacity and counter names, CEL expressions, keys of labels and
// taints, taints of devices, values of well-known labels such as the
// architecture. Values of attributes stay too, unless they hold a name or look
// like an address, a UUID or a serial number that no expression looks at.
// Names of devices stay unless one of them has another name in it.
//
// The same snapshot always gives the same result.
func Snapshot(s *snapshot.Snapshot) *snapshot.Snapshot {
	redacted := clone(s)
	r := newRedactor()
	for _, stage := range []stage{collectNames, collectTexts, rewrite} {
		r.stage = stage
		clear(r.expressions)
		r.snapshot(redacted)
		r.number(stage)
	}
	redacted.Source = "redacted snapshot"
	redacted.Sort()
	return redacted
}

// clone copies a snapshot with everything that redaction changes.
func clone(s *snapshot.Snapshot) *snapshot.Snapshot {
	c := *s
	c.Gates = maps.Clone(s.Gates)
	c.Skipped = nil
	c.Gaps = slices.Clone(s.Gaps)
	c.Nodes = cloneAll(s.Nodes)
	c.Namespaces = cloneAll(s.Namespaces)
	c.Pods = cloneAll(s.Pods)
	c.Events = cloneAll(s.Events)
	c.Slices = cloneAll(s.Slices)
	c.Classes = cloneAll(s.Classes)
	c.Claims = cloneAll(s.Claims)
	c.Templates = cloneAll(s.Templates)
	c.TaintRules = cloneAll(s.TaintRules)
	c.PoolStatuses = cloneAll(s.PoolStatuses)
	c.PodGroups = cloneAll(s.PodGroups)
	c.Workloads = cloneAll(s.Workloads)
	c.Queued = cloneAll(s.Queued)
	c.Quotas = cloneAll(s.Quotas)
	c.LimitRanges = cloneAll(s.LimitRanges)
	c.VolumeClaims = cloneAll(s.VolumeClaims)
	c.Volumes = cloneAll(s.Volumes)
	c.StorageClasses = cloneAll(s.StorageClasses)
	return &c
}

func cloneAll[T interface {
	metav1.Object
	DeepCopy() T
}](list []T) []T {
	var copies []T
	for _, object := range list {
		c := object.DeepCopy()
		strip.Strip(c)
		copies = append(copies, c)
	}
	return copies
}

// stage is what a walk through all objects does. The same code does all, so
// that nothing can be rewritten that was not collected.
type stage int

const (
	// collectNames notes names, and the vocabulary that stays.
	collectNames stage = iota
	// collectTexts notes what is only known by its looks or by the names in it.
	collectTexts
	// rewrite replaces.
	rewrite
)

// What the tables of pseudonyms that are not named after a kind are for.
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
)

// redactor replaces names.
type redactor struct {
	stage stage
	// tables has the pseudonyms by what they are for and the original.
	tables map[string]map[string]string
	// names has the pseudonyms of all names that texts are searched for.
	names map[string]string
	// variants has those of nodes in lowercase letters, and without a domain.
	variants map[string]string
	// expressions has what became of each expression in a stage, and secrets
	// whether a value holds one.
	expressions map[string]string
	secrets     map[string]bool
	// words are those of known messages.
	words map[string]bool
	// kept is the vocabulary that is never replaced in texts.
	kept map[string]bool
	// literals are the strings in CEL expressions, and searched the names of
	// attributes in expressions that do more than compare for equality.
	literals, searched map[string]bool
	patterns           patterns
	// ordered has the keys of node labels that are compared as numbers.
	ordered map[string]bool
	// renameDevices is true if a device's name holds another name.
	renameDevices bool
}

func newRedactor() *redactor {
	return &redactor{
		tables: map[string]map[string]string{}, names: map[string]string{},
		expressions: map[string]string{}, secrets: map[string]bool{},
		variants: map[string]string{}, words: templateWords(),
		patterns: newPatterns(),
		kept:     map[string]bool{}, literals: map[string]bool{}, searched: map[string]bool{}, ordered: map[string]bool{},
	}
}

// swap notes an original in the stages that collect, and returns its
// pseudonym when rewriting.
func (r *redactor) swap(table, original string) string {
	if original == "" {
		return ""
	}
	if r.stage == rewrite {
		if pseudonym := r.tables[table][original]; pseudonym != "" {
			return pseudonym
		}
		// Only a word can come to this, that became one with a name in it by
		// what was found after it.
		return numbered(table, 0, len(r.tables[table]))
	}
	if r.tables[table] == nil {
		r.tables[table] = map[string]string{}
	}
	r.tables[table][original] = ""
	return original
}

// keep notes a word that texts keep.
func (r *redactor) keep(word string) {
	if r.stage == collectNames && word != "" {
		r.kept[word] = true
	}
}

// hasText tells which tables have names that texts are searched for.
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
func (r *redactor) number(after stage) {
	if after == rewrite {
		return
	}
	// The same word may be the name of several things. What the allocator
	// compares has precedence.
	tables := slices.SortedFunc(maps.Keys(r.tables), func(a, b string) int {
		return cmp.Or(cmp.Compare(precedence(a), precedence(b)), strings.Compare(a, b))
	})
	clear(r.names)
	clear(r.variants)
	for _, table := range tables {
		originals := slices.Sorted(maps.Keys(r.tables[table]))
		for i, original := range originals {
			pseudonym := numbered(table, i+1, len(originals))
			r.tables[table][original] = pseudonym
			if _, taken := r.names[original]; hasText(table) && !taken {
				r.names[original] = pseudonym
			}
			if table == tableNode {
				r.addVariants(original, pseudonym)
			}
		}
	}
}

// addVariants notes other spellings of a node's name. A name that is a plain
// word is no name in other letters, nor in front of a domain.
func (r *redactor) addVariants(name, pseudonym string) {
	name = strings.ToLower(name)
	r.variants[name] = pseudonym
	host, _, _ := strings.Cut(name, ".")
	if _, taken := r.variants[host]; !taken && strings.ContainsAny(host, "-0123456789") {
		r.variants[host] = pseudonym
	}
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
