package chat

import (
	"strings"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// paper collects the lines that go to the scrollback, in order: blocks with an
// empty line between two of them. A block that grows, such as a streaming message, may
// be continued, also after other blocks.
type paper struct {
	lines []string // not yet taken
	block any      // identifies the block of the last line; nil: the last block is complete
	used  bool     // there is a line above
	flow  *flow    // the message that grows; nil: there is none
	plain bool     // without the diffs of edits
}

// add adds lines to a block that may grow.
func (p *paper) add(block any, lines ...string) {
	if len(lines) == 0 {
		return
	}
	if p.used && (p.block == nil || p.block != block) {
		p.lines = append(p.lines, "")
	}
	p.lines, p.block, p.used = append(p.lines, lines...), block, true
}

// print adds a complete block. An empty text is none.
func (p *paper) print(text string) {
	if text != "" {
		p.add(nil, strings.Split(text, "\n")...)
	}
}

// take returns the new lines.
func (p *paper) take() []string {
	lines := p.lines
	p.lines = nil
	return lines
}

// flow is a message of the agent that grows. Its finished lines are on the paper
// already, which cannot be taken back.
type flow struct {
	id     protocol.ItemID
	given  string // the text that the stream has
	begun  bool   // a line is on the paper
	stream *markdown.Stream
}

// follow puts the finished lines of the growing message on the paper. After a
// reconnect the daemon may send the message from the beginning; it continues once the text is
// longer than before.
func (p *paper) follow(t *transcript, style markdown.Style) {
	item := t.growing()
	if item == nil || p.flow != nil && p.flow.id == item.ID && strings.HasPrefix(p.flow.given, item.Text) {
		return
	}
	p.flowTo(item, style)
}

// flowTo gives the text of a message to its flow. If the message is another one, or the
// beginning of its text has changed, it begins again, and the paper says so.
func (p *paper) flowTo(item *protocol.Item, style markdown.Style) {
	if f := p.flow; f == nil || f.id != item.ID || !strings.HasPrefix(item.Text, f.given) {
		p.endFlow(style)
		p.flow = &flow{id: item.ID, stream: markdown.NewStream(style)}
	}
	f := p.flow
	p.grow(f, f.stream.Add(item.Text[len(f.given):]))
	f.given = item.Text
}

// grow adds the finished lines of a message.
func (p *paper) grow(f *flow, lines []string) {
	p.add(f, lines...)
	f.begun = f.begun || len(lines) > 0
}

// endFlow ends a message that was cut off. The lines that are on the paper stay.
func (p *paper) endFlow(style markdown.Style) {
	if p.flow != nil && p.flow.begun {
		p.grow(p.flow, p.flow.stream.End())
		p.print(entry{note: "The reply was cut off here."}.shown(style))
	}
	p.flow = nil
}

// cutOff reports whether an event ended the growing message before it was complete.
func (p *paper) cutOff(t *transcript, e protocol.Event) bool {
	ends := e.Type == protocol.EventItemRetracted || e.Type == protocol.EventTurnCompleted
	return ends && p.flow != nil && t.growing() == nil
}

// write puts a finished entry on the paper. Of a message that was shown while it
// grew, only the rest is new.
func (p *paper) write(e entry, style markdown.Style) {
	switch {
	case e.item != nil && e.item.Kind == protocol.ItemToolCall:
		p.add(toolCard, strings.Split(e.shown(style), "\n")...)
		if !p.plain {
			p.add(toolCard, changeLines(e.item, style)...)
		}
		return
	case e.answer:
		p.add(toolCard, e.shown(style))
		return
	case e.item == nil || e.item.Kind != protocol.ItemAgentMessage:
		p.print(e.shown(style))
		return
	}
	p.flowTo(e.item, style)
	p.grow(p.flow, p.flow.stream.End())
	if p.block == any(p.flow) {
		p.block = nil
	}
	p.flow = nil
}

// growing returns the message of the agent that streams, or nil.
func (t *transcript) growing() *protocol.Item {
	for _, item := range t.open {
		if item.Kind == protocol.ItemAgentMessage {
			return item
		}
	}
	return nil
}

// continued reports whether the first of the unfinished items belongs to the last block.
func (p *paper) continued(open []*protocol.Item) bool {
	card := len(open) > 0 && open[0].Kind == protocol.ItemToolCall && p.block == any(toolCard)
	return card || p.flow != nil && p.block == any(p.flow)
}

// tail renders the unfinished end of the growing message, on the rows on which the
// terminal will have it: it breaks lines anywhere.
func (p *paper) tail(item *protocol.Item, width int) (rows []string) {
	if p.flow == nil || p.flow.id != item.ID {
		return nil
	}
	for _, l := range p.flow.stream.Rest() {
		rows = append(rows, broken(l, max(width, 1))...)
	}
	return rows
}

// writeAll puts finished entries on the paper, and then the lines of the growing
// message that are finished. The transcript keeps the entries for the pager.
func (p *paper) writeAll(t *transcript, out []entry, style markdown.Style) {
	t.finished = append(t.finished, out...)
	for _, e := range out {
		p.write(e, style)
	}
	p.follow(t, style)
}
