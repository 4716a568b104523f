package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// words is an executor of a language in which each source of toySources is one word. fault selects what it does wrong.
type words struct {
	fault   string
	globals map[string]string // values as JSON
	stored  map[string]string // as of the last confirmed capture
	taken   map[string]string // as of the last capture
	runs    int
}

// toySources has the word for each source.
var toySources = Sources{
	Set: "set", Get: "get kept", Other: "get other", Change: "change", Remove: "remove", Define: "define", Use: "use",
	Print: "print", Fail: "fail", Half: "get half", Call: "call", Parallel: "parallel", Failing: "failing", Loop: "loop",
	Wait: "wait", Endless: "endless", Exceed: []string{"exceed"}, Finish: "finish", Mismatch: "mismatch", Submit: "submit",
	ContinueAs: "continue", History: "history", ChangeHistory: "append", SetHistory: "assign", Ambient: "ambient",
	Unsaved: "unsaved", Good: "get good",
}

func (x *words) Describe(_ context.Context, tools []protocol.ToolManifest) (plugin.CodeDescription, error) {
	about := plugin.CodeDescription{Language: "words"}
	for _, m := range tools {
		if x.fault != "guide" {
			about.Guide += m.Name + " "
		}
	}
	switch x.runs++; x.fault {
	case "tag":
		about.Language = "Words!"
	case "impure":
		about.Guide += strconv.Itoa(x.runs)
	}
	return about, nil
}

func (x *words) Execute(ctx context.Context, call *plugin.CodeCall, h plugin.CellHost) (turn.CellReply, error) {
	before := maps.Clone(x.globals)
	c := &wordCell{words: x, ctx: ctx, call: call, host: h}
	if x.fault == "forgets" && call.Source == "get kept" {
		delete(x.globals, "kept")
	}
	err := c.word()
	over := err != nil && (ctx.Err() != nil || errors.Is(err, errTooMuch))
	if over && x.fault != "keepsCancelled" && ctx.Err() != nil || over && x.fault != "keepsLimit" && ctx.Err() == nil {
		x.globals = before
	}
	if err != nil {
		c.reply.Error = err.Error()
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if x.globals[name] != before[name] {
			c.reply.Changed = append(c.reply.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.globals)) {
		if _, old := before[name]; !old && x.fault != "mute" {
			c.reply.Changed = append(c.reply.Changed, name)
		}
	}
	return c.reply, nil
}

func (x *words) ReplaysCells() bool { return x.fault != "once" }

func (x *words) Dirty() bool { return true }

func (x *words) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	c := plugin.ExecutionChange{Changed: map[string][]byte{}}
	if x.fault == "poisons" && x.globals["unsaved"] != "" {
		return c, errors.New("cannot save unsaved")
	}
	from := x.stored
	if x.fault == "drops" {
		from = x.taken
	}
	for name, v := range x.globals {
		if name != "unsaved" && (from[name] != v || x.fault == "everything") {
			c.Changed[name] = []byte(v)
		}
	}
	for name := range from {
		if _, ok := x.globals[name]; !ok && x.fault != "leaves" {
			c.Removed = append(c.Removed, name)
		}
	}
	x.taken = maps.Clone(x.globals)
	delete(x.taken, "unsaved")
	return c, nil
}

func (x *words) Stored() { x.stored = x.taken }

func (x *words) Restore(_ context.Context, values map[string][]byte) error {
	if x.fault != "merges" {
		x.globals = map[string]string{}
	}
	for name, data := range values {
		if x.fault != "loses" || name != "other" {
			x.globals[name] = string(data)
		}
	}
	x.stored = maps.Clone(x.globals)
	if x.fault == "dirties" {
		x.stored = nil
	}
	return nil
}

func (x *words) Globals(context.Context) ([]protocol.CodeGlobal, error) {
	var all []protocol.CodeGlobal
	for _, name := range slices.Sorted(maps.Keys(x.globals)) {
		if x.fault != "unlisted" {
			all = append(all, protocol.CodeGlobal{Name: name, Type: "json"})
		}
	}
	return all, nil
}

// errTooMuch is the error of a cell that exceeds a limit.
var errTooMuch = errors.New("too much")

// wordCell is one word that runs.
type wordCell struct {
	*words
	ctx   context.Context
	call  *plugin.CodeCall
	host  plugin.CellHost
	reply turn.CellReply
}

