package approval

import (
	"slices"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// CertainFailure is the verdict on a call that would fail in any case, so that lashd does not ask about it.
func CertainFailure() Verdict {
	return Verdict{Mode: protocol.ApproveDeny, Why: because(protocol.DecidedByPreview, "The change does not fit the files, so lashd returned the error without a question.")}
}

// ToRead returns the request to read the files of the call with a tool. The error of a failed change shows a part of their contents.
func (q *Request) ToRead(with *tool.Entry) *Request {
	about := *q.Call
	about.entry = with
	return &Request{Call: &about, Kind: protocol.ToolKindRead, Policies: q.Policies, Ceiling: q.Ceiling, Outside: q.Outside, Ships: q.Ships}
}

// MayChange reports whether the call may change a file of another call. Nil is a call that is not judged again.
func (q *Request) MayChange(other *Request) bool {
	switch {
	case q == nil:
		return true
	case Reads(q.Kind) || q.Kind == protocol.ToolKindFetch:
		return false
	case !q.Ships || q.Kind != protocol.ToolKindEdit:
		return true
	}
	return slices.ContainsFunc(q.Call.all, func(a parsedSubject) bool {
		return slices.ContainsFunc(other.Call.all, func(b parsedSubject) bool { return a.at.MayBeIn(b.at) || b.at.MayBeIn(a.at) })
	})
}
