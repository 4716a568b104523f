// Package fact keeps the facts that give the transcript of a session its meaning, such as the language of its code cells. A fact is set
// once and never changes, whatever is configured later.
package fact

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"lashd/engine/change"
	"lashd/persistence"
)

// Component is the part of a session's stored state that has the facts. Named snapshots leave it out, so a session that is restored keeps
// its facts.
const Component = "facts"

// CodeLanguage is the language of the session's code cells: the first turn that describes code to a model settles it. It decides how
// history is read, as cells stand there between tags with its name. The id of the executor is no fact: executors of one language are
// interchangeable, and one that cannot read the stored globals says so when it restores them.
const CodeLanguage Name[string] = "codeLanguage"

// Book has the facts of one session as they are stored. The zero value has none. The session's actor owns it.
type Book struct{ values map[string]string }

// Read reads the facts of a session from the store, for a session that need not be loaded. The key is the session's in the store.
func Read(ctx context.Context, store *persistence.Store, key int64) (*Book, error) {
	b := &Book{}
	body, err := store.Component(ctx, key, Component)
	if err != nil || body == nil {
		return b, err
	}
	if err := json.Unmarshal(body, b); err != nil {
		return nil, fmt.Errorf("component %s: %w: %w", Component, persistence.ErrCorrupt, err)
	}
	return b, nil
}

// UnmarshalJSON reads the body of the component.
func (b *Book) UnmarshalJSON(body []byte) error { return json.Unmarshal(body, &b.values) }

// CopyTo gives a session that is being created the facts of b, and those of more that b lacks; either may be nil. A session that continues
// a transcript needs the facts, also if it shares no other state.
func (b *Book) CopyTo(c *change.Change, more *Book) {
	all := map[string]string{}
	for _, from := range []*Book{more, b} {
		if from != nil {
			maps.Copy(all, from.values)
		}
	}
	if len(all) > 0 {
		c.Component = append(c.Component, component(all))
	}
}

// component returns the row of the store for facts.
func component(values map[string]string) persistence.Component {
	body, err := json.Marshal(values)
	if err != nil {
		panic("fact: encode texts: " + err.Error())
	}
	return persistence.Component{Name: Component, Body: body}
}

// Name names a fact whose values are of type T.
type Name[T ~string] string

// Of returns the stored fact and reports whether it was set.
func (n Name[T]) Of(b *Book) (T, bool) {
	value, ok := b.values[string(n)]
	return T(value), ok
}

// Alone returns the facts of b without all others than this one; b may be nil.
func (n Name[T]) Alone(b *Book) *Book {
	if b == nil || b.values[string(n)] == "" {
		return nil
	}
	return &Book{map[string]string{string(n): b.values[string(n)]}}
}

// Settle sets the fact in a change, unless it is set already, and returns the value that counts. A caller that asked for another value
// rejects its request. The fact is set once the change is stored.
func (n Name[T]) Settle(b *Book, c *change.Change, value T) T {
	d := change.DraftOf(c, b, func() *draft { return &draft{of: b, next: maps.Clone(b.values)} })
	if have, ok := d.next[string(n)]; ok {
		return T(have)
	}
	if d.next == nil {
		d.next = map[string]string{}
	}
	d.next[string(n)], d.changed = string(value), true
	return value
}

// draft is the facts of a session after a change.
type draft struct {
	of      *Book
	next    map[string]string
	changed bool
}

// Finish implements change.Draft.
func (d *draft) Finish(c *change.Change) error {
	if d.changed {
		c.Component = append(c.Component, component(d.next))
	}
	return nil
}

// Land implements change.Draft.
func (d *draft) Land() { d.of.values = d.next }
