package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// foreign is a client that speaks through a JSON-RPC library of an editor, or of npm, as it was published.
type foreign struct {
	program, variable string                                     // the program that it needs, and the LASHD_SKIP_ variable that leaves it out
	args              func(t *testing.T, args []string) []string // of the program
}

// foreigners are those clients, by name. They read the arguments of the script from CLIENT_ARGS where a program would take them for its own.
var foreigners = map[string]foreign{
	"Neovim's vim.lsp.rpc": {"nvim", "NEOVIM", func(*testing.T, []string) []string {
		return []string{"--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "let g:client_args = json_decode($CLIENT_ARGS)", "-c", "luafile ../clients/nvim.lua"}
	}},
	"Emacs' jsonrpc.el": {"emacs", "EMACS", func(_ *testing.T, args []string) []string {
		return append([]string{"-Q", "--batch", "-l", "../clients/emacs.el"}, args...)
	}},
	"a channel of Vim in the mode lsp": {"vim", "VIM", func(*testing.T, []string) []string {
		return []string{"-es", "-u", "NONE", "-i", "NONE", "-n", "-c", "let g:client_args = json_decode($CLIENT_ARGS)", "-S", "../clients/client.vim"}
	}},
	"json-rpc-2.0": {"node", "NODE", func(t *testing.T, args []string) []string {
		npmFile(t, "json-rpc-2.0/package.json")
		return append([]string{"servers/jsonrpc.mjs"}, args...)
	}},
}

// play has a client play a script against lashd stdio, which starts a daemon if there is none. Killed says that the script ends with its
// death. $session in the script is the session.
func (w *world) play(f foreign, script string, id protocol.SessionID, killed bool) []byte {
	w.t.Helper()
	steps, err := os.ReadFile("../clients/" + script)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.user, script)
	if w.write(path, string(steps)); id != "" {
		w.write(path, strings.ReplaceAll(string(steps), "$session", string(id)))
	}
	args := append([]string{path, w.work}, w.command("stdio").Args...)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.program, f.args(w.t, args)...)
	cmd.Env = append(w.command().Env, "CLIENT_ARGS="+mustArgs(args))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, patience
	err = cmd.Run()
	how, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if killed != (how.Signaled() && how.Signal() == syscall.SIGKILL) || !killed && err != nil {
		w.t.Fatalf("%s of %s: %v\n%s\n%s", script, f.program, err, &out, &said)
	}
	return out.Bytes()
}

// TestForeignClients has the libraries of editors play what other clients play. All are told the same, also after both ends have died.
func TestForeignClients(t *testing.T) {
	golden := map[string]string{}
	for _, name := range []string{"clients", "resumed"} {
		raw, err := os.ReadFile("testdata/" + name + ".golden")
		if err != nil && !*rewrite {
			t.Fatal(err)
		}
		golden[name] = string(raw)
	}
	same := func(t *testing.T, w *world, name string, out []byte) {
		t.Helper()
		got := w.transcript(out)
		if *rewrite && golden[name] == "" {
			golden[name] = got
			w.write("testdata/"+name+".golden", got)
		}
		if diff := gocmp.Diff(golden[name], got); diff != "" {
			t.Errorf("told otherwise than the others (-want +got):\n%s", diff)
		}
		if err := w.model.Check(); err != nil {
			t.Error(err)
		}
	}
	for name, f := range foreigners {
		ready := func(t *testing.T) {
			_, err := exec.LookPath(f.program)
			skip.Unless(t, f.variable, err == nil, f.program+" is not installed")
		}
		t.Run("outside/22 "+name+" is told what others are", func(t *testing.T) {
			ready(t)
			w := newWorld(t, "ask", step(says("I "), says("run it."), shell("printf done")), step(says("Done.")))
			defer w.shutdown()
			same(t, w, "clients", w.play(f, "script.jsonl", "", false))
		})
		t.Run("outside/22 "+name+" resends with its keys, and goes on with an older cursor while a new daemon takes over", func(t *testing.T) {
			ready(t)
			w := newWorld(t, "ask", step(says("I "), says("run it."), shell("printf x >> ran")), step(says("Done.")))
			d := w.serve()
			p := w.dial("") // it listens, so that the client starts no other one
			before := w.transcript(w.play(f, "before.jsonl", "", true))
			if n := strings.Count(before, `"type":"decision/opened"`); n != 1 {
				t.Errorf("the client that died was asked %d times:\n%s", n, before)
			}
			id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
			d.kill()
			defer w.shutdown()
			out := w.play(f, "after.jsonl", id, false)
			same(t, w, "resumed", out)
			if n := strings.Count(string(out), `"duplicate"`); n != 2 || w.size("ran") != 1 {
				t.Errorf("%d answers are those of before, want 2; the command ran %d times", n, w.size("ran"))
			}
			continuous(t, out)
		})
	}
}

// continuous fails the test unless the durable events that a client was told are 1, 2, 3 and so on, in this order.
func continuous(t *testing.T, out []byte) {
	t.Helper()
	next := protocol.Seq(1)
	for line := range bytes.Lines(out) {
		var s struct{ Event *protocol.Event }
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("a client said %s: %v", line, err)
		}
		if s.Event == nil || s.Event.Seq == 0 {
			continue
		}
		if s.Event.Seq != next {
			t.Errorf("event %d came where %d was due", s.Event.Seq, next)
		}
		next = s.Event.Seq + 1
	}
}
