package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TestRespond answers questions: wrongly, once, and again. The end of another turn of the session in between changes nothing.
func TestRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		d := start(t, setup{model: replies(calls("run", "work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran"), work}, config: asking})
		id := d.session(t)
		turn, queued := d.begin(t, id, "go").TurnID, d.begin(t, id, "then").TurnID
		synctest.Wait()
		d.interrupt(t, queued)
		d.wait(t, queued)
		open := d.asking(t)
		if len(open) != 2 {
			t.Fatalf("outside/29 open are %+v", open)
		}
		if strings.Contains(open[0].Prompt, "can run code later") {
			t.Errorf("outside/29 asked is %q", open[0].Prompt)
		}
		respond := func(id protocol.DecisionID, choice protocol.DecisionChoice, hash protocol.Digest) (*protocol.DecisionRespondResult, error) {
			return d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: id, Choice: choice, ArgsHash: hash})
		}
		for _, c := range []struct {
			choice  protocol.DecisionChoice
			hash    protocol.Digest
			pointer string
		}{{protocol.ChooseHappened, open[0].ArgsHash, "/choice"}, {protocol.ChooseAllowOnce, "", "/argsHash"}, {protocol.ChooseAllowAlways, "other", "/argsHash"}} {
			_, err := respond(open[0].ID, c.choice, c.hash)
			if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != c.pointer {
				t.Errorf("outside/29 answered %s for %q: %v", c.choice, c.hash, err)
			}
		}
		if _, err := respond("dec_none", protocol.ChooseReject, ""); !errors.Is(err, persistence.ErrNotFound) || !strings.Contains(err.Error(), "dec_none") {
			t.Errorf("outside/29 an answer to no question: %v", err)
		}
		for _, q := range open {
			p := &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: q.ArgsHash}
			p.IdempotencyKey = string(q.ID)
			first := must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
			if same := must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p)); !same.Won || same.Seq != first.Seq {
				t.Errorf("outside/29 the answer is %+v, and the repeated one %+v", first, same)
			}
			again := must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_b", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject}))
			a := again.Answer
			if !first.Won || first.Seq == 0 || again.Won || again.Seq == 0 || a.Choice != protocol.ChooseAllowOnce || a.By != "cli_a" {
				t.Errorf("outside/29 the first answer is %+v, the second %+v", first, again)
			}
		}
		synctest.Wait()
		waits := d.asking(t)
		if len(waits) != 1 || waits[0].Kind != protocol.DecisionCompletion {
			t.Fatalf("outside/29 open are %+v", waits)
		}
		_, err := respond(waits[0].ID, protocol.ChooseAnswer, waits[0].ArgsHash)
		if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != "/decisionId" {
			t.Errorf("outside/29 a completion is answered as a question: %v", err)
		}
		d.complete(t, work.key(), "worked")
		var came []string
		for _, c := range d.wait(t, turn).ToolCalls {
			came = append(came, c.Output.Text)
		}
		if !slices.Equal(came, []string{"ran", "worked"}) {
			t.Errorf("outside/29 the calls came to %q", came)
		}
	})
}

