package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// meta returns the id, version and revision of a plugin, without its state.
func (p instance) meta() Meta {
	m := Meta{PluginID: p.id, Version: "1"}
	if v, ok := p.Plugin.(Versioned); ok {
		m.Version = v.Version()
	}
	if s, ok := p.Plugin.(Stateful); ok {
		m.Revision = s.Revision()
	}
	return m
}

// Fingerprint returns a hash over the versions and revisions of all plugins; it changes when any of them changes. The
// engine compares it with the stored one to decide whether to capture. A plugin that does not return in time is
// abandoned, and from then on counts with an empty revision, which changes the fingerprint once.
func (r *roster) Fingerprint(ctx context.Context) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var step step
	done := begin(func() (uint64, error) { return fingerprint(r.metas(&step)), nil })
	a, returned := inTime(ctx, limits{shortTimeout, grace}, done)
	if !returned {
		r.abandoned.add(step.plugin(), func() { <-done })
		return 0, step.left(ctx)
	}
	return a.out, a.err
}

// metas asks all plugins that have no abandoned call.
func (r *roster) metas(step *step) []Meta {
	metas := make([]Meta, len(r.plugins))
	for i, p := range r.plugins {
		if r.abandoned.has(p.id) {
			continue
		}
		step.set(HookRevision, p.id)
		// A plugin that panics here counts with an empty revision; capturing its state fails.
		metas[i], _ = contain(func() (Meta, error) { return p.meta(), nil })
	}
	return metas
}

// fingerprint returns the first eight bytes of a hash over each plugin's id, version and revision.
func fingerprint(metas []Meta) uint64 {
	var text []byte
	for _, m := range metas {
		text = append(append(text, m.PluginID...), 0)
		text = append(append(text, m.Version...), 0)
		text = append(binary.LittleEndian.AppendUint64(text, m.Revision), 0xff)
	}
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// Capture returns the state of all plugins that keep any. If a plugin changes during the capture, the fingerprint is
// already outdated, so the next check captures again. If one plugin fails there is no snapshot. Plugins with an
// abandoned call are left out.
func (r *roster) Capture(ctx context.Context) (Snapshot, error) {
	snap := Snapshot{Entries: map[string]Entry{}}
	metas := make([]Meta, len(r.plugins))
	for i, p := range r.plugins {
		if r.abandoned.has(p.id) {
			continue
		}
		entry, err := invoke(ctx, r, HookSnapshot, p.id, func() (Entry, error) { return p.capture(ctx) })
		if err != nil {
			return Snapshot{}, err
		}
		metas[i] = entry.Meta
		if _, ok := p.Plugin.(Stateful); ok {
			snap.Entries[p.id] = entry
		}
	}
	snap.Fingerprint = fingerprint(metas)
	return snap, nil
}

// capture returns the state of one plugin.
func (p instance) capture(ctx context.Context) (entry Entry, err error) {
	entry.Meta = p.meta() // before the state: a change in between must not look captured
	s, ok := p.Plugin.(Stateful)
	if !ok {
		return entry, nil
	}
	var w ArtifactWriter
	state, err := s.Snapshot(ctx, &w)
	entry.Meta.State, entry.Artifacts = own(state), w.artifacts
	return entry, err
}

// Restore gives every stateful plugin its entry of the snapshot; a plugin without one resets to its initial state. It
// also returns the ids of entries whose plugin does not exist. Restoring the same snapshot twice has the same result.
// On an error some plugins are restored and others are not: close the session.
func (r *roster) Restore(ctx context.Context, snap Snapshot) (unknown []string, err error) {
	rest := maps.Clone(snap.Entries)
	for _, p := range r.plugins {
		stateful, ok := p.Plugin.(Stateful)
		if !ok {
			continue
		}
		_, err := invoke(ctx, r, HookRestore, p.id, func() (struct{}, error) {
			return struct{}{}, p.restore(ctx, stateful, snap.Entries)
		})
		if err != nil {
			return nil, err
		}
		delete(rest, p.id)
	}
	return slices.Sorted(maps.Keys(rest)), nil
}

// restore restores one plugin, without a state if it has no entry.
func (p instance) restore(ctx context.Context, s Stateful, entries map[string]Entry) error {
	entry, ok := entries[p.id]
	if !ok {
		entry.Meta = p.meta()
	}
	return s.Restore(ctx, own(entry.Meta), &ArtifactReader{entry.Artifacts})
}
