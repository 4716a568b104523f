package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"lashd/pluginloader/manifest"
)

// reviewer has one of everything.
const reviewer = `{
  "name": "reviewer", "version": "1.2.0", "description": "Asks for a review before a turn ends",
  "lashd": {
    "process": {"command": ["python3", "${PLUGIN_ROOT}/reviewer.py"], "startup": "lazy", "env": {"HOME": "${PLUGIN_DATA}"},
      "passEnv": ["LANG"], "deadlines": {"startMs": 5000}}, "limits": {"memoryMiB": 256}, "sandbox": {"workspace": "read", "read": ["/usr"]},
    "hooks": ["afterTurn", {"on": "beforeToolCall", "timeoutMs": 500, "onError": "deny"}],
    "tools": [
      {"name": "run_tests", "description": "Run the test suite", "command": ["go", "test", "-run={only}", "{{x}}", "{packages}"], "replay": "safe",
       "parameters": [{"name": "only", "type": "string", "default": "."}, {"name": "packages", "type": "array", "required": true}]},
      {"name": "count", "description": "Count lines", "command": ["wc -l < \"$PARAM_file\" > ${PLUGIN_ROOT}/n"], "shell": true,
       "parameters": [{"name": "file", "type": "string"}]},
      {"name": "ask_reviewer", "description": "Ask", "input": {"type": "object"}}],
    "prompt": [{"slot": "guidance", "priority": 10, "content": "Prefer small diffs, as ${HOME} is."}],
    "operations": [{"name": "reviewer.summary", "kind": "query", "session": "required"}],
    "codeExecutor": {"replay": true},
    "mcpServers": {"files": {"command": "npx", "args": ["server", "${PLUGIN_ROOT}"]}, "web": {"url": "https://x.test/mcp", "headers": {"X-A": "b"}}},
    "toolSwitches": {"off": ["shell"]},
    "config": {"type": "object", "properties": {"strict": {"type": "boolean"}}},
    "capabilities": ["graph", "state"]
  }
}`

