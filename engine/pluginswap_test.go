package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// replaced is a source of plugins that a test can replace.
type replaced struct {
	base  *plugin.Host
	now   atomic.Pointer[plugin.Host]
	asked func()       // called on each request for the host; may be nil
	late  *plugin.Host // that whoever asks next is given, if any
}

func (r *replaced) Drivers() []protocol.DriverInfo { return r.base.Drivers() }

func (r *replaced) Host(context.Context, string) (*plugin.Host, error) {
	if r.late != nil {
		r.now.Store(r.late)
		r.late = nil
	}
	if r.asked != nil {
		r.asked()
	}
	return r.now.Load(), nil
}

// take replaces the plugins; the returned channel is closed after the last use of the old ones.
func (r *replaced) take(t *testing.T, plugins ...plugin.Factory) <-chan struct{} {
	t.Helper()
	next := must[*plugin.Host](t)(r.base.With(plugins))
	if old := r.now.Swap(next); old != nil {
		return old.Retire()
	}
	return nil
}

func replaceable(t *testing.T, s setup, plugins ...plugin.Factory) (*daemon, *replaced) {
	r := &replaced{}
	s.config = func(c *engine.Config) {
		r.base = c.Plugins.(*plugin.Host)
		r.take(t, plugins...)
		c.Plugins = r
	}
	return start(t, s), r
}

func contributes(id string, tools ...tool.Provider) plugin.Factory {
	return plugin.Static(id, func(r *plugin.Registrar) error {
		for _, p := range tools {
			r.Tools().Add(p)
		}
		return nil
	})
}

func TestPluginReplacement(t *testing.T) {
	t.Run("issue/4-5 a running turn keeps its plugins, and the next turn gets the new ones", runningKeeps)
	t.Run("issue/4-5 new plugins inherit the state of the old ones", stateMoves)
	t.Run("issue/4-5 a session keeps its plugins if the new ones do not open", refusedKeeps)
	t.Run("issue/4-5 a tool that comes back has its earlier decisions", toolsReturn)
}

func runningKeeps(t *testing.T) {
	var said []string
	entered, leave := make(chan struct{}), make(chan struct{})
	version := func(v string, run func()) tool.Provider {
		return toolFunc{name: "version", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			run()
			said = append(said, v)
			return tool.Result{Output: protocol.Succeed(v)}, nil
		}}
	}
	var once atomic.Bool
	waits := func() {
		if !once.Swap(true) {
			close(entered)
			<-leave
		}
	}
	turn := scripted.Turn{Replies: []scripted.Reply{calls("version"), calls("version"), {Text: "done"}}}
	d, r := replaceable(t, setup{model: scripted.New(&scripted.Script{Turns: []scripted.Turn{turn, turn}})}, contributes("v", version("old", waits)))
	id := d.session(t)
	first := d.begin(t, id, "one")
	<-entered
	unused := r.take(t, contributes("v", version("new", func() {})))
	close(leave)
	d.wait(t, first.TurnID)
	select {
	case <-unused:
		t.Error("the old plugins are not used any more before the next turn")
	default:
	}
	d.turn(t, id, "two")
	<-unused
	if !slices.Equal(said, []string{"old", "old", "new", "new"}) {
		t.Errorf("the tools were %q", said)
	}
}

func stateMoves(t *testing.T) {
	var was *kept
	d, r := replaceable(t, with(), &keeper{register: func(k *kept, _ *plugin.Registrar) { was = k }})
	id := d.session(t)
	d.holds(t, id, "before", "")
	was.set("since", "") // without a notification
	next := &keeper{version: "2"}
	<-r.takeFor(t, d, id, next)
	if got := d.held(t, id, "keeper"); got.Text != "since" {
		t.Errorf("then it keeps %q", got.Text)
	}
	d = d.restart(t, nil)
	if got := d.held(t, id, "keeper"); got.Text != "since" {
		t.Errorf("after a restart it keeps %q", got.Text)
	}
}

