package plugintest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// ExecutorConfig configures RunExecutor.
type ExecutorConfig struct {
	Sources Sources             // cells in the executor's language
	Build   plugin.BuildContext // default: a root session in a temporary directory
	Soon    time.Duration       // limit for a cancelled cell to return; default 5s
}

// Sources are cells in the language of an executor. They use the globals kept and other, and the tools echo, fail and wait, each with
// the argument text. echo returns its text as a value, fail fails, and wait returns when its cell is cancelled.
type Sources struct {
	Set    string // sets kept to a list with 1, and other to 2
	Get    string // has the value of kept
	Other  string // has the value of other
	Change string // appends 2 to kept
	Remove string // removes other; empty: the language cannot do that
	Define string // defines the function twice; empty: the language has no functions
	Use    string // has the value of twice(21)

	Print string // prints the line hello, and has the value 4
	Fail  string // sets half to 5 and fails in line 3
	Half  string // has the value of half

	Call     string // calls echo with a, b and c, one after the other, and has the list of their values as its value
	Parallel string // the same in one batch; empty: the language cannot do that
	Failing  string // calls fail, and has the value true if that call succeeded, else false
	Loop     string // calls echo 1,000 times, with the texts 0 to 999, and has the number of the calls that succeeded as its value
	Wait     string // appends 2 to kept, then calls wait
	Endless  string // appends 2 to kept, calls echo, then runs until it is stopped

	Exceed []string // each appends 2 to kept, then exceeds a limit of the executor

	Finish     string // ends the turn with 7
	Mismatch   string // ends the turn with the text seven
	Submit     string // fails the turn with the text no data
	ContinueAs string // continues with the task more and the seed seed

	History       string // has the list of the roles of the conversation as its value
	ChangeHistory string // appends to the conversation, then has the number of its messages as its value
	SetHistory    string // assigns history

	// Ambient gets the time, then two random numbers, then calls echo with all three. It has the value that echo returns.
	Ambient string
	Unsaved string // sets unsaved to a value that cannot be stored, and good to 3
	Good    string // has the value of good
}

// RunExecutor checks that a code executor follows the contract of package plugin. It uses the executor as lashd does: it describes
// tools, runs cells, captures globals after them, and restores them in other sessions. Each check is a subtest.
//
// Each call of factory returns a plugin with the executor. Sessions of different factories must not share a process, because
// a restore in another process is part of the checks. The factory stops what it started at the end of the test that it gets.
//
// A cell that is cancelled or exceeds a limit must leave the globals as they were before it. A cell that fails by itself keeps
// what it did before the error. An executor must implement plugin.CodeDescriber, plugin.ExecutionState and plugin.GlobalsLister.
func RunExecutor(t *testing.T, factory func(*testing.T) plugin.Factory, c ExecutorConfig) {
	t.Helper()
	k := &executorKit{c, factory}
	if k.Soon == 0 {
		k.Soon = 5 * time.Second
	}
	for _, check := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the description names the language and each tool", k.describes},
		{"a cell prints, has a value, and fails at a line", k.replies},
		{"a cell calls tools in order", k.calls},
		{"a cell calls tools together", k.callsTogether},
		{"a tool that fails is a value", k.seesFailure},
		{"a cell makes 1,000 calls", k.loops},
		{"a cell ends the turn", k.controls},
		{"a cell that may not end the turn does not", k.declines},
		{"a final value must match the schema", k.validates},
		{"the conversation is read-only data", k.readsHistory},
		{"globals stay and are listed", k.keeps},
		{"a capture has what changed", k.captures},
		{"a capture that was not stored is repeated", k.repeats},
		{"another process restores the globals", k.restores},
		{"a restore removes all other globals", k.resets},
		{"a global that cannot be saved is named", k.names},
		{"a cancelled cell leaves the globals as they were", k.cancels},
		{"a call of a tool can be cancelled", k.cancelsCall},
		{"a cell that exceeds a limit leaves the globals as they were", k.limits},
		{"a cell that runs again repeats its requests", k.replays},
	} {
		t.Run("contract: "+check.name, check.run)
	}
}

