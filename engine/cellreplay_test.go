package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// callingCells is an executor that repeats cells. A cell calls the tool "note" once for each word of its source.
type callingCells struct {
	memory
	run func(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error)
}

func (c *callingCells) ReplaysCells() bool { return true }

func (c *callingCells) Execute(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
	c.add(call.Source)
	return c.run(ctx, call, host)
}

// note is a request for the tool "note".
func note(text string) tool.Request {
	return tool.Request{Name: "note", Args: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}
}

// printed returns a reply with the outputs of calls.
func printedOf(out []protocol.ToolOutput) turn.CellReply {
	var texts []string
	for _, o := range out {
		texts = append(texts, o.Text)
	}
	return turn.CellReply{Printed: strings.Join(texts, ",")}
}

// noting is a daemon whose cells run f. The tool "note" repeats its text and remembers it.
func noting(w *words, made *notes, f func(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error)) setup {
	s := coded(w)
	s.driver = scheme{driver: coding{}, executor: func() plugin.CodeExecutor { return &callingCells{memory{words: w}, f} }}
	s.tools = []tool.Provider{toolFunc{name: "note", run: func(_ context.Context, call tool.Invocation) (tool.Result, error) {
		var args struct{ Text string }
		err := json.Unmarshal(call.Args, &args)
		made.add(args.Text)
		return tool.Result{Output: protocol.Succeed(args.Text)}, err
	}}}
	return s
}

