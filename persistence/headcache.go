package persistence

import (
	"maps"

	"lashd/rpc/protocol"
)

// maxHeads bounds how many sessions the writer remembers.
const maxHeads = 1024

// heads are the rows of sessions as the writer last wrote them, so that a commit need not read its session's again. They
// stay true because nobody else writes. The zero value is ready.
type heads struct {
	written map[protocol.SessionID]head // by transactions that are committed
	open    map[protocol.SessionID]head // by the one that is not; a head without a session is not known
}

func (k *heads) begin() { k.open = map[protocol.SessionID]head{} }

// get is a copy, which becomes true once put.
func (k *heads) get(id protocol.SessionID) (*head, bool) {
	h, ok := k.open[id]
	if !ok {
		h, ok = k.written[id]
	}
	return &h, ok && h.session != 0
}

func (k *heads) put(h *head) {
	settled := *h
	settled.moved = false
	k.open[h.id] = settled
}

func (k *heads) forget(id protocol.SessionID) { k.open[id] = head{} }

func (k *heads) committed() {
	if k.written == nil || len(k.written) > maxHeads {
		k.written = map[protocol.SessionID]head{}
	}
	maps.Copy(k.written, k.open)
}
