package history_test

import (
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/history"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// texts returns the text of messages without reasoning.
func texts(messages []protocol.Message) string {
	var list []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind != protocol.PartReasoning {
				list = append(list, p.Text)
			}
		}
	}
	return strings.Join(list, "|")
}

const summarises = "Summarise the conversation"

// model answers the summariser with summary, and every other request with the text "ok".
func model(summary ...scripted.Reply) *builtintest.Recorder {
	return &builtintest.Recorder{Provider: scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: summarises}, Replies: summary}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Reasoning: "musing", Text: "ok"}}},
	})}
}

// lastInput returns the last input that the model got.
func lastInput(t *testing.T, m *builtintest.Recorder) string {
	t.Helper()
	messages := m.Last(t).Messages
	return messages[len(messages)-1].Text(protocol.PartText)
}

// compact compacts a session and reports whether history was compacted.
func compact(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) (bool, error) {
	t.Helper()
	r, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id, Instructions: "mind the gap"})
	if err != nil {
		return false, err
	}
	return r.Compacted, nil
}

// seen returns the messages that the model sees in another turn.
func seen(t *testing.T, d *builtintest.Daemon, m *builtintest.Recorder, id protocol.SessionID) string {
	t.Helper()
	d.Turn(t, id, "and now?")
	return texts(m.Last(t).Messages)
}

func TestCompact(t *testing.T) {
	const window = 2000 // 500 tokens are kept: room for one long turn, not for two
	long := strings.Repeat("word", 300)
	for name, c := range map[string]struct {
		inputs  []string
		summary []scripted.Reply
		want    string // the nodes
		err     bool
	}{
		"old history becomes a summary":        {[]string{"1" + long, "2" + long, "3" + long}, []scripted.Reply{{Text: " the sum "}}, "the sum|3" + long + "|ok", false},
		"a short history stays":                {[]string{"1", "2"}, []scripted.Reply{{Text: "the sum"}}, "", false},
		"the newest turn stays at any length":  {[]string{"1" + long, "2" + long + long}, []scripted.Reply{{Text: "the sum"}}, "the sum|2" + long + long + "|ok", false},
		"one turn cannot be summarised":        {[]string{"1" + long + long}, []scripted.Reply{{Text: "the sum"}}, "", false},
		"without a summary nothing is changed": {[]string{"1" + long, "2" + long}, []scripted.Reply{{Text: "  "}}, "", true},
		"the summariser is asked once":         {[]string{"1" + long, "2" + long}, []scripted.Reply{{ToolCalls: []scripted.Call{{Name: "big"}}}, {Text: "the sum"}}, "", true},
	} {
		t.Run("runtime/S11 "+name, func(t *testing.T) {
			m := model(c.summary...)
			d := builtintest.Start(t, t.TempDir(), window, m, history.Factory{}, bigTool)
			id := d.Session(t, manual)
			var all strings.Builder
			for _, text := range c.inputs {
				d.Turn(t, id, text)
				all.WriteString(text + "|ok|")
			}
			if done, err := compact(t, d, id); done != (c.want != "") || (err != nil) != c.err {
				t.Fatalf("compacted: %t, error %v", done, err)
			}
			want := all.String()
			if c.want != "" {
				want = heading + c.want + "|"
			}
			if got := seen(t, d, m, id); got != want+"and now?" {
				t.Errorf("the model sees %q, want %q", got, want)
			}
		})
	}
}

const heading = "This is a summary of the earlier conversation. It replaces the older history.\n\n"

