package fakemodel

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

func (r *reply) endStream(st Step) {
	r.open()
	if st.End == Whole || st.End == NoDone {
		r.wire.end(st)
	}
	if r.write() == nil && st.End == Reset {
		r.reset()
	}
}

func (r *reply) endPlain(st Step) {
	r.message.Role = "assistant"
	body := r.object("chat.completion") +
		`,"choices":[{"index":0,"message":` + string(mustMarshal(r.message)) +
		`,"logprobs":null,"finish_reason":` + quote(r.finish(st)) + `}],"usage":` + string(mustMarshal(r.usage(st))) + "}"
	r.w.Header().Set("Content-Type", "application/json")
	r.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if st.End == Cut || st.End == Reset {
		body = body[:len(body)/2]
	}
	r.buf = append(r.buf, body...)
	if r.write() != nil {
		return
	}
	if st.End == Cut {
		panic(http.ErrAbortHandler) // closes the connection short of Content-Length
	}
	if st.End == Reset {
		r.reset()
	}
}

func (r *reply) finish(st Step) string {
	if len(r.message.Calls) > 0 {
		return cmp.Or(st.Finish, "tool_calls")
	}
	return cmp.Or(st.Finish, "stop")
}

func (r *reply) usage(st Step) Usage {
	u := Usage{Prompt: r.size / 4, Completion: r.outputs}
	if st.Usage != nil {
		u = *st.Usage
	}
	u.Total = cmp.Or(u.Total, u.Prompt+u.Completion)
	return u
}

func (r *reply) refuse(st Step) {
	if st.RetryAfter != "" {
		r.w.Header().Set("Retry-After", st.RetryAfter)
	}
	if st.Body == "" {
		message := "scripted " + strings.ToLower(http.StatusText(st.Status))
		if st.Echo {
			key, _ := r.api.authenticate(r.request.Header)
			message += fmt.Sprintf(": key %s of %s, headers %v", key, r.request.URL, r.request.Header)
		}
		writeError(r.w, r.api, st.Status, message)
		return
	}
	r.w.WriteHeader(st.Status)
	r.w.Write([]byte(st.Body)) // the client may have gone
}

// reset breaks the connection so that the client reads ECONNRESET, not the end of the stream.
func (r *reply) reset() {
	conn, _, err := r.flush.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // makes close send RST; if it fails, the stream is at least cut
	}
	conn.Close()
}
