package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/rpc/protocol"
)

// requests reads calls from words such as look={"path":"a"}.
func requests(words string) (all []tool.Request) {
	for word := range strings.FieldsSeq(words) {
		name, args, _ := strings.Cut(word, "=")
		all = append(all, tool.Request{Name: name, Args: json.RawMessage(args)})
	}
	return all
}

// cellCallLine returns a call of a cell on one line.
func cellCallLine(c *protocol.CellCall) string {
	return fmt.Sprintf("%d %s %s %s %d ms %q", c.Index, c.Tool, c.Args, c.Status, c.DurationMs, c.Summary)
}

// taking is a tool that takes ms milliseconds.
func taking(name string, ms int, out protocol.ToolOutput) toolFunc {
	return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		return tool.Result{Output: out}, nil
	}}
}

func TestCellCallsAreShown(t *testing.T) {
	t.Run("issue/19-8 each call of a running cell is shown when it begins and ends, and the result keeps the calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := calculating(replies(scripted.Reply{Text: calcCell("", "call look={\"path\":\"a\"} deny gone\ncall look\nprint x")}, scripted.Reply{Text: "done"}))
			s.tools = []tool.Provider{taking("look", 30, protocol.Succeed("one\n two")), taking("deny", 10, protocol.Fail(protocol.FailPermission, "no", "not allowed", protocol.FromTool))}
			d := start(t, s)
			id := d.session(t)
			o := d.observe(t, id)
			agrees(t, d, o, d.turn(t, id, "go"))
			var live []string
			var cell protocol.ItemID
			for _, e := range o.of(protocol.EventCellCall) {
				live = append(live, cellCallLine(e.CellCall))
				if cell = e.ItemID; e.Seq != 0 {
					t.Errorf("the event is durable: %+v", e)
				}
			}
			want := []string{
				`1 look {"path":"a"} inProgress 0 ms ""`, `2 deny {} inProgress 0 ms ""`, `3 gone {} inProgress 0 ms ""`,
				`2 deny {} failed 10 ms "not allowed"`, `1 look {"path":"a"} completed 30 ms "one two"`, `3 gone {} failed 0 ms "`,
				`4 look {} inProgress 0 ms ""`, `4 look {} completed 30 ms "one two"`,
			}
			if !slices.EqualFunc(live, want, strings.HasPrefix) {
				t.Errorf("subscribers saw\n%s", strings.Join(live, "\n"))
			}
			stored := must[*protocol.SessionReadResult](t)(d.restart(t, nil).Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data
			at := slices.IndexFunc(stored, func(i protocol.Item) bool { return i.ID == cell })
			if at < 0 || stored[at].Cell == nil {
				t.Fatalf("history has %+v", stored)
			}
			var kept []string
			for _, c := range stored[at].Cell.Calls {
				kept = append(kept, cellCallLine(&c))
			}
			want = []string{`1 look {"path":"a"} completed 30 ms "one two"`, `2 deny {} failed 10 ms "not allowed"`, `3 gone {} failed 0 ms "`, `4 look {} completed 30 ms "one two"`}
			if !slices.EqualFunc(kept, want, strings.HasPrefix) || stored[at].Cell.DurationMs != 60 || stored[at].Cell.MoreCalls != 0 {
				t.Errorf("after a restart the cell took %d ms, with %d more calls than\n%s", stored[at].Cell.DurationMs, stored[at].Cell.MoreCalls, strings.Join(kept, "\n"))
			}
		})
	})
	t.Run("issue/19-8 a cell of many calls keeps the first ones and the number of the others", func(t *testing.T) {
		s := calculating(replies(scripted.Reply{Text: calcCell("", strings.Repeat("call look\n", 130))}, scripted.Reply{Text: "done"}))
		s.tools = []tool.Provider{says("look", "x")}
		d := start(t, s)
		id := d.session(t)
		o := d.observe(t, id)
		o.over(d.turn(t, id, "go").TurnID)
		ended := o.of(protocol.EventItemCompleted)
		at := slices.IndexFunc(ended, func(e protocol.Event) bool { return e.Item.Kind == protocol.ItemCodeCell })
		cell := ended[at].Item.Cell
		if len(cell.Calls) != 128 || cell.MoreCalls != 2 || cell.Calls[127].Index != 128 {
			t.Errorf("the result has %d calls and %d more", len(cell.Calls), cell.MoreCalls)
		}
	})
	t.Run("issue/19-8 in the trace a cell is a span with its calls as children", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			config, records := traced(t)
			s := calculating(replies(scripted.Reply{Text: calcCell("", "call look\nset a 1\noops")}, scripted.Reply{Text: "done"}))
			s.tools, s.config = []tool.Provider{taking("look", 30, protocol.Succeed("x"))}, config
			d := start(t, s)
			d.turn(t, d.session(t), "go")
			d.stop()
			all, _ := records()
			of := kinds(all)
			if len(of[trace.CellStarted]) != 1 || len(of[trace.CellCompleted]) != 1 || len(of[trace.ToolCompleted]) != 1 {
				t.Fatalf("the trace has %v", all)
			}
			begun, ended, call := of[trace.CellStarted][0], of[trace.CellCompleted][0], of[trace.ToolCompleted][0]
			if want := `{"language":"calc","sourceBytes":22}`; string(begun.Body) != want || begun.CallID == "" || ended.CallID != begun.CallID {
				t.Errorf("the cell begins with %s as %q and ends as %q", begun.Body, begun.CallID, ended.CallID)
			}
			if want := `{"language":"calc","sourceBytes":22,"failed":true,"toolCalls":1,"changedGlobals":1,"durationMs":30}`; string(ended.Body) != want {
				t.Errorf("the cell ends with %s", ended.Body)
			}
			if want := `"parent":"` + string(begun.CallID) + `"`; !strings.Contains(string(call.Body), want) || !strings.Contains(string(call.Body), `"durationMs":30`) {
				t.Errorf("the call is %s", call.Body)
			}
		})
	})
}
