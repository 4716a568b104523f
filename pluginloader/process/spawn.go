package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// environment returns the variables of the process.
func (c *Config) environment() []string {
	return child.Environment{Daemon: c.Environ, Pass: c.Allow, Set: c.Set, Root: c.Dir, Data: c.DataDir, Temp: c.Confine.Temp()}.List()
}

// spawn starts the process with its environment, limits and sandbox. For a plugin that needs
// approval, it first checks that the program is the approved one. The caller runs life.run, which
// reads the output.
func (f *Factory) spawn(ctx context.Context) (*life, error) {
	c := &f.config
	if err := c.prepare(); err != nil {
		return nil, &Error{Plugin: c.ID, Code: Crashed, Err: err}
	}
	box, err := c.Confine.In(c.Workspace)
	if err != nil {
		return nil, &Error{Plugin: c.ID, Code: Crashed, Err: err}
	}
	command := proc.Command{
		Argv: c.Argv, Path: c.executable(), Dir: c.Dir, Env: c.environment(), Confine: box.Confinement, Stderr: c.Output, Grace: c.Deadlines.Terminate,
		Drain: drainDelay,
	}
	release, err := c.Approval.Ask(ctx, c.ID, &command)
	if err != nil {
		return nil, err
	}
	defer release()
	p, err := child.NewPipes()
	if err != nil {
		return nil, &Error{Plugin: c.ID, Code: Crashed, Err: err}
	}
	l := &life{
		peer: newPeer(c.ID, c.Limits, c.Deadlines.Cancel), config: c, log: c.Log, heed: f, grants: newGrants(), box: box, in: p.In, out: p.Out,
		busy: make(chan struct{}, c.Limits.Calls), over: make(chan struct{}), began: time.Now(), ended: f.ended,
	}
	l.goesOn = func(method string) {
		l.log.Warn("a cancelled call continues", "method", method)
		c.Output.Note(slog.LevelWarn, "lashd: "+method+" continues although it was cancelled")
	}
	l.hangs = func(why error) { l.abort(TimedOut, why) }
	if c.Nonce != "" {
		// During a reload, a plugin has two factories. The random part keeps a sweep of one away from the other.
		l.mark = fmt.Sprintf("%s/plugin/%s/%s", c.Nonce, c.ID, rand.Text())
	}
	command.Nonce, command.Stdin, command.Stdout = l.mark, p.ItsIn, p.ItsOut
	l.process, err = proc.Start(ctx, command)
	p.CloseIts()
	if err != nil {
		p.CloseOurs()
		return nil, &Error{Plugin: c.ID, Code: Crashed, Err: err}
	}
	f.tell()
	return l, nil
}

// prepare creates the directory for temporary files of a sandboxed process.
func (c *Config) prepare() error {
	if temp := c.Confine.Temp(); temp != "" {
		return os.MkdirAll(temp, 0o700)
	}
	return nil
}

// ended handles an unexpected end of the process: a line in the plugin's log, and a crash for the
// supervisor.
func (f *Factory) ended(l *life) {
	f.config.Output.Note(slog.LevelError, "lashd: "+l.Reason().Error())
	f.super.Ended(l)
}

// executable returns the path of a program that the command names relative to the plugin's
// directory, and "" for programs that are looked up in PATH.
func (c *Config) executable() string {
	name := c.Argv[0]
	if filepath.IsAbs(name) || !strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	return filepath.Join(c.Dir, name)
}

// launch starts the process and does the handshake. If that fails, it cleans up everything and the
// plugin's log gets the reason. The supervisor calls it on its own goroutine.
func (f *Factory) launch(ctx context.Context) (*life, error) {
	l, err := f.spawn(ctx)
	if err != nil {
		f.config.Output.Note(slog.LevelError, "lashd: "+err.Error())
		return nil, err
	}
	f.running.Go(func() { l.run(ctx, f.config.Deadlines.Stall) })
	if err := l.handshake(ctx); err != nil {
		l.abort(child.CodeOf(err), child.Cause(err))
		<-l.over
		return nil, err
	}
	f.running.Go(func() { f.follow(ctx, l) })
	return l, nil
}

// follow waits for the end of a process, detaches the instances from it, and restarts an eager
// plugin.
func (f *Factory) follow(ctx context.Context, l *life) {
	<-l.over
	f.lost(l)
	if l.asked || !f.config.Eager {
		return
	}
	if _, err := f.super.Use(context.WithoutCancel(ctx)); err != nil {
		f.config.Log.Warn("restarting the plugin failed", "error", err)
	}
}
