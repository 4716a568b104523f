package monitor

import (
	"slices"

	"lashd/rpc/protocol"
)

// maxUpdates is the number of updates that a session keeps until a caller takes them.
const maxUpdates = 128

// keep appends stored updates to those that no caller has taken. Beyond the limit it drops
// the oldest.
func (b *Book) keep(stored []protocol.MonitorUpdate) {
	all := append(slices.Clip(b.updates), stored...)
	b.updates = all[max(len(all)-maxUpdates, 0):]
}

// TakeUpdates returns the updates since the last call.
func (b *Book) TakeUpdates() []protocol.MonitorUpdate {
	taken := b.updates
	b.updates = nil
	return taken
}

// updates converts a batch to updates, with the stream of each line and whether it wakes
// the session.
func (o Output) updates(wakes bool) []protocol.MonitorUpdate {
	all := make([]protocol.MonitorUpdate, len(o.Lines))
	for i, l := range o.Lines {
		all[i] = protocol.MonitorUpdate{Stream: protocol.MonitorStdout, Message: l.Text, Cut: l.Cut, Wakes: wakes && !l.Err}
		if l.Err {
			all[i].Stream = protocol.MonitorStderr
		}
	}
	all[len(all)-1].Dropped = o.Dropped
	return all
}
