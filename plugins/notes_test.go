//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	lashd "lashd/plugins/sdk/go/lashdplugin"
)

// list is what the plugin keeps.
type list []string

// pad is the plugin of testdata in Go, in a session. The session's lock guards what it has.
type pad struct {
	*lashd.Session
	notes list
	grown bool
}

func serveNotes() { lashd.Run(openPad) }

func openPad(s *lashd.Session) error {
	n := &pad{Session: s, notes: list{}}
	s.Keep("1", &n.notes)
	lashd.On(s, lashd.Method[noteArgs, noteResult]{Name: "tool/execute note"}, n.note)
	lashd.On(s, lashd.Method[trimmed, trimmed]{Name: "tool/prepare note", Member: "args"}, trim)
	lashd.On(s, lashd.ToolList, n.tools)
	lashd.Operation(s, "notes.list", n.kept)
	lashd.Operation(s, "notes.add", n.add)
	lashd.On(s, lashd.Method[lashd.JSON, worked]{Name: "operation/task notes.work"}, n.work)
	lashd.On(s, lashd.Method[lashd.None, built]{Name: "task/run build", Member: "outcome"}, buildFor)
	lashd.On(s, lashd.Prompt, n.prompt)
	lashd.On(s, lashd.Catalog, n.leaveOut)
	lashd.On(s, lashd.ProjectProse, func(_ *lashd.Call, prose lashd.StreamChunk) (string, error) {
		return strings.ReplaceAll(prose.Text, "<code>", ""), nil
	})
	decide(s)
	alter(s)
	lashd.RunCells(s, &cells{})
	return nil
}

// decide is what the plugin has to say in hooks that answer with directives.
func decide(s *lashd.Session) {
	lashd.On(s, lashd.BeforeTurn, func(_ *lashd.Call, t lashd.Turn) (lashd.Directives, error) {
		if len(t.Input) > 0 && strings.Contains(fmt.Sprint(t.Input[0].Parts), "curfew") {
			return lashd.Abort("curfew", "go to bed"), nil
		}
		return nil, nil
	})
	lashd.On(s, lashd.BeforeToolCall, func(_ *lashd.Call, tc lashd.ToolCall) (lashd.Directives, error) {
		switch {
		case strings.Contains(string(tc.Args), "secret"):
			return lashd.ReplaceArgs(map[string]string{"text": "masked"}), nil
		case strings.Contains(string(tc.Args), "forbidden"):
			return lashd.Deny("no"), nil
		}
		return nil, nil
	})
	seen := lashd.Trace(lashd.Object{"name": "seen"})
	lashd.On(s, lashd.AfterToolCall, func(*lashd.Call, lashd.ToolCall) (lashd.Directives, error) { return seen, nil })
	for _, seam := range []lashd.Method[lashd.Turn, lashd.Directives]{lashd.Checkpoint, lashd.AfterTurn} {
		lashd.On(s, seam, func(*lashd.Call, lashd.Turn) (lashd.Directives, error) { return seen, nil })
	}
}

// alter is what the plugin does in hooks that answer with what they were given.
func alter(s *lashd.Session) {
	lashd.On(s, lashd.AssistantStream, func(_ *lashd.Call, chunk lashd.StreamChunk) (lashd.StreamChunk, error) {
		chunk.Text = strings.ToUpper(chunk.Text)
		return chunk, nil
	})
	lashd.On(s, lashd.AssistantResponse, func(_ *lashd.Call, r lashd.Object) (lashd.Object, error) { return r, nil })
	lashd.On(s, lashd.StreamFinished, func(*lashd.Call, lashd.Turn) (lashd.None, error) { return lashd.None{}, nil })
	lashd.On(s, lashd.ProjectToolResult, func(_ *lashd.Call, tc lashd.ToolCall) (lashd.Output, error) { return tc.Output, nil })
	lashd.On(s, lashd.ConfigChanged, func(_ *lashd.Call, t lashd.Turn) (lashd.JSON, error) { return t.Config, nil })
	lashd.On(s, lashd.Event, func(*lashd.Call, lashd.Turn) (lashd.None, error) { return lashd.None{}, nil })
	lashd.On(s, lashd.TransformContext, func(_ *lashd.Call, prepared lashd.Object) (lashd.Object, error) {
		delete(prepared, "view")
		return prepared, nil
	})
	lashd.On(s, lashd.Compact, func(*lashd.Call, lashd.Turn) ([]lashd.Object, error) { return nil, nil })
}

func (n *pad) prompt(c *lashd.Call, _ lashd.Turn) ([]lashd.PromptText, error) {
	notes, err := n.kept(c, lashd.None{})
	return []lashd.PromptText{{Slot: "guidance", Content: fmt.Sprintf("%d notes", len(notes))}}, err
}

func (n *pad) leaveOut(c *lashd.Call, _ lashd.Object) ([]string, error) {
	notes, err := n.kept(c, lashd.None{})
	if len(notes) > 0 {
		return []string{"hidden", "spare"}, err
	}
	return []string{"hidden"}, err
}

func (n *pad) kept(*lashd.Call, lashd.None) (list, error) {
	n.Lock()
	defer n.Unlock()
	return slices.Clone(n.notes), nil
}

func (n *pad) noteDown(text string) {
	n.Change(func() {
		n.notes = append(n.notes, text)
		n.Artifacts["all"] = []byte(strings.Join(n.notes, "\n"))
	})
}

// noteArgs are the arguments of the tool, and noteResult is its result.
type (
	noteArgs struct {
		Mode, Text string
		Params     lashd.Object
	}
	noteResult struct {
		Output  lashd.Output `json:"output"`
		Control lashd.Object `json:"control"`
	}
)