// word runs the word of the cell.
func (c *wordCell) word() error {
	word, name, _ := strings.Cut(c.call.Source, " ")
	run := map[string]func() error{
		"set": func() error { return c.assign("kept", "[1]", "other", "2") },
		"get": func() error { return c.get(name) },
		"change": func() error {
			return c.assign("kept", strings.ReplaceAll(c.globals["kept"]+"]", "]]", ",2]"))
		},
		"remove": func() error { delete(c.globals, "other"); return nil },
		"define": func() error { return c.assign("twice", `"2*n"`) },
		"use":    func() error { return c.value(strconv.Itoa(len(c.globals["twice"]) / 5 * 42)) },
		"print":  c.print, "fail": c.fail, "call": c.one, "parallel": c.together, "failing": c.failing, "loop": c.loop,
		"wait": c.wait, "endless": c.endless, "exceed": c.exceed, "history": c.history, "append": c.append,
		"assign": c.assignHistory, "ambient": c.ambient, "unsaved": c.unsaved,
		"finish":   func() error { return c.end(protocol.ControlFinish, "7") },
		"mismatch": func() error { return c.end(protocol.ControlFinish, `"seven"`) },
		"submit":   func() error { return c.end(protocol.ControlFail, `"no data"`) },
		"continue": c.next,
	}[word]
	return run()
}

func (c *wordCell) assign(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		c.globals[pairs[i]] = pairs[i+1]
	}
	return nil
}

func (c *wordCell) value(v string) error {
	c.reply.Value = json.RawMessage(v)
	return nil
}

func (c *wordCell) get(name string) error {
	if c.globals[name] == "" {
		return errors.New("undefined: " + name)
	}
	return c.value(c.globals[name])
}

func (c *wordCell) print() error {
	if c.fault != "silent" {
		c.reply.Printed = "hello\n"
	}
	return c.value("4")
}

func (c *wordCell) fail() error {
	if c.reply.Position = (&protocol.CodePosition{Line: 3}); c.fault == "position" {
		c.reply.Position.Line = 1
	}
	return errors.Join(c.assign("half", "5"), errors.New("it failed"))
}

// batch makes calls of echo, and returns the texts.
func (c *wordCell) batch(texts ...string) ([]string, error) {
	var calls []tool.Request
	for _, text := range texts {
		calls = append(calls, tool.Request{Name: "echo", Args: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))})
	}
	out, err := c.host.Call(c.ctx, calls)
	var got []string
	for _, o := range out {
		got = append(got, o.Text)
	}
	return got, err
}

func (c *wordCell) one() error {
	var all []string
	for _, text := range []string{"a", "b", "c"} {
		if c.fault == "order" {
			text = "c"
		}
		got, err := c.batch(text)
		if err != nil {
			return err
		}
		all = append(all, got...)
	}
	return c.value(string(encoded(all)))
}

func (c *wordCell) together() error {
	if c.fault == "serial" {
		return c.one()
	}
	got, err := c.batch("a", "b", "c")
	if c.fault == "unordered" {
		slices.Reverse(got)
	}
	return errors.Join(err, c.value(string(encoded(got))))
}

func (c *wordCell) failing() error {
	out, err := c.host.Call(c.ctx, []tool.Request{{Name: "fail", Args: json.RawMessage(`{"text":"x"}`)}})
	if err != nil || c.fault == "failsCell" {
		return errors.Join(err, errors.New("fail failed"))
	}
	return c.value(strconv.FormatBool(out[0].Failure == nil))
}

func (c *wordCell) loop() error {
	n := 1000
	if c.fault == "short" {
		n = 128
	}
	for i := range n {
		if _, err := c.batch(strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return c.value(strconv.Itoa(n))
}

func (c *wordCell) wait() error {
	ctx := c.ctx
	if c.fault == "patient" {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := c.host.Call(ctx, []tool.Request{{Name: "wait"}})
	return errors.Join(c.assign("kept", "[1,2]"), err)
}

func (c *wordCell) endless() error {
	_, err := c.batch("x")
	if c.fault == "deaf" {
		select {}
	}
	<-c.ctx.Done()
	return errors.Join(c.assign("kept", "[1,2]"), err, c.ctx.Err())
}

func (c *wordCell) exceed() error {
	_ = c.assign("kept", "[1,2]")
	if c.fault == "unlimited" {
		return nil
	}
	return errTooMuch
}

func (c *wordCell) end(kind protocol.ControlKind, value string) error {
	switch {
	case !c.call.AcceptFinish && c.fault != "finishes":
		return errors.New("this cell cannot end the turn")
	case c.call.Schema != nil && value != "7" && c.fault != "unchecked":
		return errors.New("the value does not match the schema")
	case c.fault != "goesOn":
		c.reply.Control = &protocol.ToolControl{Kind: kind, Value: json.RawMessage(value)}
	}
	return nil
}

func (c *wordCell) next() error {
	c.runs++
	text := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "seed"}}}
	frame := &protocol.FrameSwitch{Key: string(c.call.CellID), Task: "more", Nodes: []protocol.NodeBody{{Message: &text}}}
	if c.fault == "keys" {
		frame.Key = strconv.Itoa(c.runs)
	}
	c.reply.Control = &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: frame}
	if c.fault == "kind" {
		c.reply.Control.Kind = "switch_frame"
	}
	return nil
}

