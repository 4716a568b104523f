package child

import "lashd/rpc/protocol"

// Failure is the output of a call of a tool that a program failed at. Trying again may help, where it is safe.
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