func TestSummaries(t *testing.T) {
	m := model(scripted.Reply{Text: "new sum"})
	d := builtintest.Start(t, t.TempDir(), 2000, m, history.Factory{}, bigTool)
	id := d.Session(t, manual)
	long := strings.Repeat("word", 300)
	summary := protocol.Message{
		Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: heading + "old sum"}},
		Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: history.ID},
	}
	builtintest.Must(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{{Message: &summary}}}))(t)
	d.Turn(t, id, "1"+long+long) // larger than the kept part on its own
	if done, err := compact(t, d, id); err != nil || done {
		t.Errorf("runtime/S11 a summary was summarised again: %t, %v", done, err)
	}
	d.Turn(t, id, "2"+long)
	m.Asked = nil
	if done, err := compact(t, d, id); err != nil || !done {
		t.Fatalf("runtime/S11 compacted: %t, %v", done, err)
	}
	said := lastInput(t, m)
	for _, want := range []string{summarises, "# Goal", "# Instructions", "# Discoveries", "# Accomplished", "# Relevant files", "mind the gap", "old sum", "[user] 1" + long, "[assistant] ok"} {
		if !strings.Contains(said, want) {
			t.Errorf("runtime/S11 the summariser did not get %q: %s", want, said)
		}
	}
	if strings.Contains(said, "2"+long) || strings.Contains(said, "musing") || len(m.Asked) != 1 || len(m.Asked[0].Tools) != 0 {
		t.Errorf("runtime/S11 the summariser is asked %d times, with %d tools, last: %s", len(m.Asked), len(m.Asked[0].Tools), said)
	}
	for _, s := range builtintest.Must(d.Sessions.List(t.Context(), &protocol.SessionListParams{Children: true}))(t).Data {
		if s.ID != id {
			t.Errorf("runtime/S11 the summariser was not deleted: %+v", s)
		}
	}
	booked := false
	for _, row := range builtintest.Must(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id}))(t).Data {
		if row.Source == "compaction" && row.Calls == 1 {
			booked = true
		}
	}
	if !booked {
		t.Error("runtime/S11 plugin/HC-08 the usage of the summariser is not in the session's ledger")
	}
	if got := seen(t, d, m, id); got != heading+"new sum|2"+long+"|ok|and now?" {
		t.Errorf("runtime/S11 the model sees %q", got)
	}
}

func TestRestrictedSummaries(t *testing.T) {
	d := builtintest.Start(t, t.TempDir(), 2000, model(scripted.Reply{Text: "sum"}), history.Factory{}, bigTool)
	id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: manual, Authority: protocol.Authority{
		Tools: []string{"big"}, Subagent: &protocol.Subagent{Parent: d.Session(t, nil), Depth: 1, MaxDepth: 1},
	}}))(t).SessionID
	for _, text := range []string{"1", "2"} {
		d.Turn(t, id, text+strings.Repeat("word", 400))
	}
	if done, err := compact(t, d, id); err != nil || !done {
		t.Errorf("runtime/S11 plugin/S-15 compacting a session with one tool that may have no subagents: %t, %v", done, err)
	}
}

func TestCallsAreKept(t *testing.T) {
	m := &builtintest.Recorder{Provider: scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: summarises}, Replies: []scripted.Reply{{Text: "sum"}}}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "let me see", ToolCalls: []scripted.Call{{Name: "big", Args: []byte(`{"n":1}`)}}}, {Text: "ok"}}},
	})}
	d := builtintest.Start(t, t.TempDir(), 2400, m, history.Factory{}, bigTool)
	id := d.Session(t, manual)
	d.Turn(t, id, "1")
	d.Turn(t, id, "2")
	if done, err := compact(t, d, id); err != nil || !done {
		t.Fatalf("runtime/S11 compacted: %t, %v", done, err)
	}
	m.Asked = nil
	d.Turn(t, id, "3")
	if got := texts(m.Asked[0].Messages); got != heading+"sum|2|let me see|||ok|3" {
		t.Errorf("runtime/S11 the model sees %q", got)
	}
	call, result := m.Asked[0].Messages[2].Parts[1].Call, m.Asked[0].Messages[3].Parts[0].Result
	if call == nil || string(call.Args) != `{"n":1}` || result == nil || result.CallID != call.CallID || result.Output.Text != strings.Repeat("long", 500) {
		t.Errorf("runtime/S11 the model sees the call %+v with the result %+v", call, result)
	}
	items := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))(t).Data
	seen := slices.DeleteFunc(items, func(item protocol.Item) bool { return item.Kind != protocol.ItemToolCall })
	if len(seen) != 3 || slices.ContainsFunc(seen, func(item protocol.Item) bool { return item.Status != protocol.ItemDone || item.Output == nil }) {
		t.Errorf("runtime/S11 clients see %+v", seen)
	}
}

