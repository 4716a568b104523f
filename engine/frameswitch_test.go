package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// leaver is a protocol that requests other frames and records its calls.
type leaver struct {
	notes
	asks  func(n int) (*protocol.FrameSwitch, error) // before the n-th model call, from 1
	fails int                                        // how many restores after the first one
	n     int
}

func (l *leaver) callbacks(plugin.BuildContext) plugin.ProtocolSession {
	return plugin.ProtocolSession{
		Restore: func(_ context.Context, v *plugin.View) error {
			var texts []string
			for _, m := range v.Messages() {
				texts = append(texts, m.Parts[0].Text)
			}
			l.add("restore " + strings.Join(texts, ","))
			if l.fails > 0 && len(l.all()) > 1 {
				l.fails--
				return errors.New("not now")
			}
			return nil
		},
		BeforeModel: func(context.Context, *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
			l.n++
			return l.asks(l.n)
		},
	}
}

// seen is what a model was asked, the newest prompt of each call.
func seenBy(asked []*provider.Request) (all []string) {
	for _, req := range asked {
		var texts []string
		for _, m := range req.Messages {
			texts = append(texts, m.Parts[0].Text)
		}
		all = append(all, strings.Join(texts, ","))
	}
	return all
}

func leave(key, task string, seeds ...protocol.NodeBody) *protocol.FrameSwitch {
	return &protocol.FrameSwitch{Key: key, Task: task, Nodes: seeds}
}

// follow waits for the last of the turns that follow each other.
func (d *daemon) follow(t *testing.T, id protocol.TurnID) *protocol.TurnReport {
	t.Helper()
	return must[*protocol.TurnReport](t)(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: id, Follow: true}))
}

func (d *daemon) allTurns(t *testing.T, id protocol.SessionID) []protocol.TurnReport {
	t.Helper()
	all := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id})).Data
	slices.Reverse(all)
	return all
}

