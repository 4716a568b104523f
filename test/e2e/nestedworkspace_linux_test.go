package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// try calls a tool that needs no approval in a session, and returns its output.
func (p *prison) try(c *peer, id protocol.SessionID, name, args string) protocol.ToolOutput {
	p.t.Helper()
	return ask[protocol.ToolCallResult](c, "tool/call", protocol.ToolCallParams{SessionID: id, Name: name, Args: []byte(args)}).Output
}

func TestASessionReachesNothingElsewhereWhenALinkReplacesItsWorkspace(t *testing.T) {
	p := newPrison(t)
	inner := filepath.Join(p.work, "part", "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	p.serve()
	c := p.dial("")
	session := func(cwd string) protocol.SessionID {
		return ask[protocol.SessionNewResult](c, "session/new", protocol.SessionNewParams{Cwd: cwd}).SessionID
	}
	outer, nested := session(p.work), session(inner)
	if out := p.try(c, nested, "shell", `{"command":"echo mine > file"}`); out.Failure != nil {
		t.Fatalf("the nested session before: %+v", out)
	}
	other := filepath.Join(p.user, "other")
	if err := os.MkdirAll(filepath.Join(other, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, swap := range []string{"mv part/inner part/away; ln -s " + other + " part/inner", "mv part kept; ln -s " + other + " part"} {
		if out := p.try(c, outer, "shell", `{"command":"`+swap+`"}`); !strings.Contains(out.Text, "[Exit code 0.]") {
			t.Fatalf("%s: %+v", swap, out)
		}
		for name, args := range map[string]string{
			"shell": `{"command":"pwd; cat file; echo x > planted"}`, "start_command": `{"command":"echo x > planted"}`, "read": `{"path":"file"}`,
			"write": `{"path":"planted","content":"x"}`, "list": `{}`, "start_monitor": `{"id":"m","command":"cat file"}`,
		} {
			var out protocol.ToolCallResult
			err := c.conn.Call(t.Context(), "tool/call", protocol.ToolCallParams{SessionID: nested, Name: name, Args: []byte(args)}, &out)
			wrong, ok := errors.AsType[*jsonrpc2.Error](err)
			if !ok || wrong.Data == nil || !strings.Contains(string(*wrong.Data), `"workspaceElsewhere"`) || !strings.Contains(wrong.Message, "contains a link now and leads to \""+other) {
				t.Errorf("after %s, %s of the nested session: %+v %v; want the error workspaceElsewhere, which says where the path leads", swap, name, out, err)
			}
		}
		if _, err := os.Stat(filepath.Join(other, "planted")); err == nil {
			t.Errorf("after %s, a file was made elsewhere", swap)
		}
		if out := p.try(c, outer, "shell", `{"command":"rm -f part/inner part; test -d part || mv kept part; rm -f part/inner; mv part/away part/inner; cat part/inner/file"}`); !strings.Contains(out.Text, "mine") {
			t.Fatalf("undo %s: %+v", swap, out)
		}
	}
	if out := p.try(c, nested, "read", `{"path":"file"}`); !strings.Contains(out.Text, "mine") {
		t.Errorf("the nested session with its directory back: %+v", out)
	}
	if err := errors.Join(os.RemoveAll(inner), os.Mkdir(inner, 0o755)); err != nil {
		t.Fatal(err)
	}
	if out := p.try(c, nested, "write", `{"path":"new","content":"x"}`); out.Failure != nil {
		t.Errorf("a directory that was deleted and made again: %+v", out)
	}
	if out := p.try(c, nested, "shell", `{"command":"cat new"}`); !strings.HasPrefix(out.Text, "x") {
		t.Errorf("a command in a directory that was made again: %+v", out)
	}
}

func TestSessionsAreFoundByAnyPathOfTheirWorkspace(t *testing.T) {
	p := newPrison(t)
	link := filepath.Join(p.user, "link")
	if err := os.Symlink(p.work, link); err != nil {
		t.Fatal(err)
	}
	p.serve()
	c := p.dial("")
	made := ask[protocol.SessionNewResult](c, "session/new", protocol.SessionNewParams{Cwd: link})
	for _, cwd := range []string{link, p.work, link + "/", p.work + "/../link"} {
		r := ask[protocol.SessionListResult](c, "session/list", protocol.SessionListParams{Cwd: cwd})
		if len(r.Data) != 1 || r.Data[0].ID != made.SessionID || r.Data[0].Cwd != p.work {
			t.Errorf("session/list with cwd %s: %+v; want session %s in %s", cwd, r.Data, made.SessionID, p.work)
		}
	}
	rule := protocol.ApprovalRule{Command: "make", Action: protocol.ApproveDeny}
	ask[protocol.RuleAddResult](c, "rule/add", protocol.RuleAddParams{Level: protocol.LevelWorkspace, Cwd: link, Rule: rule})
	if out := p.try(c, made.SessionID, "shell", `{"command":"make"}`); out.Failure == nil {
		t.Errorf("a rule that was added by the path with a link did not apply: %+v", out)
	}
}
