package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

func TestCallTitle(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		status     protocol.ItemStatus
		want       string
	}{
		{"read", `{"path":"main.go"}`, protocol.ItemDone, "Read main.go"},
		{"read", `{"path":"main.go","offset":10,"limit":31}`, protocol.ItemInProgress, "Reading main.go lines 10-40"},
		{"read", `{"path":"main.go","offset":2,"limit":1}`, protocol.ItemDone, "Read main.go line 2"},
		{"read", `{"path":"main.go","offset":7}`, protocol.ItemDone, "Read main.go from line 7"},
		{"write", `{"path":"a.txt","content":"x"}`, protocol.ItemDone, "Wrote a.txt"},
		{"edit", `{"path":"a.txt","old":"x","new":"y"}`, protocol.ItemFailed, "Edit a.txt"},
		{"patch", `{"patch":"*** Begin Patch\n*** Update File: a b.go\r\n-x\n+y\n*** End Patch"}`, protocol.ItemDone, "Edited a b.go"},
		{"patch", `{"patch":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** End Patch"}`, protocol.ItemInProgress, "Editing a and 2 other files"},
		{"patch", `{"patch":"nothing"}`, protocol.ItemFailed, "Edit"},
		{"list", `{}`, protocol.ItemDone, "Listed ."},
		{"glob", `{"pattern":"**/*.go","path":"src"}`, protocol.ItemDone, "Listed **/*.go in src"},
		{"grep", `{"pattern":"TODO  x","path":"src","include":"*.go"}`, protocol.ItemDone, "Searched for TODO x in src, in files *.go"},
		{"shell", `{"command":"npm test"}`, protocol.ItemInProgress, "Running npm test"},
		{"shell", `{"command":"make\n  all","workdir":"sub","outside":true}`, protocol.ItemUnknown, "Run make all in sub, outside the sandbox"},
		{"shell", `{"command":"curl a.b","hosts":["a.b","c.d"]}`, protocol.ItemDone, "Ran curl a.b with access to a.b, c.d"},
		{"stop_command", `{"task":"task_1"}`, protocol.ItemDone, "Stopped command task_1"},
		{"spawn_agent", `{"task":"look","name":"scout","type":"reviewer"}`, protocol.ItemDone, "Started agent scout reviewer"},
		{"skill", `{"name":"pdf","file":"forms.md"}`, protocol.ItemDone, "Read skill pdf forms.md"},
		{"update_plan", `{"steps":[]}`, protocol.ItemDone, "Updated plan"},

		{"shell", `{"command":5,"workdir":"sub"}`, protocol.ItemDone, "Ran in sub"},
		{"shell", `{"command":"npm te`, protocol.ItemInProgress, "Running"},
		{"shell", `["a"]`, protocol.ItemDone, "Ran"},
		{"shell", ``, protocol.ItemDone, "Ran"},
		{"list", ``, protocol.ItemDone, "Listed"}, // arguments that were left out
		{"shell", `{"command":"a\u001b[31mb\u0007\u202ec\u0000d"}`, protocol.ItemDone, "Ran a[31mbcd"},
		{"shell", `{"command":"\u200f\u0627\u062e\u062a\u0628\u0627\u0631 試験"}`, protocol.ItemDone, "Ran اختبار 試験"},
	} {
		title := protocol.TitleOf(protocol.ToolCall{Name: c.tool, Args: json.RawMessage(c.args)})
		if got := title.Line(c.status); got != c.want {
			t.Errorf("%s %s (%s) is %q, want %q", c.tool, c.args, c.status, got, c.want)
		}
	}
	if got := protocol.TitleOf(protocol.ToolCall{Name: "linear_get_issue", Args: json.RawMessage(`{"path":"x"}`)}); got != nil {
		t.Errorf("a tool of a plugin has the title %+v, want none", got)
	}
}

// The tools of MCP servers have their titles, which the servers choose. A title does not change what lashd's own tools are called.
func TestCallTitleOfForeignTools(t *testing.T) {
	for _, c := range []struct{ tool, title, args, want string }{
		{"mcp__weather__forecast", "Weather forecast", `{"city":"Oslo"}`, "Called weather: Weather forecast Oslo"},
		{"mcp__weather__forecast", "", `{"days":3,"city":"Oslo","near":["x"],"unit":{"t":"C"}}`, "Called weather: forecast city=Oslo days=3"},
		{"mcp__weather__forecast", "", ``, "Called weather: forecast"},
		{"mcp__weather__get__all", " Read\u202e \n a file\u0000 ", `["x"]`, "Called weather: Read a file"},
		{"mcp__weather", "Weather", `{}`, "Called weather: Weather"},
		{"linear_get_issue", "Issue of Linear", `{"id":"A-1"}`, "Called Issue of Linear A-1"},
		{"shell", "Look around", `{"command":"rm -r /"}`, "Ran rm -r /"},
	} {
		title := protocol.TitleOf(protocol.ToolCall{Name: c.tool, ToolTitle: c.title, Args: json.RawMessage(c.args)})
		if got := title.Line(protocol.ItemDone); got != c.want {
			t.Errorf("%s %q %s is %q, want %q", c.tool, c.title, c.args, got, c.want)
		}
	}
}

// The subject of a huge command is short, and cut between characters.
func TestCallTitleOfHugeArguments(t *testing.T) {
	args, err := json.Marshal(map[string]any{"command": strings.Repeat("試 ", 1<<20), "workdir": strings.Repeat("d", 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	title := protocol.TitleOf(protocol.ToolCall{Name: "shell", Args: args})
	for _, text := range []string{title.Subject, title.Detail} {
		if n := utf8.RuneCountInString(text); n < 200 || n > 202 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
			t.Errorf("a text of a title has %d characters: %.20q", n, text)
		}
	}
}
