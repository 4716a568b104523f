// Package monitor keeps the monitors of a session. A run of a monitor is a task: what the task comes to, the monitor comes to in the same
// change. The session's actor owns the monitors: only it may call a Book.
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

// Component is the name under which the store keeps a session's monitors.
const Component = "monitors"

// Monitors are those of a session, as they are stored. They never change: others take their place, with the commit.
type Monitors struct {
	Revision int64            `json:"revision"` // grows with each change but lines and wakes
	Sequence int64            `json:"sequence"` // of the newest update
	Runs     int64            `json:"runs"`     // how many there were, in all
	Entries  map[string]Entry `json:"entries"`
}

// Entry is a monitor and what only the engine knows of it.
type Entry struct {
	protocol.Monitor
	Waking string `json:"waking,omitempty"` // the source of its wake that nobody has acknowledged
	Heard  int64  `json:"heard,omitempty"`  // batches of lines of this run
	Unsaid int64  `json:"unsaid,omitempty"` // lines since the newest wake, that would have woken the session

	Ceiling *protocol.Ceiling `json:"ceiling,omitempty"` // of who started it: its wakes are held to that
}

// disarmed forgets the run of a monitor that is not there any more: of another session, of another time.
func (e Entry) disarmed() Entry {
	if e.State == protocol.MonitorRunning {
		e.State, e.Armed = protocol.MonitorIdle, e.Armed && e.Spec.Restart
	}
	e.TaskID, e.Waking, e.Heard, e.Unsaid = "", "", 0, 0
	return e
}

// sorted returns the entries in the order of their ids.
func (m *Monitors) sorted() (all []Entry) {
	for _, id := range slices.Sorted(maps.Keys(m.Entries)) {
		all = append(all, m.Entries[id])
	}
	return all
}

// Restored returns the monitors as a session has them that is restored to them. m may be nil.
func (m *Monitors) Restored() []protocol.Monitor {
	all := []protocol.Monitor{}
	if m != nil {
		for _, e := range m.sorted() {
			all = append(all, e.disarmed().Monitor)
		}
	}
	return all
}

// Host runs monitors in a session.
type Host interface {
	// Watch makes attempts that run a monitor.
	Watch(protocol.MonitorSpec) func(*protocol.Task) live.Attempt
	// Dir is a directory as the session names it.
	Dir(name string) string
	// Room is how many bytes the model can be told at once.
	Room() int
}

// Book holds the monitors of a session.
type Book struct {
	session protocol.SessionID
	host    Host
	tasks   *live.Tasks
	queue   *queue.Queue
	stored  *Monitors                // nil: there are none
	updates []protocol.MonitorUpdate // kept until a caller takes them
	cutOff  bool                     // some are to be begun again that another run of the daemon has begun
}

// New makes a Book without monitors.
func New(session protocol.SessionID, host Host, tasks *live.Tasks, inputs *queue.Queue) *Book {
	return &Book{session: session, host: host, tasks: tasks, queue: inputs}
}

// UnmarshalJSON makes the monitors those that the store has. There were none, or Forget was called.
func (b *Book) UnmarshalJSON(body []byte) error {
	return json.Unmarshal(body, &b.stored)
}

// Forget leaves out all monitors, until others are loaded.
func (b *Book) Forget() { b.stored = nil }

// Own makes monitors that were just loaded the session's. A run that is none of its tasks was that of the session where this one began.
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

// Find returns a monitor.
func (b *Book) Find(id string) (Entry, bool) {
	if b.stored == nil {
		return Entry{}, false
	}
	e, ok := b.stored.Entries[id]
	return e, ok
}

// runBy is the monitor of which a task is the newest run.
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

// List returns the monitors as clients see them.
func (b *Book) List() []protocol.Monitor {
	all := []protocol.Monitor{}
	if b.stored != nil {
		for _, e := range b.stored.sorted() {
			all = append(all, b.Shown(e))
		}
	}
	return all
}

// outstanding tells whether a wake of a monitor is neither acknowledged, nor is a turn over that took it in, nor was it withdrawn.
func (b *Book) outstanding(e Entry) bool {
	mine := func(in protocol.QueuedInput) bool { return in.Source == e.Waking }
	return e.Waking != "" && slices.ContainsFunc(b.queue.Inputs(), mine)
}

// Count is how many monitors there are.
func (b *Book) Count() int {
	if b.stored == nil {
		return 0
	}
	return len(b.stored.Entries)
}

// Active is how many monitors run.
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

// Revision grows with each change but lines and wakes.
func (b *Book) Revision() int64 {
	if b.stored == nil {
		return 0
	}
	return b.stored.Revision
}

// Waiting returns the ids of monitors that are armed and do not run, perhaps without those of plugins.
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

// TakeCutOff tells whether monitors were cut off since the last call that are to be begun again.
func (b *Book) TakeCutOff() bool {
	cut := b.cutOff
	b.cutOff = false
	return cut
}

// Same tells whether two specs are of the same monitor.
func Same(a, b protocol.MonitorSpec) bool { return bytes.Equal(encode(a), encode(b)) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
