// Package capture runs a command for a tool: its output becomes what the model reads, what a person sees while it runs, and
// an artifact where it is long. The command gets no input, and all that it started ends with it.
package capture

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"lashd/engine/proc"
)

const (
	// grace is short, since the engine waits only a moment for a cancelled call; a build or a git command that is asked
	// to stop needs no more to clean up.
	grace = 500 * time.Millisecond
	// drain is for what a dead group left in the pipe, which is 64 KiB at most.
	drain = 300 * time.Millisecond
)

// Run runs a command to its end, whatever ends it, shows its output while it comes, and then ends what left the command's
// group and still holds the output: Escaped of the exit says that this could not be done. The command's nonce becomes one of
// this run alone, which begins with it.
func Run(ctx context.Context, c proc.Command, out *Output) (proc.Exit, error) {
	c.Nonce += "/" + rand.Text()
	c.Stdout, c.Stderr, c.Grace, c.Drain = out, out, grace, drain
	p, err := proc.Start(ctx, c)
	if err != nil {
		return proc.Exit{}, err
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	running, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	watch.Go(func() { out.progress.run(running) })
	exit, err := p.Wait()
	if exit.Escaped {
		swept, failed := proc.Sweep(c.Nonce)
		exit.Escaped = failed != nil || len(swept) == 0
	}
	return exit, err
}
