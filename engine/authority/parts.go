package authority

import "lashd/rpc/protocol"

// KeepsCalls reports whether the parts is contain no tool call or code that is not in was. Some may be missing; the
// rest must be in the same order. It keeps sandboxed plugins from adding work to a reply that would run with the rights
// of the session.
// It only reads the parts.
func KeepsCalls(was, is []protocol.Part) bool {
	for _, p := range is {
		if !runs(p) {
			continue
		}
		for len(was) > 0 && !sameWork(was[0], p) {
			was = was[1:]
		}
		if len(was) == 0 {
			return false
		}
		was = was[1:]
	}
	return true
}

// runs reports whether a part makes something run.
func runs(p protocol.Part) bool {
	return p.Kind == protocol.PartToolCall || p.Kind == protocol.PartCode || p.Call != nil
}

// sameWork reports whether two parts run the same thing. Arguments are compared as JSON values.
func sameWork(a, b protocol.Part) bool {
	if a.Kind != b.Kind || (a.Call == nil) != (b.Call == nil) {
		return false
	}
	if a.Call != nil {
		return a.Call.CallID == b.Call.CallID && a.Call.Name == b.Call.Name && a.Call.Parent == b.Call.Parent && sameJSON(a.Call.Args, b.Call.Args)
	}
	return a.Text == b.Text
}