func TestCellCalls(t *testing.T) {
	t.Run("runtime/R09 a cell calls tools together and gets their outputs in order", func(t *testing.T) {
		made := &notes{}
		d := start(t, noting(&words{}, made, func(ctx context.Context, _ *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
			out, err := host.Call(ctx, []tool.Request{note("a"), note("b"), {Name: "missing", Args: json.RawMessage(`{}`)}})
			return printedOf(out), err
		}))
		id := d.session(t)
		report := d.turn(t, id, "run x")
		if len(report.ToolCalls) != 3 || report.ToolCalls[0].Parent == "" || report.ToolCalls[2].Output.Status != protocol.OutputFailure {
			t.Errorf("recorded %+v", report.ToolCalls)
		}
		all := d.graph(t, id).Data
		if got := all[len(all)-2].Message.Parts[0].Text; !strings.HasPrefix(got, "printed a,b,") {
			t.Errorf("the model sees %q", got)
		}
	})
	for name, c := range map[string]struct {
		ceiling *protocol.Ceiling
		ran     string
	}{
		"nobody":                      {nil, "[one]"},
		"a session of another driver": {&protocol.Ceiling{Policies: []protocol.Policy{{Driver: "another", Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow}}}}, "[one]"},
		"a session that denies calls": {&protocol.Ceiling{Policies: []protocol.Policy{{Driver: "another", Approval: protocol.ApprovalConfig{Mode: protocol.ApproveDeny}}}}, "[]"},
		"a session without tools":     {&protocol.Ceiling{NoTools: true}, "[]"},
		"a session in plan mode":      {&protocol.Ceiling{ReadOnly: true}, "[]"},
	} {
		t.Run("outside/1 confined code of a session that was requested by "+name+" runs, and its calls are judged", func(t *testing.T) {
			made, w := &notes{}, &words{}
			d := start(t, noting(w, made, func(ctx context.Context, _ *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
				out, err := host.Call(ctx, []tool.Request{note("one")})
				return printedOf(out), err
			}))
			p := &protocol.SessionNewParams{Cwd: t.TempDir(), Authority: protocol.Authority{Ceiling: c.ceiling}}
			d.turn(t, must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID, "run x")
			if got := fmt.Sprint(made.all()); len(w.all()) != 1 || got != c.ran {
				t.Errorf("%d cells ran, and the tool ran for %s", len(w.all()), got)
			}
		})
	}
	t.Run("runtime/R10 a cell that a crash interrupted runs again, and its calls do not", func(t *testing.T) {
		made, w := &notes{}, &words{}
		arrived, over := make(chan struct{}, 10), false
		var seen []string
		s := noting(w, made, func(ctx context.Context, _ *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
			at, err := host.Now(ctx)
			if err != nil {
				return turn.CellReply{}, err
			}
			dice, err := host.Random(ctx)
			if err != nil {
				return turn.CellReply{}, err
			}
			seen = append(seen, fmt.Sprint(at.UnixNano(), dice))
			out, err := host.Call(ctx, []tool.Request{note("one")})
			if err != nil {
				return turn.CellReply{}, err
			}
			arrived <- struct{}{}
			if !over {
				<-ctx.Done()
				return turn.CellReply{}, ctx.Err()
			}
			more, err := host.Call(ctx, []tool.Request{note("two")})
			return printedOf(append(out, more...)), err
		})
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "run x").TurnID
		<-arrived
		d.stop()
		over = true
		d = d.restart(t, nil)
		if report := d.wait(t, turn); report.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s %+v", report.State, report.Issues)
		}
		all := d.graph(t, id).Data
		if got := all[len(all)-2].Message.Parts[0].Text; got != "printed one,two error " {
			t.Errorf("the model sees %q", got)
		}
		if got := made.all(); fmt.Sprint(got) != "[one two]" || len(w.all()) != 2 {
			t.Errorf("the tool ran for %q in %d runs of the cell", got, len(w.all()))
		}
		if len(seen) != 2 || seen[0] != seen[1] {
			t.Errorf("time and chance were %q", seen)
		}
	})
	t.Run("runtime/R10 a cell that makes other calls when it runs again ends its turn and calls nothing", func(t *testing.T) {
		made, w := &notes{}, &words{}
		arrived, text := make(chan struct{}, 10), "one"
		s := noting(w, made, func(ctx context.Context, _ *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
			_, err := host.Call(ctx, []tool.Request{note(text)})
			if err != nil {
				return turn.CellReply{Error: "caught: " + err.Error()}, nil
			}
			arrived <- struct{}{}
			<-ctx.Done()
			return turn.CellReply{}, ctx.Err()
		})
		d := start(t, s)
		turn := d.begin(t, d.session(t), "run x").TurnID
		<-arrived
		d.stop()
		text = "other"
		d = d.restart(t, nil)
		report := d.wait(t, turn)
		if report.State != protocol.TurnFailed || len(report.Issues) == 0 || report.Issues[0].Code != "nondeterministic_cell" {
			t.Errorf("the turn ended as %s %+v", report.State, report.Issues)
		}
		if got := made.all(); fmt.Sprint(got) != "[one]" {
			t.Errorf("the tool ran for %q", got)
		}
	})
	t.Run("runtime/R07 the globals of a cell are stored with its result", func(t *testing.T) {
		s := coded(&words{})
		asked, held := make(chan struct{}, 10), make(chan struct{})
		s.model = pausing(s.model, asked, held)
		d := start(t, s)
		id := d.session(t)
		first := d.begin(t, id, "run a").TurnID
		<-asked // the cell has its result, and the turn goes on
		d.stop()
		close(held)
		d = d.restart(t, nil)
		d.wait(t, first)
		if got := d.ran(t, id, "b"); got != "printed ab error " {
			t.Errorf("after the restart the model sees %q", got)
		}
	})
}

// pausing is a model that says on asked when it gets the output of a cell, and then waits for held.
func pausing(model provider.Provider, asked chan<- struct{}, held <-chan struct{}) provider.Provider {
	return modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		if req.Messages[len(req.Messages)-1].Parts[0].Kind == protocol.PartOutput {
			asked <- struct{}{}
			select {
			case <-held:
			case <-ctx.Done():
				return
			}
		}
		for chunk, err := range model.Stream(ctx, req) {
			if !yield(chunk, err) {
				return
			}
		}
	})
}
