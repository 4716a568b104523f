package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lashd/engine/background"
	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

const (
	monitorMoment    = 50 * time.Millisecond // lines that come within it are told of together
	maxMonitorMoment = 10 * time.Second      // of a command that floods
	maxLastEvent     = 256                   // bytes of a line that a monitor shows as its newest
	maxMonitorText   = 8 << 10               // bytes of what the model is told at once
)

// watching runs a monitor. One that is to be restarted is left to the next daemon, if this one stops.
func watching(spec protocol.MonitorSpec) worker {
	return func(ctx context.Context, w *work) *protocol.TaskOutcome {
		w.again = spec.Restart
		row, err := w.place(ctx)
		if err != nil {
			return noSession(err)
		}
		t := w.now()
		lines, ended := background.NewLines(), make(chan struct{})
		var telling sync.WaitGroup
		telling.Go(func() { w.tellLines(lines, ended) })
		out := w.eng.commands.Watch(ctx, &t, row.Cwd, lines)
		close(ended)
		telling.Wait()
		return out
	}
}

// placeIn is a directory as it is named in a session.
func placeIn(cwd, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(cwd, dir)
}

// heard are lines that a monitor has put out in a moment.
type heard struct {
	number  int64 // 1, 2, ... of the run: each counts once
	lines   []background.Line
	dropped int64
}

// tellLines tells the session of lines until the command has ended and all are told. A session that is slow holds up only its
// own monitor, and one that floods is listened to more seldom.
func (w *work) tellLines(lines *background.Lines, ended <-chan struct{}) {
	h, moment := heard{}, monitorMoment
	for over := false; !over; {
		select {
		case <-lines.Ready():
			over = waitFor(moment, ended)
		case <-ended:
			over = true
		}
		h.lines, h.dropped = lines.Take()
		if len(h.lines) == 0 {
			continue
		}
		h.number++
		if err := w.tellHeard(h); err != nil {
			w.cancel(&taskStop{by: "internal:session", reason: err.Error()})
			return
		}
		if moment = min(moment*2, maxMonitorMoment); h.dropped == 0 {
			moment = monitorMoment
		}
	}
}

// waitFor waits, and tells whether that has come to an end.
func waitFor(moment time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ended:
		return true
	}
}

// tellHeard has the session take lines. It goes on trying as long as there is a session: what was heard was heard.
func (w *work) tellHeard(h heard) error {
	ctx := w.eng.actorContext()
	for {
		_, err := do(ctx, w.eng, w.owner(), func(ctx context.Context, st *state) (struct{}, error) {
			return struct{}{}, st.hear(ctx, w.id, h)
		})
		if err == nil || isGone(err) || errors.Is(err, ErrShuttingDown) || ctx.Err() != nil {
			return err
		}
		if pause(ctx, reloadDelay) != nil {
			return context.Cause(ctx)
		}
	}
}

// hear makes durable what a monitor has put out, and that it wakes the session if it does.
func (st *state) hear(ctx context.Context, id protocol.TaskID, h heard) error {
	e, ok := st.monitors.of(id)
	t, live := st.tasks[id]
	if !ok || !live || h.number <= e.Heard {
		return nil // the session was restored meanwhile, or knows it already
	}
	return st.moveTasks(ctx, func(m *taskDraft) {
		e.Heard = h.number
		e.EventCount += int64(len(h.lines))
		e.DroppedCount += h.dropped
		e.LastEvent = cutTo(h.lines[len(h.lines)-1].Text, maxLastEvent)
		wakes := e.Spec.Wake == protocol.WakeTurn && t.State == protocol.TaskRunning && !st.outstanding(e)
		updates := h.updates(wakes)
		text, out := h.told()
		switch {
		case out == 0:
		case wakes:
			if e.Unsaid > 0 {
				text = fmt.Sprintf("%s\n[%d lines before these woke nobody]", text, e.Unsaid)
			}
			e.Waking, e.Unsaid = m.wakeBy(t, e.Spec.ID, text, updates), 0
		default:
			e.Unsaid += out
		}
		m.put(e, updates...)
	})
}

// updates are lines as they are told of.
func (h heard) updates(wakes bool) []protocol.MonitorUpdate {
	all := make([]protocol.MonitorUpdate, len(h.lines))
	for i, l := range h.lines {
		all[i] = protocol.MonitorUpdate{Stream: protocol.MonitorStdout, Message: l.Text, Cut: l.Cut, Wakes: wakes && !l.Err}
		if l.Err {
			all[i].Stream = protocol.MonitorStderr
		}
	}
	all[len(all)-1].Dropped = h.dropped
	return all
}

// told is what the model reads of lines: those on standard output. It also tells how many these are.
func (h heard) told() (string, int64) {
	var text strings.Builder
	left, out := h.dropped, int64(0)
	for _, l := range h.lines {
		if l.Err {
			continue
		}
		out++
		switch {
		case text.Len()+len(l.Text) > maxMonitorText:
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

// wakeBy has lines wake the session, and gives the source of that.
func (m *taskDraft) wakeBy(t protocol.Task, id, text string, updates []protocol.MonitorUpdate) string {
	t, _ = m.add(t, protocol.TaskEvent{Kind: protocol.TaskTold, Name: "lines", Payload: encode(updates)})
	w := queue.Wake{
		Source: fmt.Sprintf("task:%s:event:%d:wake", t.ID, t.Ordinal), Merge: id, Delivery: protocol.DeliverAfterTurn, Ceiling: t.Origin.Ceiling,
		Cause: protocol.TurnCause{ID: fmt.Sprintf("%s:%d", t.ID, t.Ordinal), Type: "monitor/line", Origin: id},
	}
	w.Cause.Text = cutTo(text, m.st.roomForWakes()-w.Size())
	m.wakes = append(m.wakes, w)
	return w.Source
}

// cutTo is a text of at most so many bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}
