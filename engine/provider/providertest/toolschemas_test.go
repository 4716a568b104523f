package providertest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// TestToolSchemas has a tool whose schema has alternatives at its root, which the vendors reject together with the whole request.
func TestToolSchemas(t *testing.T) {
	const own = `{"type":"object","properties":{"a":{"const":"x"},"b":{"$ref":"#/definitions/d","title":"t"}},"anyOf":[{"required":["a"]},{"required":["b"]}],"definitions":{"d":{"type":"string"}}}`
	const general = `{"definitions":{"d":{"type":"string"}},"properties":{"a":{"const":"x"},"b":{"$ref":"#/definitions/d","title":"t"}},"type":"object"}`
	const googles = `{"$defs":{"d":{"type":"string"}},"properties":{"a":{"enum":["x"]},"b":{"anyOf":[{"$ref":"#/$defs/d"}],"title":"t"}},"type":"object"}`
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, "")
		req := providertest.Request()
		req.Tools = []protocol.ToolManifest{{Name: "f", Input: json.RawMessage(own)}}
		body, _, _ := rec.Sent(t, d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}), req)
		want := general
		if d.name == "gemini" {
			want = googles
		}
		if !strings.Contains(body, ":"+want) || strings.Contains(body, own) {
			t.Errorf("part9/schema the tool's schema is not %s in %s", want, body)
		}
	})
}

// TestOutputSchemas has a schema of a reply that only Google's API needs in another form.
func TestOutputSchemas(t *testing.T) {
	const own = `{"type":"object","properties":{"a":{"const":"x"}},"required":["a"],"additionalProperties":false}`
	want := map[string]string{"gemini": `{"additionalProperties":false,"properties":{"a":{"enum":["x"]}},"required":["a"],"type":"object"}`}
	over(t, func(t *testing.T, d *dialect) {
		rec := providertest.Record(t, "")
		req := providertest.Request()
		req.Output = provider.OutputSpec{JSON: true, Schema: json.RawMessage(own)}
		body, _, _ := rec.Sent(t, d.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}), req)
		if sent, ok := want[d.name]; ok && !strings.Contains(body, sent) || !ok && !strings.Contains(body, own) {
			t.Errorf("part9/schema the reply's schema is not in %s", body)
		}
	})
}
