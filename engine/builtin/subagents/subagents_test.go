package subagents_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/subagents"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// says returns replies to requests that contain a text.
func says(to string, replies ...scripted.Reply) scripted.Turn {
	return scripted.Turn{Match: &scripted.Match{LastUserContains: to}, Replies: replies}
}

func calls(calls ...scripted.Call) scripted.Reply { return scripted.Reply{ToolCalls: calls} }

func call(name, args string) scripted.Call {
	return scripted.Call{Name: name, Args: json.RawMessage(args)}
}

func text(s string) scripted.Reply { return scripted.Reply{Text: s} }

// start returns a daemon whose model plays these turns, and a session.
func start(t *testing.T, turns ...scripted.Turn) (*builtintest.Daemon, protocol.SessionID) {
	t.Helper()
	d := builtintest.Start(t, t.TempDir(), 0, scripted.New(&scripted.Script{Turns: turns}), subagents.Factory{})
	return d, d.Session(t, nil)
}

// result returns the value of the newest tool call of a session, which must have succeeded.
func result[T any](t *testing.T, d *builtintest.Daemon, id protocol.SessionID) (v T) {
	t.Helper()
	out := d.Result(t, id)
	if err := json.Unmarshal(out.Value, &v); err != nil {
		t.Fatalf("the call came to %+v: %v", out, err)
	}
	return v
}

func TestSpawn(t *testing.T) {
	d, id := start(t,
		says("go", calls(call("spawn_agent", `{"task":"count the files","name":"Counter!","wait":true}`)), text("done")),
		says("count the files", text(" 42 files ")))
	if r := d.Turn(t, id, "go"); r.State != protocol.TurnCompleted {
		t.Fatalf("the turn ended as %+v", r.Outcome)
	}
	s := result[subagents.Status](t, d, id)
	if s.Name != "counter" || s.Path != "/root/counter" || s.Note == "" || s.State != "idle" || s.Capability != "explore" {
		t.Errorf("runtime/B11 the agent is %+v", s)
	}
	if s.Result == nil || s.Result.Status != protocol.TaskCompleted || string(s.Result.Value) != `"42 files"` {
		t.Errorf("runtime/B11 it came to %+v", s.Result)
	}
	child := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: s.SessionID}))(t).Session
	if child.Relation.Kind != protocol.RelationChild || child.Relation.Parent != id || child.Authority.Subagent == nil || child.Authority.Subagent.Depth != 1 {
		t.Errorf("runtime/B11 the child is %+v with %+v", child.Relation, child.Authority)
	}
}

// agents returns a daemon whose model makes these calls, one per reply, on the input "go". says has the replies of the agents.
func agents(t *testing.T, said []scripted.Turn, made ...scripted.Call) (*builtintest.Daemon, protocol.SessionID) {
	t.Helper()
	var lead []scripted.Reply
	for _, c := range made {
		lead = append(lead, calls(c))
	}
	return start(t, append(said, says("go", append(lead, text("done"))...))...)
}

// outputs returns the results of the calls of a turn, in order.
func outputs(r *protocol.TurnReport) (all []protocol.ToolOutput) {
	for _, c := range r.ToolCalls {
		all = append(all, c.Output)
	}
	return all
}

func decode[T any](t *testing.T, out protocol.ToolOutput) (v T) {
	t.Helper()
	if err := json.Unmarshal(out.Value, &v); err != nil {
		t.Fatalf("the call came to %+v: %v", out, err)
	}
	return v
}

// turns waits until a session has ended n turns and has no others, except for turns whose wake was withdrawn before they started.
func turns(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, n int) []protocol.TurnReport {
	t.Helper()
	for range 6000 {
		all := builtintest.Must(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id}))(t).Data
		open := slices.ContainsFunc(all, func(r protocol.TurnReport) bool { return !r.State.Terminal() })
		all = slices.DeleteFunc(all, func(r protocol.TurnReport) bool { return r.State == protocol.TurnCancelled && r.StartedAtMs == 0 })
		if len(all) >= n && !open {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the session did not end %d turns", n)
	return nil
}

var (
	one   = says("first job", text("one"))
	two   = says("second job", text("two"))
	hangs = says("endless job", scripted.Reply{Stall: true})
)

