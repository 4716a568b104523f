package mcpinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestMentions(t *testing.T) {
	var file struct {
		Known    protocol.MCPResourcesResult
		Examples []struct {
			Text     string
			Mentions []string
		}
	}
	data, err := os.ReadFile("testdata/mentions.json")
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil || len(file.Examples) == 0 {
		t.Fatalf("%d examples: %v", len(file.Examples), err)
	}
	for _, x := range file.Examples {
		got := []string{}
		for _, m := range Resources(x.Text, &file.Known) {
			got = append(got, m.Server+" "+m.URI)
		}
		if !slices.Equal(got, x.Mentions) {
			t.Errorf("part13/6 %q mentions %q, want %q", x.Text, got, x.Mentions)
		}
		if len(x.Mentions) > 0 && !Mentions(x.Text) {
			t.Errorf("part13/6 %q may mention nothing", x.Text)
		}
	}
	var text strings.Builder
	for n := range MostMentions + 1 {
		fmt.Fprintf(&text, "@docs:doc://books/%d ", n)
	}
	if got := Resources(text.String(), &file.Known); len(got) != MostMentions || got[MostMentions-1].URI != "doc://books/15" {
		t.Errorf("part13/6 of %d mentions %d count: %v", MostMentions+1, len(got), got)
	}
	if Mentions("write to me@docs:x, @docs and @types/node:x") {
		t.Error("part13/6 a text without a mention may have one")
	}
	if known := "@docs:doc://guide"; !Known(known, &file.Known) || Known(known+" @docs:doc://x", &file.Known) {
		t.Error("part13/6 Known counts an unknown resource, or lacks a known one")
	}
}

func TestWritten(t *testing.T) {
	for _, m := range []protocol.ResourceMention{{Server: "docs", URI: "doc://guide"}, {Server: "docs", URI: "doc://my notes"}} {
		known := &protocol.MCPResourcesResult{Data: []protocol.ResourceInfo{{Server: m.Server, URI: m.URI}}}
		if got := Resources("see "+Written(m)+" now", known); !slices.Equal(got, []protocol.ResourceMention{m}) {
			t.Errorf("part13/6 %q mentions %v", Written(m), got)
		}
	}
}

func TestVariables(t *testing.T) {
	for _, c := range []struct{ template, begun, name, value, others, with string }{
		{"doc://books/{title}", "doc://books/", "title", "", "map[]", "doc://books/a%20b%2Fc"},
		{"doc://books/{title}", "doc://books/em%20ma", "title", "em ma", "map[]", "doc://books/a%20b%2Fc"},
		{"doc://{shelf}/books/{+path}.txt", "doc://low", "shelf", "low", "map[]", "doc://a%20b%2Fc/books/"},
		{"doc://{shelf}/books/{+path}.txt", "doc://low/books/x", "path", "x", "map[shelf:low]", "doc://low/books/a%20b/c.txt"},
		{"doc://{shelf}/books/{+path}.txt", "doc://low/books/x.txt", "", "", "", ""},
		{"doc://books/{title}", "other://", "", "", "", ""},
		{"doc://guide", "doc://guide", "", "", "", ""},
		{"doc://find{?author}", "doc://find", "", "", "", ""},
		{"doc://{a,b}", "doc://", "", "", "", ""},
	} {
		v, ok := VariableOf(c.template, c.begun)
		if !ok {
			v = Variable{}
		}
		if ok != (c.name != "") || v.Name != c.name || v.Value != c.value || ok && fmt.Sprint(v.Others) != c.others || ok && v.With("a b/c") != c.with {
			t.Errorf("part13/6 %s in %s is %v %+v %q, want %+v", c.begun, c.template, ok, v, v.With("a b/c"), c)
		}
	}
}

// review has the arguments of a prompt.
var review = []protocol.CommandArgument{{Name: "file", Required: true}, {Name: "focus"}, {Name: "tone"}}

func TestAssign(t *testing.T) {
	for _, c := range []struct {
		line, problem string
		want          map[string]string
	}{
		{"a.go", "", map[string]string{"file": "a.go"}},
		{`'a b.go' speed and "much more"`, "", map[string]string{"file": "a b.go", "focus": "speed", "tone": "and much more"}},
		{"tone=calm a.go focus='x y'", "", map[string]string{"file": "a.go", "focus": "x y", "tone": "calm"}},
		{"other=x", "", map[string]string{"file": "other=x"}},
		{"''", "", map[string]string{"file": ""}},
		{"", "the argument file is missing; write <file> [focus] [tone]", nil},
		{"'a", "a quote is not closed", nil},
		{"file=a focus=b tone=c d", `it takes no argument "d"`, nil},
	} {
		got, err := Assign(review, c.line)
		if problem := fmt.Sprint(err); err != nil && problem != c.problem || err == nil && (c.problem != "" || !maps.Equal(got, c.want)) {
			t.Errorf("part13/6 %q gives %v, %v", c.line, got, err)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct{ line, name, value, head, others string }{
		{"", "file", "", "", "map[]"},
		{"a", "file", "a", "", "map[]"},
		{"a ", "focus", "", "a ", "map[file:a]"},
		{"a 'b c", "focus", "b c", "a ", "map[file:a]"},
		{"a b c ", "tone", "c ", "a b ", "map[file:a focus:b]"},
		{"a b c d", "tone", "c d", "a b ", "map[file:a focus:b]"},
		{"tone=", "tone", "", "tone=", "map[]"},
		{"focus=x ", "file", "", "focus=x ", "map[focus:x]"},
		{"file=x tone='y z", "tone", "y z", "file=x tone=", "map[file:x]"},
		{`"tone=x`, "", "", "", ""},
		{"file=a focus=b tone=c ", "", "", "", ""},
	} {
		a, ok := ArgumentOf(review, c.line)
		if ok != (c.name != "") || ok && (a.Name != c.name || a.Value != c.value || c.line[:a.At] != c.head || fmt.Sprint(a.Others) != c.others) {
			t.Errorf("part13/6 at the end of %q is %v %+v, want %+v", c.line, ok, a, c)
		}
	}
}

func TestQuoted(t *testing.T) {
	for value, want := range map[string]string{"a": "a", "a b": `"a b"`, `say "a"`: `'say "a"'`, "it's": `"it's"`, "": `""`, "x=y": "x=y", "a\\b": "a\\b"} {
		if got, ok := Quoted(review, value); !ok || got != want {
			t.Errorf("part13/6 %q is written as %q, %v, want %q", value, got, ok, want)
		}
	}
	for _, value := range []string{`it's "a"`, "focus=x", "a\nb"} {
		if got, ok := Quoted(review, value); ok {
			t.Errorf("part13/6 %q is written as %q", value, got)
		}
	}
}