// TestOutcomes restarts the daemon while a call runs that is not made again by itself, and answers what became of it. A call that is made again,
// and interrupted again, is asked about again.
func TestOutcomes(t *testing.T) {
	for choice, want := range map[protocol.DecisionChoice]string{
		protocol.ChooseHappened: "success took effect", protocol.ChooseNotHappened: "failure no effect", protocol.ChooseTellModel: "unknown It is unknown",
		protocol.ChooseRunAgain: "unknown It is unknown", "": "unknown It is unknown",
	} {
		t.Run("outside/29 the answer is "+string(choice), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran notes
				hangs := toolFunc{name: "hangs", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
					ran.add("x")
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}}
				soon := func(c *engine.Config) { c.Defaults.Unknown.DeadlineMs = new(int64(1000)) }
				d := start(t, setup{model: replies(calls("hangs"), scripted.Reply{Text: "done"}), tools: []tool.Provider{hangs}, config: soon})
				id := d.session(t)
				turn := d.begin(t, id, "go").TurnID
				synctest.Wait()
				again := func() protocol.Decision {
					d = d.restart(t, nil)
					must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
					synctest.Wait()
					return d.asking(t)[0]
				}
				q := again()
				if next := again(); next.ID != q.ID {
					t.Errorf("it is asked about as %s and as %s", q.ID, next.ID)
				}
				if choice == protocol.ChooseRunAgain {
					ok(t, d.replies(t, q.ID, choice, ""))
					synctest.Wait()
					if next := again(); next.ID == q.ID || len(ran.list) != 2 {
						t.Errorf("it is asked about as %s and as %s, and ran %d times", q.ID, next.ID, len(ran.list))
					}
				} else if choice != "" {
					ok(t, d.replies(t, q.ID, choice, ""))
				} // otherwise its deadline passes
				began := time.Now()
				got := d.wait(t, turn).ToolCalls[0].Output
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
				status, says, _ := strings.Cut(want, " ")
				text := got.Text
				if got.Failure != nil {
					text = got.Failure.Message
				}
				if string(got.Status) != status || !strings.Contains(text, says) {
					t.Errorf("the call came to %+v", got)
				}
			})
		})
	}
}

// TestAnswersToPlugins has a plugin want calls to be asked about that the session allows. What a person answered holds for that, too.
func TestAnswersToPlugins(t *testing.T) {
	wants := hooked{"wants", func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
			return []plugin.Directive{{Kind: plugin.RequireApproval, Approval: &plugin.Approval{Reason: "because"}}}, nil
		})
	}}
	for choice, want := range map[protocol.DecisionChoice][3]bool{ // asked about again: in the session, in another one there, elsewhere
		protocol.ChooseAllowOnce: {true, true, true}, protocol.ChooseAllowSession: {false, true, true}, protocol.ChooseAllowAlways: {false, false, true},
	} {
		t.Run("outside/29 the answer is "+string(choice), func(t *testing.T) {
			d := start(t, setup{model: obeying("run"), tools: []tool.Provider{says("run", "ran")}, plugins: plugins(wants)})
			id := d.session(t)
			home := d.state(t, id).Cwd
			d.runAllowed(t, id, choice)
			there := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: home})).SessionID
			for i, in := range []protocol.SessionID{id, there, d.session(t)} {
				var asked []string
				if want[i] {
					asked = []string{"run"}
				}
				d.asksAbout(t, [...]string{"the session", "another one in its workspace", "one elsewhere"}[i], in, d.begin(t, in, "run").TurnID, asked...)
			}
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: denying}))
			if got, _ := d.direct(t, id, ""); got != "denied" {
				t.Errorf("where it is denied, the call came to %q", got)
			}
		})
	}
}

// TestAnswersInTwoWorkspaces has a session ask for another one below its workspace. A call that both ask about is always allowed once a person
// has said so in both workspaces.
func TestAnswersInTwoWorkspaces(t *testing.T) {
	d, id, host := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
	below := &protocol.SessionNewParams{Cwd: filepath.Join(d.state(t, id).Cwd, "below"), Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAsk}}
	ok(t, os.Mkdir(below.Cwd, 0o700))
	of := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), below)).SessionID
	made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), below)).SessionID
	d.runAllowed(t, of, protocol.ChooseAllowAlways)
	d.asksAbout(t, "outside/29 after one answer", made, d.begin(t, made, "run").TurnID, "run")
	d.runAllowed(t, id, protocol.ChooseAllowAlways)
	d.asksAbout(t, "outside/29 after both", made, d.begin(t, made, "run").TurnID)
}