func TestWait(t *testing.T) {
	t.Run("runtime/B12 a wait for all ends with the last agent, returns all results, and causes no wake", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one, two},
			call("spawn_agent", `{"task":"first job","name":"a"}`), call("spawn_agent", `{"task":"second job","name":"b"}`), call("wait_agents", `{}`))
		r := d.Turn(t, id, "go")
		w := decode[subagents.Waited](t, outputs(r)[2])
		if len(w.Completed) != 2 || string(w.Completed["a"].Result.Value) != `"one"` || string(w.Completed["b"].Result.Value) != `"two"` {
			t.Errorf("it came to %+v", w)
		}
		if all := turns(t, d, id, 1); len(all) != 1 {
			t.Errorf("the lead has %d turns", len(all))
		}
	})
	t.Run("runtime/B12 a wait for any ends with the first agent, and a wait with a timeout after that time", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one, hangs},
			call("spawn_agent", `{"task":"first job","name":"a"}`), call("spawn_agent", `{"task":"endless job","name":"b"}`),
			call("wait_agents", `{"rule":"any"}`), call("wait_agents", `{"names":["b"],"timeoutSeconds":1}`))
		out := outputs(d.Turn(t, id, "go"))
		for _, w := range []subagents.Waited{decode[subagents.Waited](t, out[2]), decode[subagents.Waited](t, out[3])} {
			if w.Pending["b"].State != "running" {
				t.Errorf("it came to %+v", w)
			}
		}
	})
	t.Run("issue/5-5 an agent without a waiting call wakes its session once with the result", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one, says("has ended", text("noted"))}, call("spawn_agent", `{"task":"first job","name":"a"}`))
		d.Turn(t, id, "go")
		all := turns(t, d, id, 2)
		queue := builtintest.Must(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: true}))(t).Data
		wakes := slices.DeleteFunc(queue, func(in protocol.QueuedInput) bool { return in.Wake == nil })
		if len(all) != 2 || len(wakes) != 1 || !strings.Contains(wakes[0].Input[0].Text, "/root/a has ended (completed). one") {
			t.Errorf("the lead has %d turns and the wakes %+v", len(all), wakes)
		}
	})
	t.Run("issue/5-5 interrupting a turn that waits for an agent stops the agent without a wake", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{hangs}, call("spawn_agent", `{"task":"endless job","name":"a","wait":true}`))
		began := builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}}))(t)
		task := atWork(t, d, id)
		builtintest.Must(d.Turns.Interrupt(t.Context(), "cli_a", &protocol.TurnInterruptParams{TurnID: began.TurnID}))(t)
		ended := builtintest.Must(d.Tasks.Wait(t.Context(), "", &protocol.TaskWaitParams{SessionID: id, TaskIDs: []protocol.TaskID{task.ID}}))(t).Settled[0]
		child := turns(t, d, task.Spec.Subagent.SessionID, 1)
		if ended.State != protocol.TaskCancelled || child[0].State != protocol.TurnCancelled {
			t.Errorf("the agent ended as %s, its turn as %s", ended.State, child[0].State)
		}
		if all := turns(t, d, id, 1); len(all) != 1 {
			t.Errorf("the lead has %d turns", len(all))
		}
	})
	t.Run("issue/5-5 a turn that waits for an agent continues to wait for the same agent after a restart", func(t *testing.T) {
		dir := t.TempDir()
		script := func(job scripted.Reply) *scripted.Script {
			return &scripted.Script{Turns: []scripted.Turn{
				says("go", calls(call("spawn_agent", `{"task":"slow job","name":"a","wait":true}`)), text("done")), says("slow job", job),
			}}
		}
		d := builtintest.Start(t, dir, 0, scripted.New(script(scripted.Reply{Stall: true})), subagents.Factory{})
		id := d.Session(t, nil)
		builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}}))(t)
		task := atWork(t, d, id)
		d.Stop()
		d = builtintest.Start(t, dir, 0, scripted.New(script(text("at last"))), subagents.Factory{})
		all := turns(t, d, id, 1)
		s := decode[subagents.Status](t, outputs(&all[0])[0])
		if len(all) != 1 || s.SessionID != task.Spec.Subagent.SessionID || string(s.Result.Value) != `"at last"` {
			t.Errorf("the lead has %d turns, the agent is %+v", len(all), s)
		}
		if tasks := builtintest.Must(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: id}))(t).Data; len(tasks) != 1 {
			t.Errorf("there are the tasks %+v", tasks)
		}
	})
}

