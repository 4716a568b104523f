package engine_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestClientTool(t *testing.T) {
	const client = "cli_editor"
	// call runs a turn that calls the client's tool once, with the client connected; at is called once it is requested.
	call := func(t *testing.T, deadlineMs int64, at func(t *testing.T, d *daemon, requested protocol.Event, disconnect func())) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(calls("open_file"), scripted.Reply{Text: "done"})})
			id := d.session(t)
			disconnect := d.Clients.Connected(client)
			defer disconnect()
			tools := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "open_file"}, DeadlineMs: deadlineMs}}
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), client, &protocol.SessionOverlayParams{SessionID: id, Tools: tools}))
			o := d.observe(t, id)
			d.begin(t, id, "go")
			requested := o.typed(protocol.EventToolRequested)
			if requested.ClientID != client || requested.ToolCall.Name != "open_file" || requested.Seq == 0 {
				t.Errorf("requested %+v", requested)
			}
			at(t, d, requested, disconnect)
		})
	}
	respond := func(t *testing.T, d *daemon, e protocol.Event, p protocol.ToolRespondParams) (*protocol.ToolRespondResult, error) {
		p.SessionID, p.CallID = e.SessionID, e.ToolCall.CallID
		return d.Tools.Respond(t.Context(), client, &p)
	}
	said := func(s string) *protocol.ToolOutput { return new(protocol.Succeed(s)) }
	result := func(t *testing.T, d *daemon, e protocol.Event, status protocol.OutputStatus, class protocol.FailureClass) {
		t.Helper()
		got := d.wait(t, e.TurnID).ToolCalls[0].Output
		if got.Status != status || class != "" && (got.Failure == nil || got.Failure.Class != class) {
			t.Errorf("result %+v %+v, want %s %s", got, got.Failure, status, class)
		}
	}
	t.Run("runtime/T10 the first answer of the client that provides the tool counts", func(t *testing.T) {
		call(t, 0, func(t *testing.T, d *daemon, e protocol.Event, _ func()) {
			wrong := &protocol.ToolRespondParams{SessionID: e.SessionID, CallID: e.ToolCall.CallID, Output: said("mine")}
			if _, err := d.Tools.Respond(t.Context(), "cli_other", wrong); !errors.Is(err, engine.ErrNoCall) {
				t.Errorf("another client's answer: %v", err)
			}
			if first, err := respond(t, d, e, protocol.ToolRespondParams{Output: said("first")}); err != nil || !first.Accepted {
				t.Errorf("first answer %+v, %v", first, err)
			}
			if second, err := respond(t, d, e, protocol.ToolRespondParams{Output: said("second")}); err == nil && second.Accepted {
				t.Error("a second answer was accepted")
			}
			if got := d.wait(t, e.TurnID).ToolCalls[0].Output.Text; got != "first" {
				t.Errorf("result %q", got)
			}
		})
	})
	t.Run("runtime/T10 a repeated answer gets the first response, even after the call has ended", func(t *testing.T) {
		call(t, 0, func(t *testing.T, d *daemon, e protocol.Event, _ func()) {
			once := protocol.ToolRespondParams{Output: said("first"), Mutation: protocol.Mutation{IdempotencyKey: "once"}}
			must[*protocol.ToolRespondResult](t)(respond(t, d, e, once))
			d.wait(t, e.TurnID)
			if again, err := respond(t, d, e, once); err != nil || !again.Accepted || !again.Duplicate {
				t.Errorf("sent again: %+v, %v", again, err)
			}
			other := protocol.ToolRespondParams{Output: said("other"), Mutation: once.Mutation}
			if _, err := respond(t, d, e, other); !errors.Is(err, persistence.ErrReceiptConflict) {
				t.Errorf("another answer with the same key: %v", err)
			}
		})
	})
	t.Run("runtime/T10 a missed deadline is a failure if the call was not acknowledged, otherwise unknown", func(t *testing.T) {
		for _, ack := range []bool{false, true} {
			call(t, 5000, func(t *testing.T, d *daemon, e protocol.Event, _ func()) {
				began := time.Now()
				status, class := protocol.OutputFailure, protocol.FailTimeout
				if ack {
					status, class = protocol.OutputUnknown, ""
					must[*protocol.ToolRespondResult](t)(respond(t, d, e, protocol.ToolRespondParams{Ack: true}))
				}
				result(t, d, e, status, class)
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("settled after %v", took)
				}
			})
		}
	})
	t.Run("runtime/T10 a client that disconnects before its acknowledgement causes a failure, after it an unknown outcome", func(t *testing.T) {
		for _, ack := range []bool{false, true} {
			call(t, 0, func(t *testing.T, d *daemon, e protocol.Event, disconnect func()) {
				status, class := protocol.OutputFailure, protocol.FailUnavailable
				if ack {
					status, class = protocol.OutputUnknown, ""
					must[*protocol.ToolRespondResult](t)(respond(t, d, e, protocol.ToolRespondParams{Ack: true}))
				}
				began := time.Now()
				disconnect()
				result(t, d, e, status, class)
				if took := time.Since(began); took != 30*time.Second {
					t.Errorf("settled after %v", took)
				}
				if _, err := respond(t, d, e, protocol.ToolRespondParams{Output: said("late")}); !errors.Is(err, engine.ErrNoCall) {
					t.Errorf("a late answer: %v", err)
				}
			})
		}
	})
	t.Run("runtime/T10 a client that reconnects within 30 s can still answer", func(t *testing.T) {
		call(t, 0, func(t *testing.T, d *daemon, e protocol.Event, disconnect func()) {
			disconnect()
			time.Sleep(29 * time.Second)
			defer d.Clients.Connected(client)()
			time.Sleep(29 * time.Second)
			must[*protocol.ToolRespondResult](t)(respond(t, d, e, protocol.ToolRespondParams{Output: said("back")}))
			if got := d.wait(t, e.TurnID).ToolCalls[0].Output.Text; got != "back" {
				t.Errorf("result %q", got)
			}
		})
	})
	t.Run("issue/6-3 an overlay bound to its client is removed with it, also across a restart", func(t *testing.T) {
		for _, restarted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, setup{model: replies(scripted.Reply{Text: "done"})})
				id := d.session(t)
				has := func(d *daemon) bool {
					list := must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))
					return slices.ContainsFunc(list.Data, func(r protocol.ToolRecord) bool { return r.Name == "open_file" && !r.Orphan })
				}
				disconnect := d.Clients.Connected(client)
				tools := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "open_file"}}}
				must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), client, &protocol.SessionOverlayParams{SessionID: id, Tools: tools, WhileConnected: true}))
				time.Sleep(time.Hour)
				if !has(d) {
					t.Error("it was removed although its client is connected")
				}
				disconnect()
				if restarted {
					d = d.restart(t, nil)
					has(d)
				}
				if time.Sleep(29 * time.Second); !has(d) {
					t.Error("it went before the client could come back")
				}
				if time.Sleep(2 * time.Second); has(d) {
					t.Error("it stays without its client")
				}
				must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), client, &protocol.SessionOverlayParams{SessionID: id, Tools: tools}))
				if time.Sleep(time.Hour); !has(d) {
					t.Error("one that is to stay went")
				}
			})
		}
	})
	t.Run("runtime/T10 a cancelled turn does not wait for its client", func(t *testing.T) {
		call(t, 0, func(t *testing.T, d *daemon, e protocol.Event, _ func()) {
			d.interrupt(t, e.TurnID)
			result(t, d, e, protocol.OutputCancelled, "")
		})
	})
}
