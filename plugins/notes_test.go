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
	p := lashd.New[list]("1")
	p.Blank = func() list { return list{} }
	lashd.Tool(p, "note", runNote)
	lashd.Prepare(p, "note", trim)
	lashd.On(p, lashd.ToolList, toolsOf)
	lashd.Operation(p, "notes.list", listNotes)
	lashd.Operation(p, "notes.add", addNote)
	lashd.Operation(p, "notes.work", addNote)
	lashd.On(p, lashd.Prompt, func(c *notesCall, _ lashd.Turn) ([]lashd.PromptText, error) {
		return []lashd.PromptText{{Slot: "guidance", Content: fmt.Sprintf("%d notes", len(kept(c)))}}, nil
	})
	decide(p)
	alter(p)
	lashd.On(p, lashd.CodeExecute, func(c *notesCall, source string) (lashd.CodeReply, error) {
		all := cells(c) + source
		c.Session.Values.Store("cells", all)
		return lashd.CodeReply{Printed: all}, nil
	})
	lashd.On(p, lashd.CodeSnapshot, func(c *notesCall, _ lashd.None) ([]byte, error) { return []byte(cells(c)), nil })
	lashd.On(p, lashd.CodeRestore, func(c *notesCall, state []byte) (lashd.None, error) {
		c.Session.Values.Store("cells", string(state))
		return lashd.None{}, nil
	})
	p.Run()
}

// decide is what the plugin has to say in hooks that answer with directives.
func decide(p *lashd.Plugin[list]) {
	lashd.On(p, lashd.BeforeTurn, func(_ *notesCall, t lashd.Turn) (lashd.Directives, error) {
		if len(t.Input) > 0 && strings.Contains(t.Input[0].Parts[0].Text, "curfew") {
			return lashd.Abort("curfew", "go to bed"), nil
		}
		return nil, nil
	})
	lashd.On(p, lashd.BeforeToolCall, func(_ *notesCall, tc lashd.ToolCall) (lashd.Directives, error) {
		switch {
		case strings.Contains(string(tc.Args), "secret"):
			return lashd.ReplaceArgs(map[string]string{"text": "masked"}), nil
		case strings.Contains(string(tc.Args), "forbidden"):
			return lashd.Deny("no"), nil
		}
		return nil, nil
	})
	lashd.On(p, lashd.AfterToolCall, func(*notesCall, lashd.ToolCall) (lashd.Directives, error) { return lashd.Trace("seen", nil), nil })
	for _, seam := range []lashd.Method[lashd.Turn, lashd.Directives]{lashd.Checkpoint, lashd.AfterTurn} {
		lashd.On(p, seam, func(*notesCall, lashd.Turn) (lashd.Directives, error) { return lashd.Trace("seen", nil), nil })
	}
}

// alter is what the plugin does in hooks that answer with what they were given.
func alter(p *lashd.Plugin[list]) {
	lashd.On(p, lashd.AssistantStream, func(_ *notesCall, chunk lashd.StreamChunk) (lashd.StreamChunk, error) {
		chunk.Text = strings.ToUpper(chunk.Text)
		return chunk, nil
	})
	lashd.On(p, lashd.AssistantResponse, func(_ *notesCall, r lashd.Response) (lashd.Response, error) { return r, nil })
	lashd.On(p, lashd.StreamFinished, func(*notesCall, lashd.StreamEnd) (lashd.None, error) { return lashd.None{}, nil })
	lashd.On(p, lashd.ProjectToolResult, func(_ *notesCall, tc lashd.ToolCall) (lashd.Output, error) { return tc.Output, nil })
	lashd.On(p, lashd.ConfigChanged, func(_ *notesCall, cc lashd.ConfigChange) (lashd.JSON, error) { return cc.Config, nil })
	lashd.On(p, lashd.Event, func(*notesCall, lashd.Turn) (lashd.None, error) { return lashd.None{}, nil })
	lashd.On(p, lashd.TransformContext, func(_ *notesCall, pc lashd.PreparedContext) (lashd.Preparation, error) {
		return pc.Preparation, nil
	})
	lashd.On(p, lashd.Compact, func(*notesCall, lashd.Turn) ([]lashd.Object, error) { return nil, nil })
}

func kept(c *notesCall) (notes list) {
	c.Session.Look(func(state *list) { notes = append(notes, *state...) })
	return notes
}

func noteDown(s *notesSession, text string) {
	s.Change(func(notes *list) {
		*notes = append(*notes, text)
		s.Artifacts["all"] = []byte(strings.Join(*notes, "\n"))
	})
}

// noteArgs are the arguments of the tool.
type noteArgs struct{ Mode, Text string }

func runNote(c *notesCall, args noteArgs) (r lashd.Result, err error) {
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
		c.Progress("waiting")
		<-c.Done()
		noteDown(c.Session, "cancelled")
		return r, context.Cause(c)
	case "host":
		return askBack(c, args.Text), nil
	case "grow":
		c.Session.Values.Store("grown", true)
		c.Session.ToolsChanged()
	case "bulk":
		c.Session.Change(func(*list) { c.Session.Artifacts["bulk"] = make([]byte, 3<<20) })
	case "size":
		c.Session.Look(func(*list) { r.Output.Text = strconv.Itoa(len(c.Session.Artifacts["bulk"])) })
		return r, nil
	case "finish":
		r.Control = lashd.Object{"kind": "finish", "value": map[string]int{"n": 1}}
	}
	c.Progress("noting")
	noteDown(c.Session, args.Text)
	return r, err
}

func askBack(c *notesCall, method string) (r lashd.Result) {
	var got json.RawMessage
	err := c.Host(method, nil, &got)
	r.Output = lashd.Succeed(string(got))
	if refused, ok := errors.AsType[*lashd.Error](err); ok {
		r.Output = lashd.Succeed("refused: " + refused.Data.Kind)
	}
	return r
}

func trim(_ *notesCall, args map[string]string) (map[string]string, error) {
	args["text"] = strings.TrimSpace(args["text"])
	return args, nil
}

func toolsOf(c *notesCall, _ lashd.None) ([]lashd.ToolManifest, error) {
	all := []lashd.ToolManifest{{Name: "note", Description: "Note something."}}
	if _, grown := c.Session.Values.Load("grown"); grown {
		all = append(all, lashd.ToolManifest{Name: "grown", Description: "New."})
	}
	return all, nil
}

func listNotes(c *notesCall, _ lashd.None) (lashd.Outcome, error) {
	return lashd.Outcome{Output: append(list{}, kept(c)...)}, nil
}

func addNote(c *notesCall, args lashd.JSON) (r lashd.Outcome, err error) {
	noteDown(c.Session, string(args))
	return r, nil
}

// cells are what was run.
func cells(c *notesCall) string {
	all, _ := c.Session.Values.Load("cells")
	text, _ := all.(string)
	return text
}
