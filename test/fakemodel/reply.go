package fakemodel

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// writeSize is when collected events are written although no flush is due.
const writeSize = 32 << 10

// reply is one answer in the making. It belongs to its handler's goroutine.
type reply struct {
	srv     *Server
	ctx     context.Context // of the request; done when the client disconnects
	request *http.Request
	api     api
	w       http.ResponseWriter
	flush   *http.ResponseController
	tail    tail
	number  int // of the request
	size    int // bytes of request
	step    Step

	wire    wire   // nil before the first event
	buf     []byte // events not yet written
	message message
	outputs int // deltas so far
	sent    []time.Time
}

// message is what the deltas add up to, for replies that are not streamed.
type message struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []wireCall `json:"tool_calls,omitempty"`
}

func (r *reply) playStep(st Step) {
	r.step = st
	for _, p := range st.Parts {
		if !r.playPart(p, st.refuses()) {
			return
		}
	}
	switch {
	case st.refuses():
		r.refuse(st)
	case !r.tail.Stream:
		r.endPlain(st)
	default:
		r.endStream(st)
	}
}

func (st Step) refuses() bool { return st.Status != 0 && st.Status != http.StatusOK }

// playPart plays one part of a step. It returns false if the client has disconnected.
func (r *reply) playPart(p Part, waitsOnly bool) bool {
	switch {
	case p.PauseMS > 0:
		return r.pause(time.Duration(p.PauseMS) * time.Millisecond)
	case p.Stall:
		return r.srv.stall(r.ctx)
	case waitsOnly:
		return true
	case p.Raw != "":
		return r.playRaw(p.Raw)
	case len(p.Calls) > 0:
		return r.playCalls(p.Calls)
	}
	r.outputs++
	r.message.Content += p.Text
	r.message.Reasoning += p.Reasoning
	if !r.tail.Stream {
		return true
	}
	r.open()
	switch {
	case p.Error != "":
		r.wire.fault(p.Error)
		r.write() // the reply ends here either way
		return false
	case p.Reasoning != "":
		r.wire.reasoning(p.Reasoning, p.Signature)
	default:
		r.wire.text(p.Text)
	}
	return r.write() == nil
}

func (r *reply) playRaw(raw string) bool {
	if !r.tail.Stream {
		r.w.Header().Set("Content-Type", "application/json")
		r.w.Write([]byte(raw)) // the reply ends here either way
		return false
	}
	r.open()
	r.buf = append(append(r.buf, raw...), "\n\n"...)
	return r.write() == nil
}

func (r *reply) playCalls(calls []Call) bool {
	calls = slices.Clone(calls)
	for i, c := range calls {
		if c.ID == "" {
			calls[i].ID, calls[i].numbered = fmt.Sprintf("call_%d_%d", r.number, len(r.message.Calls)), true
		}
		r.outputs += 1 + len(c.pieces())
		r.message.Calls = append(r.message.Calls, wireCall{
			ID: calls[i].ID, Type: "function", Function: wireFunction{Name: c.Name, Args: c.Args},
		})
	}
	if !r.tail.Stream {
		return true
	}
	r.open()
	r.wire.calls(calls)
	return r.write() == nil
}

// pieces are the arguments as the deltas of a stream carry them.
func (c *Call) pieces() []string { return fragments(c.Args, cmp.Or(c.Pieces, 2)) }

// fragments cuts s into n pieces, or fewer when it is too short, never inside a rune.
func fragments(s string, n int) []string {
	runes := []rune(s)
	n = max(1, min(n, len(runes)))
	var list []string
	for i := range n {
		list = append(list, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return list
}

// playMarker streams without building a value per delta: it must outrun the daemon it measures.
func (r *reply) playMarker(m marker) {
	if m.tool != "" && r.tail.Results < m.rounds*m.calls {
		r.playStep(Use(slices.Repeat([]Call{{Name: m.tool, Args: m.args, Pieces: 1}}, m.calls)...))
		return
	}
	if !r.tail.Stream {
		r.outputs = m.deltas
		var text []byte
		for i := range m.deltas {
			text = appendProse(text, i, m.size)
		}
		r.message.Content = string(text)
		r.endPlain(Step{})
		return
	}
	r.open()
	for i := range m.think {
		r.outputs++
		r.wire.reasoning(string(appendProse(nil, i, m.size)), "")
		if r.write() != nil || !r.pause(time.Duration(m.us)*time.Microsecond) {
			return
		}
	}
	held := 0
	for i := range m.deltas {
		r.wire.prose(i, m.size)
		held++
		r.outputs++
		if held < m.flush && len(r.buf) < writeSize && m.us == 0 {
			continue
		}
		held = 0
		if m.us > 0 {
			r.sent = append(r.sent, time.Now())
		}
		if r.write() != nil {
			return
		}
		if m.us > 0 && !r.pause(time.Duration(m.us)*time.Microsecond) {
			return
		}
	}
	r.endStream(Step{})
}

// open starts the event stream, as late as possible: a reply that stalls first has sent no headers.
func (r *reply) open() {
	if r.wire != nil {
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.w.Header().Set("Cache-Control", "no-cache")
	r.wire = r.api.stream(r)
	r.wire.begin()
}

// sign returns a new signature for the reasoning before the part of this number.
func (r *reply) sign(part int) string {
	signature := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "signature-%d-%d", r.number, part)) // as Google's type demands
	r.issue(signature)
	return signature
}

// issue makes the server accept a signature from the model of the reply.
func (r *reply) issue(signature string) {
	r.srv.issue(apiOf(r.request.URL.Path), r.tail.Model, signature)
}

func (r *reply) write() error {
	if len(r.buf) > 0 {
		if _, err := r.w.Write(r.buf); err != nil {
			return err
		}
		r.buf = r.buf[:0]
	}
	return r.flush.Flush()
}

func (r *reply) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.ctx.Done():
	case <-r.srv.closed:
	}
	return false
}

func quote(s string) string { return string(mustMarshal(s)) }

// mustMarshal encodes our own types, which cannot fail.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
