package persistence

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lashd/rpc/protocol"
)

// model is the expected content of the store: each session has a list of nodes, and pins of others.
type model struct {
	s        *Store
	t        testing.TB
	next     int
	sessions map[protocol.SessionID]*modelSession
	deleted  []protocol.SessionID
}

type modelSession struct {
	path []protocol.NodeID
	pins map[protocol.NodeID][]protocol.NodeID // the path to each
	keys []string                              // of large components
	kept map[string]modelKept                  // by name
}

// modelKept is what a named snapshot holds.
type modelKept struct {
	path []protocol.NodeID
	keys []string
}

// TestModel drives the store and a model of it with the same random changes: forks of forks, rewinds, pins, and deletions in
// any order. After each, every session must read back as the model says, and no node may be kept that none can reach.
func TestModel(t *testing.T) {
	t.Run("runtime/Q05 after random changes the store reads back as its model says, and a failure is reduced to few changes", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			dir, err := os.MkdirTemp("", "model")
			if err != nil {
				r.Fatal(err)
			}
			defer os.RemoveAll(dir)
			s, stop := start(t, Config{Dir: dir, Log: quiet("").Log, Durability: "OFF"})
			defer stop()
			m := &model{s: s, t: t, sessions: map[protocol.SessionID]*modelSession{}}
			r.Repeat(map[string]func(*rapid.T){
				"":       m.check,
				"create": m.create,
				"append": m.grow,
				"fork":   m.fork,
				"rewind": m.rewind,
				"unpin":  m.unpin,
				"delete": m.delete,
				"state":  m.state,
				"save":   m.save,
				"back":   m.restore,
				"drop":   m.drop,
			})
			verified(t, s)
		})
	})
}

func (m *model) id(prefix string) string { m.next++; return fmt.Sprint(prefix, m.next) }

func (m *model) pick(r *rapid.T) (protocol.SessionID, *modelSession) {
	if len(m.sessions) == 0 {
		r.Skip("no session")
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.sessions))).Draw(r, "session")
	return id, m.sessions[id]
}

func (m *model) commit(r *rapid.T, c *Commit) {
	if _, err := m.s.Commit(m.t.Context(), c); err != nil {
		r.Fatal(err)
	}
}

func (m *model) create(r *rapid.T) {
	id := protocol.SessionID(m.id("ses_"))
	c := rootCommit(id)
	m.commit(r, c)
	m.sessions[id] = &modelSession{path: []protocol.NodeID{c.Nodes[0].ID}, pins: map[protocol.NodeID][]protocol.NodeID{}}
}

func (m *model) grow(r *rapid.T) {
	id, s := m.pick(r)
	c := &Commit{Session: id}
	for range rapid.IntRange(1, 4).Draw(r, "nodes") {
		c.Nodes = append(c.Nodes, message(m.id("nod_")))
		s.path = append(slices.Clone(s.path), c.Nodes[len(c.Nodes)-1].ID)
	}
	m.commit(r, c)
}

func (m *model) fork(r *rapid.T) {
	from, s := m.pick(r)
	id := protocol.SessionID(m.id("ses_"))
	reachable := slices.Concat(s.path, slices.Sorted(maps.Keys(s.pins)))
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		reachable = append(reachable, last(s.kept[name].path))
	}
	node := rapid.SampledFrom(reachable).Draw(r, "node")
	m.commit(r, fork(id, from, node))
	path := s.pathTo(node)
	if at := slices.Index(s.path, node); at >= 0 {
		path = s.path[:at+1]
	}
	m.sessions[id] = &modelSession{path: slices.Clone(path), pins: map[protocol.NodeID][]protocol.NodeID{}, keys: slices.Clone(s.keys)}
}

func (m *model) rewind(r *rapid.T) {
	id, s := m.pick(r)
	at := rapid.IntRange(0, len(s.path)-1).Draw(r, "to")
	leaf := s.path[len(s.path)-1]
	c := &Commit{Session: id, Rewind: s.path[at]}
	if rapid.Bool().Draw(r, "pin") {
		c.Pins = []Pin{{Node: leaf}}
		s.pins[leaf] = slices.Clone(s.path)
	}
	m.commit(r, c)
	s.path = slices.Clone(s.path[:at+1])
}

