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

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

//go:embed demo.json
var demoScript []byte

type demoCommand struct {
	Model   string `help:"Use this model instead of the scripted one."`
	BaseURL string `help:"OpenAI-compatible server of that model." name:"base-url"`
}

// demo is a show with a real daemon in a directory of its own.
type demo struct {
	env       *environment
	dir       string
	workspace string
	daemon    *exec.Cmd
	client    *client.Client
	session   protocol.SessionID

	mu   sync.Mutex
	seq  protocol.Seq
	news chan protocol.Event
}

func (c demoCommand) Run(ctx context.Context, e *environment) error {
	dir, err := os.MkdirTemp("", "lashd-demo-")
	if err != nil {
		return err
	}
	d := &demo{env: &environment{home: filepath.Join(dir, "data"), log: e.log}, dir: dir, workspace: filepath.Join(dir, "work"), news: make(chan protocol.Event, 4096)}
	d.env.socket = d.env.defaultSocket(true)
	if err := d.prepare(c); err != nil {
		return err
	}
	defer d.kill()
	for _, act := range []func(context.Context) error{d.work, d.killWhileStreaming, d.killWhileCommandRuns, d.fork} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\nEverything is stored under %s; remove it when you have looked around.\n", dir)
	return nil
}

func (d *demo) prepare(c demoCommand) error {
	if err := errors.Join(os.MkdirAll(d.env.home, 0o700), os.MkdirAll(d.workspace, 0o700)); err != nil {
		return err
	}
	script := filepath.Join(d.env.home, "demo.json")
	cfg := fmt.Sprintf("script = %q\napproval = \"allow\"\n", script)
	if c.Model != "" || os.Getenv("OPENAI_API_KEY") != "" {
		cfg = fmt.Sprintf("model = %q\nbase_url = %q\napproval = \"allow\"\n", c.Model, c.BaseURL)
	}
	return errors.Join(
		os.WriteFile(script, demoScript, 0o600),
		os.WriteFile(filepath.Join(d.env.home, "config.toml"), []byte(cfg), 0o600),
		os.WriteFile(filepath.Join(d.workspace, "greeting.txt"), []byte("Hello, wrold!\n"), 0o600))
}

func (d *demo) say(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }

// start starts the daemon and attaches to the session after the last event that was seen.
func (d *demo) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.daemon = exec.Command(self, "--home", d.env.home, "--socket", d.env.socket, "--log", "error", "serve")
	d.daemon.Stderr = os.Stderr
	if err := d.daemon.Start(); err != nil {
		return err
	}
	for range 1000 {
		if d.client, err = d.env.client(ctx, false, d.event); err == nil {
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

func (d *demo) kill() {
	if d.daemon == nil {
		return
	}
	d.daemon.Process.Signal(syscall.SIGKILL)
	d.daemon.Wait()
	d.daemon = nil
}

func (d *demo) seen() protocol.Seq {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seq
}

func (d *demo) event(raw json.RawMessage) {
	var e protocol.Event
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	d.mu.Lock()
	d.seq = max(d.seq, e.Seq)
	d.mu.Unlock()
	switch {
	case e.Type == protocol.EventItemDelta:
		fmt.Print(e.Text)
	case e.Type == protocol.EventItemStarted && e.Item != nil && e.Item.Kind == protocol.ItemToolCall:
		fmt.Printf("\n   [%s %s]\n", e.Item.Tool, e.Item.Args)
	case e.Type == protocol.EventDecisionOpened || e.Type == protocol.EventDecisionResolved:
		verb := "asked"
		if e.Decision.Answer != nil {
			verb = "answered " + string(e.Decision.Answer.Choice)
		}
		fmt.Printf("\n   [decision %s: %s]\n", verb, e.Decision.Prompt)
	case e.Type == protocol.EventTurnCompleted:
		fmt.Printf("\n   [turn ended: %s, event %d]\n", e.Outcome.Kind, e.Seq)
	}
	select {
	case d.news <- e:
	default: // nobody waits for so many
	}
}

// until waits for an event that fits.
func (d *demo) until(ctx context.Context, fits func(protocol.Event) bool) error {
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case e := <-d.news:
			if fits(e) {
				return nil
			}
		case <-limit.C:
			return errors.New("the demo waited two minutes for an event")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func completed(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted }

func (d *demo) input(ctx context.Context, text string) error {
	fmt.Printf("> %s\n", text)
	var r protocol.TurnStartResult
	return d.client.Call(ctx, "turn/start", protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: d.session,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
	}, &r)
}

func (d *demo) work(ctx context.Context) error {
	d.say("A daemon is started, with a session in %s", d.workspace)
	if err := d.start(ctx); err != nil {
		return err
	}
	var r protocol.SessionNewResult
	err := d.client.Call(ctx, "session/new", protocol.SessionNewParams{
		Cwd: d.workspace, Unknown: protocol.UnknownOutcomeRule{DeadlineMs: new(int64)},
	}, &r)
	if err != nil {
		return err
	}
	d.session = r.SessionID
	if err := d.input(ctx, "Fix the typo in greeting.txt and show me the file."); err != nil {
		return err
	}
	return d.until(ctx, completed)
}

func (d *demo) killWhileStreaming(ctx context.Context) error {
	d.say("The daemon is killed with SIGKILL while the next turn streams")
	if err := d.input(ctx, "Tell me a story about durability."); err != nil {
		return err
	}
	seen := 0
	err := d.until(ctx, func(e protocol.Event) bool {
		if e.Type == protocol.EventItemDelta {
			seen++
		}
		return seen >= 12
	})
	if err != nil {
		return err
	}
	d.kill()
	d.say("Killed. It is started again: the accepted turn goes on, and finishes once")
	if err := d.start(ctx); err != nil {
		return err
	}
	return d.until(ctx, completed)
}

func (d *demo) killWhileCommandRuns(ctx context.Context) error {
	d.say("The daemon is killed while a command runs")
	if err := d.input(ctx, "Run the slow command."); err != nil {
		return err
	}
	err := d.until(ctx, func(e protocol.Event) bool {
		return e.Type == protocol.EventItemStarted && e.Item != nil && e.Item.Kind == protocol.ItemToolCall
	})
	if err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond) // for the command to begin
	d.kill()
	d.say("Killed. Nobody knows what became of the command, so it is not run again: the model is told")
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.until(ctx, completed); err != nil {
		return err
	}
	count, err := os.ReadFile(filepath.Join(d.workspace, "count.txt"))
	if err != nil {
		return err
	}
	fmt.Printf("   the command ran %d time(s)\n", len(count))
	return nil
}

func (d *demo) fork(ctx context.Context) error {
	d.say("The session is forked: constant cost, shared history")
	var r protocol.SessionNewResult
	if err := d.client.Call(ctx, "session/fork", protocol.SessionForkParams{SessionID: d.session}, &r); err != nil {
		return err
	}
	fmt.Printf("   %s shares %d nodes with %s\n", r.SessionID, r.Session.Head.Generation+1, d.session)
	d.daemon.Process.Signal(syscall.SIGTERM)
	err := d.daemon.Wait()
	d.daemon = nil
	return err
}
