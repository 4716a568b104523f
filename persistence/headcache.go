package persistence

import (
	"maps"

	"lashd/rpc/protocol"
)

// maxHeads is the maximum number of cached heads. Beyond it the whole cache is dropped.
const maxHeads = 1024

// heads caches the session rows that the writer last wrote, so that a commit need not read its
// session's row. The cache stays correct because only the writer changes rows. Heads of an open
// transaction are separate: they count for later commits of the group, and are dropped if the
// transaction fails. The zero value is ready for use.
type heads struct {
	written map[protocol.SessionID]head // by committed transactions
	open    map[protocol.SessionID]head // by the open transaction; a head with session 0 marks a deleted session
}

// begin starts a transaction and drops the heads of one that failed.
func (k *heads) begin() { k.open = map[protocol.SessionID]head{} }

// get returns a copy of a cached head. Changes count only after put.
func (k *heads) get(id protocol.SessionID) (*head, bool) {
	h, ok := k.open[id]
	if !ok {
		h, ok = k.written[id]
	}
	return &h, ok && h.session != 0
}

// put stores the head of a commit that was applied.
func (k *heads) put(h *head) {
	settled := *h
	settled.moved = false
	k.open[h.id] = settled
}

// forget marks a session as unknown, because it was deleted.
func (k *heads) forget(id protocol.SessionID) { k.open[id] = head{} }

// committed makes the heads of the open transaction permanent.
func (k *heads) committed() {
	if k.written == nil || len(k.written) > maxHeads {
		k.written = map[protocol.SessionID]head{}
	}
	maps.Copy(k.written, k.open)
}
