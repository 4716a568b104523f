package rpc_test

import (
	"slices"
	"strings"
	"testing"

	"lashd/rpc"
)

// param is the answer to a request whose params are wrong at a pointer; near is the name that was probably meant.
func param(pointer string, near ...string) string {
	words := []string{"1 -32602 invalidParams never none", pointer}
	for _, name := range near {
		words = append(words, "~"+name)
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

func notFound(kind, retry string) string { return "1 -32002 " + kind + " " + retry + " none" }

// paramCase is a method whose params are wrong.
type paramCase struct{ method, params, want string }

const (
	text     = `{"type":"text","text":"x"}`
	inIdle   = `{"sessionId":"$idle",`
	inAppend = `{"sessionId":"$idle","nodes":[{"message":{"role":"user","parts":[{"kind":"text","text":"x"}]}},`
	asked    = `{"messages":[{"role":"user","parts":[{"kind":"text","text":"x"}]}],`
)

// wrong has mistakes in the params of all methods except those of wrongSession; together at least one for each param.
var wrong = []paramCase{
	{"graph/read", `{}`, param("/sessionId")},
	{"graph/read", inIdle + `"limit":100000000}`, param("/limit")},
	{"graph/append", inIdle[:len(inIdle)-1] + `}`, param("/nodes")},
	{"graph/append", inIdle + `"nodes":[]}`, param("/nodes")},
	{"graph/append", inIdle + `"nodes":null}`, param("/nodes")},
	{"graph/append", inIdle + `"nodes":[{}]}`, param("/nodes/0")},
	{"graph/append", inIdle + `"nodes":[null]}`, param("/nodes/0")},
	{"graph/append", inIdle + `"nodes":[` + strings.Repeat("{},", 512) + `{}]}`, param("/nodes")},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"type":"a"}}]}`, param("/nodes/0/plugin/body")},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"type":"","body":1}}]}`, param("/nodes/0/plugin/type")},
	{"graph/append", inIdle + `"nodes":[{"frameOpen":{"key":"k","reason":"r"}}]}`, param("/nodes/0/frameOpen/config")},
	{"graph/append", inAppend + `{"message":{"role":"user"}}]}`, param("/nodes/1/message/parts")},
	{"graph/append", inAppend + `{"message":{"parts":[]}}]}`, param("/nodes/1/message/role")},
	{"graph/append", inAppend + `{"message":{"role":"boss","parts":[]}}]}`, param("/nodes/1/message/role")},
	{"graph/append", inAppend + `{"message":{"role":"user","parts":[]}}]}`, param("/nodes/1/message/parts")},
	{"graph/append", inAppend + part(strings.Repeat(`{"kind":"text"},`, 1000)+`{"kind":"text"}`), param("/nodes/1/message/parts")},
	{"graph/append", inAppend + part(`{"text":"x"}`), param("/nodes/1/message/parts/0/kind")},
	{"graph/append", inAppend + part(`{"kind":"toolCall"}`), param("/nodes/1/message/parts/0/kind")},
	{"graph/append", inAppend + part(`{"kind":"toolResult"}`), param("/nodes/1/message/parts/0/kind")},
	{"graph/append", inAppend + part(`{"kind":"attachment"}`), param("/nodes/1/message/parts/0/attachment")},
	{"graph/append", inAppend + part(`{"kind":"attachment","attachment":{"data":""}}`), param("/nodes/1/message/parts/0/attachment/type")},
	{"graph/append", inAppend + part(`{"kind":"attachment","attachment":{"type":""}}`), param("/nodes/1/message/parts/0/attachment")},
	{"graph/append", inAppend + part(`{"kind":"attachment","attachment":{"type":"a/b","data":"%"}}`), param("/nodes/1/message/parts/0/attachment/data")},
	{"graph/append", inAppend + part(`{"kind":"text","call":{"callId":"c","name":"n","args":{}}}`), param("/nodes/1/message/parts/0/call")},
	{"graph/append", inAppend + part(`{"kind":"text","call":{"callId":"c","name":"n"}}`), param("/nodes/1/message/parts/0/call/args")},
	{"graph/append", inAppend + part(`{"kind":"text","result":{"callId":"c","name":"n","output":{"status":"success"},"order":0}}`), param("/nodes/1/message/parts/0/result")},
	{"graph/append", inAppend + part(`{"kind":"text","attachment":{"type":"a/b"}}`), param("/nodes/1/message/parts/0/attachment")},
	{"graph/append", inIdle + `"nodes":[{"plugin":{"type":"a","body":1}}],"operationId":"` + strings.Repeat("x", 257) + `"}`, param("/operationId")},
	{"graph/pin", inIdle[:len(inIdle)-1] + `}`, param("/nodeId")},
	{"graph/pin", inIdle + `"nodeId":5}`, param("/nodeId")},
	{"graph/unpin", `{"nodeId":"$root"}`, param("/sessionId")},
	{"turn/start", `{}`, param("/sessionId")},
	{"turn/start", `{"sessionId":7,"input":[]}`, param("/sessionId")},
	{"turn/start", inIdle[:len(inIdle)-1] + `}`, param("/input")},
	{"turn/start", inIdle + `"inptu":[]}`, param("/inptu", "input")},
	{"turn/start", inIdle + `"input":[]}`, param("/input")},
	{"turn/start", inIdle + `"input":"hello"}`, param("/input")},
	{"turn/start", inIdle + `"input":[` + text + `,{"text":"x"}]}`, param("/input/1/type")},
	{"turn/start", inIdle + `"input":[` + text + `,{"type":"text"}]}`, param("/input/1/text")},
	{"turn/start", inIdle + `"input":[{"type":"smell"}]}`, param("/input/0/type")},
	{"turn/start", inIdle + `"input":[{"type":"attachment"}]}`, param("/input/0/attachment")},
	{"turn/start", inIdle + `"input":[{"type":"attachment","attachment":{"name":"x"}}]}`, param("/input/0/attachment/type")},
	{"turn/start", inIdle + `"input":[{"type":"text","text":"` + strings.Repeat("x", 7_900_000) + `"}]}`, param("/input")},
	{"turn/start", inIdle + `"input":[` + strings.Repeat(text+",", 1000) + text + `]}`, param("/input")},
	{"turn/start", inIdle + `"input":[` + text + `],"whenBusy":"wait"}`, param("/whenBusy")},
	{"turn/run", inIdle + `"input":[{"typ":"text"}]}`, param("/input/0/typ", "type")},
	{"turn/run", inIdle + `"input":[` + text + `],"whenBusy":"x"}`, param("/whenBusy")},
	{"turn/wait", `{}`, param("/turnId")},
	{"turn/wait", `{"turnId":"$done","timeoutMs":-1}`, param("/timeoutMs")},
	{"turn/wait", `{"turnId":"$done","timeoutMs":9223372036854}`, param("/timeoutMs")},
	{"turn/steer", `{"turnId":"$running"}`, param("/input")},
	{"turn/steer", `{"turnId":"$running","input":[` + text + `],"boundary":"now"}`, param("/boundary")},
	{"turn/interrupt", `{"reason":"x"}`, param("/turnId")},
	{"turn/interrupt", `{"turnId":"$running","reason":5}`, param("/reason")},
	{"turn/read", `{"id":"$done"}`, param("/id")},
	{"turn/trace", `{}`, param("/turnId")},
	{"turn/trace", `{"turnId":"$done","limit":501}`, param("/limit")},
	{"turn/trace", `{"turnId":"$done","cursor":"LTE"}`, param("/cursor")},
	{"turn/list", `{}`, param("/sessionId")},
	{"turn/list", inIdle + `"limit":201}`, param("/limit")},
	{"turn/list", inIdle + `"cursor":"LTE"}`, param("/cursor")},
	{"queue/list", `{"all":true}`, param("/sessionId")},
	{"queue/cancel", inIdle[:len(inIdle)-1] + `}`, param("/inputId")},
	{"decision/list", `{"sessionId":5}`, param("/sessionId")},
	{"decision/respond", `{"decisionId":"$decision"}`, param("/choice")},
	{"decision/respond", `{"choice":"reject"}`, param("/decisionId")},
	{"tool/list", `{}`, param("/sessionId")},
	{"tool/state", `{}`, param("/sessionId")},
	{"tool/applyState", inIdle[:len(inIdle)-1] + `}`, param("/state")},
	{"tool/applyState", inIdle + `"state":{"tools":{}}}`, param("/state/generation")},
	{"tool/applyState", inIdle + `"state":{"generation":0,"tools":{"x":{}}}}`, param("/state/tools/x/manifest")},
	{"tool/setAvailability", inIdle + `"availability":"off"}`, param("/names")},
	{"tool/setAvailability", inIdle + `"names":[1]}`, param("/names/0")},
	{"tool/refresh", `{}`, param("/sessionId")},
	{"tool/setMembership", inIdle + `"generation":0}`, param("/members")},
	{"tool/setMembership", inIdle + `"members":{"a/b":"yes"}}`, param("/members/a~1b")},
	{"tool/setMembership", inIdle + `"members":[]}`, param("/members")},
	{"tool/call", inIdle[:len(inIdle)-1] + `}`, param("/name")},
	{"tool/call", `{"sessionId":"$ask","name":"deploy","args":5}`, param("/args")},
	{"tool/call", `{"sessionId":"$ask","name":"deploy","args":null}`, param("/args")},
	{"code/state", `{}`, param("/sessionId")},
	{"code/state", `{"sessionId":5}`, param("/sessionId")},
	{"code/execute", `{"source":"x"}`, param("/sessionId")},
	{"code/execute", inIdle[:len(inIdle)-1] + `}`, param("/source")},
	{"code/execute", inIdle + `"source":""}`, param("/source")},
	{"code/execute", inIdle + `"source":["x"]}`, param("/source")},
	{"code/execute", inIdle + `"source":"x","write":1}`, param("/write")},
	{"code/execute", inIdle + `"source":"x","writes":true}`, param("/writes", "write")},
	{"code/execute", inIdle + `"source":"x","idempotencyKey":"a\nb"}`, param("/idempotencyKey")},
	{"tool/complete", `{"output":{"status":"success"}}`, param("/key")},
	{"tool/complete", `{"key":"dec_none","output":{"status":"unknown"}}`, param("/output/status")},
	{"tool/respond", inIdle + `"ack":true}`, param("/callId")},
	{"tool/respond", inIdle + `"callId":"c"}`, param("/output")},
	{"tool/respond", inIdle + `"callId":"c","output":{}}`, param("/output/status")},
	{"tool/respond", inIdle + `"callId":"c","output":{"status":"unknown"}}`, param("/output/status")},
	{"tool/respond", inIdle + `"callId":"c","output":{"status":"failure","failure":{"class":"io"}}}`, param("/output/failure/code")},
	{"plugin/list", `{"cwd":"here"}`, param("/cwd")},
	{"plugin/list", `{"cwd":"/nowhere/at/all"}`, param("/cwd")},
	{"plugin/list", `{"cwd":"/\u0000"}`, param("/cwd")},
	{"plugin/list", `{"cwd":"/` + strings.Repeat("x", 5000) + `"}`, param("/cwd")},
	{"plugin/read", `{}`, param("/name")},
	{"plugin/read", `{"name":""}`, param("/name")},
	{"plugin/read", `{"name":"a\u0000"}`, param("/name")},
	{"plugin/read", `{"name":"` + strings.Repeat("x", 257) + `"}`, param("/name")},
	{"plugin/read", `{"name":"a","cwd":"."}`, param("/cwd")},
	{"plugin/read", `{"name":"../a"}`, notFound("pluginNotFound", "reload")},
	{"plugin/logs", `{"name":"a","limit":1001}`, param("/limit")},
	{"plugin/logs", `{"name":"a","limit":-1}`, param("/limit")},
	{"plugin/logs", `{"name":"a/b"}`, notFound("pluginNotFound", "reload")},
	{"mcp/login", `{}`, param("/server")},
	{"mcp/login", `{"server":"a","cwd":"."}`, param("/cwd")},
	{"mcp/login", `{"server":"a"}`, notFound("mcpServerNotFound", "reload")},
	{"mcp/logout", `{"server":"a","plugin":"p"}`, notFound("mcpServerNotFound", "reload")},
	{"mcp/restart", `{"server":""}`, param("/server")},
	{"mcp/restart", `{"server":"a","cwd":"."}`, param("/cwd")},
	{"mcp/restart", `{"server":"a"}`, notFound("mcpServerNotFound", "reload")},
	{"mcp/finishLogin", `{"loginId":"a","address":"x"}`, notFound("mcpLoginNotFound", "reload")},
	{"plugin/reload", `{"cwd":"../x"}`, param("/cwd")},
	{"plugin/reload", `{"whenBusy":"now"}`, param("/whenBusy")},
	{"plugin/reload", `{"idempotencyKey":"a\nb"}`, param("/idempotencyKey")},
	{"plugin/setEnabled", `{"name":"a"}`, param("/enabled")},
	{"plugin/setEnabled", `{"enabled":true}`, param("/name")},
	{"plugin/setEnabled", `{"name":"a","enabled":true,"cwd":"/nowhere/at/all"}`, param("/cwd")},
	{"plugin/setEnabled", `{"name":"a","enabled":false}`, notFound("pluginNotFound", "reload")},
	{"plugin/trust", `{"name":"a","cwd":"/"}`, param("/digest")},
	{"plugin/trust", `{"name":"a","digest":"x"}`, param("/cwd")},
	{"plugin/trust", `{"name":"a","cwd":"","digest":"x"}`, param("/cwd")},
	{"plugin/trust", `{"name":"a","cwd":"/tmp","digest":"x"}`, notFound("pluginNotFound", "reload")},
	{"plugin/untrust", `{"name":"a"}`, param("/cwd")},
	{"plugin/untrust", `{"name":"","cwd":"/tmp"}`, param("/name")},
	{"plugin/untrust", `{"name":"a","cwd":"/tmp/."}`, notFound("pluginNotFound", "reload")},
	{"operation/list", `{"sessionId":5}`, param("/sessionId")},
	{"operation/query", `{}`, param("/name")},
	{"operation/query", `{"name":"x","arg":{}}`, param("/arg", "args")},
	{"operation/command", inIdle + `"args":{}}`, param("/name")},
	{"operation/task", inIdle + `"name":5}`, param("/name")},
	{"action/invoke", inIdle + `"name":"x","sesionId":""}`, param("/sesionId", "sessionId")},
	{"snapshot/create", inIdle[:len(inIdle)-1] + `}`, param("/name")},
	{"snapshot/create", inIdle + `"name":""}`, param("/name")},
	{"snapshot/create", inIdle + `"name":"` + strings.Repeat("x", 257) + `"}`, param("/name")},
	{"snapshot/list", `{}`, param("/sessionId")},
	{"snapshot/read", inIdle[:len(inIdle)-1] + `}`, param("/name")},
	{"snapshot/restore", inIdle[:len(inIdle)-1] + `}`, param("/name")},
	{"snapshot/delete", `{"name":"x"}`, param("/sessionId")},
	{"artifact/read", `{}`, param("/digest")},
	{"artifact/read", `{"digest":"../../etc/passwd"}`, param("/digest")},
	{"artifact/read", `{"digest":"$digest","limit":1048577}`, param("/limit")},
	{"artifact/read", `{"digest":"$digest","limit":-1}`, param("/limit")},
	{"artifact/read", `{"digest":"$digest","offset":-1}`, param("/offset")},
	{"artifact/write", inIdle + `"uploadId":"u"}`, param("/bytes")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"%"}`, param("/bytes")},
	{"artifact/write", inIdle + `"uploadId":"","bytes":""}`, param("/uploadId")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"","offset":-1}`, param("/offset")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"","offset":1}`, param("/offset")},
	{"artifact/write", inIdle + `"uploadId":"outside/11","bytes":"AAAA","offset":9223372036854775807}`, param("/offset")},
	{"server/backup", `{}`, param("/dir")},
	{"server/backup", `{"dir":"outside/11"}`, param("/dir")},
	{"server/backup", `{"dir":"$dir/outside\u000011"}`, param("/dir")},
	{"server/backup", `{"dir":"$file/outside-11"}`, param("/dir")},
	{"server/backup", `{"dir":"$loop/outside-11"}`, param("/dir")},
	{"server/backup", `{"dir":"$dir/` + strings.Repeat("x", 300) + `"}`, param("/dir")},
	{"server/backup", `{"dir":"$dir/` + strings.Repeat("x", 300) + `/y"}`, param("/dir")},
	{"task/transfer", inIdle + `"taskIds":["tsk_x","tsk_x"],"to":"$busy"}`, param("/taskIds/1")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"","digest":"$digest"}`, param("/digest")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"","done":true,"digest":"$digest"}`, param("/digest")},
	{"artifact/write", inIdle + `"uploadId":"u","bytes":"` + strings.Repeat("AAAA", 1<<20/3+1) + `"}`, param("/bytes")},
	{"completion/create", `{}`, param("/messages")},
	{"completion/create", `{"messages":[]}`, param("/messages")},
	{"completion/create", `{"messages":[{"role":"user","parts":[{"kind":"attachment"}]}]}`, param("/messages/0/parts/0/attachment")},
	{"completion/create", asked + `"text":"and this"}`, param("/text")},
	{"completion/create", asked + `"schema":[]}`, param("/schema")},
	{"turn/start", inIdle + `"input":[{"type":"text","text":"x"}],"schema":{"type":"nonsense"}}`, param("/schema")},
	{"turn/run", inIdle + `"input":[{"type":"text","text":"x"}],"schema":true}`, param("/schema")},
	{"completion/create", asked + `"generation":{"maxOutput":-1}}`, param("/generation/maxOutput")},
	{"completion/create", asked + `"schema":{"type":"nonsense","$ref":"#"}}`, param("/schema")},
	{"completion/create", asked + `"label":"` + strings.Repeat("x", 257) + `"}`, param("/label")},
	{"usage/read", `{"sessionid":"$idle"}`, param("/sessionid", "sessionId")},
	{"debug/prompt", `{}`, param("/sessionId")},
	{"debug/prompt", inIdle + `"input":[{"type":"attachment"}]}`, param("/input/0/attachment")},
}

func tools(list string) string { return `"tools":[` + list + `]}` }

func schema(s string) string { return tools(`{"name":"a","description":"","input":` + s + `}`) }

func part(p string) string { return `{"message":{"role":"user","parts":[` + p + `]}}]}` }

// testParams are mistakes in params: those above, and for every method an array with something in it, a name that it does not have, and one
// that every client may add.
func testParams(t *testing.T, f *fixture) {
	w := f.dialSocket(t)
	for _, c := range slices.Concat(wrongSession, wrong) {
		f.check(t, w, badCase{in: call(c.method, c.params), want: []string{c.want}})
	}
	for method := range rpc.Methods() {
		f.check(t, w, badCase{in: call(method, `[{}]`), want: []string{param("")}})
		f.check(t, w, badCase{in: call(method, `{"_trace":{"id":[1]},"zzzz":1}`), want: []string{param("/zzzz")}})
	}
}
