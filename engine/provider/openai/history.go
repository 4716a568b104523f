package openai

import (
	"container/list"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// A session sends nearly the same messages with each call. They are kept encoded, so that a call costs the bytes it
// sends and the encoding of what is new.
const (
	historySessions = 64
	historyBytes    = 32 << 20
)

type historyKey struct {
	session protocol.SessionID
	model   string
}

// threadKey has the first message in it so that a call beside the conversation, such as a summary, does not put the
// conversation out of its place.
type threadKey struct {
	historyKey
	first *protocol.Message
}

// history keeps the encoded conversations that were used last. The zero value is ready.
type history struct {
	mu      sync.Mutex
	threads map[threadKey]*list.Element
	recent  list.List // of *thread, the last used one first
	bytes   int
}

// thread is one encoded conversation. Requests read data while they are sent, so bytes in it are never overwritten:
// it is only appended to, or replaced.
type thread struct {
	key      threadKey
	messages []*protocol.Message // a message is known by its pointer
	ends     []int               // of the messages, in data
	data     []byte
}

// encode gives the encoded messages, each followed by a comma.
func (h *history) encode(key historyKey, messages []*protocol.Message, route string) []byte {
	if len(messages) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.useLocked(threadKey{key, messages[0]})
	h.bytes -= cap(t.data)
	data := t.extend(messages, route)
	h.bytes += cap(t.data)
	h.trimLocked()
	return data
}

func (h *history) useLocked(key threadKey) *thread {
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

func (h *history) trimLocked() {
	for h.recent.Len() > historySessions || h.bytes > historyBytes {
		e := h.recent.Back()
		t := h.recent.Remove(e).(*thread)
		delete(h.threads, t.key)
		h.bytes -= cap(t.data)
	}
}

// extend makes the thread hold these messages, and gives their encoding.
func (t *thread) extend(messages []*protocol.Message, route string) []byte {
	same := 0
	for same < min(len(messages), len(t.messages)) && messages[same] == t.messages[same] {
		same++
	}
	if same < len(t.messages) {
		if same == len(messages) {
			return t.data[:t.end(same)] // a shorter look at the same conversation
		}
		t.data = slices.Clone(t.data[:t.end(same)])
		t.messages, t.ends = slices.Clone(t.messages[:same]), t.ends[:same]
	}
	for _, m := range messages[same:] {
		t.data = appendMessage(t.data, m, route)
		t.messages, t.ends = append(t.messages, m), append(t.ends, len(t.data))
	}
	return t.data
}

func (t *thread) end(messages int) int {
	if messages == 0 {
		return 0
	}
	return t.ends[messages-1]
}