func TestFrameSwitch(t *testing.T) {
	once := func(to *protocol.FrameSwitch) func(int) (*protocol.FrameSwitch, error) {
		return func(n int) (*protocol.FrameSwitch, error) {
			if n == 1 {
				return to, nil
			}
			return nil, nil
		}
	}
	began := func(t *testing.T, l *leaver, more ...plugin.Factory) (*daemon, protocol.SessionID, *remembering) {
		t.Helper()
		model := &remembering{Provider: modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "ok"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
		})}
		d := start(t, setup{model: model, driver: scheme{callbacks: l.callbacks}, plugins: more})
		return d, d.session(t), model
	}
	t.Run("plugin/PR-06 plugin/PR-02 runtime/T25 a switch before a model call ends the turn, and another turn continues the task", func(t *testing.T) {
		l := &leaver{asks: once(leave("next", "go on", summary("so far")...))}
		persisted := hooked{"persisted", func(r *plugin.Registrar) {
			r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
				if e.Kind == plugin.TurnPersisted {
					l.add("persisted " + string(e.Report.Outcome.Kind))
				}
				return nil
			})
		}}
		d, id, model := began(t, l, persisted)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		last := d.follow(t, turn)
		first := d.wait(t, turn)
		o.over(last.TurnID)
		if first.Outcome.Kind != protocol.OutcomeFrameSwitch || first.FollowedBy != last.TurnID || last.Outcome.Text != "ok" || len(first.Calls) != 0 {
			t.Errorf("first %+v followed by %q, last %+v", first.Outcome, first.FollowedBy, last.Outcome)
		}
		if got := seenBy(model.asked); !slices.Equal(got, []string{"so far,go on"}) {
			t.Errorf("the model saw %q", got)
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "so far", "go on", "ok"}) {
			t.Errorf("history has %q", got)
		}
		opened, over := o.of(protocol.EventFrameOpened), o.of(protocol.EventTurnCompleted)
		if len(opened) != 1 || opened[0].Frame.Reason != "continueAs" || opened[0].FrameID != d.graph(t, id).Head.Frame || over[0].Follower != last.TurnID {
			t.Errorf("told %+v, %+v", opened, over)
		}
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
		if got := l.all()[:3]; !slices.Equal(got, []string{"restore ", "restore so far", "persisted frameSwitch"}) {
			t.Errorf("the protocol and others got %q", got)
		}
		o.gapless(0)
	})
	t.Run("plugin/PR-06 an error before a model call ends the turn without it", func(t *testing.T) {
		for name, asks := range map[string]func(int) (*protocol.FrameSwitch, error){
			"error":                func(int) (*protocol.FrameSwitch, error) { return nil, errors.New("no") },
			"panic":                func(int) (*protocol.FrameSwitch, error) { panic("clumsy") },
			"seeds that cannot be": func(int) (*protocol.FrameSwitch, error) { return leave("k", "t", protocol.NodeBody{}), nil },
		} {
			d, id, model := began(t, &leaver{asks: asks})
			report := d.turn(t, id, "go")
			if report.State != protocol.TurnFailed || report.Issues[0].Code != "before_llm_call_failed" || len(model.asked) != 0 {
				t.Errorf("%s: %s %+v, %d calls", name, report.State, report.Issues, len(model.asked))
			}
		}
	})
	t.Run("plugin/PR-06 a blank key or task, or the present frame's key, is no switch", func(t *testing.T) {
		for _, to := range []*protocol.FrameSwitch{leave(" ", "task"), leave("key", "\n"), leave("initial", "task")} {
			d, id, _ := began(t, &leaver{asks: once(to)})
			if report := d.turn(t, id, "go"); report.Outcome.Text != "ok" || report.FollowedBy != "" {
				t.Errorf("%+v: outcome %+v", to, report.Outcome)
			}
			away := toolFunc{name: "away", run: func(context.Context, tool.Invocation) (tool.Result, error) {
				return tool.Result{Output: protocol.Succeed("x"), Control: &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: to}}, nil
			}}
			d = start(t, setup{model: replies(calls("away"), scripted.Reply{Text: "ok"}), tools: []tool.Provider{away}})
			if report := d.turn(t, d.session(t), "go"); report.Outcome.Text != "ok" {
				t.Errorf("%+v of a tool: outcome %+v", to, report.Outcome)
			}
		}
	})
	t.Run("plugin/PR-06 runtime/T25 tools and cells can switch frames, keeping turn options and dropping executor state", func(t *testing.T) {
		w := &words{}
		s := coded(w)
		seen := &notes{}
		s.plugins = plugins(hooked{"watch", func(r *plugin.Registrar) {
			r.Turn().Before(func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
				seen.add(tc.Input[0].Parts[0].Text + " " + payload(tc.View.TurnOptions))
				return nil, nil
			})
		}})
		d := start(t, s)
		id := d.session(t)
		d.ran(t, id, "a")
		turn := must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
			SessionID: id, Input: text("run switch"), TurnOptions: new(turnOptions(`7`)),
		})).TurnID
		d.follow(t, turn)
		if got := seen.all(); !slices.Equal(got, []string{"run a none", "run switch 7", "go on 7"}) {
			t.Errorf("turns began with %q", got)
		}
		for _, word := range []string{"b", "c"} {
			if got := d.ran(t, id, word); strings.Contains(got, "a") || !strings.HasPrefix(got, "printed b") {
				t.Errorf("in the new frame the model sees %q", got)
			}
			d = d.restart(t, nil)
		}
	})
	t.Run("runtime/T25 the continuing turn runs before queued ones and gets inputs that were steered too late", func(t *testing.T) {
		hold, reached := make(chan struct{}), make(chan struct{})
		l := &leaver{asks: func(n int) (*protocol.FrameSwitch, error) {
			if n > 1 {
				return nil, nil
			}
			close(reached)
			<-hold
			return leave("next", "go on"), nil
		}}
		d, id, model := began(t, l)
		turn := d.begin(t, id, "go").TurnID
		<-reached
		queued := d.begin(t, id, "waiting").TurnID
		must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn, Input: text("late")}))
		close(hold)
		d.follow(t, turn)
		d.wait(t, queued)
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "go on", "ok", "late", "ok", "waiting", "ok"}) {
			t.Errorf("history has %q, the model saw %q", got, seenBy(model.asked))
		}
	})
	t.Run("runtime/T25 the number of switches in a row is limited", func(t *testing.T) {
		l := &leaver{asks: func(n int) (*protocol.FrameSwitch, error) { return leave("frame "+string(rune('A'+n)), "go on"), nil }}
		d, id, _ := began(t, l)
		last := d.follow(t, d.begin(t, id, "go").TurnID)
		if n := len(d.allTurns(t, id)); n != 33 || last.Outcome.Kind != protocol.OutcomeMaxTurns || last.Issues[0].Code != "frame_switch_limit" {
			t.Errorf("%d turns, the last one ended as %+v %+v", n, last.Outcome, last.Issues)
		}
	})
	t.Run("plugin/PR-02 a failed restore after a switch reloads the session, and the turn continues", func(t *testing.T) {
		l := &leaver{asks: once(leave("next", "go on")), fails: 1}
		d, id, _ := began(t, l)
		o := d.observe(t, id)
		last := d.follow(t, d.begin(t, id, "go").TurnID)
		o.over(last.TurnID)
		if last.State != protocol.TurnCompleted || len(d.allTurns(t, id)) != 2 {
			t.Errorf("the turn ended as %s %+v", last.State, last.Issues)
		}
		if e := o.of(protocol.EventPluginStatus); len(e) != 1 || e[0].Name != "protocol_restore_failed" {
			t.Errorf("told %+v", e)
		}
	})
}