// TestTaskEventPayload has a task told as much as it may be, and more.
func TestTaskEventPayload(t *testing.T) {
	withTasks(t, setup{}, nil, func(t *testing.T, _ *daemon, _ protocol.SessionID, host plugin.Capabilities) {
		spec := work(protocol.TaskObserver, protocol.RecoverExternal)
		spec.Events = []protocol.TaskEventType{{Name: "seen"}}
		begun(t, host, &plugin.TaskStart{TaskID: "tsk_x", Spec: spec})
		_, err := host.Tasks.TellTask(t.Context(), &plugin.TaskTold{TaskParams: ofTask("tsk_x"), Name: "heard"})
		if e, wrong := errors.AsType[*param.Error](err); !wrong || e.Pointer != "/name" {
			t.Errorf("outside/29 an event that it does not declare: %v", err)
		}
		for bytes, want := range map[int]bool{256 << 10: true, 256<<10 + 1: false} {
			payload := `"` + strings.Repeat("x", bytes-2) + `"`
			_, err := host.Tasks.TellTask(t.Context(), &plugin.TaskTold{TaskParams: ofTask("tsk_x"), Name: "seen", Payload: json.RawMessage(payload)})
			if e, wrong := errors.AsType[*param.Error](err); wrong == want || wrong && e.Pointer != "/payload" || !wrong && err != nil {
				t.Errorf("outside/29 %d bytes: %v", bytes, err)
			}
		}
	})
}

// TestClientsTaskThatMoves has a client start a task in a session that denies calls, and give it to one that allows them. It wakes that one for
// all that the session itself may do.
func TestClientsTaskThatMoves(t *testing.T) {
	d, id, _ := asks(t, denying)
	free := d.session(t)
	d.task(t, id, "tsk_1", protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{Text: "run"}})
	must[*protocol.TasksResult](t)(d.Tasks.Transfer(t.Context(), &protocol.TaskTransferParams{SessionID: id, To: free, TaskIDs: []protocol.TaskID{"tsk_1"}}))
	o := d.observe(t, free)
	must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{
		TaskParams: protocol.TaskParams{SessionID: free, TaskID: "tsk_1"}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
	}))
	if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got != "ran" {
		t.Errorf("outside/29 the call came to %q", got)
	}
}

// TestCompletionBesideAQuestion has a call wait for its completion while another one of the batch asks a person. The turn waits for the person only.
func TestCompletionBesideAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		asks := toolFunc{name: "asks", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			a, err := c.Host.Ask(ctx, tool.Question{Prompt: "Which?"})
			return tool.Result{Output: protocol.Succeed(string(a.Choice) + " by " + a.By)}, err
		}}
		d := start(t, setup{model: replies(calls("work", "asks"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work, asks}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		state := func(want protocol.TurnState) {
			t.Helper()
			synctest.Wait()
			if got := must[*protocol.TurnReport](t)(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: turn})).State; got != want {
				t.Errorf("outside/29 the turn is %s, want %s", got, want)
			}
		}
		state(protocol.TurnWaiting)
		d.complete(t, work.key(), "worked")
		state(protocol.TurnWaiting)
		began := time.Now()
		got := d.wait(t, turn).ToolCalls[1].Output // no client answers
		if took := time.Since(began); got.Text != "unavailable by deadline" || took < 10*time.Minute || took > 10*time.Minute+time.Second {
			t.Errorf("outside/29 after %s the question came to %+v", took, got)
		}
		turn = d.begin(t, d.session(t), "go").TurnID
		state(protocol.TurnWaiting)
		ok(t, d.replies(t, d.questionOf(t, turn), protocol.ChooseReject, ""))
		state(protocol.TurnRunning)
		d.complete(t, work.key(), "worked")
		d.wait(t, turn)
	})
}

