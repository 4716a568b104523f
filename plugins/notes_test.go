//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	lashd "lashd/plugins/sdk/go/lashdplugin"
)

// list is what the plugin keeps.
type list []string

type (
	notesCall    = lashd.Call[list]
	notesSession = lashd.Session[list]
)

// serveNotes is the plugin of testdata in Go.
func serveNotes() {
	traced := func() ([]lashd.Directive, error) { return []lashd.Directive{lashd.TraceWith("seen", nil)}, nil }
	lashd.Run(lashd.Plugin[list]{
		State: "1", New: func() list { return list{} }, Executor: cells{},
		Tools:    map[string]func(context.Context, *notesCall) (lashd.Result, error){"note": runNote},
		Prepare:  map[string]func(context.Context, *notesCall) (json.RawMessage, error){"note": trim},
		ToolList: toolsOf,
		Operations: map[string]func(context.Context, *notesCall) (lashd.OperationResult, error){
			"notes.list": listNotes, "notes.add": addNote, "notes.work": addNote,
		},
		Prompt: func(_ context.Context, c *notesCall, _ *lashd.PromptContext) ([]lashd.Prompt, error) {
			return []lashd.Prompt{{Slot: "guidance", Content: fmt.Sprintf("%d notes", len(kept(c)))}}, nil
		},
		BeforeTurn: func(_ context.Context, _ *notesCall, tc *lashd.TurnContext) ([]lashd.Directive, error) {
			if len(tc.Input) > 0 && strings.Contains(tc.Input[0].Parts[0].Text, "curfew") {
				return []lashd.Directive{lashd.Abort("curfew", "go to bed")}, nil
			}
			return nil, nil
		},
		BeforeToolCall: func(_ context.Context, _ *notesCall, tc *lashd.ToolCallContext) ([]lashd.Directive, error) {
			switch {
			case strings.Contains(string(tc.Args), "secret"):
				return []lashd.Directive{lashd.ReplaceArgs(json.RawMessage(`{"text":"masked"}`))}, nil
			case strings.Contains(string(tc.Args), "forbidden"):
				return []lashd.Directive{lashd.Deny("no")}, nil
			}
			return nil, nil
		},
		AfterToolCall: func(context.Context, *notesCall, *lashd.ToolResultContext) ([]lashd.Directive, error) {
			return traced()
		},
		Checkpoint: func(context.Context, *notesCall, *lashd.CheckpointContext) ([]lashd.Directive, error) {
			return traced()
		},
		AfterTurn: func(context.Context, *notesCall, *lashd.TurnSummary) ([]lashd.Directive, error) { return traced() },
		AssistantStream: func(_ context.Context, _ *notesCall, chunk *lashd.StreamChunk) (*lashd.StreamChunk, error) {
			chunk.Text = strings.ToUpper(chunk.Text)
			return chunk, nil
		},
		AssistantResponse: func(_ context.Context, _ *notesCall, r *lashd.Response) (*lashd.Response, error) { return r, nil },
		StreamFinished:    func(context.Context, *notesCall, *lashd.StreamEnd) error { return nil },
		ProjectToolResult: func(_ context.Context, _ *notesCall, tc *lashd.ToolResultContext) (lashd.Output, error) {
			return tc.Output, nil
		},
		ConfigChanged: func(_ context.Context, _ *notesCall, cc *lashd.ConfigChange) (json.RawMessage, error) {
			return cc.Config, nil
		},
		Event: func(context.Context, *notesCall, *lashd.LifecycleEvent) error { return nil },
		TransformContext: func(_ context.Context, _ *notesCall, pc *lashd.PreparedContext) (*lashd.PreparedContext, error) {
			return pc, nil
		},
		Compact: func(context.Context, *notesCall, *lashd.CompactRequest) ([]lashd.Node, error) { return nil, nil },
	})
}

func kept(c *notesCall) (notes list) {
	c.Session.Look(func(state *list, _ map[string][]byte) { notes = append(notes, *state...) })
	return notes
}

func noteDown(s *notesSession, text string) {
	s.Change(func(notes *list, artifacts map[string][]byte) {
		*notes = append(*notes, text)
		artifacts["all"] = []byte(strings.Join(*notes, "\n"))
	})
}

func runNote(ctx context.Context, c *notesCall) (r lashd.Result, err error) {
	var args struct{ Mode, Text string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return r, err
	}
	r.Output = lashd.Succeed(args.Text)
	switch args.Mode {
	case "print":
		fmt.Println(`{"not":"a message"}`)
		echo := exec.CommandContext(ctx, "echo", `{"nor":"this"}`)
		echo.Stdout = os.Stdout
		err = echo.Run()
	case "raise":
		panic(errors.New("boom"))
	case "wait":
		c.Progress("waiting")
		<-ctx.Done()
		noteDown(c.Session, "cancelled")
		return r, context.Cause(ctx)
	case "host":
		return askBack(ctx, c, args.Text), nil
	case "grow":
		c.Session.Values.Store("grown", true)
		c.Session.ToolsChanged()
	case "bulk":
		c.Session.Change(func(_ *list, artifacts map[string][]byte) { artifacts["bulk"] = make([]byte, 3<<20) })
	case "size":
		c.Session.Look(func(_ *list, artifacts map[string][]byte) { r.Output.Text = strconv.Itoa(len(artifacts["bulk"])) })
		return r, nil
	case "finish":
		r.Control = json.RawMessage(`{"kind":"finish","value":{"n":1}}`)
	}
	c.Progress("noting")
	noteDown(c.Session, args.Text)
	return r, err
}

func askBack(ctx context.Context, c *notesCall, method string) (r lashd.Result) {
	var got json.RawMessage
	err := c.Host(ctx, method, nil, &got)
	r.Output = lashd.Succeed(string(got))
	if refused, ok := errors.AsType[*lashd.Error](err); ok {
		r.Output = lashd.Succeed("refused: " + refused.Data.Kind)
	}
	return r
}

func trim(_ context.Context, c *notesCall) (json.RawMessage, error) {
	var args map[string]string
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	args["text"] = strings.TrimSpace(args["text"])
	return json.Marshal(args)
}

func toolsOf(s *notesSession) []lashd.Tool {
	all := []lashd.Tool{{Name: "note", Description: "Note something."}}
	if _, grown := s.Values.Load("grown"); grown {
		all = append(all, lashd.Tool{Name: "grown", Description: "New."})
	}
	return all
}

func listNotes(_ context.Context, c *notesCall) (r lashd.OperationResult, err error) {
	r.Output, err = json.Marshal(append(list{}, kept(c)...))
	return r, err
}

func addNote(_ context.Context, c *notesCall) (r lashd.OperationResult, err error) {
	noteDown(c.Session, string(c.Args))
	return r, nil
}

// cells keeps what was run.
type cells struct{}

func (cells) Execute(_ context.Context, c *notesCall, source string) (lashd.CellReply, error) {
	before, _ := c.Session.Values.Load("cells")
	all, _ := before.(string)
	c.Session.Values.Store("cells", all+source)
	return lashd.CellReply{Printed: all + source}, nil
}

func (cells) Snapshot(s *notesSession) ([]byte, error) {
	all, _ := s.Values.Load("cells")
	text, _ := all.(string)
	return []byte(text), nil
}

func (cells) Restore(s *notesSession, state []byte) error {
	s.Values.Store("cells", string(state))
	return nil
}
