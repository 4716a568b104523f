//go:build unix

package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// asks makes a session's plugin send a request during a tool call and returns the answer.
func asks(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, method, params string) string {
	t.Helper()
	args := fmt.Sprintf(`{"host":%q,"params":%s}`, method, params)
	r := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "note", Args: json.RawMessage(args)}))(t)
	return r.Output.Text
}

// below makes a session that works for another one.
func below(t *testing.T, d *builtintest.Daemon, parent protocol.SessionID) protocol.SessionID {
	t.Helper()
	return builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
		Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: parent, Cause: "test"},
	}))(t).SessionID
}

func TestSessionsOfOthers(t *testing.T) {
	const state = `{"generation":-1,"tools":{}}`
	methods := map[string]string{
		"host/snapshotSession": `{"sessionId":%q}`, "host/toolCatalog": `{"sessionId":%q}`, "host/toolState": `{"sessionId":%q}`,
		"host/applyToolState": `{"sessionId":%q,"state":` + state + `}`, "host/setToolMembership": `{"sessionId":%q,"names":["none"],"member":true}`,
		"host/setToolAvailability": `{"sessionId":%q,"names":["none"],"availability":"off"}`, "host/complete": `{"sessionId":%q,"model":"none","messages":[]}`,
	}
	for _, uses := range [][]process.Capability{{process.UsesState, process.UsesCompletions}, {process.UsesState, process.UsesCompletions, process.UsesLifecycle}} {
		c := config(t, "good", everything())
		c.Uses = uses
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
		own, other := d.Session(t, nil), d.Session(t, nil)
		child := below(t, d, own)
		grandchild := below(t, d, child)
		for method, params := range methods {
			for session, id := range map[string]protocol.SessionID{"own": own, "child": child, "grandchild": grandchild, "other": other, "parent": own, "none": "ses_none"} {
				t.Run(fmt.Sprintf("issue/4-8 with %q, %s of the %s session", uses, method, session), func(t *testing.T) {
					from := own
					if session == "parent" {
						from = child
					}
					denied := strings.Contains(asks(t, d, from, method, fmt.Sprintf(params, id)), `"kind":"denied"`)
					foreign := session == "other" || session == "parent" || session == "none"
					if denied != foreign {
						t.Errorf("denied %t, want %t", denied, foreign)
					}
				})
			}
		}
		d.Stop()
	}
}

func TestReach(t *testing.T) {
	c := config(t, "good", everything())
	d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
	own := d.Session(t, nil)
	cwd := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: own}))(t).Session.Cwd
	anybody := func(cwd string) protocol.SessionID {
		return builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: cwd}))(t).SessionID
	}
	made := func(from protocol.SessionID, id string) protocol.SessionID {
		hosted(t, d, from, "createSession", fmt.Sprintf(`{"session":{"sessionId":%q}}`, id))
		if r := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: protocol.SessionID(id)}))(t).Session.Relation; r.Kind != protocol.RelationRoot || r.AskedBy != from {
			t.Errorf("%s is %+v", id, r)
		}
		return protocol.SessionID(id)
	}
	child, root := below(t, d, own), made(own, "ses_made")
	elsewhere := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: own}}))(t).SessionID
	gone := anybody(cwd)
	orphan := made(gone, "ses_orphan")
	builtintest.Must(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: gone}))(t)
	sessions := map[string]protocol.SessionID{
		"its own": own, "one that works for it": child, "one that it made": root, "one that one made that it made": made(root, "ses_again"), "one of the child": made(child, "ses_childs"),
		"one below it elsewhere": elsewhere, "one whose asker is gone": orphan, "one of the workspace": anybody(cwd), "one of another workspace": anybody(t.TempDir()), "none": "ses_none",
	}
	methods := map[string]string{
		"snapshotSession": `{"sessionId":%q}`, "toolCatalog": `{"sessionId":%q}`, "closeSession": `{"sessionId":%q}`, "takeFirstTurnInput": `{"sessionId":%q}`,
		"createSession":      `{"session":{"start":{"kind":"existingSession","sessionId":%q}}}`,
		"createSession over": `{"session":{"relation":{"kind":"child","parent":%q}}}`,
		"startTurn":          `{"turnId":"trn_x","sessionId":%q,"input":[{"type":"nothing"}]}`, "taskList": `{"sessionId":%q}`, "taskCancelAll": `{"sessionId":%q,"keep":[]}`,
		"taskStart": `{"sessionId":%q,"spec":{"kind":"other","recovery":"external"}}`, "transferHandles": `{"taskIds":["tsk_none"],"to":%q}`, "complete": `{"sessionId":%q,"model":"none","messages":[]}`,
	}
	for method, params := range methods {
		for name, id := range sessions {
			t.Run("outside/1 "+method+" of "+name, func(t *testing.T) {
				got := hosted(t, d, own, strings.Fields(method)[0], fmt.Sprintf(params, id))
				denied := strings.Contains(got, `"kind":"denied"`) && strings.Contains(got, "out of reach")
				foreign := slices.Contains([]string{"one of the workspace", "one of another workspace", "one below it elsewhere", "one whose asker is gone", "none"}, name)
				if denied != foreign {
					t.Errorf("denied %t, want %t: %s", denied, foreign, got)
				}
			})
		}
	}
	for _, name := range []string{"one of the workspace", "one of another workspace", "one that it made"} {
		t.Run("outside/1 turns of "+name, func(t *testing.T) {
			turn := builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: sessions[name], Input: []protocol.InputPart{{Type: protocol.InputText, Text: "hi"}}}))(t).TurnID
			for _, method := range []string{"injectTurnInput", "awaitTurn", "cancelTurn"} {
				got := hosted(t, d, own, method, fmt.Sprintf(`{"turnId":%q%s}`, turn, map[string]string{"injectTurnInput": `,"input":[{"type":"text","text":"and this"}]`}[method]))
				if denied := strings.Contains(got, "out of reach"); denied != (name != "one that it made") || !denied && strings.HasPrefix(got, "refused") {
					t.Errorf("%s: %s", method, got)
				}
			}
		})
	}
	t.Run("outside/1 no session is in reach while the workspace is unknown", func(t *testing.T) {
		if err := errors.Join(os.RemoveAll(cwd), os.Symlink(cwd, cwd)); err != nil {
			t.Fatal(err)
		}
		if got := hosted(t, d, own, "snapshotSession", fmt.Sprintf(`{"sessionId":%q}`, root)); !strings.HasPrefix(got, "refused") {
			t.Errorf("it came to %s", got)
		}
	})
}

