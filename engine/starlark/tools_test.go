package starlark_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine/starlark"
	"lashd/rpc/protocol"
)

// someTools are tools with and without modules.
func someTools() []protocol.ToolManifest {
	return []protocol.ToolManifest{
		{Name: "t", Description: "Echo."},
		{
			Name: "read_file", Description: "Read a file.\nMore.", Bindings: map[string]json.RawMessage{"rlm": json.RawMessage(`"fs.read"`)},
			Input: json.RawMessage(`{"type":"object","properties":{"offset":{"type":"integer","default":1},"path":{"type":"string","description":"Its path."},
				"max-size":{"type":["integer","null"]},"in":{"enum":["a","b"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`),
		},
		{Name: "mcp__web__get", Input: json.RawMessage(`{"properties":{"url":{}}}`)},
		{Name: "json.x"}, {Name: "mod.b.c"}, {Name: "mod.b_c"}, {Name: "lambda"}, {Name: "7 up"},
	}
}

// calling runs a cell with someTools.
func calling(t *testing.T, h *hosting, source string) starlark.Reply {
	t.Helper()
	in := starlark.New(starlark.Config{})
	in.Bind(someTools())
	return in.Execute(t.Context(), &starlark.Cell{Source: source, AcceptFinish: true, ID: "cell-1"}, h)
}

func TestTools(t *testing.T) {
	t.Run("runtime/R09 a tool is a function with positional and named arguments", func(t *testing.T) {
		h := echoing()
		wants(t, calling(t, h, "r = fs.read('p', 3, max_size=4, in_='a')\nr.value"), `{"path":"p","offset":3,"max-size":4,"in":"a"}`)
		if want := `read_file{"path":"p","offset":3,"max-size":4,"in":"a"}`; h.batches[0][0] != want {
			t.Errorf("call %s, want %s", h.batches[0][0], want)
		}
	})
	t.Run("runtime/R09 None leaves an optional argument out", func(t *testing.T) {
		wants(t, calling(t, echoing(), "fs.read('p', None, tags=None).value"), `{"path":"p"}`)
	})
	t.Run("runtime/R09 the schema gives signature and doc", func(t *testing.T) {
		want := `"fs.read(path: str, offset: int = 1, max_size: int | None = None, in_: \"a\" | \"b\" = None, tags: list[str] = None)\nRead a file.\nMore.\n  path: Its path."`
		wants(t, calling(t, echoing(), "fs.read.doc"), want)
	})
	t.Run("runtime/R09 names become identifiers in modules", func(t *testing.T) {
		guide := starlark.Guide(someTools())
		for _, name := range []string{
			"\nmod.b_c(**kwargs)", "\nmod.b_c_2(**kwargs)", "\nfs.read(path: str,", "\njson_.x(", "\ntools.lambda_(", "\ntools._7_up(", "\ntools.t(**kwargs)  # Echo.", "\nweb.get(url = None)",
		} {
			if !strings.Contains(guide, name) {
				t.Errorf("%q is not in the guide: %s", name, guide[len(guide)-600:])
			}
		}
	})
	for _, c := range []struct{ name, source, text string }{
		{"an unknown argument has a suggestion", "fs.read('p', ofset=1)", "fs.read has no argument ofset (did you mean offset?); its signature is fs.read(path: str"},
		{"a missing argument is named", "fs.read(offset=1)", "fs.read needs the argument path"},
		{"too many arguments are an error", "fs.read(1, 2, 3, 4, 5, 6)", "takes at most 5 positional arguments, got 6"},
		{"an argument given twice is an error", "fs.read('p', path='q')", "got two values for the argument path"},
		{"bytes are no argument", "fs.read(b'p')", "bytes have no JSON form"},
		{"text that is not UTF-8 is no argument", `fs.read("é"[:1])`, "a string is not valid UTF-8"},
		{"a number without JSON form is no argument", "fs.read(float('inf'))", "the number +inf has no JSON form"},
		{"an unknown tool has a suggestion", "fs.reed('p')", "did you mean .read?"},
		{"a module with tools cannot be assigned", "fs = 1", "cannot assign fs: it is a module with tools"},
		{"parallel wants calls", "parallel([fs.read('p')])", "element 0 has already run; use the method later"},
	} {
		t.Run("runtime/R09 "+c.name, func(t *testing.T) { fails(t, calling(t, echoing(), c.source), c.text) })
	}
	t.Run("runtime/R09 integers of any size are exact in both directions", func(t *testing.T) {
		wants(t, calling(t, echoing(), "tools.t(n=1 << 70).value['n'] + 1"), "1180591620717411303425")
	})
	t.Run("runtime/R09 a failure is a result, and unwrap fails the cell at its line", func(t *testing.T) {
		h := &hosting{call: func(starlark.Call) protocol.ToolOutput {
			return protocol.Fail(protocol.FailIO, "not_found", "there is no p", protocol.FromRuntime)
		}}
		wants(t, calling(t, h, "r = fs.read('p')\n[r.ok, r.value, r.error.code, r.error.kind]"), `[false,null,"not_found","io"]`)
		r := calling(t, h, "r = fs.read('p')\n\nx = r.unwrap()")
		fails(t, r, "fs.read failed: there is no p\n    3 | x = r.unwrap()")
		if r.Position == nil || r.Position.Line != 3 {
			t.Errorf("position %+v", r.Position)
		}
	})
	t.Run("runtime/R09 text is the value of an output without one", func(t *testing.T) {
		h := &hosting{call: func(starlark.Call) protocol.ToolOutput { return protocol.Succeed("hello") }}
		wants(t, calling(t, h, "fs.read('p').unwrap()"), `"hello"`)
	})
	t.Run("runtime/R09 a result has the text of its tool beside the value, also after a restart", func(t *testing.T) {
		h := &hosting{call: func(c starlark.Call) protocol.ToolOutput {
			return protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "1 line", Value: json.RawMessage(`{"n":1}`)}
		}}
		wants(t, calling(t, h, "r = fs.read('p')\n[r.text, r.value['n'], str(r), r]"),
			`["1 line",1,"result(ok = true, value = {\"n\": 1}, text = \"1 line\")",{"ok":true,"value":{"n":1},"text":"1 line"}]`)
		in := starlark.New(starlark.Config{})
		in.Bind(someTools())
		in.Execute(t.Context(), &starlark.Cell{Source: "both = fs.read('p')"}, h)
		in.Execute(t.Context(), &starlark.Cell{Source: "plain = tools.t()"}, &hosting{call: func(starlark.Call) protocol.ToolOutput { return protocol.Succeed("hello") }})
		wants(t, runs(t, reloaded(t, in, map[string][]byte{}), "[both.text, both.value, plain.text, plain.value]"), `["1 line",{"n":1},"hello","hello"]`)
	})
	t.Run("runtime/R09 parallel makes one batch and keeps order and shape", func(t *testing.T) {
		h := echoing()
		wants(t, calling(t, h, "[r.value['url'] for r in parallel([web.get.later(u) for u in ['a', 'b']])]"), `["a","b"]`)
		wants(t, calling(t, h, "{k: r.value['url'] for k, r in parallel({'x': web.get.later('c'), 'y': web.get.later('d')}).items()}"), `{"x":"c","y":"d"}`)
		if len(h.batches) != 2 || len(h.batches[0]) != 2 || len(h.batches[1]) != 2 {
			t.Errorf("batches %q", h.batches)
		}
		wants(t, calling(t, h, "parallel([])"), `[]`)
	})
	t.Run("runtime/R09 an error of the host fails the cell", func(t *testing.T) {
		h := echoing()
		h.before = func(context.Context) error { return errors.New("the daemon is gone") }
		fails(t, calling(t, h, "tools.t()"), "tools.t: the daemon is gone\n    1 | tools.t()")
	})
	t.Run("runtime/R09 a tool that is gone fails only its call", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		in.Bind(someTools())
		runs(t, in, "f = web.get")
		in.Bind(someTools()[:1])
		fails(t, runs(t, in, "f('u')"), "the tool web.get is not available")
	})
}

