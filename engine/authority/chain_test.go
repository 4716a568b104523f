package authority_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// link records what one asker in a chain of grants may do at the time of the request.
type link struct {
	approval protocol.ApprovalConfig
	tools    []string // nil: all
	cwd      string
	sandbox  bool
	plans    bool // it is in plan mode, in which only the tool read may be called
}

// held is a session with the permanent limits of everyone who asked for it.
type held struct {
	protocol.Session
	behind []link
}

// actor is a session in a turn, with everyone who asked for the session and for the turn.
type actor struct {
	in     int
	turn   *protocol.Ceiling
	behind []link // of the turn
}

// chain is a model in which sessions request sessions and turns.
type chain struct {
	sessions []*held
	actors   []actor
}

var (
	names = []string{"read", "shell"}
	dirs  = []string{"/w", "/w/a", "/w/a/b", "/x"}
)

func below(path, dir string) bool {
	return path == dir || len(path) > len(dir) && path[:len(dir)+1] == dir+"/"
}

// now returns the actor itself as a link.
func (c *chain) now(a actor, sandbox bool) link {
	s := c.sessions[a.in]
	l := link{s.Config.Approval, s.Authority.Tools, s.Cwd, sandbox, s.Config.Options != nil}
	if s.Authority.NoTools {
		l.tools = []string{}
	}
	return l
}

func (c *chain) limits(a actor, sandbox bool) protocol.Ceiling {
	l := authority.Of(&c.sessions[a.in].Session)
	if m := authority.MeetAll(a.turn, authority.Sandboxed(sandbox)); m != nil {
		l = authority.Meet(l, *m)
	}
	return l
}

func (c *chain) create(t *rapid.T, a actor) {
	sandbox := rapid.Bool().Draw(t, "sandbox")
	asked := protocol.Authority{Tools: rapid.SampledFrom([][]string{nil, {"read"}, names}).Draw(t, "tools")}
	got, err := authority.NarrowTo(c.limits(a, sandbox), asked)
	cwd := rapid.SampledFrom(dirs).Draw(t, "cwd")
	if err != nil || got.Ceiling != nil && slices.ContainsFunc(got.Ceiling.Roots, func(r string) bool { return !authority.Inside(cwd, r) }) {
		return
	}
	s := &held{Session: protocol.Session{Cwd: cwd, Authority: got, Config: config(t)}}
	s.behind = slices.Concat(c.sessions[a.in].behind, a.behind, []link{c.now(a, sandbox)})
	c.add(s)
}

// config is a configuration of a session.
func config(t *rapid.T) protocol.Config {
	c := protocol.Config{Approval: policies().Draw(t, "approval")}
	if rapid.IntRange(0, 3).Draw(t, "plans") == 0 {
		c.Options = protocol.PluginOptions{"plan": []byte(`{"mode":"plan"}`)}
	}
	return c
}

func (c *chain) add(s *held) {
	c.sessions = append(c.sessions, s)
	c.actors = append(c.actors, actor{in: len(c.sessions) - 1})
}

// fork models a fork by a person.
func (c *chain) fork(t *rapid.T, a actor) {
	from := c.sessions[a.in]
	got, err := authority.Narrow(from.Authority, protocol.Authority{})
	if err != nil {
		t.Fatal(err)
	}
	s := &held{Session: from.Session, behind: from.behind}
	s.Authority = got
	c.add(s)
}

func (c *chain) begin(t *rapid.T, a actor) {
	sandbox := rapid.Bool().Draw(t, "sandbox")
	in := rapid.IntRange(0, len(c.sessions)-1).Draw(t, "in")
	l := c.limits(a, sandbox)
	if slices.ContainsFunc(l.Roots, func(r string) bool { return !authority.Inside(c.sessions[in].Cwd, r) }) {
		return
	}
	c.actors = append(c.actors, actor{in, authority.Beyond(l, authority.PermanentLimits(&c.sessions[in].Session)), slices.Concat(c.sessions[a.in].behind, a.behind, []link{c.now(a, sandbox)})})
}

// configure models a change by a person or, with a mutator, by a plugin.
func (c *chain) configure(t *rapid.T, a actor) {
	s := c.sessions[a.in]
	next := s.Config
	next.Approval, next.Options = near(t, s.Config.Approval), config(t).Options
	if rapid.Bool().Draw(t, "mutator") && authority.Mutated("p", next, s.Config) != nil {
		return
	}
	s.Config = next
}