func TestEverythingThatAPluginMayContributeIsRead(t *testing.T) {
	f, problems := manifest.Parse("plugin.json", []byte(reviewer))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := f.Lashd
	got := []any{f.Name, c.Process.Command[1], c.Process.Startup, c.Hooks[0].On, c.Hooks[1].OnError, c.Tools[0].Parameters[1].Type,
		c.Tools[0].Replay, c.Tools[1].Shell, c.Prompt[0].Priority, c.Operations[0].Kind, c.CodeExecutor, c.MCPServers["web"].URL,
		c.ToolSwitches.Off[0], string(c.Config[:8]), len(c.Capabilities)}
	want := []any{"reviewer", "${PLUGIN_ROOT}/reviewer.py", manifest.StartLazy, manifest.SlotAfterTurn, manifest.OnErrorDeny, manifest.TypeArray,
		manifest.Replay("safe"), true, 10, manifest.OperationKind("query"), &manifest.CodeExecutor{Replay: true}, "https://x.test/mcp", "shell", `{"type":`, 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// inLashd is a manifest whose lashd section stands in line 2.
func inLashd(section string) string { return "{\"name\":\"p\",\n\"lashd\":" + section + "}" }

var wrong = []struct{ in, want string }{
	// what is no JSON
	{``, `1:1: unexpected end of JSON`},
	{"\xef\xbb\xbf{}", `1:1: a byte order mark is not allowed`},
	{"{\"name\":\"p\",\r\n\"description\":\"é日𝄞\", x}", `2:22: unexpected character 'x'`},
	{`{"name":"p",}`, `1:13: unexpected character '}'`},
	{`{"name":"p"} 1`, `1:14: there is data after the JSON value`},
	{"{\"name\":\"\xff\"}", `1:10: the text is not valid UTF-8`},
	{"{\"name\":\"p\",\n// why\n\"version\":\"1\"}", `2:1: unexpected character '/'`},
	{`[1]`, `1:1: expected object, got array`},
	{`{"name":"p","lashd":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `1:84: arrays and objects are nested deeper than 64`},
	{`{"name":"p","description":"` + strings.Repeat("x", 256<<10) + `"}`, `1:1: the file has more than 262144 bytes`},
	// fields
	{`{}`, `1:1: "name" is missing`},
	{"{\"name\":\"p\",\n  \"nam\": 1,\n  \"name\": 2}", "2:3: unknown field \"nam\", did you mean \"name\"?\n3:3: duplicate key \"name\"\n3:11: expected string, got number"},
	{`{"name":"p","Version":"1"}`, `1:13: unknown field "Version", did you mean "version"?`},
	{`{"name":"p","_mine":{"a":1}}`, ``},
	{`{"name":"Über plug"}`, `1:9: "Über plug" must be lower-case letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit`},
	{`{"name":"p","version":"` + strings.Repeat("é", 65) + `"}`, `1:23: 65 characters: at most 64`},
	{`{"name":"p","version":"` + strings.Repeat("é", 64) + `"}`, ``},
	{`{"name":"p\u0000"}`, "1:9: \"p\\x00\" must be lower-case letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit\n1:9: NUL characters are not allowed"},
	{`{"name":"p","themes":"./s"}`, `1:13: warning: "themes" is for other agents and has no effect in lashd`},
	// processes
	{inLashd(`{"process":{}}`), `2:20: "command" is missing`},
	{inLashd(`{"process":{"command":[]}}`), `2:31: 0 elements: at least 1`},
	{inLashd(`{"process":{"command":[""]}}`), `2:32: the name of the program is empty`},
	{inLashd(`{"process":{"command":["./run"]}}`), `2:32: the path of the program must be absolute; for a file of the plugin, write ${PLUGIN_ROOT}/run`},
	{inLashd(`{"process":{"command":["${PLUGIN_ROOT}/../run"]}}`), `2:32: the program is outside the plugin's directory`},
	{inLashd(`{"process":{"command":"python3 x"}}`), `2:31: expected array, got string`},
	{inLashd(`{"process":{"command":["a"],"startup":"eagre"}}`), `2:47: unknown value "eagre"; did you mean "eager"?`},
	{inLashd(`{"process":{"command":["a","é${HOME}","${PLUGIN_ROOT"]}}`), `2:38: "${HOME}" is not replaced; only ${PLUGIN_ROOT} and ${PLUGIN_DATA} are, in commands, arguments and values of env` + "\n" + `2:48: "${PLUGIN_ROOT" has no closing brace`},
	{inLashd(`{"process":{"command":["a"],"env":{"A":"x","1B":"","C":"${A}"}}}`), `2:52: "1B" is not a valid name: it must be letters, digits and '_', at most 128, the first no digit` + "\n" + `2:65: "${A}" is not replaced; only ${PLUGIN_ROOT} and ${PLUGIN_DATA} are, in commands, arguments and values of env`},
	{inLashd(`{"process":{"command":["a"],"passEnv":["A B"]}}`), `2:48: "A B" must be letters, digits and '_', at most 128, the first no digit`},
	{inLashd(`{"process":{"command":["a"],"deadlines":{"callMs":1.5}},"limits":{"memoryMiB":1}}`), "2:59: expected integer, got 1.5\n2:87: 1: at least 16"},
	{inLashd(`{"limits":{"memoryMiB":1}}`), `2:32: 1: at least 16`},
	{inLashd(`{"sandbox":{"read":["usr"]}}`), `2:29: "usr" must be an absolute path`},
	// hooks
	{inLashd(`{"hooks":["afterTurn"]}`), `2:10: "hooks" needs a "process"`},
	{inLashd(`{"process":{"command":["a"]},"hooks":["afterTrun",{"on":1},{"onn":"event"},{"on":"event","onError":"deny"},"event",5]}`),
		"2:47: unknown value \"afterTrun\"; did you mean \"afterTurn\"?\n2:65: expected string, got number\n2:68: \"on\" is missing\n2:69: unknown field \"onn\", did you mean \"on\"?\n2:124: expected object, got number"},
	{inLashd(`{"process":{"command":["a"]},"hooks":["afterTrun",{"on":"event","onError":"deny"},"event"]}`),
		"2:47: unknown value \"afterTrun\"; did you mean \"afterTurn\"?\n2:83: a hook at \"event\" cannot deny anything; use allow or fail\n2:91: another hook has the slot \"event\"; a plugin has one hook per slot"},
	{inLashd(`{"process":{"command":["a"]},"hooks":[{"on":"event","timeoutMs":0},{"on":"prompt","timeoutMs":4000000}]}`), `2:103: 4000000: at most 3600000`},
	// tools
	{inLashd(`{"tools":[{"name":"a b","description":"d","command":["x"]}]}`), `2:27: "a b" must be letters, digits, '_' and '-', at most 64, the first a letter or '_'`},
	{inLashd(`{"tools":[{"name":"a","description":"","command":["x"]},{"name":"a","description":"d","command":["x"]}]}`), "2:45: 0 characters: at least 1\n2:73: another tool has the name \"a\""},
	{inLashd(`{"tools":[{"name":"a","description":"d"}]}`), `2:19: the tool "a" needs a "process", or a "command" of its own`},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x","{b}"]}]}`), `2:64: unknown parameter "b"; for the literal text, write {{b}}`},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x","{\"b\":1} {} {b"]}]}`), ``},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["{b}"],"parameters":[{"name":"b","type":"string"}]}]}`), `2:60: the program cannot be a parameter`},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x","-f={b}"],"parameters":[{"name":"b","type":"array"},{"name":"c","type":"text"}]}]}`),
		"2:64: {b} is a list: it must be an element of its own\n2:124: the command does not use {c}\n2:135: unknown value \"text\"; use one of string, integer, number, boolean, array"},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x","{b}"],"parameters":[{"name":"b","type":"integer","pattern":"(","min":3,"max":2,"default":"1"}]}]}`),
		"2:114: \"pattern\" is only for a string or an array\n2:124: error parsing regexp: missing closing ): `(`\n2:142: the maximum is less than the minimum\n2:154: the default is not of the type integer"},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x","y"],"shell":true}]}`), `2:64: a shell takes one script: the command must have one element`},
	{inLashd(`{"tools":[{"name":"a","description":"d","command":["x"],"input":{}}]}`), `2:65: a tool with a "command" has "parameters" instead of "input"`},
	{inLashd(`{"process":{"command":["a"]},"tools":[{"name":"a","description":"d","in":"plugin","input":{"type":5}}]}`), "2:77: \"in\" is only for a tool with a \"command\"\n2:99: not a JSON Schema: schema: invalid value for \"type\": \"5\""},
	// the rest
	{inLashd(`{"prompt":[{"slot":"intros","content":"${PLUGIN_ROOT}"}]}`), "2:28: unknown value \"intros\"; did you mean \"intro\"?\n2:48: ${PLUGIN_ROOT} is replaced only in commands, arguments and values of env"},
	{inLashd(`{"process":{"command":["a"]},"operations":[{"name":"o","kind":"queery","session":"maybe"}],"capabilities":["state","root","state"]}`),
		"2:71: unknown value \"queery\"; did you mean \"query\"?\n2:90: unknown value \"maybe\"; use one of required, optional, forbidden\n2:124: unknown value \"root\"; use one of state, lifecycle, graph, completions, tools, artifacts, decisions, tasks, monitors\n2:131: \"state\" is listed twice"},
	{inLashd(`{"mcpServers":{"a b":{"command":"x"},"c":{},"d":{"command":"x","url":"y"},"e":{"url":"ftp://h/"},"f":{"url":"https://u:p@h/"},"g":{"url":"https://h","headers":{"A":"${T}"}}}}`),
		"2:24: \"a b\" is not a valid name: it must be letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit\n2:50: a server needs a \"command\", or a \"url\"\n2:72: a server has a \"command\" or a \"url\", not both\n2:94: the URL must begin with http:// or https://\n2:117: the URL contains a password; use \"headers\"\n2:174: \"${T}\" is not replaced; only ${PLUGIN_ROOT} and ${PLUGIN_DATA} are, in commands, arguments and values of env"},
	{inLashd(`{"toolSwitches":{"on":["a"],"off":["b","a"]}}`), `2:48: "a" is also in on`},
	{inLashd(`{"process":{"command":["a"]},"config":[]}`), `2:47: a JSON Schema must be an object`},
	{inLashd(`{"monitors":[{"monitorId":"a","command":"x","armOn":"later"},{"monitorId":"a","command":""}]}`),
		"2:61: unknown value \"later\"; use one of manual, sessionStart\n2:83: \"a\" is listed twice\n2:97: 0 characters: at least 1"},
	{inLashd(`{"monitors":[{"monitorId":"a","command":"x"}],"limits":{"openFiles":64}}`), `2:10: "sandbox" and "limits" do not apply to monitors; use monitors or these, not both`},
}