// atWork waits until the only agent of a session is running.
func atWork(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) protocol.Task {
	t.Helper()
	for range 6000 {
		all := builtintest.Must(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: id}))(t).Data
		if len(all) == 1 {
			child, err := d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: all[0].Spec.Subagent.SessionID})
			if err == nil && len(child.Data) == 1 {
				return all[0]
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no agent works")
	return protocol.Task{}
}

func TestNamed(t *testing.T) {
	t.Run("runtime/B12 an agent does its tasks in order, and a wait returns the newest result", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one, two},
			call("spawn_agent", `{"task":"first job","name":"a","wait":true}`), call("send_agent", `{"name":"a","task":"second job"}`), call("wait_agents", `{"names":["A"]}`))
		out := outputs(d.Turn(t, id, "go"))
		sent, w := decode[subagents.Status](t, out[1]), decode[subagents.Waited](t, out[2])
		if sent.Result != nil && string(sent.Result.Value) == `"one"` || string(w.Completed["a"].Result.Value) != `"two"` {
			t.Errorf("sent %+v, waited %+v", sent, w)
		}
		if child := turns(t, d, sent.SessionID, 2); len(child) != 2 {
			t.Errorf("the agent has %d turns", len(child))
		}
	})
	t.Run("runtime/B12 names are normalized, and a second agent with the same name gets another one and a note", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one}, call("spawn_agent", `{"task":"first job","name":"My Agent!"}`), call("spawn_agent", `{"task":"first job","name":"my_agent"}`), call("spawn_agent", `{"task":"first job"}`))
		var names []string
		for _, out := range outputs(d.Turn(t, id, "go")) {
			s := decode[subagents.Status](t, out)
			names = append(names, s.Name+" "+s.Path)
			if (s.Note == "") != (s.Name == "agent") {
				t.Errorf("%s has the note %q", s.Name, s.Note)
			}
		}
		if got := strings.Join(names, ", "); got != "my_agent /root/my_agent, my_agent_2 /root/my_agent_2, agent /root/agent" {
			t.Errorf("the agents are %s", got)
		}
	})
	t.Run("runtime/B12 an agent is closed after its last task and accepts no more", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{one}, call("spawn_agent", `{"task":"first job","name":"a","last":true}`),
			call("wait_agents", `{"until":"terminal","names":["a"]}`), call("send_agent", `{"name":"a","task":"second job"}`), call("send_agent", `{"name":"b","task":"second job"}`))
		out := outputs(d.Turn(t, id, "go"))
		if w := decode[subagents.Waited](t, out[1]); string(w.Closed["a"].Result.Value) != `"one"` {
			t.Errorf("the wait came to %+v", w)
		}
		for i, code := range map[int]string{2: "agent_closed", 3: "no_such_agent"} {
			if out[i].Failure == nil || out[i].Failure.Code != code {
				t.Errorf("want %s, the call came to %+v", code, out[i])
			}
		}
	})
	t.Run("runtime/B12 closing an agent stops its own agents, and queued tasks do not start", func(t *testing.T) {
		below := says("have it done", calls(call("spawn_agent", `{"task":"endless job","name":"b","capability":"peer","wait":true}`)), text("done"))
		d, id := start(t, below, hangs, says("go", calls(call("spawn_agent", `{"task":"have it done","name":"a","capability":"peer"}`)), text("they work")),
			says("stop", calls(call("send_agent", `{"name":"a","task":"second job"}`)), calls(call("close_agent", `{"name":"a"}`)), calls(call("list_agents", `{}`)), text("done")))
		d.Turn(t, id, "go")
		a := atWork(t, d, id).Spec.Subagent
		b := atWork(t, d, a.SessionID).Spec.Subagent
		if b.Agent != "/root/a/b" {
			t.Errorf("the path below is %s", b.Agent)
		}
		out := outputs(d.Turn(t, id, "stop"))
		if s := decode[subagents.Status](t, out[1]); s.State != "closed" || s.Result.Status != protocol.TaskCancelled {
			t.Errorf("the agent is %+v", s)
		}
		if l := decode[map[string][]subagents.Status](t, out[2])["agents"]; len(l) != 1 || l[0].State != "closed" {
			t.Errorf("listed are %+v", l)
		}
		for _, session := range []protocol.SessionID{a.SessionID, b.SessionID} {
			if all := turns(t, d, session, 1); len(all) != 1 || all[0].State != protocol.TurnCancelled {
				t.Errorf("the turns of %s are %+v", session, all)
			}
		}
	})
}