// Points at which a turn that switches frames is killed.
const (
	switching = "switch: while a tool asks for it"
	entering  = "switch: before the protocol knows of the frame"
	goingOn   = "switch: before the model call of the turn that goes on"
)

// queuedBehind is closed when the victim has queued a turn behind the one that switches frames.
var queuedBehind = make(chan struct{})

// switchSetup is crashSetup for a turn that goes on in another frame.
func switchSetup(dir, point string, reached func(string)) setup {
	at := func(p string) {
		if reached != nil && p == point {
			reached(p)
		}
	}
	away := toolFunc{name: "away", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		if reached != nil {
			<-queuedBehind
		}
		at(switching)
		return tool.Result{Output: protocol.Succeed("x"), Control: switchTo("next", "go on")}, nil
	}}
	model := modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		if req.Messages[len(req.Messages)-1].Parts[0].Text == "go" {
			_ = yield(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c1", Name: "away", Args: []byte(`{}`)}}}, nil) && yield(provider.Chunk{Stop: protocol.StopToolUse}, nil)
			return
		}
		at(goingOn)
		_ = yield(provider.Chunk{Text: "done"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	})
	restores := 0
	driver := scheme{callbacks: func(plugin.BuildContext) plugin.ProtocolSession {
		return plugin.ProtocolSession{Restore: func(context.Context, *plugin.View) error {
			if restores++; restores > 1 {
				at(entering)
			}
			return nil
		}}
	}}
	return setup{model: model, tools: []tool.Provider{away}, driver: driver}
}

func TestKilledInSwitch(t *testing.T) {
	for _, point := range []string{switching, entering, goingOn} {
		t.Run("runtime/T25 reliability/P5 killed "+point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kill(t, dir, point)
			s := switchSetup(dir, point, nil)
			s.dir = filepath.Join(dir, "store")
			d := start(t, s)
			first := d.allTurns(t, victimSession)[0]
			last := d.follow(t, first.TurnID)
			all := d.allTurns(t, victimSession)
			if len(all) != 3 || all[0].FollowedBy != last.TurnID || last.Outcome.Text != "done" {
				t.Errorf("%d turns, the last one ended as %+v %+v", len(all), last.Outcome, last.Issues)
			}
			d.wait(t, all[1].TurnID)
			if got := said(d.graph(t, victimSession).Data); !slices.Equal(got, []string{"go", "", "", "go on", "done", "waiting", "done"}) {
				t.Errorf("history has %q", got)
			}
			if next := d.turn(t, victimSession, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s", next.State)
			}
		})
	}
}
