package chat

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// outputMsg has the whole output of a call, which its item has only in part.
type outputMsg struct {
	of   *protocol.Item
	text string
}

// mostOutput is the largest output that the chat shows whole, in bytes.
const mostOutput = 16 << 20

// output shows the newest call in full, or the Nth newest.
func output(u *ui, rest string) tea.Cmd {
	n := 1
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return say("Usage: /output [N]. 1 is the newest call, 2 the one before.")
		}
	}
	for i := len(u.talk.finished) - 1; i >= 0; i-- {
		item := u.talk.finished[i].item
		if item == nil || item.Kind != protocol.ItemToolCall && item.Kind != protocol.ItemCodeCell {
			continue
		}
		if n--; n == 0 {
			return showOutput(u, item)
		}
	}
	return say("There are fewer calls here. Ctrl-T shows all of them.")
}

// showOutput shows a call in full. If its item has only a part of the output, it gets
// the rest from the daemon first.
func showOutput(u *ui, item *protocol.Item) tea.Cmd {
	if item.Output == nil || item.Output.Artifact == nil {
		return unfold(u, outputMsg{of: item})
	}
	return func() tea.Msg {
		text, err := readArtifact(u, item.Output.Artifact)
		if err != nil {
			return saidMsg("The whole output could not be read: " + err.Error())
		}
		return outputMsg{item, text}
	}
}

// readArtifact reads an artifact of the daemon, at most mostOutput bytes of it.
func readArtifact(u *ui, a *protocol.ArtifactRef) (string, error) {
	var b strings.Builder
	for int64(b.Len()) < min(a.Size, mostOutput) {
		var r protocol.ArtifactReadResult
		if err := u.session.Call(u.ctx, "artifact/read", protocol.ArtifactReadParams{Digest: a.Digest, Offset: int64(b.Len())}, &r); err != nil {
			return "", err
		}
		if len(r.Bytes) == 0 {
			break
		}
		b.Write(r.Bytes)
	}
	return b.String(), nil
}

// unfold shows a call in full: in the pager or, for a screen reader, in the scrollback.
func unfold(u *ui, m outputMsg) tea.Cmd {
	if m.text != "" {
		m.of.Output.Text, m.of.Output.Artifact = m.text, nil // the item belongs to the chat
	}
	if u.reader != nil {
		return u.println(strings.Join(entry{item: m.of}.unfolded(u.style), "\n"))
	}
	p := newPager(u)
	p.top = place{p.indexOf(m.of), 0}
	p.scroll(0)
	return openOverlay(u, p, readOlder(u))
}

// indexOf returns the index of the entry of an item.
func (p *pager) indexOf(item *protocol.Item) int {
	for i, e := range p.entries {
		if e.item == item {
			return i
		}
	}
	return 0
}
