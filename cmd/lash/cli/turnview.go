package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/lash/chat"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// view shows a turn: the answer on stdout, everything else on stderr. Text that
// arrives again after a restart of the daemon is not shown twice. With --stream-json it
// prints the events instead, and notes are few. A view belongs to one goroutine.
type view struct {
	json   bool // print events as JSON lines instead
	person bool // stderr is a terminal

	silent bool // stdout gets only the result of the turn, and no streamed text

	kinds  map[protocol.ItemID]protocol.ItemKind // of the items that have started
	calls  map[protocol.CallID]bool              // calls of code cells that were printed
	ended  map[protocol.ItemID]bool              // messages that were printed to their end
	notice string                                // the newest notice of the turn

	item  protocol.ItemID // the message on the screen
	shown string          // the part of its text that has been printed

	answer  answer    // renders the message on the screen
	midLine bool      // the last output on stdout did not end its line
	status  bool      // stderr shows a status line that the next output replaces
	doing   string    // what the turn waits for; "" to show no status line
	since   time.Time // start of the wait
	counted *counted  // the question at the cursor; nil: there is none, or other output came after it
}

// counted is a question with the time when it was printed, which counts down above
// the cursor.
type counted struct {
	protocol.Decision
	printed time.Time
}

// newView returns a view that waits for the daemon.
func newView(json bool) *view {
	return &view{
		answer: newAnswer(), json: json, person: console.Terminal(os.Stderr), since: time.Now(), doing: "the daemon",
		kinds: map[protocol.ItemID]protocol.ItemKind{}, calls: map[protocol.CallID]bool{}, ended: map[protocol.ItemID]bool{},
	}
}

// event shows an event; raw is its JSON.
func (v *view) event(raw json.RawMessage, ev protocol.Event) {
	if v.json {
		v.print(console.Printable(string(raw)) + "\n")
		return
	}
	switch ev.Type {
	case protocol.EventModelRequested:
		v.await("the model")
	case protocol.EventItemStarted:
		v.started(ev.Item)
		if ev.Item.Kind == protocol.ItemCodeCell && ev.Seq != 0 { // the code is complete and begins to run
			v.note(codeLine(ev.Item))
			v.await("the code")
		}
	case protocol.EventItemDelta:
		v.delta(ev)
	case protocol.EventItemCompleted:
		v.completed(ev.Item)
	case protocol.EventCellCall:
		v.cellCall(ev.CellCall)
	case protocol.EventToolProgress:
		v.note("  " + console.OneLine(ev.Text, 150))
	case protocol.EventRetryStatus:
		v.note("[" + console.OneLine(ev.Retry.String(), 400) + "]")
		v.await("the next attempt; Ctrl-C stops the turn")
	case protocol.EventPluginStatus:
		if ev.AboutServer() {
			v.note("[" + console.OneLine(ev.Text, 400) + "]")
		}
	}
}

// session notes the id of a new session.
func (v *view) session(id protocol.SessionID) {
	if v.person && !v.json {
		v.note("[session " + string(shortID(id)) + "]")
	}
}

// queued notes what a queued turn waits for: another turn of its session, or an
// answer in that turn.
func (v *view) queued(state protocol.SessionState) {
	if state == protocol.SessionRequiresAction {
		v.note("[queued: the session is waiting for an answer]")
		v.await("an answer in another turn")
		return
	}
	v.note("[queued: another turn is running]")
	v.await("the other turn")
}

// started shows an item that has started, or an unfinished one after a reconnect.
func (v *view) started(item *protocol.Item) {
	if v.json {
		return
	}
	v.kinds[item.ID] = item.Kind
	switch item.Kind {
	case protocol.ItemToolCall:
		v.note("[" + callText(item.Title, item.Status, item.Tool, item.Args, 120) + "]")
		v.await(item.Tool)
	case protocol.ItemReasoning:
		v.await("the model (thinking)")
	case protocol.ItemCodeCell:
		v.await("the model (writing code)")
	case protocol.ItemAgentMessage:
		v.text(item.ID, 0, item.Text)
	}
}

// delta shows streamed text of the answer.
func (v *view) delta(ev protocol.Event) {
	if v.kinds[ev.ItemID] == protocol.ItemAgentMessage && ev.Offset != nil {
		v.text(ev.ItemID, *ev.Offset, ev.Text)
	}
}