func TestEndings(t *testing.T) {
	ends := func(t *testing.T, cell starlark.Cell, want string) {
		t.Helper()
		r := starlark.New(starlark.Config{}).Execute(t.Context(), &cell, echoing())
		got, err := json.Marshal(r.Control)
		if err != nil || string(got) != want || r.Error != "" {
			t.Errorf("control %s, error %q; want %s", got, r.Error, want)
		}
	}
	t.Run("runtime/R08 finish ends the cell and the turn with a value", func(t *testing.T) {
		ends(t, starlark.Cell{Source: "def f(): finish({'a': (1, 2)})\nf()\nfail('not reached')", AcceptFinish: true}, `{"kind":"finish","value":{"a":[1,2]}}`)
	})
	t.Run("runtime/R08 submit_error fails the turn with a value", func(t *testing.T) {
		ends(t, starlark.Cell{Source: "submit_error('no data')", AcceptFinish: true}, `{"kind":"fail","value":"no data"}`)
	})
	t.Run("runtime/R08 continue_as switches to a frame whose key is the place of the call", func(t *testing.T) {
		ends(t, starlark.Cell{ID: "c9", Source: "x = 1\ncontinue_as('go on', {'n': x})"},
			`{"kind":"switchFrame","frame":{"key":"c9:2:12","task":"go on","nodes":[{"message":{"role":"user","parts":[{"kind":"text","text":"{\"n\":1}"}]}}]}}`)
	})
	schema := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
	t.Run("runtime/R08 a final value that does not match the schema can be repaired", func(t *testing.T) {
		in := starlark.New(starlark.Config{})
		r := in.Execute(t.Context(), &starlark.Cell{Source: "x = 1\nfinish({'n': 'one'})", AcceptFinish: true, Schema: schema}, echoing())
		fails(t, r, "finish: the value does not match the schema: ")
		if r.Control != nil || r.Position.Line != 2 {
			t.Errorf("control %+v, position %+v", r.Control, r.Position)
		}
		r = in.Execute(t.Context(), &starlark.Cell{Source: "finish({'n': x})", AcceptFinish: true, Schema: schema}, echoing())
		if r.Error != "" || string(r.Control.Value) != `{"n":1}` {
			t.Errorf("reply %+v", r)
		}
	})
	t.Run("runtime/R08 a cell that must not end the turn cannot finish", func(t *testing.T) {
		r := starlark.New(starlark.Config{}).Execute(t.Context(), &starlark.Cell{Source: "finish(1)"}, echoing())
		fails(t, r, "finish: this cell cannot end the turn")
	})
}

