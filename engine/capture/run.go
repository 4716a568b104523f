// Package capture runs a command for a tool. It turns the output into the text that the
// model reads, the progress that a person sees, and an artifact if it is long. The command
// gets no input, and its processes end with it.
package capture

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"lashd/engine/proc"
)

const (
	// grace is the time to end after SIGTERM. It is short, because the engine waits only a
	// moment for a cancelled call, and a build or a git command needs no more to clean up.
	grace = 500 * time.Millisecond
	// drain is the time to read the rest of the output, at most 64 KiB in the pipe, after
	// the group has ended.
	drain = 300 * time.Millisecond
)

// Run runs a command until it ends or ctx is cancelled, and shows its output as it arrives.
// Then it ends processes that left the command's group and still hold the output. If that
// fails, Escaped is set in the exit. Run extends the nonce of the command, so that only
// processes of this run match.
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