// again makes calls of all tools in a second turn, after a first one has created the agents a and b and closed b.
func again() []scripted.Turn {
	made := says("go", calls(call("spawn_agent", `{"task":"first job","name":"a","wait":true}`)),
		calls(call("spawn_agent", `{"task":"second job","name":"b","wait":true}`)), calls(call("close_agent", `{"name":"b"}`)), text("done"))
	then := says("again", calls(call("list_agents", `{}`)), calls(call("send_agent", `{"name":"b","task":"first job"}`)),
		calls(call("spawn_agent", `{"task":"first job","name":"b","wait":true}`)), calls(call("send_agent", `{"name":"a","task":"second job"}`)),
		calls(call("wait_agents", `{"names":["a"]}`)), calls(call("close_agent", `{"name":"a"}`)), calls(call("close_agent", `{"name":"b"}`)), text("done"))
	return []scripted.Turn{one, two, hangs, made, then}
}

// checkAgain checks the results of these calls.
func checkAgain(t *testing.T, out []protocol.ToolOutput) {
	t.Helper()
	if l := decode[map[string][]subagents.Status](t, out[0])["agents"]; len(l) != 2 || l[0].State != "idle" || l[1].State != "closed" {
		t.Errorf("listed are %+v", l)
	}
	if out[1].Failure == nil || out[1].Failure.Code != "agent_closed" {
		t.Errorf("a closed agent accepted a task: %+v", out[1])
	}
	if s := decode[subagents.Status](t, out[2]); s.Name != "b_2" {
		t.Errorf("one more agent b is %+v", s)
	}
	if w := decode[subagents.Waited](t, out[4]); w.Completed["a"].Result == nil || string(w.Completed["a"].Result.Value) != `"two"` {
		t.Errorf("the task of agent a returned %+v", w)
	}
	for _, o := range out[5:] {
		if s := decode[subagents.Status](t, o); s.State != "closed" {
			t.Errorf("closed it is %+v", s)
		}
	}
}

func TestOtherTasks(t *testing.T) {
	t.Run("issue/5-5 agents with pruned tasks keep their names, accept tasks, and stay closed", func(t *testing.T) {
		d, id := start(t, again()...)
		d.Turn(t, id, "go")
		if r := builtintest.Must(d.Tasks.Prune(t.Context(), &protocol.TaskPruneParams{SessionID: id}))(t); len(r.Data) != 3 {
			t.Fatalf("pruned are %+v", r.Data)
		}
		checkAgain(t, outputs(d.Turn(t, id, "again")))
	})
	t.Run("issue/5-5 a session that observes another session's agent has only its own agents", func(t *testing.T) {
		d, id := start(t, append(again(), says("other", calls(call("spawn_agent", `{"task":"endless job","name":"c"}`)), text("done")))...)
		d.Turn(t, id, "go")
		other := d.Session(t, nil)
		d.Turn(t, other, "other")
		builtintest.Must(d.Tasks.Observe(t.Context(), &protocol.TaskObserveParams{
			TaskParams: protocol.TaskParams{SessionID: other, TaskID: "agent_c_1"}, Observer: id,
		}))(t)
		checkAgain(t, outputs(d.Turn(t, id, "again")))
	})
}

