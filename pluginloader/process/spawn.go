package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// environment is what the process gets of the daemon's, and what is its own.
func (c *Config) environment() []string {
	return child.Environment{Daemon: c.Environ, Pass: c.Allow, Set: c.Set, Root: c.Dir, Data: c.DataDir}.List()
}

// pipes are the two that join us and a process: our ends, and its.
type pipes struct{ in, out, itsIn, itsOut *os.File }

func newPipes() (p pipes, err error) {
	if p.itsIn, p.in, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.out, p.itsOut, err = os.Pipe(); err != nil {
		p.close(p.in, p.itsIn)
	}
	return p, err
}

// close has no outcome to report: the files are pipes, and ours.
func (pipes) close(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// spawn starts the process. What it says is listened to from then on.
func (f *Factory) spawn(ctx context.Context) (*life, error) {
	c := &f.config
	p, err := newPipes()
	if err != nil {
		return nil, &Error{c.ID, Crashed, err}
	}
	l := &life{
		peer: newPeer(c.ID, c.Limits), config: c, log: c.Log, heed: f, grants: newGrants(), in: p.in, out: p.out,
		busy: make(chan struct{}, c.Limits.Calls), over: make(chan struct{}), began: time.Now(), ended: f.super.ended,
	}
	l.hangs = func(why error) { l.abort(TimedOut, why) }
	if c.Nonce != "" {
		l.mark = fmt.Sprintf("%s/plugin/%s/%d", c.Nonce, c.ID, f.lives.Add(1))
	}
	l.process, err = proc.Start(ctx, proc.Command{
		Argv: c.Argv, Path: c.executable(), Dir: c.Dir, Env: c.environment(), Nonce: l.mark, Stdin: p.itsIn, Stdout: p.itsOut,
		Stderr: f.config.Output, Grace: c.Deadlines.Terminate, Drain: drainDelay,
	})
	p.close(p.itsIn, p.itsOut)
	if err != nil {
		p.close(p.in, p.out)
		return nil, &Error{c.ID, Crashed, err}
	}
	return l, nil
}

// executable is the file to run, when the command names one relative to the plugin's directory.
func (c *Config) executable() string {
	name := c.Argv[0]
	if filepath.IsAbs(name) || !strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	return filepath.Join(c.Dir, name)
}

// launch starts the process and shakes hands with it. If that fails nothing is left of it.
func (f *Factory) launch(ctx context.Context) (*life, error) {
	l, err := f.spawn(ctx)
	if err != nil {
		return nil, err
	}
	f.running.Go(func() { l.run(ctx, f.config.Deadlines.Stall) })
	if err := l.handshake(ctx); err != nil {
		l.abort(codeOf(err), cause(err))
		<-l.over
		return nil, err
	}
	f.running.Go(func() { f.follow(ctx, l) })
	return l, nil
}

// cause is the reason in an Error.
func cause(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Err
	}
	return err
}

// follow waits for the end of a process, and starts one anew that is to run always.
func (f *Factory) follow(ctx context.Context, l *life) {
	<-l.over
	f.lost(l)
	if l.asked || !f.config.Eager {
		return
	}
	if _, err := f.super.use(context.WithoutCancel(ctx)); err != nil {
		f.config.Log.Warn("the plugin is not started again", "error", err)
	}
}
