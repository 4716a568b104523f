package worker_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// hundredTools returns 100 tools with schemas, as JSON.
func hundredTools() string {
	var tools []protocol.ToolManifest
	for i := range 100 {
		tools = append(tools, protocol.ToolManifest{
			Name: fmt.Sprintf("server%d.tool%d", i%10, i), Description: "Does something useful with a file of the workspace, and returns what it found.",
			Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"The file."},"limit":{"type":"integer","description":"Lines."}},"required":["path"]}`),
		})
	}
	data, _ := json.Marshal(tools) // plain types always encode
	return string(data)
}

// BenchmarkCell measures a cell through the pipes of a warm worker: with 100 tools bound by the cell before, with the same 100
// tools in the message, and with one call.
func BenchmarkCell(b *testing.B) {
	tools := `,"tools":` + hundredTools()
	for _, c := range []struct{ name, source, more string }{
		{"Start", "1", ""}, {"StartWithTools", "1", tools}, {"OneCall", "server1.tool1('p')\n1", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := starts(b, `{}`)
			d.serve = func(string, json.RawMessage) any {
				return json.RawMessage(`{"data":[{"status":"success","text":"x"}]}`)
			}
			d.call("code/execute", cellParams("0", tools))
			params := cellParams(c.source, c.more)
			for b.Loop() {
				id := d.begin("code/execute", params)
				if a, err := d.await(id); err != nil || !strings.Contains(string(a.Result), `"value":1`) {
					b.Fatalf("%s, %v", a.Result, err)
				}
			}
		})
	}
}

// BenchmarkRestore measures code/restore of 10 MB in messages of 2 MiB, and the first cell.
func BenchmarkRestore(b *testing.B) {
	d := starts(b, `{}`)
	var parts []string
	for i := range 5 {
		d.cell(fmt.Sprintf("g%d = ['a line of a log file with some words in it, number %%d' %% i for i in range(35000)]", i))
	}
	s := decoded[snapshot](b, d.call("code/snapshot", `{"instance":"i"}`))
	for more := s.More; more; {
		next := decoded[snapshot](b, d.call("code/snapshot", `{"instance":"i"}`))
		maps.Copy(s.Changed, next.Changed)
		more = next.More
	}
	size := 0
	for i := range 5 {
		name := fmt.Sprintf("g%d", i)
		size += len(s.Changed[name])
		parts = append(parts, fmt.Sprintf(`{"instance":"i","values":{%q:%q},"more":%v}`, name, base64.StdEncoding.EncodeToString(s.Changed[name]), i < 4))
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, part := range parts {
			d.call("code/restore", part)
		}
		if r := d.cell("1"); r.Error != "" {
			b.Fatal(r.Error)
		}
	}
}