// executorKit is the executor under test with its configuration.
type executorKit struct {
	ExecutorConfig
	factory func(*testing.T) plugin.Factory
}

// bench is a session with the executor and the host of its cells. Its methods fail the test and, unless they say otherwise, return
// to their caller then, so that one run shows all differences.
type bench struct {
	*plugin.Session
	t     *testing.T
	host  *cellHost
	about *plugin.CodeDescription // as the driver got it last
}

// open opens a session in a process of its own. The session has a driver that has the model write code, so that the executor is asked
// for its description. It is closed at the end of the test.
func (k *executorKit) open(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, host: newCellHost()}
	driver := plugin.Static("writer", func(r *plugin.Registrar) error {
		r.Protocol().Driver(writer{about: &b.about})
		return nil
	})
	h, err := plugin.NewHost([]plugin.Factory{driver}, []plugin.Factory{k.factory(t)})
	if err != nil {
		t.Fatal(err)
	}
	in := k.Build
	if in.Cwd == "" {
		in.Cwd, in.StateDir = t.TempDir(), t.TempDir()
	}
	if b.Session, err = h.Open(t.Context(), "writer", nil, in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// writer is a driver whose model writes code. It records the description of the code; no turn uses it.
type writer struct {
	idler
	about **plugin.CodeDescription
}

// Splitter implements turn.TextSplitter.
func (w writer) Splitter(string) turn.Splitter { return nil }

// Preamble implements plugin.Driver.
func (w writer) Preamble(in plugin.PreambleInput) string {
	*w.about = in.Code
	return ""
}

// describe returns the description of cells for the tools of the host.
func (b *bench) describe() plugin.CodeDescription {
	b.t.Helper()
	if _, err := b.Preamble(b.t.Context(), b.host.catalog); err != nil {
		b.t.Fatal(err)
	}
	if b.about == nil {
		b.t.Fatal("the executor is not a CodeDescriber, so no model can use it")
	}
	return *b.about
}

// execute runs a cell that may end the turn with any value, and fails the test if the executor fails.
func (b *bench) execute(source string) turn.CellReply {
	b.t.Helper()
	return b.run(plugin.CodeCall{Source: source, AcceptFinish: true})
}

// run is execute for any call. It ends the test if the executor itself fails: an error of the code belongs into the reply.
func (b *bench) run(call plugin.CodeCall) turn.CellReply {
	b.t.Helper()
	reply, err := b.Execute(b.t.Context(), b.complete(call), b.host)
	if err != nil {
		b.t.Fatalf("%s: %v", call.Source, err)
	}
	if reply.ID != "" || reply.Calls != nil || reply.Fatal != nil {
		b.t.Errorf("%s: the reply has fields that only lashd sets: %+v", call.Source, reply)
	}
	return reply
}

// complete adds the language and the ids to a call.
func (b *bench) complete(call plugin.CodeCall) *plugin.CodeCall {
	call.TurnID, call.CellID = "trn_1", "trn_1/cell/1"
	if b.about == nil {
		b.describe()
	}
	call.Language = b.about.Language
	return &call
}

// wants runs a cell and checks its value. want is JSON.
func (b *bench) wants(source, want string) turn.CellReply {
	b.t.Helper()
	reply := b.execute(source)
	if got := compact(reply.Value); reply.Error != "" || got != want {
		b.t.Errorf("%s\nhas the value %s and the error %q, want the value %s", source, got, reply.Error, want)
	}
	return reply
}

// succeeds runs a cell without a value.
func (b *bench) succeeds(source string) turn.CellReply {
	b.t.Helper()
	reply := b.execute(source)
	if reply.Error != "" {
		b.t.Errorf("%s\nfails: %s", source, reply.Error)
	}
	return reply
}

// compact returns JSON in one form, so that values can be compared.
func compact(data json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(data)
	}
	out, _ := json.Marshal(v) // it was just decoded
	return string(out)
}
