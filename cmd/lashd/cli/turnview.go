package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"lashd/cmd/lashd/chat"
	"lashd/rpc/protocol"
)

// view shows a turn: its answer on stdout, what else happens on stderr. Text that comes a second time, as after a restart of
// the daemon, is not shown again.
type view struct {
	json   bool
	person bool // watches stderr

	kinds map[protocol.ItemID]protocol.ItemKind
	ended map[protocol.ItemID]bool
	item  protocol.ItemID // of the message that is shown
	shown string          // of its text

	midLine bool   // stdout stands within a line
	status  bool   // stderr shows a line that is to be replaced
	doing   string // what is waited for
	since   time.Time
}

func newView(json bool) *view {
	return &view{
		json: json, person: terminal(os.Stderr), since: time.Now(), doing: "the daemon",
		kinds: map[protocol.ItemID]protocol.ItemKind{}, ended: map[protocol.ItemID]bool{},
	}
}

func (v *view) event(raw json.RawMessage, ev protocol.Event) {
	if v.json {
		v.print(printable(string(raw)) + "\n")
		return
	}
	switch ev.Type {
	case protocol.EventModelRequested:
		v.await("the model")
	case protocol.EventItemStarted:
		v.started(ev.Item)
	case protocol.EventItemDelta:
		v.delta(ev)
	case protocol.EventItemCompleted:
		v.completed(ev.Item)
	case protocol.EventToolProgress:
		v.note("  " + oneLine(ev.Text, 150))
	case protocol.EventRetryStatus:
		v.note("[" + oneLine(ev.Retry.String(), 400) + "]")
		v.await("the next attempt; Ctrl-C stops the turn")
	case protocol.EventPluginStatus:
		if ev.AboutServer() {
			v.note("[" + oneLine(ev.Text, 400) + "]")
		}
	}
}

func (v *view) session(id protocol.SessionID) {
	if v.person && !v.json {
		v.note("[session " + string(id) + "]")
	}
}

// queued tells what a turn waits for before it begins: another turn of its session, or who answers a question of that.
func (v *view) queued(state protocol.SessionState) {
	if state == protocol.SessionRequiresAction {
		v.note("[queued: the session is waiting for an answer]")
		v.await("an answer in another turn")
		return
	}
	v.note("[queued: another turn is running]")
	v.await("the other turn")
}

// started also takes an item that was open when the turn was looked at again, with its text so far.
func (v *view) started(item *protocol.Item) {
	if v.json {
		return
	}
	v.kinds[item.ID] = item.Kind
	switch item.Kind {
	case protocol.ItemToolCall:
		v.note(fmt.Sprintf("[%s %s]", item.Tool, oneLine(readable(item.Args), 120)))
		v.await(item.Tool)
	case protocol.ItemReasoning:
		v.await("the model (thinking)")
	case protocol.ItemAgentMessage:
		v.text(item.ID, 0, item.Text)
	}
}

func (v *view) delta(ev protocol.Event) {
	if v.kinds[ev.ItemID] == protocol.ItemAgentMessage && ev.Offset != nil {
		v.text(ev.ItemID, *ev.Offset, ev.Text)
	}
}

func (v *view) completed(item *protocol.Item) {
	switch item.Kind {
	case protocol.ItemAgentMessage:
		v.text(item.ID, 0, item.Text)
		v.ended[item.ID] = true
		v.endLine()
	case protocol.ItemToolCall:
		v.note(outcomeLine(item))
	case protocol.ItemNotice:
		v.note("[" + oneLine(item.Text, 150) + "]")
	}
}

// text shows what a piece adds to what is shown of its message. A piece that contradicts it begins the message again.
func (v *view) text(id protocol.ItemID, offset int, piece string) {
	if v.ended[id] || piece == "" {
		return
	}
	if id != v.item {
		if v.item != "" && !v.ended[v.item] {
			v.note("[the answer restarts]")
		}
		v.endLine()
		v.item, v.shown = id, ""
	}
	switch {
	case offset > len(v.shown): // a piece is missing; the completed item will have it
		return
	case strings.HasPrefix(v.shown[offset:], piece): // known
		return
	case !strings.HasPrefix(piece, v.shown[offset:]):
		v.note("[the answer restarts]")
		v.endLine()
		piece = v.shown[:offset] + piece
		v.shown, offset = "", 0
	}
	added := piece[len(v.shown)-offset:]
	v.shown += added
	v.print(printable(added))
}

func (v *view) print(s string) {
	v.clear()
	v.since = time.Now()
	fmt.Fprint(stdout, s)
	v.midLine = !strings.HasSuffix(s, "\n")
}

func (v *view) endLine() {
	if v.midLine {
		v.print("\n")
	}
}

// note writes a line to stderr, on a terminal below the text that is shown.
func (v *view) note(s string) {
	v.clear()
	if v.midLine && v.person && terminal(os.Stdout) {
		v.endLine()
	}
	fmt.Fprintln(os.Stderr, printable(s))
}

func (v *view) await(what string) { v.doing, v.since = what, time.Now() }

// tick tells a person what takes so long, where no text would be overwritten.
func (v *view) tick() {
	waited := time.Since(v.since)
	if !v.person || v.json || v.midLine || v.doing == "" || waited < time.Second {
		return
	}
	fmt.Fprintf(os.Stderr, "\r[%s: waiting for %s]\x1b[K", waited.Round(time.Second), printable(v.doing))
	v.status = true
}

func (v *view) clear() {
	if v.status {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
		v.status = false
	}
}

// question leaves the cursor behind it, and the status line away until it is answered.
func (v *view) question(s string) {
	v.note("")
	fmt.Fprint(os.Stderr, printable(s))
	v.doing = ""
}

// waits tells of a call that is completed from elsewhere.
func (v *view) waits(d *protocol.Decision) {
	if v.json || d.Call == nil {
		return
	}
	v.note(fmt.Sprintf("[%s is waiting for its result from another program]", d.Call.Name))
	v.await("the result of " + d.Call.Name)
}

func (v *view) answered(d *protocol.Decision) {
	if a := d.Answer; a != nil && !v.json {
		v.note("[" + chat.Answer(d) + "]")
	}
	v.await("the turn")
}

// outcomeLine tells how a tool call ended.
func outcomeLine(item *protocol.Item) string {
	what := "done"
	switch {
	case item.Status == protocol.ItemUnknown:
		what = "outcome unknown"
	case item.Output == nil:
	case item.Output.Failure != nil:
		what = "failed: " + oneLine(item.Output.Failure.Message, 120)
	case item.Output.Change != nil:
		what = fmt.Sprintf("%s +%d -%d", oneLine(item.Output.Change.Path, 80), item.Output.Change.Added, item.Output.Change.Removed)
	case item.Output.Text != "":
		what = oneLine(item.Output.Text, 120)
	}
	return fmt.Sprintf("[%s, %s: %s]", item.Tool, millis(item.DurationMs), what)
}

func millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
