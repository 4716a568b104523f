package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// confined is a world whose commands run in the sandbox.
func confined(t *testing.T, steps ...fakemodel.Step) *world {
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	w := newWorld(t, "allow", steps...)
	config := filepath.Join(w.dir, "config.toml")
	w.write(config, strings.Replace(readText(t, config), `"fullAccess"`, `"workspace"`, 1))
	return w
}

func TestRunOnceOutside(t *testing.T) {
	const command = "echo made-it > .vscode/made && cat .vscode/made"
	w := confined(t)
	w.model.Think(func(c fakemodel.Chat) fakemodel.Step { // the kill may cut off a request, which then comes again
		if string(c.Messages[len(c.Messages)-1].Content) == "go" {
			return step(shell(command))
		}
		return done
	})
	if err := os.Mkdir(filepath.Join(w.work, ".vscode"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := w.serve()
	p := w.dial("cli_one")
	id := p.session(w.home)
	out := called(t, p.turn(id, "go"), "shell")
	want := &protocol.SandboxRefusal{
		What: "The command ran in a sandbox, and it cannot change .vscode/made, because editors, shells or git start programs from there.", Mode: protocol.SandboxWorkspace,
		Retry: []byte(mustArgs(map[string]any{"command": command, "outside": true})),
	}
	if diff := cmp.Diff(want, out.Refusal); diff != "" {
		t.Fatalf("the refusal is %s\nof %q", diff, out.Text)
	}
	call := protocol.ToolCallParams{SessionID: id, Name: "shell", Args: out.Refusal.Retry, Tell: true, Mutation: protocol.Mutation{IdempotencyKey: "once"}}
	ran := ask[protocol.ToolCallResult](p, "tool/call", call)
	if ran.Output.Status != protocol.OutputSuccess || !strings.HasPrefix(ran.Output.Text, "made-it\n") {
		t.Fatalf("outside, the call returned %+v", ran.Output)
	}
	d.kill()
	w.serve()
	p = w.dial("cli_two")
	p.attach(id, 0)
	if again := ask[protocol.ToolCallResult](p, "tool/call", call); !again.Duplicate || again.CallID != ran.CallID {
		t.Errorf("the repeated call returned %+v", again)
	}
	p.until("the model has answered", func(all []told) bool {
		n := 0
		for _, e := range all {
			if e.Type == protocol.EventTurnCompleted {
				n++
			}
		}
		return n == 2
	})
	p.turn(id, "more")
	if n := w.read("A person ran this tool with"); n != 1 || w.read(`made-it\n`) != 1 {
		t.Errorf("the model has read of the call %d times: %s", n, w.model.Requests()[len(w.model.Requests())-1].Body)
	}
}

func TestModelReadsAClientsCallOnlyIfAsked(t *testing.T) {
	w := confined(t, done)
	w.serve()
	p := w.dial("cli_one")
	id := p.session(w.home)
	ask[protocol.ToolCallResult](p, "tool/call", protocol.ToolCallParams{SessionID: id, Name: "shell", Args: []byte(`{"command":"echo quiet"}`)})
	p.turn(id, "go")
	if w.read("quiet") != 0 {
		t.Errorf("the model reads %s", w.model.Requests()[0].Body)
	}
}

func TestRunOnceWithHosts(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the host") }))
	t.Cleanup(s.Close)
	at := s.Listener.Addr().String()
	command := "curl -s --noproxy '' http://" + at + "/ || true"
	w := confined(t, step(shell(command)), done, step(says("I see.")))
	config := filepath.Join(w.dir, "config.toml")
	w.write(config, readText(t, config)+"\n[[rules]]\nhost = \"x.test\"\naction = \"allow\"\n")
	w.serve()
	p := w.dial("cli_one")
	id := p.session(w.home)
	refusal := called(t, p.turn(id, "go"), "shell").Refusal
	if refusal == nil || refusal.WithHosts == nil || len(refusal.Hosts) != 1 || refusal.Hosts[0].Host != at {
		t.Fatalf("the refusal is %+v", refusal)
	}
	if diff := cmp.Diff(&protocol.HostsRetry{Hosts: []string{at}, Retry: []byte(mustArgs(map[string]any{"command": command, "hosts": []string{at}}))}, refusal.WithHosts); diff != "" {
		t.Error(diff)
	}
	call := protocol.ToolCallParams{SessionID: id, Name: "shell", Args: refusal.WithHosts.Retry, Tell: true, Mutation: protocol.Mutation{IdempotencyKey: "once"}}
	ran := ask[protocol.ToolCallResult](p, "tool/call", call)
	if ran.Output.Refusal != nil || !strings.HasPrefix(ran.Output.Text, "from the host") {
		t.Fatalf("with the host, the call returned %+v", ran.Output)
	}
	w.asked(3)
	all := ask[protocol.AuditListResult](p, "audit/list", protocol.AuditListParams{SessionID: id}).Data
	var got strings.Builder
	for _, a := range all {
		fmt.Fprintf(&got, "%s by %s in %s, granted %v, refused %d\n", a.Kind, a.Why.By, a.Sandbox, a.Granted, len(a.Hosts))
	}
	want := "allowed by mode in workspace, granted [], refused 0\nrefused by sandbox in workspace, granted [], refused 1\nallowed by client in workspace, granted [" + at + "], refused 0\n"
	if got.String() != want {
		t.Errorf("the audit has\n%s\nwant\n%s", got.String(), want)
	}
}

func TestChatShowsARunOutsideOnce(t *testing.T) {
	w := confined(t, step(shell("echo ran-$((40+3)) > .vscode/made && cat .vscode/made")), step(says("It was refused.")), step(says("I see it.")))
	if err := os.Mkdir(filepath.Join(w.work, ".vscode"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.serve()
	w.dial("") // start the daemon
	s := w.chat()
	s.shows("idle")
	s.enters("mark it")
	s.shows("It was refused.")
	s.shows("The sandbox refused a call. The command ran in a sandbox, and it cannot change .vscode/made, because editors, shells or git start programs from there. Ctrl-R runs it once outside: echo ran")
	s.types("\x12")
	s.shows("Running once outside the sandbox: echo ran")
	s.shows("ran-43")
	s.shows("I see it.")
	if all := s.letters(); strings.Contains(all, "Apersonranthistool") {
		t.Errorf("the chat also shows what the agent reads: %s", all)
	}
	if n := w.read("A person ran this tool with"); n != 1 {
		t.Errorf("the agent reads of the call %d times", n)
	}
	s.types("\x04")
	s.leaves()
}
