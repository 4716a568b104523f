package plugin_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// stuck is a plugin that records its steps and blocks at one of them until the test releases it.
type stuck struct {
	at   string
	hold chan struct{}
	done []string
}

func (s *stuck) do(step string) {
	if s.at == step {
		<-s.hold
	}
	s.done = append(s.done, step)
}

func (s *stuck) ID() string                                       { return "p" }
func (s *stuck) Build(plugin.BuildContext) (plugin.Plugin, error) { s.do("build"); return s, nil }
func (s *stuck) Ready(protocol.SessionID, *plugin.Host) error     { s.do("ready"); return nil }
func (s *stuck) Close() error                                     { s.do("close"); return nil }
func (s *stuck) Tools() []tool.Tool                               { s.do("tools"); return nil }
func (*stuck) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

func (s *stuck) Register(r *plugin.Registrar) error {
	s.do("register")
	r.Tools().Add(s)
	r.Session().Closed(func() error { s.do("closed"); return nil })
	return nil
}

// TestHangingOpen abandons a session that is being opened. In one case the caller is gone before that, and another session opens with the same id.
func TestHangingOpen(t *testing.T) {
	for _, c := range []struct {
		at   string
		hook plugin.Hook
		then []string // remaining steps if the caller has waited 30 minutes
		gone []string // remaining steps if the caller left earlier
	}{
		{"build", plugin.HookBuild, []string{"build", "register", "tools", "closed", "close"}, []string{"build", "register", "closed", "close"}},
		{"register", plugin.HookRegister, []string{"register", "tools", "closed", "close"}, []string{"register", "closed", "close"}},
		{"tools", plugin.HookTools, []string{"tools", "closed", "close"}, []string{"tools", "closed", "close"}},
		{"ready", plugin.HookReady, []string{"ready", "closed", "close"}, []string{"ready", "closed", "close"}},
	} {
		for _, patient := range []bool{true, false} {
			t.Run("plugin/HC-04 a plugin that hangs is abandoned with its session, the id is free, and it is closed later: "+c.at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &stuck{at: c.at, hold: make(chan struct{})}
					h := newHost(t, p)
					ctx, why, then := t.Context(), plugin.ErrLate, c.then
					if !patient {
						limited, cancel := context.WithTimeoutCause(ctx, time.Second, errBoom)
						defer cancel()
						ctx, why, then = limited, errBoom, c.gone
					}
					_, err := h.Open(ctx, "d", nil, plugin.BuildContext{SessionID: "s"})
					if left, _ := errors.AsType[*plugin.AbandonedError](err); left == nil || left.Plugin != "p" || left.Hook != c.hook || !errors.Is(err, why) {
						t.Errorf("left alone: %v, want %s of p because of %v", err, c.hook, why)
					}
					synctest.Wait()
					var next *plugin.Session
					if p.at = ""; !patient {
						if next, err = h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"}); err != nil {
							t.Fatal(err)
						}
						defer next.Close()
					}
					p.done = nil
					close(p.hold)
					synctest.Wait()
					if found, err := h.Session("s"); found != next || !slices.Equal(p.done, then) {
						t.Errorf("the session is %v, want %v: %v; the plugin has done %q, want %q", found, next, err, p.done, then)
					}
				})
			})
		}
	}
}

func TestHangingClose(t *testing.T) {
	for _, at := range []string{"closed", "close"} {
		t.Run("plugin/HC-04 closing a session takes at most ten seconds and names the abandoned plugin: "+at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &stuck{at: at, hold: make(chan struct{})}
				var after []string
				ends := with("q", func(r *plugin.Registrar) {
					r.Session().Closed(func() error { after = append(after, "q"); return nil })
				})
				h := newHost(t, ends, p)
				s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = s.Close()
				if left, _ := errors.AsType[*plugin.AbandonedError](err); left == nil || left.Plugin != "p" || left.Hook != plugin.HookClose || !errors.Is(err, plugin.ErrLate) {
					t.Errorf("left alone: %v", err)
				}
				if took := time.Since(began); took != 10*time.Second+50*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if _, err := h.Session("s"); err == nil {
					t.Error("the session is open")
				}
				close(p.hold)
				synctest.Wait()
				if !slices.Equal(after, []string{"q"}) || p.done[len(p.done)-1] != "close" {
					t.Errorf("after that %q, and p has done %q", after, p.done)
				}
			})
		})
	}
}

