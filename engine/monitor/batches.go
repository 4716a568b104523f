package monitor

import (
	"time"

	"lashd/engine/background"
)

const (
	minBatchDelay = 50 * time.Millisecond // lines that arrive within it share a commit
	maxBatchDelay = 10 * time.Second      // reached by a command that prints faster than lines are stored
)

// Store stores the lines of a command in batches until the command has ended and all lines are stored, or store fails. It runs
// beside the command, so a slow session delays only this monitor. While lines are dropped because the
// buffer is full, it doubles the delay between batches up to maxBatchDelay.
func Store(lines *background.LineBuffer, ended <-chan struct{}, store func(Output) error) error {
	out, delay := Output{}, minBatchDelay
	for over := false; !over; {
		select {
		case <-lines.Ready():
			over = waitFor(delay, ended)
		case <-ended:
			over = true
		}
		out.Lines, out.Dropped = lines.Take()
		if len(out.Lines) == 0 {
			continue
		}
		out.Number++
		if err := store(out); err != nil {
			return err
		}
		if delay = min(delay*2, maxBatchDelay); out.Dropped == 0 {
			delay = minBatchDelay
		}
	}
	return nil
}

// waitFor waits for delay or for ended to close, and reports whether ended closed. Lines that arrive during the
// wait share one batch.
func waitFor(delay time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ended:
		return true
	}
}
