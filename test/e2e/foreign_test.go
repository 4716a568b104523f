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

// foreign is a client on top of a JSON-RPC library of an editor, or of npm, as published.
type foreign struct {
	program, variable string                                     // the program that it needs, and the LASHD_SKIP_ variable that skips it
	args              func(t *testing.T, args []string) []string // arguments of the program
}

// foreigners are these clients by name. Those whose program would interpret the script's arguments
// read them from CLIENT_ARGS.
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

// play has a client play a script against lashd stdio, which starts a daemon if none runs. With
// killed, the script ends with the client's death. $session in the script stands for the session.
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

// TestForeignClients plays a script with the libraries of editors. All get the same messages, also
// after client and daemon have died.
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
			t.Errorf("differs from the other clients (-want +got):\n%s", diff)
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
		t.Run("outside/22 "+name+" gets what others get", func(t *testing.T) {
			ready(t)
			w := newWorld(t, "ask", step(says("I "), says("run it."), shell("printf done")), step(says("Done.")))
			defer w.shutdown()
			same(t, w, "clients", w.play(f, "script.jsonl", "", false))
		})
		t.Run("outside/22 "+name+" repeats requests with its keys and continues from an older cursor while a new daemon starts", func(t *testing.T) {
			ready(t)
			w := newWorld(t, "ask", step(says("I "), says("run it."), shell("printf x >> ran")), step(says("Done.")))
			d := w.serve()
			p := w.dial("") // a daemon listens, so that the client does not start one
			before := w.transcript(w.play(f, "before.jsonl", "", true))
			if n := strings.Count(before, `"type":"decision/opened"`); n != 1 {
				t.Errorf("the client that died got %d questions:\n%s", n, before)
			}
			id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
			d.kill()
			defer w.shutdown()
			out := w.play(f, "after.jsonl", id, false)
			same(t, w, "resumed", out)
			if n := strings.Count(string(out), `"duplicate"`); n != 2 || w.size("ran") != 1 {
				t.Errorf("%d answers equal the earlier ones, want 2; the command ran %d times", n, w.size("ran"))
			}
			continuous(t, out)
		})
	}
}

// continuous fails the test unless the durable events of a client are numbered 1, 2, 3 and so on.
func continuous(t *testing.T, out []byte) {
	t.Helper()
	next := protocol.Seq(1)
	for line := range bytes.Lines(out) {
		var s struct{ Event *protocol.Event }
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("a client printed %s: %v", line, err)
		}
		if s.Event == nil || s.Event.Seq == 0 {
			continue
		}
		if s.Event.Seq != next {
			t.Errorf("got event %d, want %d", s.Event.Seq, next)
		}
		next = s.Event.Seq + 1
	}
}
