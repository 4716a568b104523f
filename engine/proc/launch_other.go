//go:build !linux

package proc

import (
	"context"
	"fmt"
	"sync"
)

// launch starts c without a supervisor.
func launch(c Command) (*child, error) { return c.spawn() }

// await waits for the child, kills its group and collects its output.
func (ch *child) await(ctx context.Context, c Command, interrupts <-chan struct{}) (Exit, error) {
	var ladder sync.WaitGroup
	var cause error
	exited := make(chan struct{})
	ladder.Go(func() { cause = endOn(ctx, ch.group, exited, interrupts, c.Grace) })

	// The leader stays unreaped until the group is killed: its zombie keeps the group's number from being used again.
	ch.group.awaitLeader()
	close(exited)
	ladder.Wait()
	ch.group.kill()

	escaped, err := ch.output.finish(c.Drain)
	if err != nil {
		err = fmt.Errorf("copy output of %s: %w", c.Argv[0], err)
	}
	reaped := ch.cmd.Wait()
	ch.group.close()
	if ch.cmd.ProcessState == nil {
		return Exit{Code: -1, Escaped: escaped, Cause: cause}, fmt.Errorf("wait for %s: %w", c.Argv[0], reaped)
	}
	exit := exitOf(ch.cmd.ProcessState)
	exit.Escaped, exit.Cause = escaped, cause
	return exit, err
}
