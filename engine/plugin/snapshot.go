package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// meta is what a plugin says of its state without giving it.
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

// Fingerprint stands for the versions and revisions of all plugins: it changes when any of them does.
// One that does not return in time is left alone, and not asked any more: then it has a revision of its own.
func (r *roster) Fingerprint(ctx context.Context) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var step step
	done := begin(func() (uint64, error) { return fingerprint(r.metas(&step)), nil })
	a, returned := inTime(ctx, limits{shortPatience, grace}, done)
	if !returned {
		r.abandoned.add(step.plugin(), func() { <-done })
		return 0, step.left(ctx)
	}
	return a.out, a.err
}

func (r *roster) metas(step *step) []Meta {
	metas := make([]Meta, len(r.plugins))
	for i, p := range r.plugins {
		if r.abandoned.has(p.id) {
			continue
		}
		step.is(HookRevision, p.id)
		// A plugin that panics here has a revision of its own; capturing its state fails.
		metas[i], _ = contain(func() (Meta, error) { return p.meta(), nil })
	}
	return metas
}

// fingerprint is the beginning of a hash of each plugin's id, version and revision.
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

// Capture is the state of all plugins that have any. A plugin that changes meanwhile makes a fingerprint that is not
// current, so that it is captured again. If one fails there is no snapshot. One that was left alone is not in it.
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

// Restore gives every plugin with state what the snapshot has of it; if it has nothing, the plugin is to be as if new. It
// also gives the ids of entries for which there is no plugin. Restoring the same snapshot again changes nothing.
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

func (p instance) restore(ctx context.Context, s Stateful, entries map[string]Entry) error {
	entry, ok := entries[p.id]
	if !ok {
		entry.Meta = p.meta()
	}
	return s.Restore(ctx, own(entry.Meta), &ArtifactReader{entry.Artifacts})
}
