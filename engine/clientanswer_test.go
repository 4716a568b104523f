package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// asKilled is a copy of the store as SIGKILL would leave it now. No test may write to it during the copy.
func (d *daemon) asKilled(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(d.store.Dir())); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// opener is a session with a client that provides open_file. Until the daemon is killed, the hook after the call says that it is
// reached, and waits.
type opener struct {
	*daemon
	id      protocol.SessionID
	events  *observer
	hooked  atomic.Int32
	reached chan struct{}
	killed  atomic.Bool
}

const openerClient = protocol.ClientID("cli_editor")

func newOpener(t *testing.T) *opener {
	t.Helper()
	o := &opener{reached: make(chan struct{}, 1)}
	o.daemon = start(t, setup{model: replies(calls("open_file"), scripted.Reply{Text: "done"}), plugins: plugins(hooked{"looks", func(r *plugin.Registrar) {
		r.ToolResults().After(func(ctx context.Context, _ *plugin.ToolResultContext) ([]plugin.Directive, error) {
			o.hooked.Add(1)
			if !o.killed.Load() {
				o.reached <- struct{}{}
				<-ctx.Done()
			}
			return nil, nil
		})
		r.ToolResults().Projector(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
			return protocol.Succeed("seen " + c.Output.Text), nil
		})
	}}), config: func(c *engine.Config) { c.Defaults.Unknown.DeadlineMs = new(int64(1)) }})
	o.id = o.session(t)
	o.connect(t)
	tools := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "open_file"}}}
	must[*protocol.SessionOverlayResult](t)(o.Sessions.SetOverlay(t.Context(), openerClient, &protocol.SessionOverlayParams{SessionID: o.id, Tools: tools}))
	o.events = o.observe(t, o.id)
	return o
}

func (o *opener) connect(t *testing.T) {
	disconnect := o.Clients.Connected(openerClient)
	t.Cleanup(disconnect)
}

// answers answers the next call, which then waits in its hook.
func (o *opener) answers(t *testing.T, key string) *protocol.ToolRespondParams {
	t.Helper()
	p := &protocol.ToolRespondParams{
		SessionID: o.id, CallID: o.events.typed(protocol.EventToolRequested).ToolCall.CallID, Output: new(protocol.Succeed("precious")),
		Mutation: protocol.Mutation{IdempotencyKey: key},
	}
	if r := must[*protocol.ToolRespondResult](t)(o.Tools.Respond(t.Context(), openerClient, p)); !r.Accepted {
		t.Errorf("the answer: %+v", r)
	}
	<-o.reached
	return p
}

// kill goes on with what SIGKILL would leave now, once it is changed; nil: as it is.
func (o *opener) kill(t *testing.T, change func(dir string)) {
	t.Helper()
	s := o.setup
	s.dir = o.asKilled(t)
	if change != nil {
		change(s.dir)
	}
	o.stop()
	o.killed.Store(true)
	o.hooked.Store(0)
	o.daemon = start(t, s)
	o.connect(t)
}

func TestClientAnswers(t *testing.T) {
	for name, key := range map[string]string{"with a key": "once", "without": ""} {
		t.Run("issue/2 an answer that was accepted "+name+" is the output after SIGKILL, for hooks and projector, too", func(t *testing.T) {
			o := newOpener(t)
			turn := o.begin(t, o.id, "go").TurnID
			answer := o.answers(t, key)
			o.kill(t, nil)
			report := o.wait(t, turn)
			if got := report.ToolCalls[0].Output; got.Text != "precious" || o.hooked.Load() != 1 {
				t.Errorf("the call came to %+v, %d hooks were asked", got, o.hooked.Load())
			}
			results := 0
			for _, n := range o.graph(t, o.id).Data {
				if n.Message != nil && n.Message.Parts[0].Kind == protocol.PartToolResult {
					results++
					if got := n.Message.Parts[0].Result.Output.Text; got != "seen precious" {
						t.Errorf("the model saw %q", got)
					}
				}
			}
			again, err := o.Tools.Respond(t.Context(), openerClient, answer)
			if key != "" && (err != nil || !again.Accepted || !again.Duplicate) || key == "" && !errors.Is(err, engine.ErrNoCall) || results != 1 {
				t.Errorf("sent again: %+v, %v; %d results", again, err, results)
			}
		})
	}
	t.Run("issue/2 an accepted answer stays when the turn is cancelled", func(t *testing.T) {
		o := newOpener(t)
		turn := o.begin(t, o.id, "go").TurnID
		o.answers(t, "")
		o.kill(t, func(dir string) {
			amend(t, dir, turn, func(t *persistence.Turn) { t.Cancel = &protocol.CancelEvidence{Reason: "enough"} })
		})
		if report := o.wait(t, turn); report.State != protocol.TurnCancelled || report.ToolCalls[0].Output.Text != "precious" {
			t.Errorf("the turn ended as %s with %+v", report.State, report.ToolCalls)
		}
	})
	t.Run("issue/2 an accepted answer stays for a repeated call without a turn", func(t *testing.T) {
		o := newOpener(t)
		p := &protocol.ToolCallParams{SessionID: o.id, Name: "open_file", Mutation: protocol.Mutation{IdempotencyKey: "call"}}
		later(func() (*protocol.ToolCallResult, error) { return o.Tools.Call(context.WithoutCancel(t.Context()), p) })
		o.answers(t, "once")
		o.kill(t, nil)
		if r := must[*protocol.ToolCallResult](t)(o.Tools.Call(t.Context(), p)); r.Output.Text != "seen precious" || o.hooked.Load() != 1 {
			t.Errorf("the call came to %+v, %d hooks were asked", r.Output, o.hooked.Load())
		}
	})
}