func TestTranscript(t *testing.T) {
	m := model(scripted.Reply{Text: "sum"})
	d := builtintest.Start(t, t.TempDir(), 2000, m, history.Factory{})
	id := d.Session(t, manual)
	for _, text := range []string{"first" + strings.Repeat("a", 9000), strings.Repeat("b", 9000) + "last", "new"} {
		d.Turn(t, id, text)
	}
	m.Asked = nil
	if _, err := compact(t, d, id); err != nil {
		t.Fatal(err)
	}
	said := lastInput(t, m)
	// Only the ends remain of a conversation with more than 3 bytes for each token of the context.
	if a, b := strings.Count(said, "a"), strings.Count(said, "b"); a < 2900 || a > 3200 || b < 2900 || b > 3200 || !strings.Contains(said, "[user] first") || !strings.Contains(said, "last\n\n[assistant] ok") {
		t.Errorf("runtime/S11 of %d bytes, %d are a and %d b: %s", len(said), a, b, said)
	}
}

// manual disables automatic compaction.
var manual = protocol.PluginOptions{history.ID: []byte(`{"compactAt":0}`)}

func TestAutomaticCompaction(t *testing.T) {
	const window = 2000
	turns := func(t *testing.T, window int64, options protocol.PluginOptions, usage *protocol.Usage, inputs ...string) (int, string) {
		m := &builtintest.Recorder{Provider: scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: summarises}, Replies: []scripted.Reply{{Text: "the sum"}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok", Usage: usage}}},
		})}
		d := builtintest.Start(t, t.TempDir(), window, m, history.Factory{})
		id := d.Session(t, options)
		for _, text := range inputs {
			d.Turn(t, id, text)
		}
		builtintest.Must(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))(t)
		marks := 0
		for _, it := range builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id, Limit: 100}))(t).Data {
			if it.Kind == protocol.ItemCompaction {
				marks++
			}
		}
		return marks, seen(t, d, m, id)
	}
	long := strings.Repeat("word", 400) // 400 tokens
	for name, c := range map[string]struct {
		window  int64
		options string
		usage   *protocol.Usage
		marks   int
	}{
		"once history takes four fifths of the context": {window, `{}`, nil, 1},
		"not if it is disabled":                         {window, `{"compactAt":0}`, nil, 0},
		"earlier and more often with a lower threshold": {4000, `{"compactAt":0.3}`, nil, 2},
		"not if the size of the context is unknown":     {0, `{}`, nil, 0},
		"by the usage that the model reports":           {window, `{}`, &protocol.Usage{Input: 10, CacheRead: 10}, 0},
	} {
		t.Run("runtime/S11 plugin/HK-30 automatic compaction: "+name, func(t *testing.T) {
			marks, got := turns(t, c.window, protocol.PluginOptions{history.ID: []byte(c.options)}, c.usage, "1"+long, "2"+long, "3"+long, "4"+long)
			if marks != c.marks || strings.HasPrefix(got, heading+"the sum|") != (c.marks > 0) {
				t.Errorf("compacted %d times, the model sees %.200q", marks, got)
			}
		})
	}
}

func TestOff(t *testing.T) {
	for options, want := range map[string]bool{`{"off":true,"shorten":true}`: false, shorten: true, `{}`: false} {
		if open(t, options).Transforms() != want {
			t.Errorf("runtime/S11 with %s, that history is shortened is not %t", options, want)
		}
	}
	nodes, by, err := open(t, `{"off":true}`).Compact(t.Context(), &plugin.CompactRequest{View: &plugin.View{}})
	if err != nil || by != "" || nodes != nil {
		t.Errorf("runtime/S11 a summariser compacts: %v, %q, %v", nodes, by, err)
	}
}