func TestMistakesAreToldWithTheirPlace(t *testing.T) {
	for _, c := range wrong {
		_, problems := manifest.Parse("plugin.json", []byte(c.in))
		got := strings.ReplaceAll(problems.Error(), "plugin.json:", "")
		if got != c.want {
			t.Errorf("%.300s\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestProblemsOfAFileAreBounded(t *testing.T) {
	groups := strings.Repeat(`{"hooks":[`+strings.Repeat(`{"type":"prompt"},`, 40)+`{"type":"prompt"}]},`, 40)
	_, problems := manifest.ParseHooks("hooks.json", []byte(`{"hooks":{"Stop":[`+groups+`{"hooks":[{"type":"comand"}]}]}}`))
	if len(problems) != manifest.MaxProblems {
		t.Errorf("%d problems are reported, want %d", len(problems), manifest.MaxProblems)
	}
	if last := problems[len(problems)-1]; last.Warning || last.Message != `unknown value "comand"; did you mean "command"?` {
		t.Errorf("warnings leave no room for the mistake: the last is %v", last)
	}
}

// The cost of reading a file must not grow with the square of its mistakes. If it does, this test takes seconds.
func TestAFileFullOfMistakesIsReadAtOnce(t *testing.T) {
	for _, in := range []string{
		`{"name":"p"` + strings.Repeat(`,"x":1`, 40_000) + `}`,
		inLashd(`{"process":{"command":["` + strings.Repeat("${a}", 60_000) + `"]}}`),
		inLashd(`{"process":{"command":["a"]},"capabilities":[` + strings.Repeat(`"x",`, 60_000) + `"x"]}`),
		inLashd(`{"tools":[{"name":"a","description":"d","command":["x","` + strings.Repeat("{a}", 80_000) + `"]}]}`),
		inLashd(`{"toolSwitches":{"on":[` + strings.Repeat(`"x",`, 30_000) + `"y"],"off":[` + strings.Repeat(`"y",`, 30_000) + `"y"]}}`),
	} {
		start := time.Now()
		file, problems := manifest.Parse("plugin.json", []byte(in))
		if file != nil || len(problems) == 0 || len(problems) > manifest.MaxProblems {
			t.Errorf("%.60s: %d problems", in, len(problems))
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%.60s: it takes %s", in, took)
		}
	}
}

func TestSchemaFitsWhatIsRead(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(manifest.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	if err := valid(reviewer); err != nil {
		t.Errorf("what is read does not fit the schema: %v", err)
	}
	for old, bad := range map[string]string{`"lazy"`: `"lazzy"`, `"version"`: `"vers"`, `"afterTurn"`: `"turn"`, `"memoryMiB": 256`: `"memoryMiB": 1`,
		`"LANG"`: `"LA NG"`, `"type": "array"`: `"type": "list"`, `"name": "reviewer"`: `"name": "R"`} {
		if valid(strings.Replace(reviewer, old, bad, 1)) == nil {
			t.Errorf("the schema takes %s", bad)
		}
	}
	everyField(t, "", &s)
	for name, def := range s.Defs {
		everyField(t, name, def)
	}
}

func everyField(t *testing.T, name string, s *jsonschema.Schema) {
	for field, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("the field %s of %s says nothing of itself", field, name)
		}
	}
}

func TestTableOfEventsIsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/other-agents.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), eventTable()) {
		t.Errorf("docs/other-agents.md lacks this table:\n%s", eventTable())
	}
}

// eventTable returns the table of events in docs/other-agents.md.
func eventTable() string {
	var b strings.Builder
	var none []string
	b.WriteString("| Event | Hook | When | The matcher is compared with |\n|---|---|---|---|\n")
	for _, e := range manifest.Events() {
		if e.Slot == "" {
			none = append(none, "`"+e.Name+"`")
			continue
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", e.Name, e.Slot, e.When, e.Matcher)
	}
	fmt.Fprintf(&b, "\nKnown events that lashd never calls: %s.\n", strings.Join(none, ", "))
	return b.String()
}