func (n *pad) note(c *lashd.Call, args noteArgs) (r noteResult, err error) {
	r.Output = lashd.Succeed(args.Text)
	switch args.Mode {
	case "print":
		fmt.Println(`{"not":"a message"}`)
		echo := exec.CommandContext(c, "echo", `{"nor":"this"}`)
		echo.Stdout = os.Stdout
		err = echo.Run()
	case "raise":
		panic(errors.New("boom"))
	case "wait":
		n.Notify("tool/progress", lashd.Object{"grant": c.Grant, "text": "waiting"})
		<-c.Done()
		n.noteDown("cancelled")
		return r, context.Cause(c)
	case "host":
		r.Output = askBack(c, args.Text, args.Params)
		return r, nil
	case "grow":
		n.Lock()
		n.grown = true
		n.Unlock()
		n.Notify("tools/changed", lashd.Object{"instance": n.Instance})
	case "bulk":
		n.Change(func() { n.Artifacts["bulk"] = make([]byte, 3<<20) })
	case "size":
		n.Lock()
		defer n.Unlock()
		r.Output.Text = strconv.Itoa(len(n.Artifacts["bulk"]))
		return r, nil
	case "finish":
		r.Control = lashd.Object{"kind": "finish", "value": map[string]int{"n": 1}}
	}
	n.noteDown(args.Text)
	return r, err
}

func askBack(c *lashd.Call, method string, params lashd.Object) lashd.Output {
	got, err := lashd.Host[lashd.JSON](c, method, params)
	if refused, ok := errors.AsType[*lashd.Error](err); ok {
		return lashd.Succeed("refused: " + refused.Data.Kind)
	}
	return lashd.Succeed(string(got))
}

// trimmed are arguments as they come.
type trimmed map[string]any

func trim(_ *lashd.Call, args trimmed) (trimmed, error) {
	text, _ := args["text"].(string)
	args["text"] = strings.TrimSpace(text)
	return args, nil
}

func (n *pad) tools(*lashd.Call, lashd.None) ([]lashd.Object, error) {
	n.Lock()
	defer n.Unlock()
	contract := lashd.Object{"replay": "never"}
	all := []lashd.Object{{"name": "note", "description": "Note something.", "contract": contract}}
	if n.grown {
		all = append(all, lashd.Object{"name": "grown", "description": "New.", "contract": contract})
	}
	return all, nil
}

func (n *pad) add(_ *lashd.Call, args json.RawMessage) (lashd.None, error) {
	n.noteDown(string(args))
	return lashd.None{}, nil
}

// worked is the outcome of the task.
type worked struct {
	Output int            `json:"output"`
	Events []lashd.Object `json:"events"`
}

func (n *pad) work(c *lashd.Call, args json.RawMessage) (worked, error) {
	_, err := n.add(c, args)
	return worked{1, []lashd.Object{{"type": "noted", "body": args}}}, err
}

// built is the outcome of the work of a task.
type built struct {
	Kind  string       `json:"kind"`
	Value lashd.Object `json:"value"`
}

func buildFor(c *lashd.Call, _ lashd.None) (built, error) {
	var run struct {
		Task struct {
			TaskID  string
			Attempt int
			Spec    struct{ Payload lashd.JSON }
		}
	}
	err := json.Unmarshal(c.Params, &run)
	for range 2 {
		told := lashd.Object{"taskId": run.Task.TaskID, "name": "seen", "key": "once", "payload": lashd.Object{"n": 1}}
		_, again := lashd.Host[lashd.JSON](c, "taskTell", told)
		err = errors.Join(err, again)
	}
	return built{"completed", lashd.Object{"attempt": run.Task.Attempt, "payload": run.Task.Spec.Payload}}, err
}

// cells runs code that is a name of a global and appends a mark to that global. A tool call and all that a cell can ask
// of lashd are in what it prints.
type cells struct{ values map[string]string }

func (x *cells) Describe(_ *lashd.Call, tools []lashd.Object) (language, guide string, err error) {
	return "words", fmt.Sprint(len(tools), " tools"), nil
}

func (x *cells) Execute(c *lashd.Cell) (r lashd.CellReply, err error) {
	if c.Source == "ask" {
		outputs, err := c.CallTools(lashd.Object{"name": "note", "args": lashd.Object{"text": "a"}}, lashd.Object{"name": "note", "args": lashd.Object{"text": "b"}})
		if err != nil {
			return r, err
		}
		now, err1 := c.Now()
		random, err2 := c.Random()
		history, err3 := c.History()
		r.Printed = fmt.Sprint(outputs[0].Text, " ", outputs[1].Text, " ", now/1e9, " ", len(random), " ", len(history), " ", len(c.Tools))
		return r, errors.Join(err1, err2, err3)
	}
	if x.values == nil {
		x.values = map[string]string{}
	}
	x.values[c.Source] += c.Source + ";"
	r.Printed, r.Changed = x.values[c.Source], []string{c.Source}
	return r, nil
}

func (x *cells) Snapshot() (lashd.CodeChange, error) {
	change := lashd.CodeChange{Changed: map[string][]byte{}}
	for name, text := range x.values {
		change.Changed[name] = []byte(text)
		change.Globals = append(change.Globals, lashd.Object{"name": name, "type": "text", "size": len(text)})
	}
	return change, nil
}

func (x *cells) Restore(values map[string][]byte) error {
	x.values = map[string]string{}
	for name, data := range values {
		x.values[name] = string(data)
	}
	return nil
}