// TestAnswerWhileATurnIsTakenOver restarts the daemon while calls are asked about, and answers a question before the turn has come to it again.
func TestAnswerWhileATurnIsTakenOver(t *testing.T) {
	for names, want := range map[string]protocol.TurnState{"run": protocol.TurnRunning, "run other": protocol.TurnWaiting} {
		t.Run("outside/29 of "+names, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, over := make(chan struct{}), make(chan struct{})
				holds := hooked{"holds", func(r *plugin.Registrar) {
					r.ToolCalls().Before(func(ctx context.Context, _ *plugin.ToolCallContext) ([]plugin.Directive, error) {
						<-gate
						return nil, nil
					})
				}}
				run := toolFunc{name: "run", run: func(context.Context, tool.Invocation) (tool.Result, error) {
					<-over
					return tool.Result{Output: protocol.Succeed("ran")}, nil
				}}
				d := start(t, setup{model: replies(calls(strings.Fields(names)...), scripted.Reply{Text: "done"}), tools: []tool.Provider{run, says("other", "ran")}, config: asking})
				id := d.session(t)
				turn := d.begin(t, id, "go").TurnID
				synctest.Wait()
				d = d.restart(t, func(s *setup) { s.plugins = plugins(holds) })
				must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
				synctest.Wait()
				allow := func(name string) {
					for _, q := range d.asking(t) {
						if q.Call.Name == name {
							p := &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: q.ArgsHash}
							must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
						}
					}
				}
				allow("run")
				close(gate)
				synctest.Wait()
				if got := must[*protocol.TurnReport](t)(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: turn})).State; got != want {
					t.Errorf("the turn is %s, want %s", got, want)
				}
				allow("other")
				close(over)
				for _, c := range d.wait(t, turn).ToolCalls {
					if c.Output.Text != "ran" {
						t.Errorf("%s came to %+v", c.Name, c.Output)
					}
				}
			})
		})
	}
}

// TestAnswersThatAreNotStored has the store refuse answers. The questions stay open until it takes one.
func TestAnswersThatAreNotStored(t *testing.T) {
	for name, answer := range map[string]func(t *testing.T, d *daemon, heal func()) string{
		"of a person": func(t *testing.T, d *daemon, heal func()) string {
			q := d.asking(t)[0]
			p := &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowAlways, ArgsHash: q.ArgsHash}
			if r, err := d.Decisions.Respond(t.Context(), "cli_a", p); err == nil || len(d.asking(t)) != 1 {
				t.Errorf("the answer is %+v, open are %+v", r, d.asking(t))
			}
			heal()
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
			return "ran"
		},
		"of a deadline": func(t *testing.T, d *daemon, heal func()) string {
			time.Sleep(11 * time.Minute)
			if len(d.asking(t)) != 1 {
				t.Errorf("open are %+v", d.asking(t))
			}
			heal()
			return "The call was not allowed: the approval request expired without an answer."
		},
	} {
		t.Run("outside/29 answers "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, setup{model: replies(calls("run"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran")}, config: asking})
				id := d.session(t)
				turn := d.begin(t, id, "go").TurnID
				synctest.Wait()
				want := answer(t, d, d.refuse(t, "decisions", "true"))
				got := d.wait(t, turn).ToolCalls[0].Output
				text := got.Text
				if got.Failure != nil {
					text = got.Failure.Message
				}
				if text != want {
					t.Errorf("the call came to %q, want %q", text, want)
				}
			})
		})
	}
}

// TestConcurrentAnswers restarts the daemon after one of two calls of a batch was allowed. That answer holds, and only the other call is asked about.
func TestConcurrentAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies(calls("run", "other"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran"), says("other", "ran")}, config: asking})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		synctest.Wait()
		for _, q := range d.asking(t) {
			if q.Call.Name == "run" {
				p := &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: q.ArgsHash}
				must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
			}
		}
		d = d.restart(t, nil)
		must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
		synctest.Wait()
		asked, came := d.answered(t, id, turn, "run", "other")
		if !slices.Equal(asked, []string{"run", "other"}) || came["run"] != "ran" || came["other"] != "ran" {
			t.Errorf("outside/29 asked about are %q, the calls came to %v", asked, came)
		}
	})
}
