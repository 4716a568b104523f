package toolsearch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/toolsearch"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// tools are tools with descriptions.
type tools map[string]string

func (l tools) Tools() []tool.Tool {
	var list []tool.Tool
	for name, about := range l {
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{Name: name, Description: about, Kind: protocol.ToolKindRead}})
	}
	return list
}

func (tools) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("ran " + call.Name)}, nil
}

var shop = tools{
	"issue_create": "Open an issue.\nWith a title and a text.", "issueDelete": "Delete an issue.", "issues": "List what is open.",
	"comment": "Say something about an issue", "weather": "Tell the weather, café included.", "note": "Keep a note of an issue",
}

func factory(list tools) plugin.Factory {
	return plugin.Static("shop", func(r *plugin.Registrar) error {
		r.Tools().Add(list)
		return nil
	})
}

func search(query string) scripted.Call {
	return scripted.Call{Name: "tool_search", Args: json.RawMessage(fmt.Sprintf(`{"query":%q}`, query))}
}

// session returns a session in which every tool of the shop is searchable, except note (open) and issueDelete (off).
func session(t *testing.T, list tools, calls ...scripted.Call) (*builtintest.Daemon, protocol.SessionID) {
	t.Helper()
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(calls...), toolsearch.Factory{}, factory(list))
	id := d.Session(t, protocol.PluginOptions{toolsearch.ID: []byte(`{}`)})
	for name := range list {
		level := map[string]protocol.ToolAvailability{"note": protocol.ToolShowcased, "issueDelete": protocol.ToolOff}[name]
		if level == "" {
			level = protocol.ToolSearchable
		}
		builtintest.Must(d.Tools.SetAvailability(t.Context(), &protocol.ToolSetAvailabilityParams{SessionID: id, Names: []string{name}, Availability: level}))(t)
	}
	return d, id
}

// open returns the tools in the prompt.
func open(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	p := builtintest.Must(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id}))(t)
	var names []string
	for _, m := range p.Tools {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestSearch(t *testing.T) {
	for query, want := range map[string][]string{
		"Issue":              {"issue_create", "issues", "comment", "note"},
		"create an issue":    {"issue_create", "comment", "issues", "note"},
		"COMMENT":            {"comment"},
		"weath":              {"weather"},
		"we":                 {},
		"café":               {"weather"},
		"tool search delete": {},
	} {
		t.Run("runtime/K09 "+query, func(t *testing.T) {
			d, id := session(t, shop, search(query))
			d.Turn(t, id, "go")
			out := d.Result(t, id)
			var found struct{ Tools []struct{ Name string } }
			if err := json.Unmarshal(out.Value, &found); err != nil {
				t.Fatalf("%+v: %v", out, err)
			}
			names := []string{}
			for _, f := range found.Tools {
				names = append(names, f.Name)
			}
			if !slices.Equal(names, want) || strings.Contains(out.Text, "No tool matches") != (len(want) == 0) {
				t.Errorf("found %q, want %q; the model reads %q", names, want, out.Text)
			}
		})
	}
	t.Run("runtime/K09 at most ten tools are found and opened", func(t *testing.T) {
		many := tools{}
		for i := range 12 {
			many[fmt.Sprintf("gadget_%02d", i)] = strings.Repeat("é", 200)
		}
		d, id := session(t, many, search("gadget"))
		d.Turn(t, id, "go")
		if got := open(t, d, id); got != "gadget_00 gadget_01 gadget_02 gadget_03 gadget_04 gadget_05 gadget_06 gadget_07 gadget_08 gadget_09 tool_search" {
			t.Errorf("open: %s", got)
		}
		if want := "- gadget_09: " + strings.Repeat("é", 150) + "\n"; !strings.HasSuffix(d.Result(t, id).Text, want) {
			t.Errorf("the model reads %q", d.Result(t, id).Text)
		}
	})
}

func TestOpens(t *testing.T) {
	d, id := session(t, shop, search("create"), scripted.Call{Name: "issue_create"})
	if got := open(t, d, id); got != "note tool_search" {
		t.Fatalf("runtime/K09 the prompt lists %s", got)
	}
	d.Turn(t, id, "go")
	if out := d.Result(t, id); out.Text != "ran issue_create" {
		t.Errorf("runtime/K09 in the same turn, what was found answers %+v", out)
	}
	if got := open(t, d, id); got != "issue_create note tool_search" {
		t.Errorf("runtime/K09 after the search the prompt lists %s", got)
	}
}

func TestChangesNothing(t *testing.T) {
	d, id := session(t, shop, search("keep"))
	before := builtintest.Must(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id}))(t).State.Generation
	d.Turn(t, id, "go")
	after := builtintest.Must(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id}))(t).State.Generation
	if text := d.Result(t, id).Text; after != before || !strings.Contains(text, "note") {
		t.Errorf("runtime/K09 a search for what is open: %q, generation %d, then %d", text, before, after)
	}
}

func TestUnwanted(t *testing.T) {
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), toolsearch.Factory{}, factory(shop))
	if got := open(t, d, d.Session(t, nil)); strings.Contains(got, "tool_search") {
		t.Errorf("a session that did not ask for it has %s", got)
	}
}

func TestUnknown(t *testing.T) {
	host := builtintest.Must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{toolsearch.Factory{}}))(t)
	s := builtintest.Must(host.Open(t.Context(), standard.ID, protocol.PluginOptions{toolsearch.ID: []byte(`{}`)}, plugin.BuildContext{Cwd: t.TempDir()}))(t)
	r := builtintest.Must(s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{Name: "tool_search", Args: search("x").Args}))(t)
	if r.Output.Failure == nil || r.Output.Failure.Code != "tools_unknown" {
		t.Errorf("a search before anything is known: %+v", r.Output)
	}
}