// takeFor is take followed by a use of the plugins in the session.
func (r *replaced) takeFor(t *testing.T, d *daemon, id protocol.SessionID, plugins ...plugin.Factory) <-chan struct{} {
	t.Helper()
	unused := r.take(t, plugins...)
	d.turn(t, id, "go on")
	return unused
}

func refusedKeeps(t *testing.T) {
	d, r := replaceable(t, with(), &keeper{})
	id := d.session(t)
	d.holds(t, id, "it", "")
	broken := &keeper{refuses: errors.New("not mine")}
	r.takeFor(t, d, id, broken)
	if got := d.held(t, id, "keeper"); got.Text != "it" {
		t.Errorf("it keeps %q", got.Text)
	}
	d.turn(t, id, "again")
	if n := len(seen(broken, func() []string { return broken.restored })); n != 1 {
		t.Errorf("they were tried %d times", n)
	}
	r.takeFor(t, d, id, &keeper{version: "3"})
	if got := d.held(t, id, "keeper"); got.Text != "it" {
		t.Errorf("with plugins that can be opened it keeps %q", got.Text)
	}
}

func toolsReturn(t *testing.T) {
	d, r := replaceable(t, with(), contributes("a", says("a", "")), contributes("b", says("b", "")))
	id := d.session(t)
	o := d.observe(t, id)
	d.turn(t, id, "first")
	orphans := func() (names []string) {
		for name, s := range must[*protocol.ToolStateResult](t)(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id})).State.Tools {
			if s.Orphaned {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	r.takeFor(t, d, id)
	if got := orphans(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("orphans are %q", got)
	}
	must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"b": false}}))
	r.takeFor(t, d, id, contributes("a", says("a", "")), contributes("b", says("b", "")))
	if got := orphans(); len(got) > 0 || !member(t, d, id, "a") || member(t, d, id, "b") {
		t.Errorf("orphans are %q, and a is a member: %t, b: %t", got, member(t, d, id, "a"), member(t, d, id, "b"))
	}
	o.over(d.turn(t, id, "last").TurnID)
	o.gapless(o.first.Seq)
	if n := len(o.of(protocol.EventToolsChanged)); n != 3 {
		t.Errorf("tools/changed was sent %d times", n)
	}
}

// TestHostLookedUpOnce checks the host lookups of a turn that a client starts.
func TestHostLookedUpOnce(t *testing.T) {
	t.Run("issue/2 a turn looks up its host once", func(t *testing.T) {
		d, r := replaceable(t, setup{model: replies(scripted.Reply{Text: "one"}, scripted.Reply{Text: "two"})})
		id := d.session(t)
		d.turn(t, id, "one")
		asked := 0
		r.asked = func() { asked++ }
		begun := d.begin(t, id, "two")
		if asked != 1 {
			t.Errorf("asked for %d times", asked)
		}
		d.wait(t, begun.TurnID)
	})
	t.Run("issue/2 a turn does not use plugins whose trust was revoked after the lookup", func(t *testing.T) {
		var said []string
		version := func(v string) plugin.Factory {
			return contributes("v", toolFunc{name: "version", run: func(context.Context, tool.Invocation) (tool.Result, error) {
				said = append(said, v)
				return tool.Result{Output: protocol.Succeed(v)}, nil
			}})
		}
		turn := scripted.Turn{Replies: []scripted.Reply{calls("version"), {Text: "done"}}}
		d, r := replaceable(t, setup{model: scripted.New(&scripted.Script{Turns: []scripted.Turn{turn, turn}})}, version("old"))
		id := d.session(t)
		d.turn(t, id, "one")
		r.asked = func() { // who asks is still given the old ones
			r.asked = func() {}
			r.now.Load().Revoke()
			r.late = must[*plugin.Host](t)(r.base.With([]plugin.Factory{version("new")}))
		}
		d.turn(t, id, "two")
		if !slices.Equal(said, []string{"old", "new"}) {
			t.Errorf("the tools were %q", said)
		}
	})
}
