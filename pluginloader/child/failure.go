package child

import "lashd/rpc/protocol"

// Failure returns the output of a tool call that failed because of the plugin's program. The model
// reads its message. Failure recommends a retry only after a crash, and only if the tool is safe to
// repeat.
func Failure(err error, replay protocol.Replay) protocol.ToolOutput {
	class, code := protocol.FailUnavailable, CodeOf(err)
	switch code {
	case TimedOut:
		class = protocol.FailTimeout
	case Protocol, Failed:
		class = protocol.FailExternal
	}
	out := protocol.Fail(class, string(code), err.Error(), protocol.FromPlugin)
	out.Failure.Retry = code == Crashed && replay != protocol.ReplayNever && replay != ""
	return out
}