func TestEffects(t *testing.T) {
	t.Run("runtime/R10 time and randomness come from the host, once each", func(t *testing.T) {
		h := echoing()
		r := calling(t, h, "a = [time.now(), time.format(time.now())]\nb = [random.randint(1, 6) for _ in range(3)]\nc = random.shuffle([1, 2, 3])\n[a, b, c, random.choice('xyz'.split('y')), 0 <= random.random()]")
		again := calling(t, echoing(), "a = [time.now(), time.format(time.now())]\nb = [random.randint(1, 6) for _ in range(3)]\nc = random.shuffle([1, 2, 3])\n[a, b, c, random.choice('xyz'.split('y')), 0 <= random.random()]")
		if r.Error != "" || string(r.Value) != string(again.Value) || !strings.HasPrefix(string(r.Value), `[[1.7000000005e+09,"2023-11-14T22:13:20.5Z"],`) {
			t.Errorf("value %s, then %s; error %s", r.Value, again.Value, r.Error)
		}
		if want := []string{"now", "now", "random"}; !slices.Equal(h.asked, want) {
			t.Errorf("asked %q", h.asked)
		}
	})
	t.Run("runtime/R10 history is read-only and asked for on first use", func(t *testing.T) {
		h := echoing()
		wants(t, calling(t, h, "history[0]['text'] + history[0]['role']"), `"hellouser"`)
		if want := []string{"history"}; !slices.Equal(h.asked, want) {
			t.Errorf("asked %q", h.asked)
		}
		fails(t, calling(t, h, "history.append(1)"), "frozen")
	})
	t.Run("runtime/R10 a cell without effects asks for nothing", func(t *testing.T) {
		h := echoing()
		calling(t, h, "x = 1")
		if len(h.asked)+len(h.batches) > 0 {
			t.Errorf("asked %q, called %q", h.asked, h.batches)
		}
	})
}

func TestLibrary(t *testing.T) {
	for _, c := range []struct{ source, value string }{
		{`json.decode(json.encode({"b": [1, 2.5, None], "a": "é"}))`, `{"b":[1,2.5,null],"a":"é"}`},
		{`json.encode([1, {"a": 2}], indent=2)`, `"[\n  1,\n  {\n    \"a\": 2\n  }\n]"`},
		{`json.decode("{", default=3)`, `3`},
		{`m = re.search("(?P<k>[a-z]+)=([0-9]+)", "x: ab=12")
[m.text, m.start, m.end, list(m.groups), m.named]`, `["ab=12",3,8,["ab","12"],{"k":"ab"}]`},
		{`[re.match("b", "ab"), re.match("a", "ab").text, re.fullmatch("a|ab", "ab").text]`, `[null,"a","ab"]`},
		{`[re.findall("[a-z]", "a1b"), re.findall("([a-z])([0-9])", "a1b2"), re.split(", *", "a, b,c"), re.sub("([a-z])([0-9])", "\\2\\g<1>", "a1b2")]`, `[["a","b"],[["a","1"],["b","2"]],["a","b","c"],"1a2b"]`},
		{`[text.lines("a\r\nb\n"), text.join([1, "x"], ","), text.trim(" a "), text.find("abc", "c"), text.cut("héllo", 2), text.contains("abc", "b")]`, `[["a","b"],"1,x","a",2,"hé... (3 more characters)",true]`},
		{`[[g.number, g.text] for g in text.grep("B", "ab\ncd\nxB", ignore_case=True)]`, `[[1,"ab"],[3,"xB"]]`},
		{`[math.ceil(1.2), math.floor(-1.2), math.sqrt(9)]`, `[2,-2,3.0]`},
		{`time.parse("2023-11-14T22:13:20Z")`, `1.7e+09`},
		{`[sorted([3, 1, 2], reverse=True), list(zip([1, 2], "ab".elems())), dict([("a", 1)], b=2), list(enumerate(["x"]))]`, `[[3,2,1],[[1,"a"],[2,"b"]],{"a":1,"b":2},[[0,"x"]]]`},
	} {
		t.Run("runtime/R09 the library computes "+c.source, func(t *testing.T) { wants(t, cells(t, c.source), c.value) })
	}
}