// counting counts how often it is closed.
type counting struct {
	deaf
	closings int
}

func (c *counting) Build(plugin.BuildContext) (plugin.Plugin, error) { return c, nil }
func (c *counting) Close() error                                     { c.closings++; return nil }

func (c *counting) Register(r *plugin.Registrar) error {
	r.Protocol().Prose(func(_ context.Context, text string) (string, error) { return "shown " + text, nil })
	return c.deaf.Register(r)
}

func TestLeftAloneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		s, err := newHost(t, c).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		hang := func() (let func()) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
			defer cancel()
			c.hold = make(chan struct{})
			_, err := s.BeforeTurn(ctx, &plugin.TurnContext{})
			leave(t, "the hook", err, errBoom)
			return func() { close(c.hold); synctest.Wait() }
		}
		for text, want := range map[string]string{"x": "shown x", "": ""} {
			if got, err := s.Prose(t.Context(), text); err != nil || got != want {
				t.Errorf("prose %q is shown as %q, %v", text, got, err)
			}
		}
		let := hang()
		if got, err := s.Prose(t.Context(), "x"); err != nil || got != "x" {
			t.Errorf("a plugin that was left alone is asked for prose: %q, %v", got, err)
		}
		_ = s.Close()
		let()
		hang()()
		if c.closings != 1 {
			t.Errorf("the plugin was closed %d times", c.closings)
		}
	})
}

// TestLeftRevision abandons a plugin whose Revision does not return.
func TestLeftRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &revising{}
		s, err := newHost(t, r, mem("m")).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		r.hold = make(chan struct{})
		_, err = s.Fingerprint(t.Context())
		leave(t, "its revision", err, plugin.ErrLate)
		snap, err := s.Capture(t.Context())
		if _, there := snap.Entries["p"]; there || len(snap.Entries) != 1 || err != nil || snap.Fingerprint != printOf(t, s) {
			t.Errorf("captured %+v, %v", snap, err)
		}
		_ = s.Close()
		if r.closed {
			t.Error("it is closed while it is asked")
		}
		close(r.hold)
		synctest.Wait()
		if !r.closed {
			t.Error("it is not closed afterwards")
		}
	})
}

// TestLeftStored abandons a code executor whose Stored does not return.
func TestLeftStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{}
		s := d.opened(t)
		x, err := s.CaptureExecution(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d.hold = make(chan struct{})
		x.Stored()
		_, err = s.Execute(t.Context(), &plugin.CodeCall{}, nil)
		leave(t, "a cell", err, plugin.ErrLate)
		_ = s.Close()
		if d.closed {
			t.Error("it is closed during the call")
		}
		close(d.hold)
		synctest.Wait()
		if !d.closed {
			t.Error("it is not closed afterwards")
		}
	})
}

// slow is a driver whose Visible hangs or panics.
type slow struct {
	silent
	hold   chan struct{}
	closed *bool
}

func (slow) ID() string                                         { return "d" }
func (d slow) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }
func (d slow) Register(r *plugin.Registrar) error               { r.Protocol().Driver(d); return nil }
func (d slow) Close() error                                     { *d.closed = true; return nil }

func (d slow) Visible(prose string) string {
	if prose == "panic" {
		panic("clumsy")
	}
	if prose == "hang" {
		<-d.hold
	}
	return "visible " + prose
}

func TestDriverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, closed := make(chan struct{}), false
		h, err := plugin.NewHost([]plugin.Factory{slow{hold: hold, closed: &closed}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		visible := func(prose string) (text string, failed error) {
			defer func() {
				if p := recover(); p != nil {
					failed = p.(error)
				}
			}()
			return s.Driver().Visible(prose), nil
		}
		if got, err := visible("x"); got != "visible x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := visible("panic"); err == nil || err.Error() != "panicked: clumsy" {
			t.Errorf("it panics: %v", err)
		}
		for _, c := range []struct {
			prose string
			took  time.Duration
		}{{"hang", 10 * time.Second}, {"x", 0}} {
			began := time.Now()
			_, err := visible(c.prose)
			left, _ := errors.AsType[*plugin.AbandonedError](err)
			if left == nil || left.Plugin != "d" || left.Hook != plugin.HookDriver || !errors.Is(err, plugin.ErrLate) || time.Since(began) != c.took {
				t.Errorf("%s, after %v: %v", c.prose, time.Since(began), err)
			}
		}
		if got := s.Abandoned(); !slices.Equal(got, []string{"d"}) {
			t.Errorf("left alone are %q", got)
		}
		if _ = s.Close(); closed {
			t.Error("it is closed while it is asked")
		}
		close(hold)
		if synctest.Wait(); !closed {
			t.Error("it is not closed afterwards")
		}
	})
}

func TestContributorsThatAreLate(t *testing.T) {
	removes := func(hook plugin.CatalogHook) *plugin.Session {
		return open(t, with("p", func(r *plugin.Registrar) { r.Catalog().Contribute(hook) }))
	}
	t.Run("the result of a contributor that returns as the catalog times out counts", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		got, err := removes(func(context.Context, *plugin.CatalogContext) ([]string, error) {
			cancel(errBoom)
			return []string{"x"}, nil
		}).Contribute(ctx, plugin.CatalogContext{})
		if err != nil || !slices.Equal(got, []string{"x"}) {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a contributor that does not return is abandoned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan struct{})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
			defer cancel()
			s := open(t, with("p", func(r *plugin.Registrar) {
				r.Catalog().Contribute(func(context.Context, *plugin.CatalogContext) ([]string, error) { <-hold; return nil, nil })
			}))
			_, err := s.Contribute(ctx, plugin.CatalogContext{})
			if _, wrapped := errors.AsType[*plugin.HookError](err); wrapped {
				t.Errorf("it failed by itself: %v", err)
			}
			leave(t, "the contributor", err, errBoom)
			close(hold)
		})
	})
}

func TestLateVerdict(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := open(t, with("p", func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
			cancel(errBoom)
			return []plugin.Directive{allow}, nil
		})
	}))
	if v, err := s.BeforeToolCall(ctx, &plugin.ToolCallContext{Args: raw(`1`)}); err != nil || verdict(v) != "p gives allowed" {
		t.Errorf("what a hook says while its turn ends: %+v, %v", v, err)
	}
}

func TestLateProjection(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := open(t, with("p", func(r *plugin.Registrar) {
		r.ToolResults().Projector(func(context.Context, *plugin.ToolResultContext) (protocol.ToolOutput, error) {
			cancel(errBoom)
			return protocol.Succeed("secret"), errBoom
		})
	}))
	got := s.ProjectResult(ctx, &plugin.ToolResultContext{Output: protocol.Succeed("secret")})
	if got.Status != protocol.OutputCancelled || got.Text != "the call was cancelled before its result was ready" {
		t.Errorf("%+v", got)
	}
}

// TestSlowListener delays the first of two listeners.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := listens("a", func(context.Context, *plugin.LifecycleEvent) error { time.Sleep(time.Second); return errBoom })
		quick := listens("b", func(context.Context, *plugin.LifecycleEvent) error { return nil })
		if got := open(t, slow, quick).Emit(t.Context(), &plugin.LifecycleEvent{Kind: plugin.TurnPersisted}); len(got) != 1 || got[0].Plugin != "a" {
			t.Errorf("failures %+v", got)
		}
	})
}
