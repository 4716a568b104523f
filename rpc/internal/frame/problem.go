package frame

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// codeOverloaded is the code of the error kind overloaded; package rpc has the same one.
const codeOverloaded = -32001

// problem is an error to which the stream itself responds. If the reader returns it, it also ends
// the connection.
type problem struct {
	code    int64
	kind    string
	retry   string // now or never, as in protocol.RetryAdvice
	afterMs int    // delay of a retry in milliseconds; 0: none
	message string
}

// Error returns the kind and the message.
func (p *problem) Error() string {
	return "frame: " + p.kind + ": " + p.message
}

// reply returns the encoded response to the request with this id. A nil id becomes null, as
// JSON-RPC requires for requests whose id is unreadable.
func (p *problem) reply(id []byte) []byte {
	data := struct {
		Kind         string `json:"kind"`
		Retry        string `json:"retry"`
		RetryAfterMs int    `json:"retryAfterMs,omitempty"`
		Outcome      string `json:"outcome"`
	}{p.kind, p.retry, p.afterMs, "none"}
	e := jsonrpc2.Error{Code: p.code, Message: p.message}
	e.SetError(data)
	text, err := json.Marshal(e)
	if err != nil {
		panic("frame: encode an error: " + err.Error())
	}
	if id == nil {
		id = []byte("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, text)
}

// foreignProtocol is the problem of a client that speaks another protocol, such as a browser.
func foreignProtocol(name string) *problem {
	return &problem{code: jsonrpc2.CodeInvalidRequest, kind: "foreignProtocol", retry: "never",
		message: "This is " + name + ", but lashd speaks JSON-RPC 2.0: send one JSON object a line, or Content-Length headers."}
}

// badFrame is the problem of a malformed header. The stream cannot find the next message after it.
func badFrame(message string) *problem {
	return &problem{code: jsonrpc2.CodeParseError, kind: "badFrame", retry: "never", message: message}
}

// frameTooLarge is the problem of a message over the limit, which is in bytes.
func frameTooLarge(limit int) *problem {
	return &problem{code: jsonrpc2.CodeInvalidRequest, kind: "frameTooLarge", retry: "never",
		message: "The message is larger than " + strconv.Itoa(limit) + " bytes."}
}

// parseError is the problem of a frame that is not valid JSON. The next frame is read normally.
func parseError(err error) *problem {
	return &problem{code: jsonrpc2.CodeParseError, kind: "parseError", retry: "never",
		message: "Send one valid JSON value: " + err.Error() + "."}
}

// invalidRequest is the problem of valid JSON that is not a valid request.
func invalidRequest(format string, args ...any) *problem {
	return &problem{code: jsonrpc2.CodeInvalidRequest, kind: "invalidRequest", retry: "never",
		message: fmt.Sprintf(format, args...)}
}

// overloaded is the problem of a request over the limits; the peer may retry after 50 ms.
func overloaded(message string) *problem {
	return &problem{code: codeOverloaded, kind: "overloaded", retry: "now", afterMs: 50, message: message}
}
