package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"lashd/persistence"
	"lashd/rpc"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

func (e *environment) client(ctx context.Context, start bool, onEvent func(json.RawMessage)) (*client.Client, error) {
	conn, err := e.connect(ctx, start)
	if err != nil {
		return nil, err
	}
	c := client.New(ctx, conn, onEvent)
	if _, err := c.Initialize(ctx, "lashd-cli"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

type callCommand struct {
	Method string `arg:"" help:"Name of the method, such as session/list."`
	Params string `arg:"" optional:"" default:"{}" help:"Its params as JSON."`
}

func (c callCommand) Run(ctx context.Context, e *environment) error {
	if !json.Valid([]byte(c.Params)) {
		return &exitError{exitUsage, fmt.Errorf("the params are not JSON: %s", c.Params)}
	}
	cl, err := e.client(ctx, true, nil)
	if err != nil {
		return err
	}
	defer cl.Close()
	var result json.RawMessage
	if err := cl.Call(ctx, c.Method, json.RawMessage(c.Params), &result); err != nil {
		return err
	}
	fmt.Println(string(result))
	return nil
}

type runCommand struct {
	Prompt  []string `arg:"" help:"What the agent is to do."`
	Session string   `help:"Go on in this session instead of a new one." placeholder:"ID"`
	Cwd     string   `help:"Workspace. Default: the current directory." placeholder:"DIR"`
	Allow   bool     `help:"Allow every tool call without asking."`
	JSON    bool     `help:"Print one event a line instead of the answer's text."`
}

func (c runCommand) Run(ctx context.Context, e *environment) error {
	out := &printer{json: c.JSON}
	cl, err := e.client(ctx, true, out.event)
	if err != nil {
		return err
	}
	defer cl.Close()
	id, err := c.session(ctx, cl)
	if err != nil {
		return err
	}
	var report protocol.TurnReport
	err = cl.Call(ctx, "turn/run", protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: id,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: strings.Join(c.Prompt, " ")}},
	}, &report)
	if err != nil {
		return err
	}
	out.end()
	return outcomeError(report)
}

func (c runCommand) session(ctx context.Context, cl *client.Client) (protocol.SessionID, error) {
	if c.Session != "" {
		var r protocol.SessionAttachResult
		return protocol.SessionID(c.Session), cl.Call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: protocol.SessionID(c.Session)}, &r)
	}
	cwd := c.Cwd
	if cwd == "" {
		var err error
		if cwd, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	p := protocol.SessionNewParams{Cwd: cwd, Unknown: protocol.UnknownOutcomeRule{DeadlineMs: new(int64)}}
	// Nobody watches who could answer: what would be asked is denied, unless everything is allowed.
	p.Approval = &protocol.ApprovalConfig{DeadlineMs: 1}
	if c.Allow {
		p.Approval = &protocol.ApprovalConfig{Mode: protocol.ApproveAllow}
	}
	var r protocol.SessionNewResult
	err := cl.Call(ctx, "session/new", p, &r)
	return r.SessionID, err
}

func outcomeError(r protocol.TurnReport) error {
	if r.Outcome == nil {
		return &exitError{exitFailed, errors.New("the turn has not ended")}
	}
	switch {
	case r.State == protocol.TurnCancelled:
		return &exitError{exitCancelled, errors.New("the turn was cancelled")}
	case r.State != protocol.TurnCompleted:
		return &exitError{exitFailed, fmt.Errorf("the turn ended as %s: %s", r.Outcome.Kind, r.Outcome.Text)}
	}
	for _, call := range r.ToolCalls {
		if f := call.Output.Failure; f != nil && f.Code == "denied" {
			return &exitError{exitDenied, fmt.Errorf("a call of %s was denied; --allow allows all calls", call.Name)}
		}
	}
	return nil
}

// printer shows a turn on stdout: the answer's text, or events as they come.
type printer struct {
	json bool
	text bool
}