func (c *wordCell) history() error {
	var roles []protocol.Role
	for _, m := range c.host.History() {
		roles = append(roles, m.Role)
	}
	return c.value(string(encoded(roles)))
}

func (c *wordCell) append() error {
	if c.fault == "appends" {
		return c.value("3")
	}
	return errors.New("history is read-only")
}

func (c *wordCell) assignHistory() error {
	if c.fault == "assigns" {
		return nil
	}
	return errors.New("history is read-only")
}

func (c *wordCell) ambient() error {
	now, err := c.host.Now(c.ctx)
	seed, err2 := c.host.Random(c.ctx)
	switch c.fault {
	case "clock":
		now = time.Now()
	case "unrepeatable":
		seed = []byte(strconv.Itoa(int(time.Now().UnixNano())))
	}
	got, err3 := c.batch(fmt.Sprintf("%d %x", now.UnixNano(), seed))
	return errors.Join(err, err2, err3, c.value(string(encoded(got))))
}

func (c *wordCell) unsaved() error {
	if c.fault != "unnamed" {
		c.reply.Unsaved = []protocol.UnsavedGlobal{{Name: "unsaved", Reason: "it is a word"}}
	}
	return c.assign("unsaved", "1", "good", "3")
}

// wordsWith returns a factory of executors with a fault.
func wordsWith(fault string) func(*testing.T) plugin.Factory {
	return func(*testing.T) plugin.Factory {
		return plugin.Static("words", func(r *plugin.Registrar) error {
			r.Execution().Executor(&words{fault: fault, globals: map[string]string{}})
			return nil
		})
	}
}

func TestRunExecutor(t *testing.T) {
	t.Run("runtime/R04 an executor that follows the contract passes", func(t *testing.T) {
		RunExecutor(t, wordsWith(""), ExecutorConfig{Sources: toySources})
	})
	t.Run("runtime/R10 an executor that does not replay cells need not repeat its requests", func(t *testing.T) {
		sources := toySources
		sources.Ambient = "get nothing"
		RunExecutor(t, wordsWith("once"), ExecutorConfig{Sources: sources})
	})
}

// TestBrokenExecutor runs the checks on an executor with a fault, in a process that TestRunExecutorFinds starts.
func TestBrokenExecutor(t *testing.T) {
	if fault := os.Getenv(broken); fault != "" {
		RunExecutor(t, wordsWith(fault), ExecutorConfig{Sources: toySources, Soon: time.Second})
	}
}

func TestRunExecutorFinds(t *testing.T) {
	for fault, check := range map[string]string{
		"tag": "the_description", "guide": "the_description", "impure": "the_description",
		"silent": "a_cell_prints", "position": "a_cell_prints", "order": "a_cell_calls_tools_in_order",
		"serial": "a_cell_calls_tools_together", "unordered": "a_cell_calls_tools_together", "failsCell": "a_tool_that_fails",
		"short": "a_cell_makes_1,000_calls", "goesOn": "a_cell_ends", "keys": "a_cell_ends", "kind": "a_cell_ends",
		"finishes": "a_cell_that_may_not_end", "unchecked": "a_final_value", "appends": "the_conversation", "assigns": "the_conversation",
		"forgets": "globals_stay", "unlisted": "globals_stay", "mute": "globals_stay", "everything": "a_capture_has", "leaves": "a_capture_has",
		"drops": "a_capture_that_was_not_stored", "loses": "another_process", "dirties": "another_process", "merges": "a_restore_removes",
		"poisons": "a_global_that", "unnamed": "a_global_that", "keepsCancelled": "a_cancelled_cell", "deaf": "a_cancelled_cell",
		"patient": "a_call_of_a_tool", "keepsLimit": "a_cell_that_exceeds", "unlimited": "a_cell_that_exceeds",
		"clock": "a_cell_that_runs_again", "unrepeatable": "a_cell_that_runs_again",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenExecutor$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), broken+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenExecutor/contract:_"+check) {
				t.Errorf("%v, no check of %s fails:\n%s", err, check, out)
			}
		})
	}
}