// completed shows the rest of a finished item.
func (v *view) completed(item *protocol.Item) {
	switch item.Kind {
	case protocol.ItemAgentMessage:
		v.text(item.ID, 0, item.Text)
		v.ended[item.ID] = true
		v.endLine()
	case protocol.ItemToolCall:
		v.note(outcomeLine(item, 60))
		if item.Output != nil && item.Output.Refusal != nil {
			v.note(refusalLine(item.Output.Refusal))
		}
	case protocol.ItemCodeCell:
		v.cellCalls(item)
		v.note(cellOutcome(item))
	case protocol.ItemNotice:
		v.notice = item.Text
		v.note("[" + console.OneLine(item.Text, 150) + "]")
	}
}

// refusalLine says what the sandbox refused to a call and, if that was hosts, how to allow them.
func refusalLine(r *protocol.SandboxRefusal) string {
	var text strings.Builder
	text.WriteString("  [" + console.OneLine(r.What, 400))
	if r.WithHosts != nil {
		text.WriteString(" To allow:")
		for _, host := range r.WithHosts.Hosts {
			text.WriteString(" lash rules add allow host '" + console.OneLine(host, 300) + "';")
		}
	}
	return strings.TrimSuffix(text.String(), ";") + "]"
}

// cellCall notes a call of a code cell when it has ended. Calls that the result does not list are not noted.
func (v *view) cellCall(c *protocol.CellCall) {
	switch {
	case c == nil:
	case c.Status == protocol.ItemInProgress:
		v.await(c.Tool)
	case c.Index <= protocol.MaxCellCalls && !v.calls[c.CallID]:
		v.calls[c.CallID] = true
		v.note("  " + cellCallLine(c))
		v.await("the code")
	}
}

// cellCalls notes the calls of a finished cell that were not noted while it ran, for example before a reconnect, and the number
// of those that its result does not list.
func (v *view) cellCalls(item *protocol.Item) {
	if item.Cell == nil {
		return
	}
	for i := range item.Cell.Calls {
		v.cellCall(&item.Cell.Calls[i])
	}
	if item.Cell.MoreCalls > 0 {
		v.note("  " + moreCallsLine(item.Cell.MoreCalls))
	}
}

// text prints the part of a message that is not on the screen. piece is the text
// of the message from offset on. If piece differs from the printed text, as after
// a retried model call, the message is printed again from its start, after a note:
// printed text cannot be taken back.
func (v *view) text(id protocol.ItemID, offset int, piece string) {
	if v.ended[id] || piece == "" || v.silent {
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
	case offset > len(v.shown): // text is missing in between; the completed item has it
		return
	case strings.HasPrefix(v.shown[offset:], piece): // printed before
		return
	case !strings.HasPrefix(piece, v.shown[offset:]):
		v.note("[the answer restarts]")
		v.endLine()
		piece = v.shown[:offset] + piece
		v.shown, offset = "", 0
	}
	added := piece[len(v.shown)-offset:]
	v.shown += added
	v.print(v.answer.add(added))
	v.grows()
}

// grows shows the end of the unfinished block of the answer in the status line.
func (v *view) grows() {
	if line := v.answer.growing(); line != "" && v.person {
		fmt.Fprint(os.Stderr, "\r"+line+"\x1b[K")
		v.status = true
	}
}

// print writes to stdout.
func (v *view) print(s string) {
	v.since = time.Now()
	if s == "" {
		return
	}
	v.clear()
	v.counted = nil
	fmt.Fprint(console.Stdout, s)
	v.midLine = !strings.HasSuffix(s, "\n")
}

// endLine ends an unfinished block and an unfinished line on stdout.
func (v *view) endLine() {
	v.clear()
	v.print(v.answer.end())
	if v.midLine {
		v.print("\n")
	}
}

// note writes a line to stderr. On a terminal it first ends an unfinished line of
// the answer. Otherwise stdout stays exactly the answer.
func (v *view) note(s string) {
	v.clear()
	v.counted = nil
	if v.midLine && v.person && console.Terminal(os.Stdout) {
		v.endLine()
	}
	console.Stderr(s)
}

// await sets what the status line says the turn waits for.
func (v *view) await(what string) { v.doing, v.since = what, time.Now() }

// tick updates the status line. It prints nothing within a line of the answer.
func (v *view) tick() {
	v.countDown()
	waited := time.Since(v.since)
	if !v.person || v.json || v.midLine || v.doing == "" || waited < time.Second {
		return
	}
	fmt.Fprintf(os.Stderr, "\r[%s: waiting for %s]\x1b[K", waited.Round(time.Second), console.Printable(v.doing))
	v.status = true
}

// clear removes the status line.
func (v *view) clear() {
	if v.status {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
		v.status = false
	}
}

