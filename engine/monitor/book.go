// Package monitor holds the monitors of a session: commands whose output lines wake it.
// Each run of a monitor is a task. An event of the task and its effect on the monitor are
// stored in the same change. A Book must only be called from the session's actor.
package monitor

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"lashd/engine/queue"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// Component is the name of the store's component with a session's monitors.
const Component = "monitors"

// Monitors is the stored form of a session's monitors. A value never changes after its
// commit; a change stores a new one.
type Monitors struct {
	// Revision grows with each change, except for new lines and wakes.
	Revision int64 `json:"revision"`
	// Sequence numbers the updates of all monitors; this is the newest.
	Sequence int64 `json:"sequence"`
	// Runs counts all runs. It numbers the task ids, so that no id occurs twice.
	Runs int64 `json:"runs"`
	// Entries maps the ids of monitors to their entries.
	Entries map[string]Entry `json:"entries"`
}

// Entry is a monitor together with the fields that clients do not see.
type Entry struct {
	protocol.Monitor
	// Waking is the source of its newest wake, until the wake is acknowledged. Empty: none.
	Waking string `json:"waking,omitempty"`
	// LastBatch is the number of output batches of this run that are recorded.
	LastBatch int64 `json:"heard,omitempty"`
	// Unreported counts the lines since the newest wake that did not wake the session because
	// that wake was outstanding.
	Unreported int64 `json:"unsaid,omitempty"`

	// Ceiling limits the turns that its wakes start. It is that of the starter of the
	// monitor.
	Ceiling *protocol.Ceiling `json:"ceiling,omitempty"`
}

// disarmed returns the entry without its run, for a session in which that run does not
// exist: one restored from a snapshot, or forked from the session that had it.
func (e Entry) disarmed() Entry {
	if e.State == protocol.MonitorRunning {
		e.State, e.Armed = protocol.MonitorIdle, e.Armed && e.Spec.Restart
	}
	e.TaskID, e.Waking, e.LastBatch, e.Unreported = "", "", 0, 0
	return e
}

// sorted returns the entries in the order of their ids.
func (m *Monitors) sorted() (all []Entry) {
	for _, id := range slices.Sorted(maps.Keys(m.Entries)) {
		all = append(all, m.Entries[id])
	}
	return all
}

// Restored returns the monitors that a session has after it is restored to m. m may be nil.
func (m *Monitors) Restored() []protocol.Monitor {
	all := []protocol.Monitor{}
	if m != nil {
		for _, e := range m.sorted() {
			all = append(all, e.disarmed().Monitor)
		}
	}
	return all
}

// Host is the session in which monitors run.
type Host interface {
	// Watch returns a function that creates attempts to run a monitor.
	Watch(protocol.MonitorSpec) func(*protocol.Task) live.Attempt
	// Dir resolves the directory of a spec against the session's workspace.
	Dir(name string) string
	// Mode returns the sandbox mode of the session.
	Mode() protocol.SandboxMode
	// Room returns the number of bytes that the model can get at once.
	Room() int
}

// Book holds the monitors of a session. Only its drafts and UnmarshalJSON change them.
type Book struct {
	session protocol.SessionID
	host    Host
	tasks   *live.Tasks
	queue   *queue.Queue
	// stored is nil if the session never had monitors.
	stored *Monitors
	// updates has the newest stored updates until a caller takes them.
	updates []protocol.MonitorUpdate
	// cutOff means that a restart of the daemon interrupted monitors that have to be
	// started again.
	cutOff bool
}

// New returns a Book without monitors.
func New(session protocol.SessionID, host Host, tasks *live.Tasks, inputs *queue.Queue) *Book {
	return &Book{session: session, host: host, tasks: tasks, queue: inputs}
}

// UnmarshalJSON loads the monitors from the store. The book must be empty.
func (b *Book) UnmarshalJSON(body []byte) error {
	return json.Unmarshal(body, &b.stored)
}

// Forget removes all monitors from memory, before others are loaded.
func (b *Book) Forget() { b.stored = nil }

// Own adapts monitors that were just loaded to the session. A fork also loads the runs of
// its parent, which are not its tasks; Own disarms these monitors.
func (b *Book) Own() {
	if b.stored == nil {
		return
	}
	for id, e := range b.stored.Entries {
		if _, runs := b.tasks.Find(e.TaskID); e.State == protocol.MonitorRunning && !runs {
			b.stored.Entries[id] = e.disarmed()
		}
	}
}

// Find returns a monitor by its id.
func (b *Book) Find(id string) (Entry, bool) {
	if b.stored == nil {
		return Entry{}, false
	}
	e, ok := b.stored.Entries[id]
	return e, ok
}

// runBy returns the monitor whose newest run is a task. m may be nil.
func (m *Monitors) runBy(id protocol.TaskID) (Entry, bool) {
	if m != nil {
		for _, e := range m.Entries {
			if e.TaskID == id {
				return e, true
			}
		}
	}
	return Entry{}, false
}

// Shown returns a monitor as clients see it.
func (b *Book) Shown(e Entry) protocol.Monitor {
	e.WakeOutstanding = b.outstanding(e)
	return e.Monitor
}

// List returns all monitors as clients see them, in the order of their ids.
func (b *Book) List() []protocol.Monitor {
	all := []protocol.Monitor{}
	if b.stored != nil {
		for _, e := range b.stored.sorted() {
			all = append(all, b.Shown(e))
		}
	}
	return all
}

// outstanding reports whether a wake of a monitor is still pending: not acknowledged, not
// withdrawn, and not used by a turn that has ended.
func (b *Book) outstanding(e Entry) bool {
	mine := func(in protocol.QueuedInput) bool { return in.Source == e.Waking }
	return e.Waking != "" && slices.ContainsFunc(b.queue.Inputs(), mine)
}

// Count returns the number of monitors.
func (b *Book) Count() int {
	if b.stored == nil {
		return 0
	}
	return len(b.stored.Entries)
}

// Active returns the number of running monitors.
func (b *Book) Active() (n int) {
	if b.stored == nil {
		return 0
	}
	for _, e := range b.stored.Entries {
		if e.State == protocol.MonitorRunning {
			n++
		}
	}
	return n
}

// Revision returns the revision of the monitors. It grows with each change, except for new
// lines and wakes.
func (b *Book) Revision() int64 {
	if b.stored == nil {
		return 0
	}
	return b.stored.Revision
}

// Waiting returns the ids of armed monitors that do not run. declared includes those of
// plugins.
func (b *Book) Waiting(declared bool) (ids []string) {
	if b.stored == nil {
		return nil
	}
	for _, e := range b.stored.sorted() {
		if e.Armed && e.State != protocol.MonitorRunning && (declared || e.Plugin == "") {
			ids = append(ids, e.Spec.ID)
		}
	}
	return ids
}

// TakeInterrupted reports whether, since the last call, monitors were interrupted that have to
// be started again.
func (b *Book) TakeInterrupted() bool {
	cut := b.cutOff
	b.cutOff = false
	return cut
}

// Same reports whether two specs are equal.
func Same(a, b protocol.MonitorSpec) bool { return bytes.Equal(encode(a), encode(b)) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
