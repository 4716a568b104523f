package authority_test

import (
	"encoding/json"
	"testing"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

func TestKeepsCalls(t *testing.T) {
	call := func(id protocol.CallID, name, args string) protocol.Part {
		return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: name, Args: json.RawMessage(args)}}
	}
	prose := protocol.Part{Kind: protocol.PartProse, Text: "hello"}
	code := func(text string) protocol.Part { return protocol.Part{Kind: protocol.PartCode, Text: text} }
	inner := call("a", "shell", `{"command":"ls"}`)
	inner.Call.Parent = "z"
	a, b := call("a", "shell", `{"command":"ls"}`), call("b", "read", `{}`)
	was := []protocol.Part{prose, a, code("x()"), b}
	for name, c := range map[string]struct {
		is   []protocol.Part
		want bool
	}{
		"the same":                {was, true},
		"other prose":             {[]protocol.Part{{Kind: protocol.PartProse, Text: "bye"}, a, code("x()"), b}, true},
		"JSON written otherwise":  {[]protocol.Part{call("a", "shell", `{ "command": "ls" }`)}, true},
		"fewer calls":             {[]protocol.Part{b}, true},
		"no calls":                {nil, true},
		"a call more":             {[]protocol.Part{a, b, call("c", "shell", `{}`)}, false},
		"a call twice":            {[]protocol.Part{a, a, b}, false},
		"another order":           {[]protocol.Part{b, a}, false},
		"other arguments":         {[]protocol.Part{call("a", "shell", `{"command":"rm"}`)}, false},
		"another name":            {[]protocol.Part{call("a", "monitor", `{"command":"ls"}`)}, false},
		"another id":              {[]protocol.Part{call("z", "shell", `{"command":"ls"}`)}, false},
		"other code":              {[]protocol.Part{code("y()")}, false},
		"a call in another place": {[]protocol.Part{{Kind: protocol.PartProse, Call: &protocol.ToolCall{CallID: "c", Name: "shell"}}}, false},
		"the same call elsewhere": {[]protocol.Part{{Kind: protocol.PartProse, Call: a.Call}}, false},
		"code that is a call":     {[]protocol.Part{{Kind: protocol.PartCode, Text: "x()", Call: a.Call}}, false},
		"a call of nothing":       {[]protocol.Part{{Kind: protocol.PartToolCall}}, false},
		"another parent":          {[]protocol.Part{inner}, false},
	} {
		t.Run("outside/1 a reply with "+name, func(t *testing.T) {
			if got := authority.KeepsCalls(was, c.is); got != c.want {
				t.Errorf("keeps its calls: %v", got)
			}
		})
	}
}