func (p *printer) event(raw json.RawMessage) {
	if p.json {
		fmt.Println(string(raw))
		return
	}
	var ev protocol.Event
	if json.Unmarshal(raw, &ev) != nil {
		return
	}
	switch {
	case ev.Type == protocol.EventItemDelta:
		fmt.Print(ev.Text)
		p.text = true
	case ev.Type == protocol.EventItemStarted && ev.Item != nil && ev.Item.Kind == protocol.ItemToolCall:
		p.end()
		fmt.Fprintf(os.Stderr, "[%s %s]\n", ev.Item.Tool, ev.Item.Args)
	case ev.Type == protocol.EventRetryStatus && ev.Retry != nil:
		fmt.Fprintf(os.Stderr, "[waiting %d ms: %s]\n", ev.Retry.WaitMs, ev.Retry.Reason)
	}
}

func (p *printer) end() {
	if p.text && !p.json {
		fmt.Println()
	}
	p.text = false
}

type tailCommand struct {
	Session string `arg:"" help:"Session to follow."`
	After   uint64 `help:"Replay what came after this seq." default:"0"`
}

func (c tailCommand) Run(ctx context.Context, e *environment) error {
	cl, err := e.client(ctx, false, func(raw json.RawMessage) { fmt.Println(string(raw)) })
	if err != nil {
		return err
	}
	defer cl.Close()
	after := protocol.Seq(c.After)
	var r protocol.SessionAttachResult
	if err := cl.Call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: protocol.SessionID(c.Session), AfterSeq: &after}, &r); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-cl.Gone():
		return &exitError{exitNoDaemon, errors.New("the daemon went away; run the command again to go on")}
	}
}

type sessionCommand struct {
	JSON bool `help:"Print JSON."`
}

func (c sessionCommand) Run(ctx context.Context, e *environment) error {
	cl, err := e.client(ctx, true, nil)
	if err != nil {
		return err
	}
	defer cl.Close()
	var r protocol.SessionListResult
	if err := cl.Call(ctx, "session/list", protocol.SessionListParams{}, &r); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r.Data)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATE\tTURNS\tUPDATED\tDIRECTORY\tTITLE")
	for _, s := range r.Data {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", s.ID, s.State, s.TurnIndex, time.UnixMilli(s.UpdatedAtMs).Format(time.DateTime), s.Cwd, s.Title)
	}
	return w.Flush()
}

type toolCommand struct {
	Session string `arg:"" help:"Session whose tools to list."`
}

func (c toolCommand) Run(ctx context.Context, e *environment) error {
	cl, err := e.client(ctx, true, nil)
	if err != nil {
		return err
	}
	defer cl.Close()
	var r protocol.ToolListResult
	if err := cl.Call(ctx, "tool/list", protocol.SessionParams{SessionID: protocol.SessionID(c.Session)}, &r); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tSOURCE\tMEMBER\tREPLAY\tTOKENS")
	for _, t := range r.Data {
		fmt.Fprintf(w, "%s\t%s\t%t\t%s\t%d\n", t.Name, t.Source, t.Member, t.Contract.Replay, t.Tokens)
	}
	return w.Flush()
}

type schemaCommand struct{}

func (schemaCommand) Run() error {
	fmt.Println(string(rpc.OpenRPC()))
	return nil
}

type doctorCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run asks the daemon if there is one, and else checks the database itself.
func (c doctorCommand) Run(ctx context.Context, e *environment) error {
	if cl, err := e.client(ctx, false, nil); err == nil {
		defer cl.Close()
		var status, used json.RawMessage
		err := errors.Join(cl.Call(ctx, "server/status", nil, &status), cl.Call(ctx, "server/diagnostics", nil, &used))
		fmt.Printf("%s\n%s\n", status, used)
		return err
	}
	lock, err := socket.Acquire(e.home) // a daemon may be starting just now
	if err != nil {
		return err
	}
	defer lock.Release()
	store, err := persistence.Open(ctx, persistence.Config{Dir: e.home, Log: e.log, Progress: func(s string) { e.log.Info(s) }})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { store.Run(running); close(done) }()
	found, err := store.Verify(ctx, func(n, all int) {
		if terminal(os.Stderr) {
			fmt.Fprintf(os.Stderr, "\rverified %d of %d sessions", n, all)
		}
	})
	stop()
	<-done
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		return err
	}
	if len(found.Problems) > 0 {
		return &exitError{exitFailed, fmt.Errorf("%d problems were found", len(found.Problems))}
	}
	return nil
}