func TestAuthority(t *testing.T) {
	look := plugin.Static("look", func(r *plugin.Registrar) error {
		r.Tools().Add(kinds{"look": protocol.ToolKindRead, "find": protocol.ToolKindSearch, "edit": protocol.ToolKindEdit, "ask": protocol.ToolKindOther})
		return nil
	})
	names := func(d *builtintest.Daemon, id protocol.SessionID) string {
		var all []string
		for _, r := range builtintest.Must(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Data {
			if r.Member {
				all = append(all, r.Name)
			}
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	spawned := func(d *builtintest.Daemon, id protocol.SessionID, depth int) protocol.SessionID {
		t.Helper()
		for range depth {
			d.Turn(t, id, "go")
			id = result[subagents.Status](t, d, id).SessionID
		}
		return id
	}
	begin := func(args string) (*builtintest.Daemon, protocol.SessionID) {
		script := &scripted.Script{Turns: []scripted.Turn{says("go", calls(call("spawn_agent", args)), text("done"))}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{text("ok")}}}
		d := builtintest.Start(t, t.TempDir(), 0, scripted.New(script), subagents.Factory{}, look)
		return d, d.Session(t, protocol.PluginOptions{subagents.ID: []byte(`{"hiddenTools":["ask"]}`)})
	}
	d, id := begin(`{"task":"x","wait":true}`)
	if got := names(d, spawned(d, id, 1)); got != "find look submit_error" {
		t.Errorf("runtime/B11 one that explores has %s", got)
	}
	d, id = begin(`{"task":"x","capability":"peer","wait":true,"outputSchema":{"type":"string"}}`)
	all := "close_agent edit find list_agents look send_agent spawn_agent submit_error submit_result wait_agents"
	child := spawned(d, id, 1)
	if got := names(d, child); got != all {
		t.Errorf("issue/5-5 one that does what its lead may has %s", got)
	}
	if got := names(d, spawned(d, child, 3)); got != all {
		t.Errorf("runtime/B11 one that is four deep has %s", got)
	}
	if got := names(d, spawned(d, child, 4)); got != "edit find look submit_error submit_result" {
		t.Errorf("runtime/B11 one that is five deep has %s", got)
	}
}

// kinds are tools of these kinds without effects.
type kinds map[string]protocol.ToolKind

func (l kinds) Tools() []tool.Tool {
	var list []tool.Tool
	for name, kind := range l {
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{Name: name, Kind: kind}})
	}
	return list
}

func (kinds) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("ran")}, nil
}

func TestAnswers(t *testing.T) {
	t.Run("runtime/B11 an agent that submits an error fails with it", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{says("hard job", calls(call("submit_error", `{"reason":"there is no such file"}`)), text("never said"))},
			call("spawn_agent", `{"task":"hard job","wait":true}`))
		d.Turn(t, id, "go")
		r := result[subagents.Status](t, d, id).Result
		if r.Status != protocol.TaskFailed || r.Code != "submittedError" || string(r.Value) != `"there is no such file"` {
			t.Errorf("it came to %+v", r)
		}
	})
	t.Run("runtime/B11 an agent with an output schema submits structured data", func(t *testing.T) {
		d, id := agents(t, []scripted.Turn{says("count", calls(call("submit_result", `{"result":"many"}`)), calls(call("submit_result", `{"result":{"n":2}}`)))},
			call("spawn_agent", `{"task":"count","wait":true,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`))
		d.Turn(t, id, "go")
		if r := result[subagents.Status](t, d, id).Result; r.Status != protocol.TaskCompleted || string(r.Value) != `{"n":2}` {
			t.Errorf("it came to %+v", r)
		}
	})
	t.Run("runtime/B11 an agent starts with its given values and messages", func(t *testing.T) {
		d, id := start(t, says("old", text("older")), says("new", text("newer")),
			says("go", calls(call("spawn_agent", `{"task":"use it","wait":true,"seed":{"turns":1,"values":{"n":7}}}`)), text("done")), says("use it", text("used")))
		for _, input := range []string{"old", "new", "go"} {
			d.Turn(t, id, input)
		}
		var told []string
		for _, n := range builtintest.Must(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: result[subagents.Status](t, d, id).SessionID}))(t).Data {
			if n.Message != nil {
				told = append(told, n.Message.Text(protocol.PartText)+n.Message.Answer())
			}
		}
		if got := strings.Join(told, "|"); got != "new|newer|use it\n\nGiven data:\n{\"n\":7}|used" {
			t.Errorf("its history is %q", got)
		}
	})
}
