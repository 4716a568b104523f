package authority

import "lashd/rpc/protocol"

// KeepsCalls tells whether a reply holds no tool call and no code that it did not hold before. Some may be gone; the others stand in the
// same order.
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

// runs tells whether a part has something run.
func runs(p protocol.Part) bool {
	return p.Kind == protocol.PartToolCall || p.Kind == protocol.PartCode || p.Call != nil
}

func sameWork(a, b protocol.Part) bool {
	if a.Kind != b.Kind || (a.Call == nil) != (b.Call == nil) {
		return false
	}
	if a.Call != nil {
		return a.Call.CallID == b.Call.CallID && a.Call.Name == b.Call.Name && a.Call.Parent == b.Call.Parent && sameJSON(a.Call.Args, b.Call.Args)
	}
	return a.Text == b.Text
}
