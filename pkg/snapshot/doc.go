// Package snapshot knows what a cluster says about Dynamic Resource
// Allocation at about one point in time, as plain data.
//
// There are two ways in: [Collect] asks a live API server, [Load] reads files.
// Both give a [*Snapshot] that nobody changes afterwards, so that every verb
// answers the same for a cluster and for a file of it. Package save writes
// one, package redact makes one that can be shown to strangers. [Snapshot.With] lays
// manifests over one, [Snapshot.WithPreview] what a driver would publish.
//
// The package never decides anything about allocation. Apart from pkg/commands
// it is the only one that talks to the API server, and every other package of
// this module may import it.
package snapshot