func TestAskAndInject(t *testing.T) {
	t.Run("issue/4-8 runtime/K05 a plugin asks a person while its clock stands still, and steers a turn of a child session", func(t *testing.T) {
		c := config(t, "good", everything())
		c.Deadlines.Tool = 3 * time.Second
		question := scripted.Call{ID: "c1", Name: "note", Args: json.RawMessage(`{"host":"host/ask","params":{"prompt":"Which?","form":{"type":"string"}}}`)}
		model := scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{{ToolCalls: []scripted.Call{question}}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "done"}}},
		})
		d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, c))
		own, other := d.Session(t, nil), d.Session(t, nil)
		child := below(t, d, own)
		turn := builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: child, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}}))(t).TurnID
		var open []protocol.Decision
		for limit := time.Now().Add(patience); len(open) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("it never asks: %+v", builtintest.Must(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: turn}))(t))
			}
			open = builtintest.Must(d.Decisions.List(t.Context(), &protocol.DecisionListParams{}))(t).Data
		}
		if q := open[0]; q.Kind != protocol.DecisionQuestion || q.Prompt != "Which?" {
			t.Errorf("it asks %+v", q)
		}
		input := fmt.Sprintf(`{"turnId":%q,"input":[{"type":"text","text":"and hurry"}],"idempotencyKey":"k"}`, turn)
		for name, got := range map[string]string{"another session": asks(t, d, other, "host/injectTurnInput", input), "the session itself": asks(t, d, child, "host/injectTurnInput", input)} {
			if !strings.HasPrefix(got, "refused: ") {
				t.Errorf("from %s: %s", name, got)
			}
		}
		if first, again := asks(t, d, own, "host/injectTurnInput", input), asks(t, d, own, "host/injectTurnInput", input); !strings.Contains(first, `"inputId":"inp_`) || first != again {
			t.Errorf("let in: %s, and again: %s", first, again)
		}
		time.Sleep(3200 * time.Millisecond) // longer than a call may take
		builtintest.Must(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: open[0].ID, Choice: protocol.ChooseAnswer, Value: json.RawMessage(`"this"`)}))(t)
		report := builtintest.Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn}))(t)
		if text := report.ToolCalls[0].Output.Text; !strings.Contains(text, `"choice":"answer","value":"this"`) {
			t.Errorf("it got %q", text)
		}
		if said := asks(t, d, own, "host/snapshotSession", fmt.Sprintf(`{"sessionId":%q}`, child)); strings.Count(said, "and hurry") != 1 {
			t.Errorf("the turn below has %s", said)
		}
	})
	t.Run("issue/4-8 outside of a tool call a plugin cannot ask a person", func(t *testing.T) {
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, config(t, "good", everything())))
		if got := asks(t, d, d.Session(t, nil), "host/ask", `{"prompt":"Which?"}`); !strings.HasPrefix(got, "refused: ") {
			t.Errorf("a call that belongs to no turn: %s", got)
		}
	})
}
