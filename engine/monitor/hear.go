package monitor

import (
	"fmt"
	"strings"

	"lashd/engine/background"
	"lashd/engine/queue"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

const (
	maxLastEvent = 256     // bytes of a line that a monitor shows as its newest
	maxText      = 8 << 10 // bytes of what the model is told at once
)

// Output is the lines that a monitor has put out in a moment.
type Output struct {
	Number  int64 // 1, 2, ... of the run: each counts once
	Lines   []background.Line
	Dropped int64
}

// Hears tells whether a task is the newest run of a monitor that has not heard of an output yet. Otherwise the session was restored
// meanwhile, or knows the output already.
func (b *Book) Hears(id protocol.TaskID, out Output) bool {
	e, ok := b.stored.runBy(id)
	_, runs := b.tasks.Find(id)
	return ok && runs && out.Number > e.Heard
}

// Hear takes the output of a run, which wakes the session if the monitor does that and no wake of it is outstanding.
func (d *Draft) Hear(id protocol.TaskID, heard Output) {
	e, _ := d.of.stored.runBy(id)
	t, _ := d.of.tasks.Find(id)
	e.Heard = heard.Number
	e.EventCount += int64(len(heard.Lines))
	e.DroppedCount += heard.Dropped
	e.LastEvent = cutTo(heard.Lines[len(heard.Lines)-1].Text, maxLastEvent)
	wakes := e.Spec.Wake == protocol.WakeTurn && t.State == protocol.TaskRunning && !d.of.outstanding(e)
	updates := heard.updates(wakes)
	text, out := heard.told()
	switch {
	case out == 0:
	case wakes:
		if e.Unsaid > 0 {
			text = fmt.Sprintf("%s\n[%d lines before these woke nobody]", text, e.Unsaid)
		}
		e.Waking, e.Unsaid = d.wake(t, e.Spec.ID, text, updates), 0
	default:
		e.Unsaid += out
	}
	d.put(e, updates...)
}

// wake has lines wake the session, and returns the source of that.
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

// told is what the model reads of lines: those on standard output. It also tells how many these are.
func (o Output) told() (string, int64) {
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
		fmt.Fprintf(&text, "[%d more lines are left out]", left)
	}
	return strings.TrimSuffix(text.String(), "\n"), out
}

// cutTo is a text of at most so many bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}
