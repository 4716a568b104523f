package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// audited is a place with a session in which calls were allowed, refused and run outside the sandbox.
func audited(t *testing.T) (*place, string) {
	t.Helper()
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	p := newPlace(t)
	p.write("script.json", `{"turns": [
		{"match": {"lastUserContains": "allowed"}, "replies": [
			{"toolCalls": [{"name": "shell", "args": {"command": "true"}}, {"name": "shell", "args": {"command": "echo ruled", "outside": true}}, {"name": "shell", "args": {"command": "git push"}}]},
			{"toolCalls": [{"name": "shell", "args": {"command": "echo asked", "outside": true}}, {"name": "write", "args": {"path": ".envrc", "content": "x"}}]},
			{"toolCalls": [{"name": "shell", "args": {"command": "echo x > /refused"}}]},
			{"text": "done"}]},
		{"match": {"lastUserContains": "denied"}, "replies": [{"toolCalls": [{"name": "shell", "args": {"command": "echo never", "outside": true}}]}, {"text": "done"}]}]}`)
	var made protocol.SessionNewResult
	params := fmt.Sprintf(`{"cwd":%q,"approval":{"sandbox":"workspace","deadlineMs":100,"rules":[{"command":"echo ruled","action":"allow"},{"command":"git push","action":"deny"}]}}`, p.work)
	if r := p.run("call", "session/new", params); json.Unmarshal([]byte(r.out), &made) != nil {
		t.Fatalf("%+v", r)
	}
	p.want(console.ExitDenied, "done\n", "", "run", "--session", string(made.SessionID), "--allow", "allowed")
	p.want(console.ExitDenied, "done\n", "", "run", "--session", string(made.SessionID), "denied")
	return p, string(made.SessionID)
}

func TestAudit(t *testing.T) {
	p, id := audited(t)
	p.run("call", "tool/call", `{"sessionId":"`+id+`","name":"shell","args":{"command":"echo mine","outside":true}}`)
	want := []string{
		"outside echo ruled|rule  |The rule `allow command echo ruled` of the session decides.",
		"refused git push|rule  |The rule `deny command git push` of the session decides.",
		"outside echo asked|outside allowOnce client|The call would run a program outside the sandbox.",
		"allowed .envrc|protected allowOnce client|",
		"refused echo x > /refused|sandbox  |workspace",
		"refused echo never|outside reject |",
		"outside echo mine|client  |A client made the call itself.",
	}
	var got []protocol.AuditEntry
	if err := json.Unmarshal([]byte(p.run("audit", "--json", id).out), &got); err != nil || len(got) != len(want) {
		t.Fatalf("part11/5 the audit has %d records, want %d: %v\n%+v", len(got), len(want), err, got)
	}
	for i, a := range got {
		by := ""
		if a.By != "" && a.By != "deadline" {
			by = "client"
		}
		head := fmt.Sprintf("%s %s|%s %s %s|", a.Kind, a.Subject, a.Why.By, a.Choice, by)
		wanted, text, _ := strings.Cut(want[i], "|")
		reason, text, _ := strings.Cut(text, "|")
		if !strings.HasPrefix(head, wanted+"|"+strings.TrimRight(reason, " ")) || !strings.Contains(a.Why.Text+string(a.Sandbox), text) || a.SessionID != protocol.SessionID(id) || a.CallID == "" {
			t.Errorf("part11/5 record %d is %q %q, want %q", i, head, a.Why.Text, want[i])
		}
	}
	t.Run("part11/5 records are filtered by kind and time, and paged", func(t *testing.T) {
		for args, n := range map[string]int{"--kind refused": 3, "--kind outside": 3, "--kind allowed": 1, "--since 1h": 7, "--since 1ns": 0} {
			if err := json.Unmarshal([]byte(p.run(append([]string{"audit", "--json"}, strings.Fields(args)...)...).out), &got); err != nil || len(got) != n {
				t.Errorf("%s lists %d records, want %d: %v", args, len(got), n, err)
			}
		}
		seen, cursor := 0, ""
		for range 8 {
			var page protocol.AuditListResult
			if err := json.Unmarshal([]byte(p.run("call", "audit/list", `{"sessionId":"`+id+`","limit":2,"cursor":"`+cursor+`"}`).out), &page); err != nil || len(page.Data) > 2 {
				t.Fatal(page, err)
			}
			seen, cursor = seen+len(page.Data), page.NextCursor
			if cursor == "" {
				break
			}
		}
		if seen != 7 || cursor != "" {
			t.Errorf("the pages have %d records, want 7; the last cursor is %q", seen, cursor)
		}
	})
	t.Run("part11/5 a table for people says where a call ran and who decided", func(t *testing.T) {
		out := p.run("audit", id).out
		for _, text := range []string{"echo ruled", "outside", "of the session decides.", "denied by ", "sandbox (workspace)", "allowed once by you"} {
			if !strings.Contains(out, text) {
				t.Errorf("it lacks %q:\n%s", text, out)
			}
		}
	})
	t.Run("part11/5 the commands of the page run", func(t *testing.T) {
		page, err := os.ReadFile(filepath.FromSlash("../../../docs/permissions.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(page), "## Audit\n")
		text, _, _ = strings.Cut(text, "\n## ")
		commands := pageCommand.FindAllStringSubmatch(text, -1)
		if len(commands) != 4 {
			t.Fatalf("the page has the commands %q, want 4", commands)
		}
		for _, c := range commands {
			p.want(0, "", "", strings.Fields(c[1])...)
		}
	})
	t.Run("part11/5 a changed record is found", func(t *testing.T) {
		p.want(0, "complete and unchanged", "", "audit", "--verify")
		p.stop()
		p.swap("echo never", "echo lying")
		p.want(console.ExitFailed, "the log is broken at event", "logs are damaged", "audit", "--verify")
	})
}

func TestRefusedHostsInText(t *testing.T) {
	t.Run("part11/network run names refused hosts with the rules that allow them, and the audit lists each host", func(t *testing.T) {
		err := sandbox.Available()
		skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
		p := newPlace(t)
		p.write("script.json", `{"turns": [{"replies": [{"toolCalls": [{"name": "shell", "args": {"command": "curl -s http://a.example.com http://b.example.com:81 >/dev/null; true"}}]}, {"text": "done"}]}]}`)
		var made protocol.SessionNewResult
		params := fmt.Sprintf(`{"cwd":%q,"approval":{"sandbox":"workspace","rules":[{"host":"x.test","action":"allow"}]}}`, p.work)
		if r := p.run("call", "session/new", params); json.Unmarshal([]byte(r.out), &made) != nil {
			t.Fatalf("%+v", r)
		}
		const why = " (no rule allows it, and the call did not name it)"
		p.want(0, "done\n", "  [The sandbox refused a.example.com"+why+", b.example.com:81"+why+". To allow: lash rules add allow host 'a.example.com'; lash rules add allow host 'b.example.com:81']\n",
			"run", "--session", string(made.SessionID), "go")
		p.want(0, "The sandbox refused a.example.com, b.example.com:81", "", "audit", string(made.SessionID))
	})
}
