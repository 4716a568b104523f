package monitor

import (
	"fmt"
	"strings"

	"lashd/engine/background"
	"lashd/engine/queue"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// Limits of monitor output.
const (
	// maxLastEvent is the number of bytes of the newest line that a monitor shows.
	maxLastEvent = 256
	// maxText is the number of bytes of lines in one wake.
	maxText = 8 << 10
)

// Output is one batch of lines from a run of a monitor. It has at least one line.
type Output struct {
	// Number counts the batches of the run from 1, so that a repeated batch is recorded
	// once.
	Number int64
	Lines  []background.Line
	// Dropped is the number of lines that were lost after these.
	Dropped int64
}

// Accepts reports whether a batch is new: the task is the newest run of a monitor, and the
// batch is not recorded. Otherwise the session was restored, or the batch is a repetition.
func (b *Book) Accepts(id protocol.TaskID, out Output) bool {
	e, ok := b.stored.runBy(id)
	_, runs := b.tasks.Find(id)
	return ok && runs && out.Number > e.LastBatch
}

// Record records a batch for which Accepts returned true. It wakes the session if the monitor's
// spec says so, a line is from standard output, and no wake of the monitor is outstanding.
func (d *Draft) Record(id protocol.TaskID, batch Output) {
	e, _ := d.of.stored.runBy(id)
	t, _ := d.of.tasks.Find(id)
	e.LastBatch = batch.Number
	e.EventCount += int64(len(batch.Lines))
	e.DroppedCount += batch.Dropped
	e.LastEvent = cutTo(batch.Lines[len(batch.Lines)-1].Text, maxLastEvent)
	wakes := e.Spec.Wake == protocol.WakeTurn && t.State == protocol.TaskRunning && !d.of.outstanding(e)
	updates := batch.updates(wakes)
	text, out := batch.modelText()
	switch {
	case out == 0:
	case wakes:
		if e.Unreported > 0 {
			text = fmt.Sprintf("%s\n[%d earlier lines did not wake the session]", text, e.Unreported)
		}
		e.Waking, e.Unreported = d.wake(t, e.Spec.ID, text, updates), 0
	default:
		e.Unreported += out
	}
	d.put(e, updates...)
}

// wake wakes the session with lines, and returns the source of the wake.
func (d *Draft) wake(t protocol.Task, id, text string, updates []protocol.MonitorUpdate) string {
	t, _ = d.tasks().Add(t, protocol.TaskEvent{Kind: protocol.TaskTold, Name: "lines", Payload: encode(updates)})
	w := queue.Wake{
		Source: live.WakeSource(&t), Merge: id, Delivery: protocol.DeliverAfterTurn, Ceiling: t.Origin.Ceiling,
		Cause: protocol.TurnCause{ID: fmt.Sprintf("%s:%d", t.ID, t.Ordinal), Type: "monitor/line", Origin: id},
	}
	w.Cause.Text = cutTo(text, d.of.host.Room()-w.Size())
	d.tasks().Wake(w)
	return w.Source
}

// modelText returns the lines of standard output as the model reads them, and their number.
func (o Output) modelText() (string, int64) {
	var text strings.Builder
	left, out := o.Dropped, int64(0)
	for _, l := range o.Lines {
		if l.Err {
			continue
		}
		out++
		switch {
		case text.Len()+len(l.Text) > maxText:
			left++
		default:
			text.WriteString(l.Text)
			if l.Cut {
				text.WriteString(" [cut]")
			}
			text.WriteByte('\n')
		}
	}
	if left > 0 && text.Len() > 0 {
		fmt.Fprintf(&text, "[%d more lines omitted]", left)
	}
	return strings.TrimSuffix(text.String(), "\n"), out
}

// cutTo returns the beginning of a text, at most so many bytes, without a broken character.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}