// question prints a question and leaves the cursor behind it. The status line is
// off until the answer, so that it does not overwrite the input.
func (v *view) question(s string) {
	v.note("")
	fmt.Fprint(os.Stderr, console.Printable(s))
	v.doing = ""
}

// counts begins to count down the time that a question, which was just printed, has
// left.
func (v *view) counts(d *protocol.Decision) { v.counted = &counted{*d, time.Now()} }

// countDown writes the time left on the line above the cursor, and leaves what the
// user types as it is.
func (v *view) countDown() {
	if v.counted == nil {
		return
	}
	d := v.counted.Decision
	d.RemainingMs = cmp.Or(d.RemainingMs, d.DeadlineMs-d.OpenedAtMs) - time.Since(v.counted.printed).Milliseconds()
	if text := chat.Until(&d); text != "" && d.RemainingMs > 0 {
		fmt.Fprintf(os.Stderr, "\x1b7\x1b[1A\r%s\x1b[K\x1b8", text)
	}
}

// waits notes a call whose result another program will send.
func (v *view) waits(d *protocol.Decision) {
	if v.json || d.Call == nil {
		return
	}
	v.note(fmt.Sprintf("[%s is waiting for its result from another program]", d.Call.Name))
	v.await("the result of " + d.Call.Name)
}

// answered notes the answer to a decision.
func (v *view) answered(d *protocol.Decision) {
	if a := d.Answer; a != nil && !v.json {
		v.note("[" + chat.Answer(d) + "]")
	}
	v.await("the turn")
}

// outcomeLine describes the result of a tool call on one line.
func outcomeLine(item *protocol.Item, width int) string {
	what := "done"
	switch {
	case item.Status == protocol.ItemUnknown:
		what = "outcome unknown"
	case item.Output == nil:
	case item.Output.Failure != nil:
		what = "failed: " + console.OneLine(item.Output.Failure.Message, 120)
	case item.Output.Change != nil:
		what = fmt.Sprintf("%s +%d -%d", console.OneLine(item.Output.Change.Path, 80), item.Output.Change.Added, item.Output.Change.Removed)
	case item.Output.Text != "":
		what = console.OneLine(item.Output.Text, 120)
	}
	return fmt.Sprintf("[%s, %s: %s]", callText(item.Title, item.Status, item.Tool, item.Args, width), millis(item.DurationMs), what)
}

// callText says in at most width characters what a call does: its title, or else the name of its tool and its arguments.
func callText(title *protocol.CallTitle, status protocol.ItemStatus, tool string, args json.RawMessage, width int) string {
	text := tool + " " + termtext.Args(args)
	if title != nil {
		text = title.Line(status)
	}
	return console.OneLine(strings.TrimSpace(text), width)
}

// codeLine returns the code of a cell on one line.
func codeLine(item *protocol.Item) string {
	return fmt.Sprintf("[%s %s]", cmp.Or(item.Language, "code"), console.OneLine(item.Text, 120))
}

// cellCallLine returns a call of a code cell that has ended on one line, with its duration and its result.
func cellCallLine(c *protocol.CellCall) string {
	what := cmp.Or(console.OneLine(c.Summary, 120), "done")
	switch c.Status {
	case protocol.ItemUnknown:
		what = "outcome unknown"
	case protocol.ItemFailed:
		what = "failed: " + console.OneLine(c.Summary, 120)
	}
	return fmt.Sprintf("[%s, %s: %s]", callText(protocol.TitleOf(protocol.ToolCall{Name: c.Tool, Args: c.Args}), c.Status, c.Tool, c.Args, 120), millis(c.DurationMs), what)
}

// moreCallsLine says how many calls of a code cell are not shown.
func moreCallsLine(n int) string { return fmt.Sprintf("[%d more calls]", n) }

// cellOutcome returns the duration and the result of a code cell on one line; of a failed one, the error.
func cellOutcome(item *protocol.Item) string {
	language, text := cmp.Or(item.Language, "code"), "done"
	switch {
	case item.Cell == nil:
		return fmt.Sprintf("[%s, failed: the code is incomplete and was not run]", language)
	case item.Cell.Error != "":
		text = "failed: " + console.OneLine(item.Cell.ErrorText(), 120)
	case item.Cell.Text() != "":
		text = console.OneLine(item.Cell.Text(), 120)
	}
	return fmt.Sprintf("[%s, %s: %s]", language, millis(item.Cell.DurationMs), text)
}

// millis formats a duration in milliseconds.
func millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
