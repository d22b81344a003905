// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/netip"
	"regexp"
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

// templateWords returns the words of the messages that the scheduler, the kubelet, the
// controllers, the API server and this program write about pods, claims and nodes. Of a
// message nothing stays but these, numbers and the vocabulary of drivers: whatever else is
// in it may be anything.
func templateWords() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(wordsOfTemplates) {
		words[word] = true
	}
	return words
}

const wordsOfTemplates = `
a about above accept accepted access account accounts across active add added adding address addresses admin adminaccess admission admit admitted affinity
after again agent ago all allocatable allocate allocated allocates allocating allocation allocations allocationmode allocationresult allow allowed
allows already also alternative always an and annotation annotations another anti antiaffinity any api apis apiserver apiversion app applied apply applying
approved are aren argument arguments as asked asks asserting assigned assigning assignment at attach attached attempt attempts attribute attributes
authorization authorized available away back backoff bad batch be became because become been before behind being below beta between beyond bind
binding bindingconditions bindings binds block blocked boot both bound broken but by bytes cache calculated calculation calculationcomplete call called can cancel canceled cancelled cannot
capacities capacity cause cdi cel change changed changes channel channels check checked checking checkpoint checkpoints checks claim claimed claims class
classes cleanup client close closed cluster clusters code com combination command commands comparing compile compiled complete completed completely
completion component compute computedomain computedomains concurrent condition conditions config configs configuration configurations conflict conflicting connect connected connection constraint
constraints consumable consume consumed consumer consumers consumescounters consumption contain container containercreating containerd containers contains contents context continue control
controller controllers copy core corrupted cost could couldn count counted counter counters counts couldnt cpu crash crashed crashloopbackoff create
created creates creating creation cri current currently daemon daemonset daemonsets data days deadline deadlineexceeded deallocate deallocated deallocating deallocation debug declared
declares declaring decode decoding default defaulted defaults define defined delay delete deleted deletes deleting deletion denied deny depends deployment
deployments deprecated derived desc description deschedule desired detach detached detect detected determine device deviceclass deviceclasses devices devicetaint
devicetaintmanager devicetaintrule devicetaintrules devicestatus dial dialing did didn different directory disabled disallowed disk disruption distinct do does doesn domain done down dra drain
driver drivers drop dropped dry due duplicate during dynamic dynamicresources e each ecc effect either eligible else empty enabled end ended endpoint ends enforce
enough ensure enum eof ephemeral equal errimagepull error errors etc etcd eval evaluate evaluated evaluation event events evict evicted evicting eviction evictions exact exactcount exactly
exceed exceeded exceeds except exec execution exist existing exists exit exited expect expected expired explicitly exponential expose expression extended external extra facts fail failed
failedpreparedynamicresources failedscheduling failing fails failure failures false feature features fell fetch few field fields file files filter find finish finished first fit fits flag for
forbidden force forced form format found free from full function gang gangs garbage gate gated gates gave generate generated generating generation get gets getting gi given go gone gpu gpus grace granted
group groups grpc guaranteed guarding had handle handler hard has hasn have haven having health healthy held hidden hit hold holds host hour hours http https i id identical identity ids if ignore
ignored ignoring image imagepullbackoff images immediate immutable impossible in inactive inadmissible include included incompatible incomplete incorrect index inference init initialize initialized
initializing injection input inspect instance insufficient int integer intended interface internal interrupted into invalid io is isn issue it item items its itself job jobs json just keep kept key keys
kib kill killed killing kind kinds know known kubeapiserver kubelet kubernetes kueue label labels larger last lasttransitiontime later latest launched least leave left less let level lib library limit
limited limits line link list listed listen listening lists live load loaded local localqueue locally located lock locked long longer longest look lost low lower made make makes manage managed
manager manifest many map mapped mapping mark marked match matchattribute matched matches matching max maximum may maybe meets mem memory message metadata method metrics mi mib mig min minimum minute minutes
missing mode model modified monitor more most mount mounted mounts move moved much multiple must n name named names namespace namespaced namespaces need needed needs network networks never new newer next no
node nodeaffinity nodelost nodename nodenotready nodeprepareresources nodeports nodeports nodeselector nodes nodeunprepareresources noexecute nominated none noschedule nor normal not nothing notready now null number numbers o object objects
obsolete of off offline offset ok old older on once one ones only opaque open opened operation operator optional or oneof order other others ours out outdated over overlapping owned owner owners page parameter parameters
parent parse parsed parsing part partition partitions partitiontypemissing parts passed patch path pending per period permission permissions permitted persistent persistentvolume persistentvolumeclaim persistentvolumeclaims pid plan
please plugin plugins pod podaffinity podgroup podgroups podinitializing podresourceclaim pods podscheduled policies policy pool pools port ports possible post posting prebind predicates preempt preempted preempting preemption preemptor preferred
prefix prepare prepared preparing present pressure prevent prevented previous previously prioritized priority probe probes problem problems process processed processing profile program progress protect
protocol provide provided provider provision provisioned provisioner provisioning publish published pull pulled pulling put qos queue queued queues quota quotareserved quotas raised ran range re reach reachable reached read
readiness reading ready readonly reason receive received recent record recover recreate refer reference referenced references refresh refused register registered registering registration registry reject rejected
relaxed release released releases releasing remain remaining remains remove removed removing replace replaced replicas replicaset report reported reports request requested requests require required
requirement requirements requires reschedule rescheduling reservation reserve reserved reservedfor reserving reset resource resourceclaim resourceclaims resourceclaimtemplate resourceclaimtemplates resourcequota resources resourceslice resourceslices resourceversion respect
respond responded response restart restarted restarting restarts result results retried retry retrying return returned returns role root rpc rule rules run running runs runtime runtimeclass s same sandbox satisfied
satisfies satisfy save scale schedule scheduled scheduler schedulers schedules scheduling schedulinggated scope score search second seconds section see select selected selecting selector selectors send sending sent
server servers service serviceaccount set sets setting several share shared sharing short should shut shutdown shutting since single size sizes skip skipped slice slices slow so sock socket some soon
source space spec specific specified specify spread stage standard start started starting starts startup state stateful statefulset statefulsets status statuses stay step still stop stopped storage storageclass
store stored storing string strict subrequest successful successfully such support supported supports suspended switch sync syncing syntax system t taint tainted taintmanagereviction taints taken takes target task
tcp template templates temporarily terminal terminate terminated terminating termination than that the their them then there these they this those though through throttled time timed timeout timeouts times to together token
tolerate tolerated toleration tolerations tolerate too took topology total track transient transition transport tried tries trigger triggered true try trying twice two type types u uid unable unassigned unauthorized unavailable unbound uncorrectable under unexpected unhealthy
unit unix unknown unless unmarshal unmounted unplug unprepare unprepared unreachable unready unregistered unrecognized unreserve unresolvable unschedulable unset unsuccessful unsuitable unsupported until untolerated unused up update updated updates updating upgrade upon usable usage use used user users
uses using v validate validated validating validation valid value values verified verify version versions via violate violated violates violation volume volumebinding volumes wait waited waiting waits want wanted wants warning was wasn watch we webhook
were what when where whether which while who whose will with within without won work worker working workload workloads works would write written wrong wrote x xid yaml yes yet you your zero zone zones
example helpful var unix k8s productname pcieroot resource.kubernetes.io kubernetes.io config.k8s.io
`
