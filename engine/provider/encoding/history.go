package encoding

import (
	"container/list"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// Limits of a History, in conversations and in bytes.
const (
	historySessions = 64
	historyBytes    = 32 << 20
)

// Key names a conversation with one model.
type Key struct {
	Session protocol.SessionID
	Model   string
}

// threadKey includes the first message so that a call beside the conversation, such as a summary, does not replace the
// conversation.
type threadKey struct {
	Key
	first *protocol.Message
}

// Writer appends one message as none, one or several messages of an API, each followed by a comma. It must always write the same
// bytes for the same message.
type Writer func(b []byte, m *protocol.Message) []byte

// History keeps the conversations that were used last in encoded form: a session sends nearly the same messages with each call, so
// a call costs the bytes that it sends and the encoding of the new messages. The zero value is ready; it is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	threads map[threadKey]*list.Element
	recent  list.List // of *thread, the last used one first
	bytes   int       // size of all threads
}

// thread is one encoded conversation. Requests read data while they are sent, so its bytes are never overwritten: data is only
// appended to, or replaced.
type thread struct {
	key      threadKey
	size     int                 // capacity of data when the newest call was encoded; guarded by History.mu
	mu       sync.Mutex          // held while messages are written, so that a message is encoded once
	messages []*protocol.Message // a message is known by its pointer
	ends     []int               // of the messages, in data
	data     []byte
}

// Encode returns the encoded messages, each followed by a comma. The caller must not change the result.
// It writes only the messages that the conversation did not have. A message is known by its pointer, so messages must not change.
// Writing a message may read attachments from a disk, so only calls of the same conversation wait for it.
func (h *History) Encode(key Key, messages []*protocol.Message, write Writer) []byte {
	if len(messages) == 0 {
		return nil
	}
	t := h.use(threadKey{key, messages[0]})
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.extend(messages, write)
	h.resize(t, cap(t.data))
	return data
}

// Forget drops a conversation whose encoding is not usable, because a message could not be written.
// The next call then writes all of its messages.
func (h *History) Forget(key Key, messages []*protocol.Message) {
	if len(messages) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	of := threadKey{key, messages[0]}
	if e, ok := h.threads[of]; ok {
		delete(h.threads, of)
		h.bytes -= h.recent.Remove(e).(*thread).size
	}
}

// use returns the thread of a key as the one that was used last, and makes it if there is none.
func (h *History) use(key threadKey) *thread {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.threads[key]; ok {
		h.recent.MoveToFront(e)
		return e.Value.(*thread)
	}
	if h.threads == nil {
		h.threads = map[threadKey]*list.Element{}
	}
	t := &thread{key: key}
	h.threads[key] = h.recent.PushFront(t)
	return t
}

// trimLocked drops the threads that were used longest ago until the rest are within the limits.
func (h *History) trimLocked() {
	for h.recent.Len() > historySessions || h.bytes > historyBytes {
		e := h.recent.Back()
		t := h.recent.Remove(e).(*thread)
		delete(h.threads, t.key)
		h.bytes -= t.size
	}
}

// resize notes the new size of a thread, which may make the limits drop others. A thread that was dropped while it was written no
// longer counts.
func (h *History) resize(t *thread, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.threads[t.key]; !ok || e.Value != t {
		return
	}
	h.bytes += size - t.size
	t.size = size
	h.trimLocked()
}

// extend makes the thread hold these messages and returns their encoding.
// A conversation that differs from the thread continues in a copy of their common beginning, because a request may still be
// reading the old bytes.
func (t *thread) extend(messages []*protocol.Message, write Writer) []byte {
	same := 0
	for same < min(len(messages), len(t.messages)) && messages[same] == t.messages[same] {
		same++
	}
	if same < len(t.messages) {
		if same == len(messages) {
			return t.data[:t.end(same):t.end(same)] // the beginning of the same conversation
		}
		t.data = slices.Clone(t.data[:t.end(same)])
		t.messages, t.ends = slices.Clone(t.messages[:same]), t.ends[:same]
	}
	for _, m := range messages[same:] {
		t.data = write(t.data, m)
		t.messages, t.ends = append(t.messages, m), append(t.ends, len(t.data))
	}
	return t.data
}

// end returns the length of the first messages in data.
func (t *thread) end(messages int) int {
	if messages == 0 {
		return 0
	}
	return t.ends[messages-1]
}
