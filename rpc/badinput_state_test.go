package rpc_test

import (
	"strings"
	"testing"
)

const (
	input = `"input":[` + text + `]}`
	stale = "1 -32011 generationMismatch reload none"
)

// states are well-formed requests that the current state does not allow.
var states = []paramCase{
	{"session/new", `{"cwd":"$dir","model":"none"}`, notFound("modelNotFound", "never")},
	{"session/new", `{"cwd":"$dir","driver":"none"}`, notFound("driverNotFound", "never")},
	{"session/new", `{"cwd":"$dir","sessionId":"$idle"}`, "1 -32011 conflict never none"},
	{"session/new", `{"cwd":"$dir","sessionId":"$gone"}`, notFound("sessionDeleted", "never")},
	{"session/new", `{"cwd":"$dir","idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"session/new", `{"cwd":"$dir","_x":1,"model":"none"}`, notFound("modelNotFound", "never")},
	{"session/configure", inIdle + `"model":"none"}`, notFound("modelNotFound", "never")},
	{"session/read", inIdle[:len(inIdle)-1] + `,"cursor":"$turns"}`, param("/cursor")},
	{"session/read", `{"sessionId":"$rewound","cursor":"$page"}`, param("/cursor")},
	{"graph/read", `{"sessionId":"$busy","cursor":"$page"}`, param("/cursor")},
	{"turn/list", `{"sessionId":"$busy","cursor":"$turns"}`, param("/cursor")},
	{"turn/list", inIdle + `"cursor":"$page"}`, param("/cursor")},
	{"session/fork", inIdle + `"atNode":"nod_none"}`, notFound("nodeNotFound", "reload")},
	{"session/fork", `{"sessionId":"$rewound","atNode":"$stale"}`, "1 -32010 forkPointNotRetained reload none"},
	{"session/fork", inIdle + `"atNode":"$root"}`, "1 -32010 forkPointNotRetained reload none"},
	{"session/rewind", inIdle + `"toNode":"nod_none"}`, notFound("nodeNotFound", "reload")},
	{"session/rewind", inIdle + `"toNode":"$root"}`, notFound("nodeNotFound", "reload")},
	{"session/rewind", `{"sessionId":"$rewound","toNode":"$stale"}`, notFound("nodeNotFound", "reload")},
	{"session/rewind", `{"sessionId":"$busy","toNode":"$root"}`, "1 -32010 turnActive reload none"},
	{"session/rewind", inIdle + `"toTurn":"trn_none"}`, notFound("turnNotFound", "reload")},
	{"session/rewind", inIdle + `"toTurn":"trn_none","files":"only"}`, notFound("turnNotFound", "reload")},
	{"session/rewind", inIdle + `"toTurn":"trn_none","files":"also"}`, notFound("turnNotFound", "reload")},
	{"session/rewind", inIdle + `"toTurn":"$running","files":"only"}`, notFound("turnNotFound", "reload")},
	{"session/rewind", inIdle + `"toTurn":"$running","files":"only","force":true}`, notFound("turnNotFound", "reload")},
	{"session/rewind", `{"sessionId":"$rewound","toTurn":"$done","files":"only"}`, notFound("turnNotFound", "reload")},
	{"session/rewind", inIdle + `"toNode":"nod_none","files":"only"}`, notFound("nodeNotFound", "reload")},
	{"session/rewind", inIdle + `"toNode":"$root","files":"also"}`, notFound("nodeNotFound", "reload")},
	{"session/rewind", inIdle + `"toPoint":"fpt_none","files":"only"}`, notFound("pointNotFound", "reload")},
	{"session/rewind", inIdle + `"toPoint":"fpt_none","files":"only","dryRun":true,"force":true}`, notFound("pointNotFound", "reload")},
	{"session/rewind", inIdle + `"toPoint":"` + strings.Repeat("x", 1_000_000) + `","files":"only"}`, notFound("pointNotFound", "reload")},
	{"session/rewind", `{"sessionId":"$busy","toTurn":"$running","files":"only"}`, "1 -32010 turnActive reload none"},
	{"session/rewind", `{"sessionId":"$busy","toPoint":"fpt_none","files":"only"}`, "1 -32010 turnActive reload none"},
	{"session/rewind", inIdle + `"toTurn":"$done","files":"only","idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"session/points", `{"sessionId":"$gone"}`, notFound("sessionDeleted", "never")},
	{"session/diff", `{"sessionId":"$gone"}`, notFound("sessionDeleted", "never")},
	{"session/diff", inIdle + `"turnId":"trn_none"}`, notFound("turnNotFound", "reload")},
	{"session/diff", inIdle + `"turnId":"$running"}`, notFound("turnNotFound", "reload")},
	{"session/diff", inIdle + `"pointId":"fpt_none"}`, notFound("pointNotFound", "reload")},
	{"session/diff", inIdle + `"turnId":"$done","pointId":"fpt_none"}`, notFound("pointNotFound", "reload")},
	{"session/close", `{"sessionId":"$busy"}`, "1 -32010 sessionStillInUse reload none"},
	{"session/close", `{"sessionId":"$ask"}`, "1 -32010 sessionStillInUse reload none"},
	{"graph/pin", inIdle + `"nodeId":"$root"}`, notFound("nodeNotFound", "reload")},
	{"graph/pin", `{"sessionId":"$rewound","nodeId":"$stale"}`, notFound("nodeNotFound", "reload")},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"type":"n","body":1}}],"idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"graph/append", `{"sessionId":"$rewound","nodes":[{"plugin":{"type":"n","body":2}}],"operationId":"op"}`, "1 -32011 conflict never none"},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"type":"n","body":"` + strings.Repeat("x", 8_000_000) + `"}}]}`, "1 -32013 tooLarge never none"},
	{"session/configure", inIdle + `"prompt":"` + strings.Repeat("x", 8_000_000) + `"}`, "1 -32013 tooLarge never none"},
	{"turn/start", inIdle + `"idempotencyKey":"used",` + input, "1 -32011 conflict never none"},
	{"turn/start", `{"sessionId":"$busy","idempotencyKey":"used",` + input, "1 -32011 conflict never none"},
	{"turn/start", `{"sessionId":"$busy","whenBusy":"refuse",` + input, "1 -32010 turnActive reload none"},
	{"turn/start", `{"sessionId":"$ask","whenBusy":"refuse",` + input, "1 -32010 turnActive reload none"},
	{"turn/run", `{"sessionId":"$busy","whenBusy":"refuse",` + input, "1 -32010 turnActive reload none"},
	{"turn/steer", `{"turnId":"trn_none",` + input, notFound("turnNotFound", "reload")},
	{"turn/steer", `{"turnId":"$done",` + input, "1 -32010 turnNotActive reload none"},
	{"turn/steer", `{"turnId":"$queued",` + input, "1 -32010 turnNotActive reload none"},
	{"turn/interrupt", `{"turnId":"trn_none"}`, notFound("turnNotFound", "reload")},
	{"turn/interrupt", `{"turnId":"$running","idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"turn/wait", `{"turnId":"trn_none"}`, notFound("turnNotFound", "reload")},
	{"turn/trace", `{"turnId":"none"}`, notFound("turnNotFound", "reload")},
	{"turn/trace", `{"turnId":"$done","cursor":"$turns"}`, param("/cursor")},
	{"turn/read", `{"turnId":""}`, notFound("turnNotFound", "reload")},
	{"turn/read", `{"turnId":"` + strings.Repeat("x", 1_000_000) + `"}`, notFound("turnNotFound", "reload")},
	{"turn/read", `{"turnId":"trn\u0000"}`, notFound("turnNotFound", "reload")},
	{"decision/respond", `{"decisionId":"dec_none","choice":"reject"}`, notFound("decisionNotFound", "reload")},
	{"decision/respond", `{"decisionId":"$decision","choice":""}`, param("/choice")},
	{"decision/respond", `{"decisionId":"$decision","choice":"runAgain"}`, param("/choice")},
	{"decision/respond", `{"decisionId":"$decision","choice":"allowOnce"}`, param("/argsHash")},
	{"decision/respond", `{"decisionId":"$decision","choice":"allowOnce","argsHash":"00"}`, param("/argsHash")},
	{"tool/applyState", inIdle + `"state":{"generation":99,"tools":{}}}`, stale},
	{"tool/applyState", `{"sessionId":"$ask","state":{"generation":-1,"tools":{}}}`, stale},
	{"tool/applyState", inIdle + `"state":{"generation":0,"tools":{"none":{"manifest":{"name":"none","description":""}}}}}`, notFound("toolNotFound", "reload")},
	{"tool/applyState", inIdle + `"state":{"generation":0,"tools":{"x":{"orphaned":true,"manifest":{"id":"y","name":"y","description":""}}}}}`, param("/state")},
	{"tool/setMembership", inIdle + `"generation":99,"members":{}}`, stale},
	{"tool/setMembership", inIdle + `"members":{"none":true}}`, notFound("toolNotFound", "reload")},
	{"tool/setAvailability", inIdle + `"generation":99,"names":[]}`, stale},
	{"tool/setAvailability", inIdle + `"names":["none"],"availability":"off"}`, notFound("toolNotFound", "reload")},
	{"tool/setAvailability", inIdle + `"names":[],"availability":"maybe"}`, param("/availability")},
	{"tool/call", inIdle + `"name":"none"}`, notFound("toolNotFound", "reload")},
	{"tool/call", inIdle + `"name":""}`, notFound("toolNotFound", "reload")},
	{"tool/call", inIdle + `"name":"` + strings.Repeat("x", 1_000_000) + `"}`, notFound("toolNotFound", "reload")},
	{"tool/call", `{"sessionId":"$ask","name":"deploy","args":{},"idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"code/state", inIdle[:len(inIdle)-1] + `}`, "1 -32010 noCode never none"},
	{"code/state", `{"sessionId":"$busy"}`, "1 -32010 noCode never none"},
	{"code/execute", inIdle + `"source":"x"}`, "1 -32010 noCode never none"},
	{"code/execute", inIdle + `"source":"x","write":true,"idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"tool/complete", `{"key":"dec_none","output":{"status":"success"}}`, notFound("callNotFound", "never")},
	{"tool/respond", inIdle + `"callId":"c","ack":true}`, notFound("toolNotFound", "reload")},
	{"tool/respond", `{"sessionId":"$ask","callId":"c1","output":{"status":"success"}}`, notFound("toolNotFound", "reload")},
	{"session/new", `{"cwd":"$dir","authority":{"subagent":{"parentSessionId":"ses_none","depth":1,"maxDepth":1}}}`, notFound("sessionNotFound", "reload")},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"plugin":"p","type":"n","body":1}}]}`, param("/nodes/0/plugin/plugin")},
	{"operation/query", `{"name":"none"}`, notFound("unknownOperation", "never")},
	{"operation/query", inIdle + `"name":"none"}`, notFound("unknownOperation", "never")},
	{"operation/command", `{"name":"none"}`, notFound("unknownOperation", "never")},
	{"operation/command", `{"sessionId":"$busy","name":"none"}`, notFound("unknownOperation", "never")},
	{"operation/task", inIdle + `"name":"none","idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"action/invoke", inIdle + `"name":"none"}`, notFound("unknownOperation", "never")},
	{"snapshot/create", inIdle + `"name":"s","idempotencyKey":"used"}`, "1 -32011 conflict never none"},
	{"snapshot/read", inIdle + `"name":"none"}`, notFound("snapshotNotFound", "reload")},
	{"snapshot/preview", inIdle + `"name":"none"}`, notFound("snapshotNotFound", "reload")},
	{"snapshot/preview", `{"sessionId":"$busy","name":"none"}`, "1 -32010 turnActive reload none"},
	{"snapshot/restore", inIdle + `"name":"none"}`, notFound("snapshotNotFound", "reload")},
	{"snapshot/restore", `{"sessionId":"$busy","name":"none"}`, "1 -32010 turnActive reload none"},
	{"snapshot/delete", inIdle + `"name":"none"}`, notFound("snapshotNotFound", "reload")},
	{"artifact/read", `{"digest":"$digest"}`, notFound("artifactNotFound", "reload")},
	{"completion/create", asked + `"model":"none"}`, notFound("modelNotFound", "never")},
	{"completion/create", asked + `"idempotencyKey":"used"}`, "1 -32011 conflict never none"},
}

// needSession lists the methods with a sessionId, with their other required params.
var needSession = map[string]string{
	"session/read": `}`, "session/attach": `}`, "session/configure": `}`, "session/setOverlay": `}`, "session/fork": `}`,
	"session/close": `}`, "session/archive": `}`, "session/wait": `}`, "session/setTitle": `,"title":"x"}`,
	"session/rewind": `,"toNode":"$root"}`, "session/points": `}`, "session/diff": `}`, "graph/read": `}`, "graph/append": `,"nodes":[{"plugin":{"type":"n","body":1}}]}`,
	"graph/pin": `,"nodeId":"$root"}`, "graph/unpin": `,"nodeId":"$root"}`, "turn/start": `,` + input, "turn/run": `,` + input,
	"turn/list": `}`, "queue/list": `}`, "queue/cancel": `,"inputId":"inp_none"}`, "decision/list": `}`, "tool/list": `}`,
	"tool/state": `}`, "tool/applyState": `,"state":{"generation":0,"tools":{}}}`, "tool/setMembership": `,"members":{}}`,
	"tool/setAvailability": `,"names":[]}`, "tool/refresh": `}`,
	"code/state": `}`, "code/execute": `,"source":"x"}`,
	"tool/call": `,"name":"deploy"}`, "tool/respond": `,"callId":"c","ack":true}`, "usage/read": `}`, "debug/prompt": `}`,
	"operation/list": `}`, "operation/query": `,"name":"x"}`, "operation/command": `,"name":"x"}`, "operation/task": `,"name":"x"}`,
	"action/invoke": `,"name":"x"}`, "snapshot/create": `,"name":"x"}`, "snapshot/list": `}`, "snapshot/read": `,"name":"x"}`,
	"snapshot/preview": `,"name":"x"}`, "snapshot/restore": `,"name":"x"}`, "snapshot/delete": `,"name":"x"}`, "artifact/write": `,"uploadId":"u","bytes":""}`,
	"completion/create": `,"model":"stalled",` + asked[1:len(asked)-1] + `}`,
}

func testState(t *testing.T, f *fixture) {
	w := f.dialSocket(t)
	for _, c := range states {
		f.check(t, w, badCase{in: call(c.method, c.params), want: []string{c.want}})
	}
	for method, rest := range needSession {
		f.check(t, w, badCase{in: call(method, `{"sessionId":"ses_none"`+rest), want: []string{notFound("sessionNotFound", "reload")}})
		f.check(t, w, badCase{in: call(method, `{"sessionId":"$gone"`+rest), want: []string{notFound("sessionDeleted", "never")}})
	}
	// Rejections in a result.
	for _, c := range []struct{ method, params, has string }{
		{"graph/append", `{"sessionId":"$rewound","requiresAncestorNodeId":"$stale","nodes":[{"plugin":{"type":"n","body":1}}]}`, `"status":"staleBranch"`},
		{"queue/cancel", inIdle + `"inputId":"inp_none"}`, `"status":"notFound"`},
		{"turn/interrupt", `{"turnId":"$done"}`, `"status":"completionWon"`},
		{"session/attach", inIdle + `"afterSeq":18446744073709551615}`, `"reason":"rolledBack"`},
		{"session/attach", inIdle + `"afterSeq":1,"epoch":-7}`, `"reason":"otherStore"`},
		{"session/wait", `{"sessionId":"$busy","timeoutMs":1}`, `"state":"running"`},
		{"turn/wait", `{"turnId":"$queued","timeoutMs":1}`, `"state":"queued"`},
	} {
		f.check(t, w, badCase{in: call(c.method, c.params), want: []string{"1 ok"}, has: c.has})
	}
}

// TestBadInput (reliability/R13): bad input gets a precise typed error, changes nothing and leaves the connection
// usable, unless it cannot tell messages apart any more.
func TestBadInput(t *testing.T) {
	f := newFixture(t)
	for name, test := range map[string]func(*testing.T, *fixture){
		"framing": testFraming, "conduct": testConduct, "strict": testStrict, "params": testParams, "state": testState,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
	for name, cases := range map[string][]badCase{"json": documents, "rpc": envelopes} {
		t.Run(name, func(t *testing.T) {
			w := f.dialSocket(t)
			for _, c := range cases {
				f.check(t, w, c)
			}
		})
	}
	t.Logf("%d cases", f.cases)
}