// verdict returns the package's verdict for a call of an actor.
func (c *chain) verdict(a actor, tool, at string) string {
	s := c.sessions[a.in]
	own := protocol.Ceiling{Tools: s.Authority.Tools, NoTools: s.Authority.NoTools}
	ceiling := authority.MeetAll(&own, s.Authority.Ceiling, a.turn, authority.Planning(s.Config, nil))
	said := oracle(s.Config.Approval, tool, tool == "read", at)
	if ceiling == nil {
		return said
	}
	if !authority.Calls(*ceiling, tool) || ceiling.ReadOnly && tool != "read" {
		return "deny"
	}
	all := []protocol.ApprovalMode{protocol.ApprovalMode(said)}
	for _, p := range ceiling.Policies {
		all = append(all, protocol.ApprovalMode(oracle(p.Approval, tool, tool == "read", at)))
	}
	if ceiling.Sandboxed && tool != "read" {
		all = append(all, protocol.ApproveAsk)
	}
	return string(authority.Strictest(all...))
}

// allowed returns the verdict for a link at the time of its request.
func (l link) allowed(tool, at string) string {
	said := oracle(l.approval, tool, tool == "read", at)
	switch {
	case l.tools != nil && !slices.Contains(l.tools, tool), l.plans && tool != "read":
		return "deny"
	case l.sandbox && tool != "read" && said == "allow":
		return "ask"
	}
	return said
}

func (c *chain) check(t *rapid.T) (links int) {
	for _, a := range c.actors {
		behind := slices.Concat(c.sessions[a.in].behind, a.behind)
		links += len(behind)
		for _, l := range behind {
			if cwd := c.sessions[a.in].Cwd; !below(cwd, l.cwd) {
				t.Fatalf("%s is not in %s, of who asked", cwd, l.cwd)
			}
			for _, tool := range names {
				for _, at := range []string{"", "a", "a/b", "c"} {
					if got, want := c.verdict(a, tool, at), l.allowed(tool, at); rank(got) < rank(want) {
						t.Fatalf("%s at %q: %s, but an asker has %s: %+v", tool, at, got, want, l)
					}
				}
			}
		}
	}
	return links
}

// TestChains lets sessions request sessions and turns, inside and outside of sandboxes, while people and plugins configure them. In any
// order, no verdict is laxer than that of any asker behind it at the time of the request.
func TestChains(t *testing.T) {
	links := 0
	t.Run("outside/1 authority never grows along a chain of grants", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := &chain{}
			for range rapid.IntRange(1, 2).Draw(t, "roots") {
				c.add(&held{Session: protocol.Session{Cwd: "/w", Config: config(t)}})
			}
			ops := []func(*rapid.T, actor){c.create, c.create, c.begin, c.begin, c.fork, c.configure}
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				a := c.actors[rapid.IntRange(0, len(c.actors)-1).Draw(t, "actor")]
				ops[rapid.IntRange(0, len(ops)-1).Draw(t, "op")](t, a)
			}
			links += c.check(t)
		})
	})
	if links == 0 {
		t.Error("there was no chain")
	}
}

func TestOrder(t *testing.T) {
	ceilings := rapid.Custom(func(t *rapid.T) protocol.Ceiling {
		var c protocol.Ceiling
		for range rapid.IntRange(0, 2).Draw(t, "policies") {
			c.Policies = append(c.Policies, protocol.Policy{Approval: policies().Draw(t, "approval"), Cwd: rapid.SampledFrom(dirs).Draw(t, "of")})
		}
		c.Roots = rapid.SliceOfNDistinct(rapid.SampledFrom(dirs), 0, 2, rapid.ID).Draw(t, "roots")
		c.Sandboxed, c.ReadOnly = rapid.Bool().Draw(t, "sandboxed"), rapid.Bool().Draw(t, "reads only")
		c.Tools = rapid.SampledFrom([][]string{nil, {"read"}, {"shell"}, names}).Draw(t, "tools")
		c.Hidden = rapid.SampledFrom([][]string{nil, {"read"}}).Draw(t, "hidden")
		return c
	})
	t.Run("outside/1 Meet is within both ceilings, and Beyond returns all missing limits", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, b := ceilings.Draw(t, "a"), ceilings.Draw(t, "b")
			m := authority.Meet(a, b)
			if !authority.Within(m, a) || !authority.Within(m, b) || !authority.Within(a, a) {
				t.Fatalf("%+v is not within %+v and %+v", m, a, b)
			}
			if got := authority.MeetAll(&a, authority.Beyond(b, a)); !authority.Within(authority.Meet(protocol.Ceiling{}, *orNone(got)), b) {
				t.Fatalf("%+v with what is beyond it is %+v, not within %+v", a, got, b)
			}
		})
	})
}

func orNone(c *protocol.Ceiling) *protocol.Ceiling {
	if c == nil {
		return &protocol.Ceiling{}
	}
	return c
}

func TestInside(t *testing.T) {
	for path, want := range map[string]bool{"/w": true, "/w/a": true, "/wa": false, "/": false, "/x/w": false} {
		if got := authority.Inside(path, "/w"); got != want {
			t.Errorf("%s in /w: %t", path, got)
		}
		if !authority.Inside(path, "/") {
			t.Errorf("%s is not in /", path)
		}
	}
}
