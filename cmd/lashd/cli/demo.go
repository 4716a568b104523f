package cli

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// demoScript is the script of the model: the replies and tool calls of the demo.
//
//go:embed demo.json
var demoScript []byte

// demoCommand implements lashd demo. It uses its own data directory and never
// touches the user's sessions.
type demoCommand struct {
	Model   string `help:"Model to use instead of the scripted one." placeholder:"ID"`
	BaseURL string `help:"Server of the model; its key is OPENAI_API_KEY (default $$OPENAI_BASE_URL or OpenAI)." name:"base-url" placeholder:"URL"`
	API     string `help:"API of the server at --base-url: chat (default), responses, anthropic or gemini." name:"api" enum:"chat,responses,anthropic,gemini" default:"chat" placeholder:"API"`
}

// Help is shown by --help.
func (demoCommand) Help() string {
	return `Starts a daemon in a temporary directory and lets an agent work there. It kills the daemon with SIGKILL during a reply
and during a command, and then forks the session. The demo takes a few seconds.

All tool calls are allowed. With --model, a real model decides what to run.

Example: lashd demo --model qwen3 --base-url http://localhost:11434/v1`
}

// demo runs a real daemon in a temporary directory and prints its events. The acts
// run on one goroutine. event runs on the goroutine of the connection and owns
// kind and midLine while a turn runs.
type demo struct {
	env       *daemon.Environment
	dir       string
	workspace string
	kind      protocol.ItemKind // kind of the streaming item
	midLine   bool              // the last output did not end its line
	daemon    *exec.Cmd
	client    *daemon.Link
	session   protocol.SessionID

	mu   sync.Mutex
	seq  protocol.Seq        // number of the newest event; guarded by mu
	news chan protocol.Event // events for until
}

// Run plays the acts until one fails, and says where the session is. The directory
// stays, so that the user can look at it.
func (c demoCommand) Run(ctx context.Context, e *daemon.Environment) error {
	dir, err := os.MkdirTemp("", "lashd-demo-")
	if err != nil {
		return err
	}
	d := &demo{env: &daemon.Environment{Name: e.Name, Home: filepath.Join(dir, "data"), Log: e.Log}, dir: dir, workspace: filepath.Join(dir, "work"), news: make(chan protocol.Event, 4096)}
	d.env.Socket = d.env.DefaultSocket(true)
	if err := d.prepare(c); err != nil {
		return err
	}
	defer d.kill()
	for _, act := range []func(context.Context) error{d.work, d.killWhileStreaming, d.killWhileCommandRuns, d.fork} {
		if err = act(ctx); err != nil {
			break
		}
	}
	fmt.Fprintf(console.Stdout, "\nTo look at the session: lash --home %s session\nTo remove the demo: rm -r %s\n", d.env.Home, dir)
	return err
}

// prepare writes config.toml, the script of the model and the workspace. With a
// real model there is no script. The configuration allows all tool calls, since
// the demo runs without a person who could approve them.
func (d *demo) prepare(c demoCommand) error {
	if err := errors.Join(os.MkdirAll(d.env.Home, 0o700), os.MkdirAll(d.workspace, 0o700)); err != nil {
		return err
	}
	script := filepath.Join(d.env.Home, "demo.json")
	cfg := fmt.Sprintf("script = %q\napproval = \"allow\"\n", script)
	switch {
	case c.BaseURL != "":
		cfg = fmt.Sprintf("approval = \"allow\"\n[[models]]\nid = %q\nbase_url = %q\napi = %q\n", c.Model, c.BaseURL, c.API)
	case c.Model != "":
		cfg = fmt.Sprintf("model = %q\napproval = \"allow\"\n", c.Model)
	}
	return errors.Join(
		os.WriteFile(script, demoScript, 0o600),
		os.WriteFile(filepath.Join(d.env.Home, "config.toml"), []byte(cfg), 0o600),
		os.WriteFile(filepath.Join(d.workspace, "greeting.txt"), []byte("Hello, wrold!\n"), 0o600))
}

// start starts the daemon, waits up to 30 seconds for it, and attaches to the
// session after the newest known event. Before the session exists it does not
// attach.
func (d *demo) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.daemon = exec.Command(self, "--home", d.env.Home, "--socket", d.env.Socket, "--log", "error", "serve")
	d.daemon.Stderr = os.Stderr
	if err := d.daemon.Start(); err != nil {
		return err
	}
	for range 6000 {
		if d.client, err = d.env.Dial(ctx, false, d.event); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil || d.session == "" {
		return err
	}
	after := d.seen()
	var r protocol.SessionAttachResult
	return d.client.Call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: d.session, AfterSeq: &after}, &r)
}

// kill kills the daemon with SIGKILL, if it runs, and waits for its end.
func (d *demo) kill() {
	if d.daemon == nil {
		return
	}
	d.daemon.Process.Signal(syscall.SIGKILL)
	d.daemon.Wait()
	d.daemon = nil
}

// seen returns the number of the newest event.
func (d *demo) seen() protocol.Seq {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seq
}

// event handles an event of the daemon: it prints it and passes it on to until.
func (d *demo) event(raw json.RawMessage) {
	var e protocol.Event
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	d.mu.Lock()
	d.seq = max(d.seq, e.Seq)
	d.mu.Unlock()
	d.show(e)
	select {
	case d.news <- e:
	default: // the buffer is full; until needs only recent events
	}
}