func (m *model) unpin(r *rapid.T) {
	id, s := m.pick(r)
	if len(s.pins) == 0 {
		r.Skip("no pin")
	}
	node := rapid.SampledFrom(slices.Sorted(maps.Keys(s.pins))).Draw(r, "pin")
	m.commit(r, &Commit{Session: id, Unpin: []protocol.NodeID{node}})
	delete(s.pins, node)
}

func (m *model) delete(r *rapid.T) {
	id, _ := m.pick(r)
	m.commit(r, &Commit{Session: id, Delete: true})
	delete(m.sessions, id)
	m.deleted = append(m.deleted, id)
}

func last(path []protocol.NodeID) protocol.NodeID { return path[len(path)-1] }

// pathTo is the path to a node that is pinned or that a snapshot holds.
func (s *modelSession) pathTo(node protocol.NodeID) []protocol.NodeID {
	for _, k := range s.kept {
		if last(k.path) == node {
			return k.path
		}
	}
	return s.pins[node]
}

// save gives the state a name that is free.
func (m *model) save(r *rapid.T) {
	id, s := m.pick(r)
	name := m.id("snapshot")
	m.commit(r, &Commit{Session: id, Save: name, Keep: []string{"c"}})
	if s.kept == nil {
		s.kept = map[string]modelKept{}
	}
	s.kept[name] = modelKept{slices.Clone(s.path), slices.Clone(s.keys)}
}

func (m *model) restore(r *rapid.T) {
	id, s, name := m.pickKept(r)
	m.commit(r, &Commit{Session: id, Restore: name, Keep: []string{"c"}})
	s.path, s.keys = slices.Clone(s.kept[name].path), slices.Clone(s.kept[name].keys)
}

func (m *model) drop(r *rapid.T) {
	id, s, name := m.pickKept(r)
	m.commit(r, &Commit{Session: id, Drop: name})
	delete(s.kept, name)
}

func (m *model) pickKept(r *rapid.T) (protocol.SessionID, *modelSession, string) {
	id, s := m.pick(r)
	if len(s.kept) == 0 {
		r.Skip("no snapshot")
	}
	return id, s, rapid.SampledFrom(slices.Sorted(maps.Keys(s.kept))).Draw(r, "snapshot")
}

// state replaces a component by one of a few large values, so that sessions share blobs.
func (m *model) state(r *rapid.T) {
	id, s := m.pick(r)
	value := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "value")
	m.commit(r, &Commit{Session: id, Component: []Component{{"c", fmt.Appendf(nil, "%1000s", value)}}})
	s.keys = []string{value}
}

func (m *model) check(r *rapid.T) {
	reachable, values := map[protocol.NodeID]bool{}, map[string]bool{}
	for id, s := range m.sessions {
		if got := path(m.t, m.s, id, 3); !slices.Equal(got, s.path) {
			r.Fatalf("session %s has path %v, want %v", id, got, s.path)
		}
		for _, node := range slices.Concat(s.path, slices.Concat(slices.Collect(maps.Values(s.pins))...)) {
			reachable[node] = true
		}
		state, err := m.s.Components(m.t.Context(), session(m.t, m.s, id).Key, "")
		if err != nil || len(state) != len(s.keys) {
			r.Fatalf("session %s has state %v: %v", id, state, err)
		}
		for _, v := range s.keys {
			values[v] = true
		}
		for _, k := range s.kept {
			for _, v := range k.keys {
				values[v] = true
			}
			for _, node := range k.path {
				reachable[node] = true
			}
		}
	}
	for node := range reachable {
		if found, err := m.s.Nodes(m.t.Context(), []protocol.NodeID{node}); err != nil || len(found) != 1 {
			r.Fatalf("node %s is gone: %v", node, err)
		}
	}
	if n := count(m.t, m.s, "SELECT count(*) FROM blobs"); n != len(values) {
		r.Fatalf("%d blobs are kept, want %d", n, len(values))
	}
	for _, id := range m.deleted {
		if _, err := m.s.Session(m.t.Context(), id); !errors.Is(err, ErrDeleted) {
			r.Fatalf("deleted session %s: %v", id, err)
		}
	}
	if len(m.sessions) == 0 {
		if n := count(m.t, m.s, "SELECT (SELECT count(*) FROM nodes) + (SELECT count(*) FROM branches)"); n != 0 {
			r.Fatalf("%d rows of history are left of no session", n)
		}
	}
}
